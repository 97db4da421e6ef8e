#include "advice.h"

#include <string.h>

#include "../node/guard.h"

/* The first that is found in the reason. */
static const struct {
  const char *words, *advice;
} advices[] = {
    {"redlock bootstrap ends it", "wait, or run `redlock bootstrap` if no lock is live on any node"},
    {"version 0.1", "stop all programs, install this version everywhere, and run `redlock bootstrap --replace`"},
    {"allows leases of", "give all programs of these nodes the same max_ttl_ms, best at the end of the list of nodes"},
    {"new or has lost its keys",
     "programs that acquire locks register it; or run `redlock bootstrap` if no lock is live on any node"},
    {"its clock", "keep the servers' clocks in step (NTP) and do not step them; it votes again by itself"},
    {"may have lost keys", "wait; find out what deletes keys there: FLUSHALL, a restart without data, a failover"},
    {"the same server as", "give every URL a server of its own"},
    {"it forbids", "docs/redlock.md lists all that the user needs"},
    {"CLUSTERDOWN", "use servers with cluster-enabled no"},
    {"MOVED", "use servers with cluster-enabled no"},
    {"cluster", "use servers with cluster-enabled no"},
    {"runs in mode", "use the address of the server itself"},
    {"a replica", "make it a master (REPLICAOF NO ONE), or correct the address"},
    {"READONLY", "make it a master (REPLICAOF NO ONE), or correct the address"},
    {"evicts keys", "CONFIG SET maxmemory-policy noeviction, also in its configuration file"},
    {"is not a marker", "use a key_prefix of your own, or delete the key"},
    {"its marker is of",
     "correct this program's list of nodes; only if the list was changed on purpose, and all programs are stopped, "
     "run `redlock bootstrap --replace`"},
    {"NOAUTH", "put a user and a password in the URL, or use user_file and password_file"},
    {"WRONGPASS", "correct the user and the password"},
    {"invalid password", "correct the password"},
    {"NOPERM", "give the user the permissions that docs/redlock.md lists"},
    {"can't run this command", "give the user the permissions that docs/redlock.md lists"},
    {"ACL failure", "give the user the permissions that docs/redlock.md lists"},
    {"DB index", "use a database that it has: the number at the end of the URL"},
    {"LOADING", "wait until it has loaded its data"},
    {"max number of clients", "raise maxclients, or find out who keeps so many connections open"},
    {"DENIED", "set a password, or protected-mode no on a private network"},
    {"OOM", "raise maxmemory"},
    {"memory is full", "raise maxmemory, or delete keys that are not needed any more"},
    {"MISCONF", "free the disk that it writes to, or see its log"},
    {"append-only file", "free the disk that it writes to, or see its log"},
    {"last snapshot", "free the disk that it writes to, or see its log; BGSAVE then ends it"},
    {"NOREPLICAS", "set min-replicas-to-write 0"},
    {"may expect TLS", "use rediss:// if it speaks TLS"},
    {"without TLS", "use redis:// if the port is one without TLS; or see whether the server hangs"},
    {"does not speak it", "use redis:// if the port is one without TLS"},
    {"TLS handshake in time",
     "see whether the server hangs and whether a firewall drops packets; or raise connect_timeout_ms"},
    {"wants a certificate",
     "set tls_cert_file and tls_key_file to a certificate that the server knows, see docs/tls.md"},
    {"certificate is not for", "name the node as its certificate does, or set tls_server_name"},
    {"has expired", "renew the server's certificate; or correct this machine's clock"},
    {"not yet valid", "correct the clock of this machine or of the one that issued the certificate"},
    {"in the handshake", "see the server's log"},
    {"TLS", "compare the certificate and the CA with what the options tls_* say, see docs/tls.md"},
    {"certificate", "compare the certificate and the CA with what the options tls_* say, see docs/tls.md"},
    {"_file", "correct the file that the option names"},
    {"name not resolved", "correct the host name, or the resolver"},
    {"refused", "start the server, or correct the address"},
    {"no such file", "start the server, or correct the path of its socket"},
    {"in time", "see whether the server hangs and whether a firewall drops packets; or raise connect_timeout_ms"},
    {"timed out", "see whether the server hangs and whether a firewall drops packets; or raise connect_timeout_ms"},
    {"unreachable", "correct the address, the route or the firewall"},
    {"no answer", "see whether the server hangs: its log, SLOWLOG, the machine's load"},
    {"silent", "see whether the server hangs: its log, SLOWLOG, the machine's load"},
    {"closed the connection", "see the server's log"},
    {"reset", "see the server's log"},
};

const char *rlk_advice(int votes, const char *why)
{
  if (votes && !*why)
    return "";
  for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
    if (strstr(why, advices[i].words))
      return advices[i].advice;
  return "";
}

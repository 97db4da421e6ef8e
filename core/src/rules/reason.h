/* Why a node does not vote, or a connection ended: the row of a reason has its words, the advice, and the cause. */
#ifndef RLK_REASON_H
#define RLK_REASON_H

enum { RLK_WHY_SIZE = 132 /* 128 characters, then "..." */ };

#define RLK_SEE_SERVER "see whether the server hangs: its log, SLOWLOG, the machine's load"
#define RLK_SEE_NETWORK "see whether the server hangs and whether a firewall drops packets; or raise connect_timeout_ms"
#define RLK_SEE_LISTENER                                                                                               \
  "see what listens at the address: it must be a Redis or Valkey server, without a proxy that changes replies"
#define RLK_SEE_LOG "see the server's log"
#define RLK_SEE_DISK "free space on its disk, or see its log"
#define RLK_GIVE_ACL "give the user the permissions that `redlock help acl` prints"
#define RLK_NO_CLUSTER "use servers with cluster-enabled no"
#define RLK_MAKE_MASTER "make it a master (REPLICAOF NO ONE), or correct the address"
#define RLK_COMPARE_TLS "compare the certificate and the CA with what the options tls_* say (`redlock help tls`)"
#define RLK_PLAIN_PORT "use redis:// if the port is one without TLS"
#define RLK_KEEP_CLOCKS "keep the servers' clocks in step (NTP) and do not step them; it votes again by itself"
#define RLK_ONE_NUMBER "give all programs of these nodes the same max_ttl_ms, best at the end of the list of nodes"
#define RLK_CORRECT_LIST(more)                                                                                         \
  "correct this program's list of nodes" more                                                                          \
  "; only if the list was changed on purpose, and all programs are stopped, run `redlock bootstrap --replace`"

/* X(symbol, name, how it passes, words, advice, cause). `name` is the anchor in docs/troubleshooting.md. The detail of
 * a reason takes the place of %s, or follows the words; where a server or a library has words of its own, they stand
 * for all. */
#define RLK_REASONS(X)                                                                                                 \
  RLK_REASONS_OF_CONNECTIONS(X)                                                                                        \
  RLK_REASONS_OF_TLS(X)                                                                                                \
  RLK_REASONS_OF_SERVERS(X)                                                                                            \
  RLK_REASONS_OF_ERRORS(X)                                                                                             \
  RLK_REASONS_OF_THE_GUARD(X)

#define RLK_REASONS_OF_CONNECTIONS(X)                                                                                  \
  X(REFUSED, "refused", BY_ITSELF, "connection refused", "start the server, or correct the address",                   \
    "No process listens at the address.")                                                                              \
  X(NO_SOCKET, "no-socket", BY_ITSELF, "no such file or directory",                                                    \
    "start the server, or correct the path of its socket", "There is no socket with the path of a unix:// URL.")       \
  X(SOCKET_DENIED, "socket-denied", BY_ITSELF, "permission denied on the socket",                                      \
    "give this program's user the rights to the socket (unixsocketperm of the server, its group) and to its folder",   \
    "The user of this program may not open the socket of a unix:// URL.")                                              \
  X(CONNECT_TIMEOUT, "connect-timeout", BY_ITSELF, "connecting timed out", RLK_SEE_NETWORK,                            \
    "The server did not accept the connection within connect_timeout_ms.")                                             \
  X(SETUP_TIMEOUT, "setup-timeout", BY_ITSELF, "no reply to the session set-up in time", RLK_SEE_NETWORK,              \
    "The connection was accepted, but the server did not answer within connect_timeout_ms.")                           \
  X(UNREACHABLE, "unreachable", BY_ITSELF, "no route to host", "correct the address, the route or the firewall",       \
    "The network has no route to the server.")                                                                         \
  X(NAME, "name", BY_ITSELF, "name not resolved", "correct the host name, or the resolver",                            \
    "The resolver knows no address for the host, or did not answer in time.")                                          \
  X(CLOSED, "closed", BY_ITSELF, "the server closed the connection", RLK_SEE_LOG,                                      \
    "The server or a proxy ended the connection: a restart, CLIENT KILL, the option timeout.")                         \
  X(MAY_EXPECT_TLS, "may-expect-tls", BY_A_PERSON, "%s; it may expect TLS (rediss://)",                                \
    "use rediss:// if it speaks TLS",                                                                                  \
    "The server closed the connection at the first bytes, as a server does that expects a TLS handshake.")             \
  X(RESET, "reset", BY_ITSELF, "connection reset by peer", RLK_SEE_LOG,                                                \
    "The server's process or machine broke the connection.")                                                           \
  X(SILENT, "silent", BY_ITSELF, "no answer for %s", RLK_SEE_SERVER,                                                   \
    "Requests are in flight and no byte comes: the server is stopped or busy, or packets are lost. A second "          \
    "connection is tried beside it.")                                                                                  \
  X(LATE, "late", BY_ITSELF, "no answer in time", RLK_SEE_SERVER,                                                      \
    "The node is connected and did not answer within node_timeout_ms.")                                                \
  X(OVERLOADED, "overloaded", BY_ITSELF, "too many answers outstanding", RLK_SEE_SERVER,                               \
    "So many requests wait for the node's answers that no further one is sent.")                                       \
  X(DROPPED, "dropped", BY_ITSELF, "connection lost", RLK_SEE_LOG,                                                     \
    "The connection broke while the request was in flight.")                                                           \
  X(MISFIT, "misfit", BY_A_PERSON, "a reply to no request", RLK_SEE_LISTENER,                                          \
    "A reply fits no request or breaks the protocol; of a web server: `Protocol error, got \"H\" as reply type "       \
    "byte`. "                                                                                                          \
    "Nothing that follows on the connection can be trusted.")                                                          \
  X(SYSTEM, "system", BY_ITSELF, "the system refused",                                                                 \
    "see the limits of this process and its machine: descriptors (ulimit -n), memory, threads",                        \
    "The operating system of the client refused a socket, or ended the connection.")                                   \
  X(MEMORY, "memory", BY_ITSELF, "out of memory", "give this program more memory",                                     \
    "An allocation failed in the client.")                                                                             \
  X(LEAVING, "leaving", NEVER, "the client is closed", "open another client", "The program closed the client.")

#define RLK_REASONS_OF_TLS(X)                                                                                          \
  X(TLS_SILENT, "tls-silent", BY_ITSELF, "no answer to the TLS handshake in time", RLK_SEE_NETWORK,                    \
    "The server has sent a part of the handshake and no more.")                                                        \
  X(MAY_BE_PLAIN, "may-be-plain", BY_A_PERSON,                                                                         \
    "no answer to the TLS handshake in time; it may do without TLS (redis://)",                                        \
    RLK_PLAIN_PORT "; or see whether the server hangs",                                                                \
    "The server has not sent a byte: it hangs, or it takes the handshake for a command and waits for its end.")        \
  X(NO_TLS, "no-tls", BY_A_PERSON, "TLS: the server does not speak it there", RLK_PLAIN_PORT,                          \
    "The port is one without TLS.")                                                                                    \
  X(TLS_CLOSED, "tls-closed", BY_ITSELF, "TLS: the server closed the connection in the handshake", RLK_SEE_LOG,        \
    "The server ended the handshake without an alert.")                                                                \
  X(TLS_NAME, "tls-name", BY_A_PERSON, "TLS: the server's certificate is not for %s",                                  \
    "name the node as its certificate does, or set tls_server_name",                                                   \
    "The certificate has another name than the host of the URL, or than tls_server_name.")                             \
  X(TLS_EXPIRED, "tls-expired", BY_A_PERSON, "TLS: the server's certificate is refused: certificate has expired",      \
    "renew the server's certificate; or correct this machine's clock", "The validity of the certificate has ended.")   \
  X(TLS_NOT_YET, "tls-not-yet", BY_A_PERSON, "TLS: the server's certificate is refused: certificate is not yet valid", \
    "correct the clock of this machine or of the one that issued the certificate",                                     \
    "The validity of the certificate has not begun.")                                                                  \
  X(TLS_UNTRUSTED, "tls-untrusted", BY_A_PERSON, "TLS: the server's certificate is refused: %s", RLK_COMPARE_TLS,      \
    "No authority in tls_ca_file or tls_ca_path vouches for the certificate.")                                         \
  X(TLS_WANTS_CERT, "tls-wants-certificate", BY_A_PERSON,                                                              \
    "TLS: the server wants a certificate: set tls_cert_file and tls_key_file",                                         \
    "set tls_cert_file and tls_key_file to a certificate that the server knows (`redlock help tls`)",                  \
    "The server accepts only clients that show a certificate (tls-auth-clients yes).")                                 \
  X(TLS_ALERT, "tls-alert", BY_A_PERSON, "TLS: the server refuses: %s", RLK_COMPARE_TLS,                               \
    "The server ended the handshake with an alert.")                                                                   \
  X(TLS, "tls", BY_A_PERSON, "TLS: %s", RLK_COMPARE_TLS, "OpenSSL ended the connection; the words are its own.")

#define RLK_REASONS_OF_SERVERS(X)                                                                                      \
  X(FILE, "file", BY_A_PERSON, "a file cannot be read", "correct the file that the option names",                      \
    "user_file or password_file is missing, empty, too long or not readable for this process.")                        \
  X(NO_IDENTITY, "no-identity", BY_A_PERSON, "INFO names no run_id or no role", RLK_SEE_LISTENER,                      \
    "What answers is no Redis or Valkey server, or a proxy, a service or a renamed INFO hides what the server is.")    \
  X(REPLICA, "replica", BY_ITSELF, "a replica; only masters are eligible to vote", RLK_MAKE_MASTER,                    \
    "The server replicates from another one, or a failover has demoted it.")                                           \
  X(CLUSTER, "cluster", NEVER, "a cluster node; nodes must be independent masters", RLK_NO_CLUSTER,                    \
    "The server is a node of Redis Cluster.")                                                                          \
  X(MODE, "mode", NEVER, "runs in mode %s; nodes must be independent masters", "use the address of the server itself", \
    "The address is that of a Sentinel or of a proxy.")                                                                \
  X(EVICTS, "evicts", BY_A_PERSON, "evicts keys (maxmemory-policy %s); set it to noeviction",                          \
    "CONFIG SET maxmemory-policy noeviction, also in its configuration file",                                          \
    "A server that evicts keys may delete a lock that is held.")                                                       \
  X(SAME_SERVER, "same-server", BY_A_PERSON, "the same server as %s", "give every URL a server of its own",            \
    "Two URLs lead to one server, which has only one vote.")                                                           \
  X(OTHER_SERVER, "other-server", BY_ITSELF, "another server answers there now",                                       \
    "wait; find out what has moved the address: a restart, a failover, a proxy",                                       \
    "A new connection leads to another server than the one before.")                                                   \
  X(FULL, "full", BY_ITSELF, "its memory is full (%s): it grants no lock until it has room",                           \
    "raise maxmemory, or delete keys that are not needed any more", "used_memory has reached maxmemory.")              \
  X(AOF, "aof", BY_ITSELF, "it cannot write its append-only file (aof_last_write_status err): it grants no lock",      \
    RLK_SEE_DISK, "Its disk is full or broken.")                                                                       \
  X(SNAPSHOT, "snapshot", BY_ITSELF,                                                                                   \
    "its last snapshot failed (rdb_last_bgsave_status err): with stop-writes-on-bgsave-error it grants no lock",       \
    RLK_SEE_DISK "; then run BGSAVE", "Its disk is full or broken, or it could not fork.")                             \
  X(STORES_NO_KEY, "stores-no-key", BY_ITSELF, "it refuses to store a key: %s", RLK_SEE_LOG,                           \
    "The server answered a SET with an error that concerns it as a whole.")

/* Errors of servers, by how they begin: their own words are shown, but for those of an answer to the login. */
#define RLK_REASONS_OF_ERRORS(X)                                                                                       \
  X(NOAUTH, "noauth", BY_A_PERSON, "NOAUTH: no password was given",                                                    \
    "put a user and a password in the URL, or use user_file and password_file", "The server wants a password.")        \
  X(WRONGPASS, "wrongpass", BY_A_PERSON, "WRONGPASS", "correct the user and the password",                             \
    "The server knows no such user, has another password for it, or has switched it off.")                             \
  X(NOPERM, "noperm", BY_A_PERSON, "NOPERM", RLK_GIVE_ACL,                                                             \
    "The ACL of the user denies a key or a command (in a script: `can't run this command`, `ACL failure in script`).") \
  X(FORBIDS, "forbids", BY_A_PERSON, "it forbids %s",                                                                  \
    "`redlock help acl` prints all that the user needs; keys with a prefix need key_prefix",                           \
    "The ACL of the user denies a command that the set-up needs.")                                                     \
  X(DATABASE, "database", NEVER, "DB index is out of range",                                                           \
    "use a database that it has: the number at the end of the URL",                                                    \
    "The URL names a database that the server does not have.")                                                         \
  X(LOADING, "loading", BY_ITSELF, "LOADING", "wait until it has loaded its data",                                     \
    "The server was started and is reading its data file.")                                                            \
  X(MAX_CLIENTS, "max-clients", BY_ITSELF, "max number of clients reached",                                            \
    "raise maxclients, or find out who keeps so many connections open",                                                \
    "The server has as many connections as it allows.")                                                                \
  X(PROTECTED, "protected", BY_A_PERSON, "DENIED: protected mode",                                                     \
    "set a password, or protected-mode no on a private network",                                                       \
    "The server has no password and accepts connections from its own machine only.")                                   \
  X(READONLY, "readonly", BY_ITSELF, "READONLY", RLK_MAKE_MASTER,                                                      \
    "The server has become a replica; `MASTERDOWN`: one that has lost its primary.")                                   \
  X(IN_CLUSTER, "in-cluster", NEVER, "MOVED", RLK_NO_CLUSTER,                                                          \
    "The server is a node of Redis Cluster. `ASK`, `CROSSSLOT` and `CLUSTERDOWN` say the same.")                       \
  X(OOM, "oom", BY_ITSELF, "OOM", "raise maxmemory", "The server has no memory for a further key.")                    \
  X(BUSY_SCRIPT, "busy-script", BY_ITSELF, "BUSY", "wait, or end the script: SCRIPT KILL",                             \
    "The server runs a script that does not end. If that has written (`UNKILLABLE`), only SHUTDOWN NOSAVE ends it.")   \
  X(MISCONF, "misconf", BY_ITSELF, "MISCONF", RLK_SEE_DISK,                                                            \
    "The server could not save its data, so it refuses to write.")                                                     \
  X(NOREPLICAS, "noreplicas", BY_ITSELF, "NOREPLICAS", "start the replicas, or lower min-replicas-to-write",           \
    "The server has fewer replicas than min-replicas-to-write demands.")                                               \
  X(UNKNOWN_COMMAND, "unknown-command", NEVER, "ERR unknown command",                                                  \
    "use Redis 6.2 or later, or Valkey, and rename no command",                                                        \
    "The server is too old or of another kind, or the command was renamed (`it does not know ...`).")                  \
  X(WRONGTYPE, "wrongtype", BY_A_PERSON, "WRONGTYPE", "delete the key of another type, or use a key_prefix",           \
    "Another program keeps something other than a lock under the key.")                                                \
  X(ERROR, "error", BY_ITSELF, "ERR", RLK_SEE_LOG, "An error that is not in this table.")

#define RLK_REASONS_OF_THE_GUARD(X)                                                                                    \
  X(NO_TIME, "no-time", BY_A_PERSON, "it does not tell the time", RLK_SEE_LISTENER,                                    \
    "The server's reply to TIME is not a time.")                                                                       \
  X(MARKER_RACE, "marker-race", BY_ITSELF, "another client registered this node at the same time",                     \
    "nothing: it is tried again at once", "Two programs found the node without a marker and wrote one.")               \
  X(SHORTER_LEASES, "shorter-leases", BY_ITSELF, "its marker allows only shorter leases", RLK_ONE_NUMBER,              \
    "The node was registered with a smaller max_ttl_ms than this program has.")                                        \
  X(ALLOWS_LESS, "allows-less", NEVER, "allows %s",                                                                    \
    "run `redlock bootstrap --replace` when all programs have the larger max_ttl_ms",                                  \
    "The node was registered with a smaller max_ttl_ms than the lease that is asked for.")                             \
  X(ALLOWS_MORE, "allows-more", BY_A_PERSON, "allows leases of %s: give this program the same", RLK_ONE_NUMBER,        \
    "The node was registered with a larger max_ttl_ms: another program may hold locks for longer than this one "       \
    "would wait after a restart.")                                                                                     \
  X(OTHER_NODES, "other-nodes", BY_A_PERSON, "its marker names %s nodes", RLK_CORRECT_LIST(""),                        \
    "The node was registered as one of another number of nodes.")                                                      \
  X(OTHER_CLUSTER, "other-cluster", BY_A_PERSON, "its marker names cluster %s", RLK_CORRECT_LIST(", or cluster"),      \
    "The node was registered with another value of the option cluster.")                                               \
  X(FOREIGN_MARKER, "foreign-marker", NEVER, "the key %s is not a marker of this library",                             \
    "use a key_prefix of your own, or delete the key", "Another program uses the key of the guard.")                   \
  X(MARKER_CHANGED, "marker-changed", BY_ITSELF, "its marker has changed: it may have lost keys",                      \
    "wait; find out what deletes keys there: FLUSHALL, a restart without data, a failover",                            \
    "The guard's key is gone, or is another one. The node is examined again at once.")                                 \
  X(NOT_REGISTERED, "not-registered", BY_ITSELF, "quarantined: it is new or may have lost keys",                       \
    "programs that acquire locks register it; if no majority votes and no lock is live, run `redlock bootstrap`",      \
    "The node has no marker, or one from before it was restarted; a command that only looks does not write one.")      \
  X(NEW, "new", BY_ITSELF, "quarantined: new, or may have lost keys",                                                  \
    "wait; if no majority votes and no lock is live on any node, run `redlock bootstrap`",                             \
    "The node was registered a short time ago: locks that it may have had before have to end first.")                  \
  X(LOST_KEYS, "lost-keys", BY_ITSELF, "quarantined: it may have lost keys",                                           \
    "wait; find out what deletes keys there: FLUSHALL, a restart without data, a failover",                            \
    "This program has seen that the node lost its keys. Locks that it had granted have to end first.")                 \
  X(CLOCK_STEPPED, "clock-stepped", BY_ITSELF, "quarantined: its clock was stepped forward", RLK_KEEP_CLOCKS,          \
    "Keys on the node have expired early, by as much as the clock was stepped.")                                       \
  X(CLOCK_AHEAD, "clock-ahead", BY_ITSELF, "quarantined: its clock is more than 1 s ahead of the other nodes'",        \
    RLK_KEEP_CLOCKS, "Its clock may have been stepped before this program could see it.")

enum rlk_why {
  RLK_WHY_NONE,
#define RLK_SYMBOL(symbol, ...) RLK_WHY_##symbol,
  RLK_REASONS(RLK_SYMBOL)
#undef RLK_SYMBOL
      RLK_WHY_COUNT
};

/* A reason to refuse passes by itself (a failover goes on, a script ends), by a person who changes something at the
 * server, or not as long as this program runs. */
enum rlk_passes { RLK_PASSES_BY_ITSELF, RLK_PASSES_BY_A_PERSON, RLK_PASSES_NEVER };

struct rlk_reason {
  enum rlk_why why;
  char words[RLK_WHY_SIZE];
};

/* Fills a reason with the words of its row and the detail, which may be NULL; returns why. */
enum rlk_why rlk_because(struct rlk_reason *reason, enum rlk_why why, const char *detail);
/* The same with a text of a server, of the system or of a library, which is escaped. */
enum rlk_why rlk_because_of(struct rlk_reason *reason, enum rlk_why why, const char *text);

/* The name and the words of its row, and the advice, in one line; "" for NONE. */
const char *rlk_why_name(enum rlk_why why);
const char *rlk_why_words(enum rlk_why why);
const char *rlk_why_advice(enum rlk_why why);
enum rlk_passes rlk_why_passes(enum rlk_why why);

#endif

/* The option table: one row per option is all there is to know about it. */
#ifndef RLK_OPTIONS_H
#define RLK_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "../base/buffer.h"
#include "../base/platform.h"

enum rlk_guard { RLK_GUARD_MARKER, RLK_GUARD_EXTERNAL, RLK_GUARD_OFF };
enum { RLK_WAKE_AUTO, RLK_WAKE_PUSH, RLK_WAKE_POLL };
enum { RLK_LAYOUT_STRING, RLK_LAYOUT_HASH };

#define RLK_AUTO INT64_MIN /* the value "auto": derived from the TTL of each call */
#define RLK_TTL_MS_MIN 20

#define RLK_DAY_MS 86400000
#define RLK_YEAR_MS 31536000000
#define RLK_COUNT_MAX 1000000000
#define RLK_PERMITS_MAX 256

/* X(symbol, name, type, unit, default, min, max, also, scope, purpose, help). The range in words is made from type,
 * min, max and also, what the numbers alone do not say; for texts min and max are of their length. Types: INT
 * (milliseconds), AUTO_INT (the same or "auto"), COUNT, FLOAT, BOOL, STRING, NODES. */
#define RLK_OPTIONS(X)                                                                                                 \
  X(NODES, "nodes", NODES, "", "", 0, 65536, "", CLIENT, "node", "URLs of the nodes, separated by commas")             \
  X(TTL_MS, "ttl_ms", INT, "ms", "10000", RLK_TTL_MS_MIN, RLK_DAY_MS, ", not above " RLK_PARTED("max_ttl_ms"), BOTH,   \
    "lease", "how long a lease lasts unless it is extended")                                                           \
  X(MAX_TTL_MS, "max_ttl_ms", INT, "ms", "30000", RLK_TTL_MS_MIN, RLK_DAY_MS, "", CLIENT, "lease",                     \
    "no lease is longer, and a node that may have lost keys does not vote for that long; the same in all "             \
    "programs that use the nodes. May end the list of nodes: ?max_ttl=5m")                                             \
  X(WAIT_MS, "wait_ms", INT, "ms", "15000", -1, RLK_YEAR_MS, "", BOTH, "grant",                                        \
    "how long to wait for a lock that others hold; 0 makes one attempt, -1 waits forever")                             \
  X(OUTAGE_WAIT_MS, "outage_wait_ms", INT, "ms", "5000", -1, RLK_YEAR_MS, "", BOTH, "lease",                           \
    "how long acquire and extend wait while too few nodes answer; 0 makes one attempt; -1 without limit")              \
  X(RETRY_COUNT, "retry_count", COUNT, "", "-1", -1, RLK_COUNT_MAX, "", BOTH, "grant",                                 \
    "attempts after the first, within the wait; -1 without limit")                                                     \
  X(RETRY_DELAY_MS, "retry_delay_ms", INT, "ms", "200", 1, 3600000, "", BOTH, "wait",                                  \
    "the longest pause between attempts; pauses start at three round trips and double")                                \
  X(RETRY_JITTER, "retry_jitter", FLOAT, "", "1.0", 0, 1, "", BOTH, "wait",                                            \
    "how much of each pause is random: 0 none of it, 1 all of it")                                                     \
  X(QUEUE, "queue", BOOL, "", "true", 0, 1, "", BOTH, "wait",                                                          \
    "waiters queue and are served in order, so a wait that is shorter than the queue never wins; if "                  \
    "false, each retries after a random pause")                                                                        \
  X(WAKE, "wake", CHOICE, "", "auto", 0, 2, "auto, push or poll", CLIENT, "wait",                                      \
    "how a queued waiter is notified that its turn has come: push by PUBLISH, poll by asking, auto by push if it can") \
  X(GUARD, "guard", CHOICE, "", "marker", 0, 2, "marker, external or off", CLIENT, "lease",                            \
    "how a node that may have lost its keys is kept from voting for max_ttl_ms. marker: by a key that it would "       \
    "lose too; external: by something outside libredlock; off: not at all")                                            \
  X(CLUSTER, "cluster", STRING, "", "-", 1, 32, ", letters, digits, '.', '_' and '-'", CLIENT, "node",                 \
    "name of this list of nodes; a node that was registered under another name is refused. Give a new list of "        \
    "the same length a new name")                                                                                      \
  X(FENCE, "fence", BOOL, "", "false", 0, 1, "", BOTH, "grant",                                                        \
    "give every acquisition of a resource a larger number than the one before, for stores that reject smaller "        \
    "ones")                                                                                                            \
  X(SHARED, "shared", BOOL, "", "false", 0, 1, "", BOTH, "kind",                                                       \
    "hold the lock together with others that share it, while nobody holds it exclusively; with queue = false those "   \
    "who share it may keep out one who wants it alone for ever")                                                       \
  X(PERMITS, "permits", COUNT, "", "1", 1, RLK_PERMITS_MAX, "", BOTH, "kind",                                          \
    "at most so many hold the resource at a time; the same in all programs that use it")                               \
  X(SLOT, "slot", COUNT, "", "-1", -1, 255, ", below " RLK_PARTED("permits"), BOTH, "kind",                            \
    "which of the permits is wanted, from 0; -1: any that is free")                                                    \
  X(LAYOUT, "layout", CHOICE, "", "string", 0, 1, "string or hash", BOTH, "kind",                                      \
    "what a node stores for the lock. string: the token, as plain locks of any library do; hash: {token: 1}, which "   \
    "programs with a home-made re-entrant lock ({owner: count}) wait for")                                             \
  X(DRIFT_FACTOR, "drift_factor", FLOAT, "", "0.01", 0, 0.1, "", BOTH, "lease",                                        \
    "clock drift to allow for, as a fraction of the TTL")                                                              \
  X(NODE_TIMEOUT_MS, "node_timeout_ms", AUTO_INT, "ms", "auto", 1, 60000, ", not above a quarter of the TTL", BOTH,    \
    "node",                                                                                                            \
    "how long an attempt waits for a node's answer, from when its request was written; auto adapts to measured "       \
    "round trips and stalls: 50 ms to 1 s, at most a tenth of the TTL")                                                \
  X(CONNECT_TIMEOUT_MS, "connect_timeout_ms", INT, "ms", "3000", 1, 60000, "", CLIENT, "node",                         \
    "how long connecting to a node may take, including the session set-up")                                            \
  X(MIN_VALIDITY_MS, "min_validity_ms", AUTO_INT, "ms", "auto", 1, RLK_DAY_MS, "", BOTH, "lease",                      \
    "an attempt that would leave less validity than this fails; auto is the larger of 5 ms and a tenth of the TTL")    \
  X(RENEW, "renew", BOOL, "", "false", 0, 1, "", BOTH, "handle", "extend the lock in the background while it is held") \
  X(REENTRANT, "reentrant", BOOL, "", "false", 0, 1, "", BOTH, "handle",                                               \
    "a held lock may be acquired again by its handle, and is released as often")                                       \
  X(MAX_EXTENSIONS, "max_extensions", COUNT, "", "-1", -1, RLK_COUNT_MAX, "", BOTH, "handle",                          \
    "calls of extend allowed during one hold; renewals do not count; -1 without limit")                                \
  X(MAX_HOLD_MS, "max_hold_ms", INT, "ms", "-1", -1, RLK_YEAR_MS, "", BOTH, "hold",                                    \
    "no extension reaches beyond this time after the lock was acquired; if the lock's own ttl_ms is longer, none "     \
    "begins later; -1 without limit")                                                                                  \
  X(KEY_PREFIX, "key_prefix", STRING, "", "", 0, 256, "", CLIENT, "node", "prepended to the resource to form the key") \
  X(STRICT_RELEASE, "strict_release", BOOL, "", "false", 0, 1, "", BOTH, "hold",                                       \
    "also send deletes to nodes that did not grant the lock")                                                          \
  X(CLIENT_NAME, "client_name", STRING, "", "libredlock", 0, 64, ", printable and without spaces", CLIENT, "node",     \
    "name of the connections in CLIENT LIST, and of the holder of a lock")                                             \
  X(HOLDER_INFO, "holder_info", BOOL, "", "true", 0, 1, "", CLIENT, "lease",                                           \
    "show others who holds a lock: the nodes keep client_name, host and pid of this client")                           \
  X(USER_FILE, "user_file", STRING, "", "", 0, 4096, "", CLIENT, "node",                                               \
    "a file with the user name for nodes whose URL has no password; read at each connection")                          \
  X(PASSWORD_FILE, "password_file", STRING, "", "", 0, 4096, "", CLIENT, "node",                                       \
    "a file with the password for nodes whose URL has none; read at each connection")                                  \
  X(TLS_CA_FILE, "tls_ca_file", STRING, "", "", 0, 4096, "", CLIENT, "tls",                                            \
    "certificates of the authorities that are trusted for rediss:// nodes (PEM); without this and tls_ca_path: "       \
    "the system's")                                                                                                    \
  X(TLS_CA_PATH, "tls_ca_path", STRING, "", "", 0, 4096, "", CLIENT, "tls",                                            \
    "a folder of such certificates, named as `openssl rehash` does")                                                   \
  X(TLS_CERT_FILE, "tls_cert_file", STRING, "", "", 0, 4096, "", CLIENT, "tls",                                        \
    "the certificate that this client shows to rediss:// nodes, with its chain (PEM)")                                 \
  X(TLS_KEY_FILE, "tls_key_file", STRING, "", "", 0, 4096, "", CLIENT, "tls",                                          \
    "the key of tls_cert_file, without a passphrase (PEM)")                                                            \
  X(TLS_SERVER_NAME, "tls_server_name", STRING, "", "", 0, 255, "", CLIENT, "tls",                                     \
    "the name in the certificates of all rediss:// nodes; empty: the host of each URL")                                \
  X(TLS_VERIFY, "tls_verify", BOOL, "", "true", 0, 1, "", CLIENT, "tls",                                               \
    "verify the certificates of rediss:// nodes; if false, anyone on the network path can read and forge "             \
    "traffic")                                                                                                         \
  X(EXIT_DRAIN_MS, "exit_drain_ms", INT, "ms", "500", 0, 60000, "", CLIENT, "node",                                    \
    "how long closing the client may take to release held locks")

enum rlk_option {
#define RLK_SYMBOL(symbol, ...) RLK_OPT_##symbol,
  RLK_OPTIONS(RLK_SYMBOL)
#undef RLK_SYMBOL
      RLK_OPTION_COUNT
};

/* The values of all options that are numbers; texts are the client's. */
struct rlk_numbers {
  union {
    int64_t i;
    double d;
  } v[RLK_OPTION_COUNT];
  int permits_are_set; /* the only permit of a semaphore is a plain lock, but has a slot */
};

#define RLK_INT(numbers, symbol) ((numbers)->v[RLK_OPT_##symbol].i)
#define RLK_FLOAT(numbers, symbol) ((numbers)->v[RLK_OPT_##symbol].d)

void rlk_options_defaults(struct rlk_numbers *numbers);

/* The index of an option, or -1. scope_lock: only options of a lock. */
int rlk_option_find(const char *name, int scope_lock);
int rlk_option_is_text(int option);
size_t rlk_option_size_max(int option); /* of a text, in bytes */

/* Reads value into numbers: REDLOCK_OK, or REDLOCK_INVALID with the reason in why. Not for texts. */
int rlk_option_parse(struct rlk_numbers *numbers, int option, const char *value, struct rlk_text *why);
/* Says in why that name, of an option or of its environment variable, has a value that is not allowed: INVALID. */
int rlk_option_refuse(int option, const char *name, const char *value, struct rlk_text *why);
/* Any other reason, in these words: INVALID. */
int rlk_refuse(struct rlk_text *why, const char *words);
void rlk_option_format(const struct rlk_numbers *numbers, int option, struct rlk_text *out);

/* "no option x; did you mean y?" */
void rlk_option_unknown(const char *name, int scope_lock, struct rlk_text *why);

/* The settings that follow from the options for a TTL, all checked against each other (rule A.2). */
struct rlk_terms {
  int64_t ttl_ms;
  int64_t lease_ns;        /* ttl - drift */
  int64_t node_timeout_ns; /* how long an attempt waits for a majority of answers */
  int64_t patience_min_ns; /* ... and for a single node: a few of its round trips within these limits */
  int64_t patience_max_ns;
  int64_t min_validity_ns;
};

/* REDLOCK_OK, or REDLOCK_INVALID with the reason in why. ttl_ms 0 means the option. */
int rlk_terms_for(const struct rlk_numbers *numbers, int64_t ttl_ms, struct rlk_terms *terms, struct rlk_text *why);

/* The end of a limit that begins now: never for -1, and for more than a year. */
static inline int64_t rlk_limit_ends(int64_t limit_ms, int64_t now)
{
  return limit_ms < 0 || limit_ms > RLK_YEAR_MS ? RLK_NEVER : now + limit_ms * RLK_NS_PER_MS;
}

#endif

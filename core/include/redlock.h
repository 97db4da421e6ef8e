/* redlock.h - Redlock locks over N independent Redis or Valkey nodes.
 *
 * This header is both the manual and the interface description. Tools derive the Python and PHP bindings from it, so it
 * contains no variadic functions, inline functions, callbacks or structs passed by value.
 *
 * OBJECTS   A *client* is a set of nodes with default options. A *lock* is one holder's handle on one resource. Both
 *           are opaque. A lock keeps its client's memory alive, so the two may be freed in any order.
 *
 * SHAPES    Every operation can be called in two ways, which share one state machine:
 *             blocking   redlock_lock_acquire, _extend, _release: the calling thread does the I/O itself;
 *             started    redlock_lock_start, then poll redlock_client_fd and call redlock_client_process, and
 *                        redlock_client_next or redlock_lock_status. The descriptor also covers deadlines.
 *                        Latency-sensitive event loops should also see REDLOCK_AT_ONCE and redlock_client_advance.
 *           redlock_lock_wait blocks a thread until a started operation ends.
 *
 * THREADS   A client may be shared by any number of threads. A lock handle may be used by one thread at a time; a
 *           second call on a handle with an operation in flight returns REDLOCK_IN_FLIGHT. These may be called from
 *           any thread at any time: redlock_lock_state, _status, _loss, _validity_ms, _fence, _slot, _attempts, _token,
 *           _listed, _who and _cancel. No call may be made on a handle while, or after, another thread frees it. A
 *           thread that blocks in a call must not be ended by pthread_cancel: it does the I/O of others, too, and they
 *           would wait for ever. Use redlock_lock_cancel.
 *
 * FORK      A forked child inherits no lock: handles that held one, or had an operation in flight, are in
 *           REDLOCK_STATE_FORKED. Its clients reconnect at their next use. The child never sends or releases anything
 *           on behalf of the parent.
 *
 * SIGNALS   The library installs no signal handler, never raises SIGPIPE and restarts interrupted system calls. Only
 *           redlock_lock_wait, _settle and _who return early. redlock_lock_cancel may be called in a signal handler.
 *
 * TIME      Names carry their unit; _ms means milliseconds. Leases are measured on a clock that keeps running while
 *           the machine is suspended.
 *
 * ERRORS    A function returns a status (enum redlock_status), or a length or count; a negative length or count is
 *           the negated status of a failure. redlock_lock_message and redlock_client_message describe it in one line.
 *           The library never prints, exits or aborts; running out of memory is REDLOCK_NO_MEMORY.
 *
 * NULL      Every function accepts a NULL handle: free does nothing, the others return REDLOCK_INVALID (negated, or 0
 *           where a function returns neither a status nor a length). Other pointers must not be NULL unless stated.
 *
 * TEXTS     Functions with (char *buf, size_t size) copy a NUL-terminated text, truncated if it does not fit, and
 *           return the full length without the NUL; a return value >= size means truncation. buf may be NULL if size
 *           is 0.
 *
 * PROMISE   The ABI only grows. Values of enums never change. The format of the token (40 lower-case hexadecimal
 *           digits; of one of several permits 37 digits, "p" and 2 digits) and the key (key_prefix followed by the
 *           bytes of the resource) are part of this promise.
 *
 * LEASE     With N nodes, a majority is Q = floor(N/2) + 1. Node n counts until e_n = (clock before its request was
 *           queued) + ttl - drift, and the lock is held while at least Q nodes count. Comments below call this the
 *           lease rule. docs/safety.md has all rules and the evidence for each.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION "0.1.0"

#if defined(__GNUC__) && !defined(REDLOCK_PARSED)
#define REDLOCK_CHECK __attribute__((warn_unused_result))
#define REDLOCK_API __attribute__((visibility("default")))
#else
#define REDLOCK_CHECK
#define REDLOCK_API
#endif

/* A set of nodes with default options. Created by redlock_client_new, freed by redlock_client_free. */
typedef struct redlock_client redlock_client;

/* One holder's handle on one resource. Created by redlock_lock_new, freed by redlock_lock_free. */
typedef struct redlock_lock redlock_lock;

/* The result of a call or an operation. redlock_status_text describes each in words. */
enum redlock_status {
  REDLOCK_OK = 0,              /* done */
  REDLOCK_PENDING = 1,         /* in flight */
  REDLOCK_BUSY = 2,            /* others hold the lock */
  REDLOCK_NO_QUORUM = 3,       /* too few nodes answered in time */
  REDLOCK_TIMED_OUT = 4,       /* the wait ended before any attempt had a result */
  REDLOCK_CANCELLED = 5,       /* cancelled on request */
  REDLOCK_LOST = 6,            /* was held, but the lease has expired or was lost */
  REDLOCK_NOT_HELD = 7,        /* this handle does not hold the lock, and has not lost it */
  REDLOCK_LIMIT = 8,           /* max_extensions or max_hold_ms has been reached */
  REDLOCK_FORKED = 9,          /* the lock belongs to the parent process */
  REDLOCK_IN_FLIGHT = 10,      /* the handle already has an operation in flight */
  REDLOCK_INVALID = 11,        /* an argument, option or handle state is not allowed; the message names it */
  REDLOCK_REFUSED_CONFIG = 12, /* too many nodes are ineligible to vote: credentials, replica, cluster, eviction ... */
  REDLOCK_NO_MEMORY = 13,      /* an allocation failed; nothing has changed */
  REDLOCK_INTERNAL = 14,       /* the system refused a resource (descriptors, threads); the message says which */
  REDLOCK_UNREACHABLE = 15,    /* only as the vote of a single node: no connection to it */
  REDLOCK_QUARANTINED = 16     /* only as the vote of a single node: it may have lost keys and does not vote for now */
};

/* Properties of a status, for redlock_status_is. */
enum redlock_trait {
  REDLOCK_IS_ERROR = 1,     /* neither OK nor PENDING */
  REDLOCK_IS_RETRIABLE = 2, /* the same call may succeed later */
  REDLOCK_IS_USAGE = 3      /* the program is at fault, not the nodes */
};

/* Operations for redlock_lock_start. */
enum redlock_operation {
  REDLOCK_ACQUIRE = 1, /* arg: wait_ms as in redlock_lock_acquire */
  REDLOCK_EXTEND = 2,  /* arg: ttl_ms as in redlock_lock_extend */
  REDLOCK_RELEASE = 3, /* arg: 0 */
  REDLOCK_INSPECT = 4, /* arg: 0; asks every node who holds the lock: OK if a majority has no key, BUSY if not */
  REDLOCK_EXPIRE = 5,  /* arg: ttl_ms as in redlock_lock_expire */
  REDLOCK_REMOVE = 6,  /* arg: 0; as redlock_lock_remove */
  REDLOCK_WHO = 7,     /* arg: a limit in ms, -1 for none; an inspect that ends when a majority shows one holder. After
                          a refusal (BUSY) that stays the result, and its message names the holder */
  REDLOCK_LIST = 8,    /* arg: a limit in ms, -1 for none; as redlock_lock_list */
  REDLOCK_EXAMINE = 9  /* arg: 0; of a client that only looks, for tools that look after nodes. Each node runs the
                          resource, a Lua script, with key_prefix as ARGV[1], and what that returns, a text, is
                          REDLOCK_ANSWER_TEXT. The resource "libredlock:c:programs" is no script; it reads which
                          programs use the nodes, for redlock_client_describe. OK once no answer is outstanding */
};

/* A flag that may be added to an operation for redlock_lock_start. */
enum redlock_start_flag {
  REDLOCK_AT_ONCE = 256 /* send during the call instead of in redlock_client_process */
};

/* What a handle holds, as known locally, without I/O. */
enum redlock_state {
  REDLOCK_STATE_FREE = 0,    /* nothing */
  REDLOCK_STATE_HELD = 1,    /* the lock, for redlock_lock_validity_ms more */
  REDLOCK_STATE_LOST = 2,    /* the lock was held, but its lease expired or was lost; a release ends this state */
  REDLOCK_STATE_ADOPTED = 3, /* a token taken over by redlock_lock_adopt, not yet confirmed by an extension */
  REDLOCK_STATE_FORKED = 4,  /* the parent process holds the lock, not this one */
  REDLOCK_STATE_INVALID = 5  /* unusable: the message says why */
};

/* Why a lock was lost, for redlock_lock_loss. */
enum redlock_loss {
  REDLOCK_LOSS_NONE = 0,      /* it was not lost */
  REDLOCK_LOSS_EXPIRED = 1,   /* the lease expired */
  REDLOCK_LOSS_GONE = 2,      /* the token was gone on too many nodes to leave a majority */
  REDLOCK_LOSS_RESTARTED = 3, /* too many nodes restarted */
  REDLOCK_LOSS_REFUSED = 4,   /* too many nodes became ineligible to vote, for example replicas if guard is off */
  REDLOCK_LOSS_LIMIT = 5,     /* the lease expired because max_hold_ms allowed no further renewal */
  REDLOCK_LOSS_CLOCK = 6,     /* the clocks of too many nodes were stepped forward */
  REDLOCK_LOSS_CLOSED = 7     /* the client was drained, which released the lock */
};

/* Who holds a resource, for redlock_lock_verdict. */
enum redlock_verdict {
  REDLOCK_VERDICT_UNKNOWN = 0, /* too few nodes answered */
  REDLOCK_VERDICT_FREE = 1,    /* a majority has no key */
  REDLOCK_VERDICT_HELD = 2,    /* one token is on a majority */
  REDLOCK_VERDICT_SPLIT = 3,   /* none of these: attempts in progress, or keys left behind on some nodes */
  REDLOCK_VERDICT_SHARED = 4   /* a majority is held by readers: locks with the option shared */
};

/* In place of a remaining time: the key has no TTL. */
enum { REDLOCK_TTL_ENDLESS = -1 };

/* Fields of a reason for redlock_reason_at. */
enum redlock_reason_field {
  REDLOCK_REASON_NAME = 0, /* "refused": "reason" of a node in redlock_client_describe, and its anchor in the docs */
  REDLOCK_REASON_WORDS = 1,
  REDLOCK_REASON_ADVICE = 2,
  REDLOCK_REASON_CAUSE = 3
};

/* Fields of an option for redlock_option_at. */
enum redlock_option_field {
  REDLOCK_OPTION_NAME = 0,
  REDLOCK_OPTION_TYPE = 1, /* "int", "float", "bool", "string" or "nodes" */
  REDLOCK_OPTION_UNIT = 2, /* "ms" or "" */
  REDLOCK_OPTION_DEFAULT = 3,
  REDLOCK_OPTION_RANGE = 4,       /* in words, as error messages print it */
  REDLOCK_OPTION_SCOPE = 5,       /* "client", or "both" if it can also be set for a lock */
  REDLOCK_OPTION_HELP = 6,        /* one line */
  REDLOCK_OPTION_RANGE_PARTS = 7, /* the range as parts, see redlock_lock_message_parts */
  REDLOCK_OPTION_PURPOSE = 8      /* "node" and "tls": connections; "kind" of lock; "grant": of one acquisition; "wait":
                                     in order; "lease": granted or extended; "hold"; "handle": kept by a program */
};

/* Fields of a node's answer for redlock_lock_answer. */
enum redlock_answer_field {
  REDLOCK_ANSWER_WORDS = 0,  /* "granted", "busy (4.2 s left)", "connection refused", ... */
  REDLOCK_ANSWER_TTL_MS = 1, /* remaining TTL of the key there in ms, "" if unknown, "none" if it has no TTL */
  REDLOCK_ANSWER_TOKEN = 2,  /* the key's value after an inspect, escaped, at most 64 bytes; else "" */
  REDLOCK_ANSWER_TEXT = 3    /* what the script of REDLOCK_EXAMINE returned there, up to a NUL; else "" */
};

/* What is known of a list, for redlock_lock_listed. */
enum redlock_listed {
  REDLOCK_LISTED_ROWS = 0, /* how many it has; 0 while it is being made */
  REDLOCK_LISTED_MORE = 1, /* 1 if there are more: 10,000 are kept, or the time was over; else 0 */
  REDLOCK_LISTED_KEYS = 2  /* about how many keys were gone through so far, on all nodes together */
};

/* Fields of a row for redlock_lock_row. */
enum redlock_row_field {
  REDLOCK_ROW_JSON = 0,
  REDLOCK_ROW_RESOURCE = 1 /* its bytes */
};

/* Modes of redlock_client_bootstrap. */
enum redlock_bootstrap {
  REDLOCK_BOOTSTRAP_NEW = 1,     /* register the nodes of a new deployment: all answer, and none has a marker */
  REDLOCK_BOOTSTRAP_YES = 2,     /* register each node that is new or quarantined: no lock is live */
  REDLOCK_BOOTSTRAP_REPLACE = 3, /* rewrite markers with another max_ttl_ms, or of another list: no more */
  REDLOCK_BOOTSTRAP_DRY = 16     /* added to one of these: write nothing, report what the next call would do */
};

/* Fields of a node for redlock_client_bootstrapped. */
enum redlock_bootstrap_field {
  REDLOCK_BOOTSTRAP_DID = 0,        /* enum redlock_bootstrap_did */
  REDLOCK_BOOTSTRAP_VOTES = 1,      /* 1 if it may vote now, else 0 */
  REDLOCK_BOOTSTRAP_MAX_TTL_MS = 2, /* the number in its marker; 0 if that is not known */
  REDLOCK_BOOTSTRAP_FOUND = 3       /* enum redlock_bootstrap_found: as it is now */
};

enum redlock_bootstrap_did {
  REDLOCK_DID_NOTHING = 0,    /* it votes already */
  REDLOCK_DID_REGISTERED = 1, /* it votes from now on */
  REDLOCK_DID_REPLACED = 2,   /* its marker was rewritten; it may still be quarantined */
  REDLOCK_DID_LEFT_ALONE = 3, /* the mode does not allow a change of the marker found */
  REDLOCK_DID_NO_ANSWER = 4
};

enum redlock_bootstrap_found {
  REDLOCK_FOUND_NOTHING = 0, /* no answer */
  REDLOCK_FOUND_VOTES = 1,
  REDLOCK_FOUND_NEW = 2,
  REDLOCK_FOUND_QUARANTINED = 3,
  REDLOCK_FOUND_OTHER_NUMBER = 4, /* its marker has another max_ttl_ms; the words say whether it is quarantined */
  REDLOCK_FOUND_OTHER_LIST = 5,   /* its marker is of another number of nodes or another cluster */
  REDLOCK_FOUND_FOREIGN = 6,      /* the key is not a marker */
  REDLOCK_FOUND_REFUSED = 7       /* it is ineligible to vote for a reason that no marker can change */
};

/* ---- values ------------------------------------------------------------------------------------------------- */

/* The version of the loaded library, "MAJOR.MINOR.PATCH". Never NULL, never freed. Any thread. */
REDLOCK_API const char *redlock_version(void);

/* "OK", "BUSY", ...; "UNKNOWN" for a number outside the enum. Never NULL, never freed. Any thread. */
REDLOCK_API const char *redlock_status_name(int status);

/* The status in words. Never NULL, never freed. Any thread. */
REDLOCK_API const char *redlock_status_text(int status);

/* 1 if the status has the trait (enum redlock_trait), else 0. Any thread. */
REDLOCK_API int redlock_status_is(int status, int trait);

/* The clock by which leases end, in ms: it never steps, and counts suspend. Any thread. */
REDLOCK_API int64_t redlock_now_ms(void);

/* A number that a process does not share with its children, however they were forked. No system call. Any thread. */
REDLOCK_API uint32_t redlock_fork_generation(void);

/* Copies a text as messages show it: printable UTF-8 as it is, all other bytes in hexadecimal. -REDLOCK_INVALID for
 * NULL. Any thread. */
REDLOCK_API int64_t redlock_escape(const char *text, char *buf, size_t size);

/* Field `field` (enum redlock_option_field) of option number `index`, starting at 0; NULL past the end. The bindings,
 * the command line and docs/options.md are generated from this table. Never freed. Any thread. */
REDLOCK_API const char *redlock_option_at(int index, int field);

/* Field `field` (enum redlock_reason_field) of reason number `index`, starting at 0, for which a node does not vote or
 * a connection ends; NULL past the end. docs/troubleshooting.md is generated from this table. Never freed. Any thread.
 */
REDLOCK_API const char *redlock_reason_at(int index, int field);

/* ---- client ------------------------------------------------------------------------------------------------- */

/* Creates a client without nodes, with default options. The environment variables REDLOCK_GUARD and REDLOCK_MAX_TTL_MS,
 * if they are not empty, are the defaults of the options "guard" and "max_ttl_ms"; redlock_client_open refuses a wrong
 * value unless the option has been set. Returns NULL only if out of memory. The caller owns it. */
REDLOCK_API REDLOCK_CHECK redlock_client *redlock_client_new(void);

/* Sets option `name` (docs/options.md) to the value written in `value`. "nodes" takes comma-separated URLs:
 * redis://[user:password@]host[:port][/database] or unix://[user:password@]/path[?db=n]; rediss:// is redis:// with
 * TLS. The list may end in the option max_ttl_ms, as a duration: "redis://a,redis://b,redis://c?max_ttl=5m".
 * Percent-encode a comma, '@' or other special character within a part. Returns REDLOCK_INVALID for an unknown name, a
 * value out of range, a node that is listed twice, and after redlock_client_open; the message names the option, the
 * value and what is allowed, and what was set before stays. Both texts are copied. Not thread-safe: call it before the
 * client is shared. */
REDLOCK_API int redlock_client_set(redlock_client *client, const char *name, const char *value);

/* Copies the value of an option as text; passwords in "nodes" appear as ***. -REDLOCK_INVALID for an unknown name. */
REDLOCK_API int64_t redlock_client_get(redlock_client *client, const char *name, char *buf, size_t size);

/* Checks the options against each other and starts connecting. Never blocks. Returns REDLOCK_INVALID if there are no
 * nodes, more than 64, contradictory options, or if the client is already open, and REDLOCK_INTERNAL if the system
 * refuses a descriptor. */
REDLOCK_API REDLOCK_CHECK int redlock_client_open(redlock_client *client);

/* Opens a client that only looks, such as a monitor; otherwise as redlock_client_open. It writes no marker, so a node
 * that is new stays so. */
REDLOCK_API REDLOCK_CHECK int redlock_client_open_to_look(redlock_client *client);

/* Frees the client: calls redlock_client_drain with exit_drain_ms unless the client was drained before, then closes
 * everything. Threads blocked in it get REDLOCK_CANCELLED. Later operations on its locks return REDLOCK_INVALID, and
 * REDLOCK_LOST if they release a lock that was held; the locks must still be freed. A forked child sends nothing. Does
 * nothing for NULL. */
REDLOCK_API void redlock_client_free(redlock_client *client);

/* A descriptor for poll, epoll or an event loop. It is readable when redlock_client_process has something to do,
 * including deadlines, losses and started operations that have not been sent. Its number stays the same for the life of
 * the client, also in a forked child. It belongs to the client: do not read or close it. Returns -REDLOCK_INVALID if
 * the client is not open, and -REDLOCK_INTERNAL on an error, which redlock_client_message then describes. Any thread.
 */
REDLOCK_API int redlock_client_fd(redlock_client *client);

/* Does everything that is due, without blocking: sends started operations, reads replies, handles deadlines. Returns
 * REDLOCK_OK or REDLOCK_INVALID. Any thread, also while other threads are in blocking calls. */
REDLOCK_API int redlock_client_process(redlock_client *client);

/* Removes the next lock from the queue of locks whose started operation has ended, or that are at risk or were lost,
 * and stores its tag (redlock_lock_set_tag) in *tag. Returns 1, or 0 if the queue is empty. Each lock is queued at most
 * once: read its redlock_lock_status and redlock_lock_state. No entry is ever dropped. Any thread. */
REDLOCK_API int redlock_client_next(redlock_client *client, uint64_t *tag);

/* Equivalent to redlock_client_process followed by redlock_client_next, without signalling the descriptor again for an
 * operation that ends during the call and is returned by it. Returns 1 and a tag, or 0 if there is none or the client
 * is not open. After 1, call redlock_client_next until it returns 0. Any thread. */
REDLOCK_API int redlock_client_advance(redlock_client *client, uint64_t *tag);

/* Shuts the client down cleanly within limit_ms (-1: exit_drain_ms): refuses new operations, cancels those in flight,
 * releases every held lock (but not one that was detached, or adopted and not confirmed), which is LOST from then on
 * (REDLOCK_LOSS_CLOSED), sends all requests and reads all replies. Returns REDLOCK_OK, or REDLOCK_TIMED_OUT if a key
 * may be left on some node: one that is down, or did not answer in time; such keys expire with their TTL. The client
 * accepts no operation afterwards; releasing such a lock returns REDLOCK_LOST. If another thread is already draining
 * it, waits for that within limit_ms. That call and all later ones return the result of the first. */
REDLOCK_API int redlock_client_drain(redlock_client *client, int64_t limit_ms);

/* The next event as one line of JSON, for logs only: {"event":"lost","resource":"...",...}. Returns its length, or 0 if
 * there is none. An event that does not fit stays in the queue. The queue is bounded: when it is full, the oldest
 * events are replaced by one event "dropped" with their count. For a single consumer. */
REDLOCK_API int64_t redlock_client_event(redlock_client *client, char *buf, size_t size);

/* A descriptor that is readable while redlock_client_event has an event to return. It is created by the first call.
 * Otherwise as redlock_client_fd: its number stays the same, also in a forked child, and it belongs to the client.
 * Returns a negated status on error. Any thread. */
REDLOCK_API int redlock_client_event_fd(redlock_client *client);

/* Describes the client in JSON: options, nodes, their eligibility to vote, and what redlock_client_metrics counts; in
 * "programs" also the programs that share these nodes but have another version, number or list than this one, as the
 * nodes told when this client last wrote its own entry there (option holder_info; every ten minutes). "differs" is in
 * an entry whose list has nodes that ours lacks, or the other way round. It contains no passwords. No I/O. Any thread.
 */
REDLOCK_API int64_t redlock_client_describe(redlock_client *client, char *buf, size_t size);

/* Figures of the client's locks and nodes as OpenMetrics text, for Prometheus: acquisitions by status, losses by
 * reason, wait and hold times, waiting acquisitions, answers and round trips of each node. Counters start at 0 with
 * redlock_client_new. No I/O. Any thread. */
REDLOCK_API int64_t redlock_client_metrics(redlock_client *client, char *buf, size_t size);

/* Why the last redlock_client_set, _open or _bootstrap failed; "" if it succeeded. Not thread-safe, like those. */
REDLOCK_API int64_t redlock_client_message(redlock_client *client, char *buf, size_t size);

/* The text of redlock_client_message as parts, see redlock_lock_message_parts. */
REDLOCK_API int64_t redlock_client_message_parts(redlock_client *client, char *buf, size_t size);

/* Ends the wait of new nodes, or changes the number in the markers of the restart guard (docs/guard.md); mode is one of
 * enum redlock_bootstrap. REPLACE ends no quarantine: it keeps the time at which a server was first seen, and leaves a
 * node alone that a larger number still keeps in quarantine; YES touches no number and no list. A call without DRY that
 * follows one with DRY of the same mode carries out the plan that was shown, once: a node that now shows another run id
 * or marker is left alone, and so is one that was shown as voting or away. With REPLACE a DRY call plans what one
 * question asks: whether all programs have a larger number, else a smaller one, else whether those of another list are
 * stopped. Connects to all nodes and waits until each has answered or failed, at most twice connect_timeout_ms; NEW
 * looks again for up to 2 s where only some nodes are new. The client needs its options, and may be open or not; its
 * own connections are not touched. Calling it again does nothing where all nodes vote. Returns REDLOCK_OK if no node
 * was left alone and all answered, REDLOCK_NO_QUORUM if some did not answer, REDLOCK_REFUSED_CONFIG if some were left
 * alone, or the status with which redlock_client_open would have failed; redlock_client_message names the nodes. New
 * and quarantined nodes count as left alone only with YES; with NEW a majority that votes, or will when it has waited,
 * is enough, and NO_QUORUM says that no majority answered. Blocks. Not while another thread calls it on this client. */
REDLOCK_API int redlock_client_bootstrap(redlock_client *client, int mode);

/* Field `field` (enum redlock_bootstrap_field) of node `node` (from 0) after redlock_client_bootstrap;
 * -REDLOCK_INVALID before, and for a number outside the range. No I/O. Any thread. */
REDLOCK_API int64_t redlock_client_bootstrapped(redlock_client *client, int node, int field);

/* The finding there, in words to follow the node's name: "is quarantined for another 21 s", "allows 30 s". Otherwise as
 * redlock_client_bootstrapped. */
REDLOCK_API int64_t redlock_client_bootstrap_words(redlock_client *client, int node, char *buf, size_t size);

/* "nothing", "registered", "replaced", "left_alone", "no_answer"; NULL for a number outside the enum. Any thread. */
REDLOCK_API const char *redlock_bootstrap_did_name(int did);

/* The number of nodes; 0 until "nodes" is set. */
REDLOCK_API int redlock_client_node_count(redlock_client *client);

/* The name of node `node` (from 0) as in messages, without credentials: "127.0.0.1:7001", "unix:/run/r.sock". */
REDLOCK_API int64_t redlock_client_node_name(redlock_client *client, int node, char *buf, size_t size);

/* ---- lock --------------------------------------------------------------------------------------------------- */

/* Creates a handle on `resource` (1 byte to 512 MB, any bytes; copied). Does not acquire the lock and does no I/O.
 * Returns NULL if the client is NULL, and if out of memory: with another invalid argument, or a client that is not
 * open, the handle is in REDLOCK_STATE_INVALID and its message says why. The library's own keys begin with key_prefix
 * and "libredlock:": a resource that begins with "libredlock:", or whose key does, can only be inspected and removed;
 * all other operations return REDLOCK_INVALID. The caller owns the handle and frees it with redlock_lock_free. */
REDLOCK_API REDLOCK_CHECK redlock_lock *redlock_lock_new(redlock_client *client, const void *resource, size_t size);

/* Adds a resource (1 byte to 512 MB, any bytes; copied): the lock is acquired on all of its resources or on none, so
 * a holder of some of them never waits for others. 1 to 100 resources, each once, of 512 MB together; the order does
 * not matter. Such a lock has no fencing number, and cannot be inspected as a whole. Allowed in the states FREE, LOST
 * and FORKED, for the acquires that follow. Returns REDLOCK_INVALID for any other state, for NULL, a resource of
 * another size, one that the lock has already, one that is reserved (redlock_lock_new) and the 101st; the message says
 * which, and the lock stays as it was. REDLOCK_IN_FLIGHT, REDLOCK_NO_MEMORY: likewise. No I/O. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_add(redlock_lock *lock, const void *resource, size_t size);

/* Creates another handle on the resources of `lock`, with the options that it has now: what was acquired stays with
 * `lock`. It costs less than redlock_lock_new and redlock_lock_set for each option. The copy of a handle in
 * REDLOCK_STATE_INVALID is in that state, too, and so is one that is made when the client has been closed. Returns NULL
 * for NULL and if out of memory; otherwise as redlock_lock_new. */
REDLOCK_API REDLOCK_CHECK redlock_lock *redlock_lock_copy(redlock_lock *lock);

/* A lock for probing the nodes: as redlock_lock_new, on a resource of its own, `libredlock:probe:` and a number.
 * Acquire it with a short ttl_ms and without a wait; redlock_client_describe then reports which nodes would grant a
 * lock. A leftover key expires. */
REDLOCK_API REDLOCK_CHECK redlock_lock *redlock_lock_new_probe(redlock_client *client);

/* Sets an option of scope "both" for this lock only; otherwise as redlock_client_set. Returns REDLOCK_IN_FLIGHT while
 * an operation is in flight. The new value applies from the next operation on; the current lease does not change. */
REDLOCK_API int redlock_lock_set(redlock_lock *lock, const char *name, const char *value);

/* Checks the options of this lock against each other, as acquiring it does before sending anything. Returns REDLOCK_OK,
 * or REDLOCK_INVALID with a message. No I/O. */
REDLOCK_API int redlock_lock_check(redlock_lock *lock);

/* The value of an option for this lock; otherwise as redlock_client_get. */
REDLOCK_API int64_t redlock_lock_get(redlock_lock *lock, const char *name, char *buf, size_t size);

/* Sets the number that redlock_client_next returns for this lock; initially 0. Returns REDLOCK_OK. */
REDLOCK_API int redlock_lock_set_tag(redlock_lock *lock, uint64_t tag);

/* Frees the handle. Never blocks. Cancels an operation in flight and releases a held lock: the deletes are sent at once
 * and confirmed later. A detached or inherited lock is left alone, and so is an adopted token that was never confirmed,
 * since it may still be in use where it came from. Does nothing for NULL. */
REDLOCK_API void redlock_lock_free(redlock_lock *lock);

/* Acquires the lock, waiting up to wait_ms: 0 makes one attempt, -1 waits without limit, -2 uses the option wait_ms.
 * One attempt is repeated for 200 ms, or 30 round trips if that is more, and five times at least, while no holder is
 * seen on a majority. wait_ms bounds waiting for a lock that others hold; an outage is tolerated for outage_wait_ms
 * only. Allowed in the states FREE, LOST and FORKED. Returns REDLOCK_OK: held for at least min_validity_ms (lease
 * rule). REDLOCK_BUSY: others held it to the end of the wait. REDLOCK_NO_QUORUM, REDLOCK_REFUSED_CONFIG: too few nodes
 * answered, or are eligible to vote. REDLOCK_TIMED_OUT: no attempt had a result in time. REDLOCK_CANCELLED. Each
 * attempt uses a fresh token; keys that a failed attempt left behind are deleted.
 *
 * With the option reentrant a HELD lock may be acquired again by its handle: REDLOCK_OK at once, without a message to
 * any node, whatever wait_ms and min_validity_ms are. It is then released as often as it was acquired, and only the
 * outermost release gives it up. If it is lost in between, an acquire returns REDLOCK_LOST and takes nothing until the
 * outermost release. Who may acquire it again is up to the program: a handle belongs to one thread at a time. If the
 * option is switched off meanwhile, the next release is the outermost one. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_acquire(redlock_lock *lock, int64_t wait_ms);

/* Extends a held or adopted lock to ttl_ms from now (0: the option ttl_ms). Never shortens a lease. Returns REDLOCK_OK:
 * a majority confirmed. REDLOCK_NO_QUORUM: no majority confirmed within outage_wait_ms, or before the lease was nearly
 * over; the lock stays held for redlock_lock_validity_ms. REDLOCK_LOST: the lock was lost; a late extension never
 * revives it. REDLOCK_LIMIT: max_extensions or max_hold_ms has been reached. REDLOCK_NOT_HELD: it is not held.
 * REDLOCK_BUSY, of an adopted token: a majority has it in another form, as a lock with other options (shared, layout,
 * permits and slot, fewer resources), which the message names; the token stays adopted, and the next call looks for it
 * as the options are then. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_extend(redlock_lock *lock, int64_t ttl_ms);

/* Releases the lock. From the moment of the call it is no longer held, whatever the result. Returns REDLOCK_OK: it was
 * held at the time of the call; keys on nodes that did not answer are deleted later or expire. REDLOCK_LOST: its lease
 * had already expired, or the nodes that had granted it answered that fewer than a majority can still have had the
 * token, so another client may have acquired it (redlock_lock_loss tells these apart; the deletes are sent anyway).
 * REDLOCK_NOT_HELD: it is not held. For an adopted token: REDLOCK_OK if a key was deleted, REDLOCK_LOST if a majority
 * no longer had it, REDLOCK_NO_QUORUM if too few nodes answered, REDLOCK_BUSY if a majority has it in another form
 * (redlock_lock_extend). Only keys of this handle's resources with this lock's token are deleted; a token does not tell
 * of how many resources it is.
 *
 * A lock that was acquired again (option reentrant) stays held until its outermost release. The releases before that
 * send nothing and return REDLOCK_OK, or REDLOCK_LOST if it was lost. */
REDLOCK_API int redlock_lock_release(redlock_lock *lock);

/* Sets the remaining lease of a held or adopted lock to ttl_ms from now (0: the option ttl_ms), whether that is longer
 * or shorter. Otherwise as redlock_lock_extend, but it does not count as an extension. A shorter lease applies from the
 * call: a node whose reply is outstanding counts until the shorter end at most, whatever it confirms later. Renewals
 * (option renew) go on with this ttl_ms until the next expire; an extension changes one lease only. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_expire(redlock_lock *lock, int64_t ttl_ms);

/* Deletes the key of the resource on every node, whoever holds the lock and whatever the type of the key. For
 * operators, to free a lock whose holder is known to be gone. Do not pass names that come from users: a node that loses
 * "libredlock:m" is quarantined. Allowed in every state except INVALID; the state of this handle does not change.
 * Returns REDLOCK_OK: a majority has no key now. REDLOCK_NO_QUORUM, REDLOCK_REFUSED_CONFIG: too few nodes answered, or
 * are eligible to vote. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_remove(redlock_lock *lock);

/* Lists the locks that the nodes have, for people: the resource of this handle is a pattern as SCAN has it
 * ("orders:*"), or a name with a backslash before each *, ?, [ and backslash. A name is listed whether or not anybody
 * holds it (with the option permits each of its slots, or the one of the option slot). For a pattern each node is asked
 * for all of its keys, up to 25,000 a second (the user needs +scan); other keys than those of this library's locks and
 * names of more than 2,000 bytes are left out. Then the nodes are asked who holds these and who waits. Allowed in every
 * state except INVALID. Returns REDLOCK_OK: the list is whole, whatever redlock_lock_listed says of more.
 * REDLOCK_NO_QUORUM, REDLOCK_REFUSED_CONFIG: too few nodes told all, so a lock may be missing; redlock_lock_vote is OK
 * for those that did. REDLOCK_TIMED_OUT: limit_ms (-1: none) was over. In all of these cases there are rows. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_list(redlock_lock *lock, int64_t limit_ms);

/* Waits until every reply to the last operation has arrived, and every node that was still connecting has been asked
 * too. A lock or an extension that only the faster nodes have confirmed tolerates fewer failures, so call this before
 * redlock_lock_detach. Returns REDLOCK_OK, or REDLOCK_PENDING when limit_ms has passed, a signal arrived or another
 * thread has closed the client, after which it is REDLOCK_OK: no reply will come. */
REDLOCK_API int redlock_lock_settle(redlock_lock *lock, int64_t limit_ms);

/* Starts `operation` (enum redlock_operation) and returns REDLOCK_OK without blocking or sending. The descriptor
 * becomes readable and redlock_client_process sends, so that operations started in the same loop iteration are sent in
 * one write per node. With REDLOCK_AT_ONCE added, the request is sent during this call, which suits a single operation.
 * Any other status (INVALID, NOT_HELD, LOST, LIMIT, FORKED, IN_FLIGHT) means that nothing was started. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_start(redlock_lock *lock, int operation, int64_t arg);

/* The result of the last operation; REDLOCK_PENDING while it is in flight, REDLOCK_NOT_HELD before the first one. Any
 * thread. */
REDLOCK_API int redlock_lock_status(redlock_lock *lock);

/* Waits until the operation in flight ends, and returns its status. Returns REDLOCK_PENDING when limit_ms (-1: no
 * limit) has passed or a signal arrived, so that a language runtime can run its signal handlers; call it again
 * afterwards. A signal that arrives while the thread is not asleep, or while another thread does the I/O, does not end
 * the wait: where that matters, wait in slices of 25 ms or less. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_wait(redlock_lock *lock, int64_t limit_ms);

/* Cancels the operation in flight: its status is REDLOCK_CANCELLED at once and the handle can start another. The client
 * deletes the keys of a cancelled acquire, and completes a cancelled release, in the background. A lock that was
 * already granted stays held. Returns REDLOCK_OK, also if nothing was in flight. Any thread, and signal handlers. */
REDLOCK_API int redlock_lock_cancel(redlock_lock *lock);

/* The state (enum redlock_state) at the moment of the call, by the local clock. REDLOCK_STATE_INVALID for NULL. Any
 * thread. */
REDLOCK_API int redlock_lock_state(redlock_lock *lock);

/* Why the lock was lost (enum redlock_loss), also after a release that found it lost. REDLOCK_LOSS_NONE while it is
 * held, before the first loss, once the next acquire or adopt has begun, and for NULL. Any thread. */
REDLOCK_API int redlock_lock_loss(redlock_lock *lock);

/* The validity: how much longer the lock is held unless it is extended, in ms rounded down (lease rule). 0 if it is not
 * held, -REDLOCK_INVALID for NULL. Any thread. */
REDLOCK_API int64_t redlock_lock_validity_ms(redlock_lock *lock);

/* The fencing number of the current or, if none, the last hold, if it was acquired with the option fence: larger than
 * that of every hold of the resource before it, whoever had it. A store that rejects numbers smaller than the largest
 * it has seen cannot be changed by earlier holders once it has seen this one. 0 without fence, before the first hold,
 * once the next acquire or adopt has begun, and for NULL. Below 2^53. Any thread. */
REDLOCK_API int64_t redlock_lock_fence(redlock_lock *lock);

/* The slot of the current or, if none, the last hold, if permits was set for the lock or its client, also to 1: from 0,
 * below permits, and at most one holder has it at a time. -1 if it has none, before the first hold, and for NULL. Any
 * thread. */
REDLOCK_API int redlock_lock_slot(redlock_lock *lock);

/* How many attempts the last acquire or extension has made so far. 0 for an acquire that only waited behind others of
 * its client, before the first operation, and for NULL. Any thread. */
REDLOCK_API int64_t redlock_lock_attempts(redlock_lock *lock);

/* The token of the current or, if none, the last hold: 40 hexadecimal digits (see PROMISE), or the adopted token; ""
 * before the first, and once the next acquire has begun. Any thread. */
REDLOCK_API int64_t redlock_lock_token(redlock_lock *lock, char *buf, size_t size);

/* Takes over a token that another handle or process detached: the state becomes ADOPTED with validity 0, and only
 * extend, expire and release are allowed. An extension confirmed by a majority makes it HELD. Another holder may
 * have had the lock in between. The token may be one of another library: any text of 1 to 128 bytes.
 * Returns REDLOCK_INVALID for any other size, for NULL, if this handle holds a lock, and of a closed client. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_adopt(redlock_lock *lock, const char *token);

/* As redlock_lock_adopt, for a token of arbitrary bytes. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_adopt_bytes(redlock_lock *lock, const void *token, size_t size);

/* Detaches the lock so that another handle or process can adopt it: this handle forgets it and never deletes keys of
 * that token. The token may be read before or after. Requests to a minority of the nodes may still be in flight;
 * redlock_lock_settle waits for them. Call that after a redlock_lock_expire, too: a node that applies a shorter lease
 * late silently cuts the lease of whoever has adopted the token. Returns REDLOCK_OK, or the same as redlock_lock_extend
 * if no lock is held; REDLOCK_INVALID if it was acquired again (option reentrant) and not released as often. */
REDLOCK_API int redlock_lock_detach(redlock_lock *lock);

/* The vote of node `node` on the last operation: OK granted or confirmed, BUSY held by others, or with the adopted
 * token in another form, LOST the token is gone there, PENDING no reply yet, TIMED_OUT no reply in time, UNREACHABLE,
 * QUARANTINED not voting for now, REFUSED_CONFIG ineligible to vote, NO_QUORUM an error reply, NOT_HELD not asked, or
 * no key. Of a lock that was lost since, OK is what counted still, and the rest says why it was lost. -REDLOCK_INVALID
 * for a node that does not exist. */
REDLOCK_API int redlock_lock_vote(redlock_lock *lock, int node);

/* A field (enum redlock_answer_field) of that node's answer, as text. */
REDLOCK_API int64_t redlock_lock_answer(redlock_lock *lock, int node, int field, char *buf, size_t size);

/* Who holds the resource according to the last inspect (enum redlock_verdict); UNKNOWN before the first one has ended,
 * and for NULL. */
REDLOCK_API int redlock_lock_verdict(redlock_lock *lock);

/* The token of that holder, escaped, at most 64 bytes; of readers, the one whose lease is longest. "" if there is no
 * holder, or its key is neither a string nor a set of readers. */
REDLOCK_API int64_t redlock_lock_holder(redlock_lock *lock, char *buf, size_t size);

/* How much longer a majority of the nodes keeps that holder's keys unless they are extended, in ms from now;
 * REDLOCK_TTL_ENDLESS if they have no TTL; 0 if there is no holder, or if they have expired meanwhile. */
REDLOCK_API int64_t redlock_lock_holder_ttl_ms(redlock_lock *lock);

/* Who holds the resource, as JSON: {"client_name": "worker-7", "host": "web-3", "pid": 812, "held_ms": 4200}. Of
 * readers it is the one whose lease is longest, and "readers" says how many there are. Known after redlock_lock_who or
 * a started REDLOCK_WHO, and after an inspect that found a holder; an acquire does not ask for it. Name, host and pid
 * are what that client has written to the nodes (option holder_info), for people to read; held_ms compares the clocks
 * of two machines. "" if it is not known: another library, holder_info off, nobody asked. No I/O. */
REDLOCK_API int64_t redlock_lock_held_by(redlock_lock *lock, char *buf, size_t size);

/* Asks the nodes who holds the resource, for at most limit_ms (-1: without limit), for redlock_lock_held_by and the
 * message of an acquire that was refused. Of several resources it is one that a node has reported to be busy, of
 * permits that of the option slot or, one after the other, the first that is held. One round trip of the nodes that
 * answer, and another one for the name, if a majority shows the same holder; what else is known of the last operation
 * stays. Allowed in every state except INVALID, also while an operation is in flight. Returns REDLOCK_BUSY: it is held;
 * a later holder than the one that was met may be named. REDLOCK_OK: a majority has no key. REDLOCK_NO_QUORUM: too few
 * nodes answered. REDLOCK_CANCELLED: a signal arrived. REDLOCK_NO_MEMORY. Any thread; the handle must not be freed
 * meanwhile. */
REDLOCK_API int redlock_lock_who(redlock_lock *lock, int64_t limit_ms);

/* What is known of the list of this handle (enum redlock_listed); 0 before the first list. It stays until the next one.
 * -REDLOCK_INVALID for NULL and an unknown `what`. Any thread. */
REDLOCK_API int64_t redlock_lock_listed(redlock_lock *lock, int what);

/* A field (enum redlock_row_field) of row `index` of the list, in the order of their names; "" past the end. As JSON:
 *   {"resource": "orders:42", "kind": "plain", "verdict": "held", "nodes": 5, "holder": "0f3a...",
 *    "holder_ttl_ms": 9100, "held_by": {"client_name": "worker-7", "host": "web-3", "pid": 812, "held_ms": 4200},
 *    "waiting": 3, "first": {"client_name": "worker-9", "host": "web-1", "pid": 9, "waited_ms": 800}}
 * The resource is escaped. kind: "plain", "shared", "hash", "permits" (with "slot", and "permits" if known) or "other";
 * "" if no node has a key. nodes: how many have the holder's key, or any. held_by is null if it is not known, as in
 * redlock_lock_held_by, and first if nobody waits in the queue or it is not known. Waiters without the queue are not
 * counted; for up to a second after a waiter has become the holder it may be counted still. */
REDLOCK_API int64_t redlock_lock_row(redlock_lock *lock, int64_t index, int field, char *buf, size_t size);

/* The last result in one line: 2 of 5 nodes granted "orders:42", 3 needed: 127.0.0.1:7001 busy (4.2 s left); ...
 * Resources are escaped and cut at 64 bytes. For an invalid option it names the option, the value and what is
 * allowed. */
REDLOCK_API int64_t redlock_lock_message(redlock_lock *lock, char *buf, size_t size);

/* The text of redlock_lock_message as parts, for a language that spells options and durations in its own way: the byte
 * 0x1F separates the parts, and every second one is the name of an option ("max_ttl_ms") or a number of milliseconds.
 * Joined they are the message. */
REDLOCK_API int64_t redlock_lock_message_parts(redlock_lock *lock, char *buf, size_t size);

/* Which call is allowed in which state, blocking or started. expire is as extend, remove, list and REDLOCK_WHO as
 * inspect.
 *
 *            acquire   extend     release    adopt     detach    inspect
 *  FREE      ok        NOT_HELD   NOT_HELD   ok        NOT_HELD  ok
 *  HELD      INVALID   ok         ok         INVALID   ok        ok
 *  LOST      ok        LOST       LOST (*)   ok        LOST      ok         (*) the deletes are sent anyway
 *  ADOPTED   INVALID   ok         ok         INVALID   ok        ok
 *  FORKED    ok        FORKED     FORKED     ok        FORKED    ok
 *  INVALID   INVALID in every column. While an operation is in flight: IN_FLIGHT in every column.
 *
 * With the option reentrant, where a lock that was acquired d times has the depth d:
 *
 *  HELD      ok, d + 1 ok         d - 1, and as above at 0     INVALID   INVALID if d > 1    ok
 *  LOST      LOST      LOST       LOST, d - 1                  INVALID   LOST                ok
 *
 * A child of a fork, a drained client and redlock_lock_free drop the depth.
 */

#ifdef __cplusplus
}
#endif

#endif

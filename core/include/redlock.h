/* redlock.h - Redlock locks over N independent Redis or Valkey nodes.
 *
 * This header is the manual and the interface description at once: the Python and PHP bindings are derived from it by
 * tools, so it holds no variadic function, no inline function, no callback and no struct by value.
 *
 * OBJECTS   A *client* is the set of nodes and the default options. A *lock* is one holder's handle on one resource.
 *           Both are opaque. A lock keeps its client's memory alive, so the two may be freed in any order.
 *
 * SHAPES    Every operation exists in two shapes over one state machine:
 *             blocking   redlock_lock_acquire, _extend, _release: the calling thread drives the I/O itself;
 *             started    redlock_lock_start, then wait for redlock_client_fd to be readable, redlock_client_process,
 *                        redlock_client_next or redlock_lock_status. Deadlines are in the descriptor. For loops that
 *                        count microseconds: REDLOCK_AT_ONCE and redlock_client_advance.
 *           redlock_lock_wait drives a started operation from a thread.
 *
 * THREADS   A client may be used by any number of threads. A lock handle is used by one thread at a time; a second
 *           call on a handle whose operation is in flight returns REDLOCK_IN_FLIGHT. Callable from any thread at any
 *           time: redlock_lock_state, _status, _validity_ms, _token, _cancel. No call may be made on a handle while or
 *           after another thread frees it.
 *
 * FORK      A child that was forked inherits no lock: its handles say REDLOCK_FORKED. Its clients connect anew at
 *           their next use. Nothing of the parent is sent or released by the child.
 *
 * SIGNALS   The library installs no handler, never raises SIGPIPE and restarts what a signal interrupts. Only
 *           redlock_lock_wait returns early. redlock_lock_cancel may be called in a signal handler.
 *
 * TIME      Names say the unit; _ms is milliseconds. Every lease is counted on a clock that includes suspend.
 *
 * ERRORS    A function returns a status (enum redlock_status), or a length or count that is negative when it failed
 *           (then it is minus a status). redlock_lock_message and redlock_client_message say the same in one line.
 *           The library never prints, never exits and never aborts; want of memory is REDLOCK_NO_MEMORY.
 *
 * NULL      Every function accepts a NULL handle: free does nothing, the others return REDLOCK_INVALID (or its
 *           negative, or 0 where the function returns neither). Other pointers must not be NULL unless said.
 *
 * TEXTS     Functions with (char *buf, size_t size) copy a NUL-terminated text, cut if it does not fit, and return the
 *           full length without the NUL, so a return >= size means it was cut. buf may be NULL if size is 0.
 *
 * PROMISE   The ABI only grows. Values of enums never change. The token's form (40 lower-case hexadecimal digits) and
 *           the key (key_prefix followed by the resource's bytes) are part of the promise too.
 *
 * RULES     The sources of the locking rules are named where they apply: "lease rule" is: a node counts until
 *           e_n = (time before its request was queued) + ttl - drift, and the lock is held while at least
 *           Q = floor(N/2)+1 nodes count. It was model-checked exhaustively for 3 nodes and 2 clients with lost, late
 *           and reordered messages (docs/safety.md).
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

/* A set of nodes with the default options. Created by redlock_client_new, ended by redlock_client_free. */
typedef struct redlock_client redlock_client;

/* One holder's handle on one resource. Created by redlock_lock_new, ended by redlock_lock_free. */
typedef struct redlock_lock redlock_lock;

/* What a call or an operation came to. redlock_status_text has a sentence for each. */
enum redlock_status {
  REDLOCK_OK = 0,             /* done */
  REDLOCK_PENDING = 1,        /* in flight */
  REDLOCK_BUSY = 2,           /* others hold the lock */
  REDLOCK_NO_QUORUM = 3,      /* too few nodes answered in time */
  REDLOCK_TIMED_OUT = 4,      /* the wait ended before the nodes gave any verdict */
  REDLOCK_CANCELLED = 5,      /* given up on request */
  REDLOCK_LOST = 6,           /* held once, not any more */
  REDLOCK_NOT_HELD = 7,       /* never taken by this handle */
  REDLOCK_LIMIT = 8,          /* max_extensions or max_hold_ms is used up */
  REDLOCK_FORKED = 9,         /* the lock belongs to the parent process */
  REDLOCK_IN_FLIGHT = 10,     /* the handle has an operation in flight already */
  REDLOCK_INVALID = 11,       /* an argument, option or handle state that is not allowed; the message names it */
  REDLOCK_REFUSED_CONFIG = 12,/* too many nodes may not vote: credentials, replica, cluster, eviction, duplicate */
  REDLOCK_NO_MEMORY = 13,     /* an allocation failed; nothing was changed */
  REDLOCK_INTERNAL = 14,      /* the system refused something (descriptors, threads); the message says what */
  REDLOCK_UNREACHABLE = 15    /* only as a node's answer: no connection to it */
};

/* Questions to redlock_status_is. */
enum redlock_trait {
  REDLOCK_IS_ERROR = 1,       /* neither OK nor PENDING */
  REDLOCK_IS_RETRIABLE = 2,   /* the same call may succeed later */
  REDLOCK_IS_USAGE = 3        /* the program has to change, not the nodes */
};

/* Operations for redlock_lock_start. */
enum redlock_operation {
  REDLOCK_ACQUIRE = 1,        /* arg: wait_ms as in redlock_lock_acquire */
  REDLOCK_EXTEND = 2,         /* arg: ttl_ms as in redlock_lock_extend */
  REDLOCK_RELEASE = 3,        /* arg: 0 */
  REDLOCK_INSPECT = 4         /* arg: 0; asks every node who holds it: OK a majority is free, BUSY it is not */
};

/* May be added to an operation for redlock_lock_start. */
enum redlock_start_flag {
  REDLOCK_AT_ONCE = 256       /* it sends in the call, instead of redlock_client_process */
};

/* What a handle holds, from local facts alone. */
enum redlock_state {
  REDLOCK_STATE_FREE = 0,     /* nothing */
  REDLOCK_STATE_HELD = 1,     /* the lock, for redlock_lock_validity_ms more */
  REDLOCK_STATE_LOST = 2,     /* it was held and has lapsed; it can not come back (sticky) */
  REDLOCK_STATE_ADOPTED = 3,  /* a token taken over by redlock_lock_adopt, not confirmed by an extension yet */
  REDLOCK_STATE_FORKED = 4,   /* it is held by the parent process, not by this one */
  REDLOCK_STATE_INVALID = 5   /* unusable: the message says why */
};

/* Fields of an option for redlock_option_at. */
enum redlock_option_field {
  REDLOCK_OPTION_NAME = 0,
  REDLOCK_OPTION_TYPE = 1,    /* "int", "float", "bool", "string" or "nodes" */
  REDLOCK_OPTION_UNIT = 2,    /* "ms" or "" */
  REDLOCK_OPTION_DEFAULT = 3,
  REDLOCK_OPTION_RANGE = 4,   /* in words, as refusals print it */
  REDLOCK_OPTION_SCOPE = 5,   /* "client", or "both" if a lock may set it too */
  REDLOCK_OPTION_HELP = 6     /* one line */
};

/* Fields of a node's answer for redlock_lock_answer. */
enum redlock_answer_field {
  REDLOCK_ANSWER_WORDS = 0,   /* "granted", "busy (4.2 s left)", "connection refused", ... */
  REDLOCK_ANSWER_TTL_MS = 1,  /* what is left of the key's life there in ms, "" if unknown, "none" if it never ends */
  REDLOCK_ANSWER_TOKEN = 2    /* the value under the key after an inspect, escaped, at most 64 bytes; "" otherwise */
};

/* ---- values ------------------------------------------------------------------------------------------------- */

/* The version of the library that is loaded, "MAJOR.MINOR.PATCH". Never NULL, never freed. Any thread. */
REDLOCK_API const char *redlock_version(void);

/* "OK", "BUSY", ...; "UNKNOWN" for a number outside of the enum. Never NULL, never freed. Any thread. */
REDLOCK_API const char *redlock_status_name(int status);

/* One sentence for people. Never NULL, never freed. Any thread. */
REDLOCK_API const char *redlock_status_text(int status);

/* 1 if the status has the trait (enum redlock_trait), else 0. Any thread. */
REDLOCK_API int redlock_status_is(int status, int trait);

/* Field `field` (enum redlock_option_field) of option number `index`, counted from 0; NULL past the end. The table is
 * what bindings, the command line and docs/options.md are made from. Never freed. Any thread. */
REDLOCK_API const char *redlock_option_at(int index, int field);

/* ---- client ------------------------------------------------------------------------------------------------- */

/* A client without nodes and with the default options; NULL only for want of memory. The caller owns it. */
REDLOCK_API REDLOCK_CHECK redlock_client *redlock_client_new(void);

/* Sets option `name` (docs/options.md) to the value written in `value`. "nodes" takes URLs separated by commas:
 * redis://[user:password@]host[:port][/database] or unix://[user:password@]/path[?db=n]; a comma, '@' or other
 * special byte within a part is percent-encoded. Only before redlock_client_open: afterwards REDLOCK_INVALID, as for
 * an unknown name or a value out of range; the message names both and what is allowed. The texts are copied.
 * Not thread-safe: it belongs to the time before the client is shared. */
REDLOCK_API int redlock_client_set(redlock_client *client, const char *name, const char *value);

/* Copies the option's value as text; passwords in "nodes" are shown as ***. -REDLOCK_INVALID for an unknown name. */
REDLOCK_API int64_t redlock_client_get(redlock_client *client, const char *name, char *buf, size_t size);

/* Checks the options against each other and starts connecting; never blocks. REDLOCK_INVALID if there are no nodes,
 * more than 64, the same one twice, or options that contradict each other. A second open is REDLOCK_INVALID. */
REDLOCK_API REDLOCK_CHECK int redlock_client_open(redlock_client *client);

/* Ends the client: redlock_client_drain with exit_drain_ms if that was not done, then closes everything. Threads that
 * block in it get REDLOCK_CANCELLED; later calls on its locks return REDLOCK_INVALID, and the locks must still be
 * freed. In a forked child nothing is sent. NULL: nothing happens. */
REDLOCK_API void redlock_client_free(redlock_client *client);

/* One descriptor for poll, epoll, kqueue or an event loop: readable when redlock_client_process has something to do,
 * deadlines, losses and queued starts included. The number stays the same for the life of the client, also in a forked
 * child. It belongs to the client: do not read or close it. -status on error. Any thread. */
REDLOCK_API int redlock_client_fd(redlock_client *client);

/* Does all that is due without blocking: sends what was started, reads replies, runs deadlines. Returns REDLOCK_OK or
 * REDLOCK_INVALID. Any thread; safe beside blocking calls. */
REDLOCK_API int redlock_client_process(redlock_client *client);

/* Takes the next lock whose started operation has ended, or that is at risk or was lost, and puts its tag
 * (redlock_lock_set_tag) into *tag: 1, or 0 if there is none. A lock stands in the list at most once: read its
 * redlock_lock_status and redlock_lock_state. Nothing is dropped. Any thread. */
REDLOCK_API int redlock_client_next(redlock_client *client, uint64_t *tag);

/* redlock_client_process and the first redlock_client_next in one, for the thread of an event loop: what ends within
 * the call does not make the descriptor readable again if it is the only one. 1 with a tag, 0 if there is none or the
 * client is not open. After a 1, call redlock_client_next until it gives 0. Any thread. */
REDLOCK_API int redlock_client_advance(redlock_client *client, uint64_t *tag);

/* Leaves cleanly, within limit_ms (-1: exit_drain_ms): refuses new work, cancels what is pending, releases every held
 * lock that was not detached, sends all that and reads the answers to the end. REDLOCK_OK, or REDLOCK_TIMED_OUT if a
 * node did not answer in time (its keys end with their TTL). The client takes no operation afterwards. */
REDLOCK_API int redlock_client_drain(redlock_client *client, int64_t limit_ms);

/* The next event as one line of JSON, for logs only: {"event":"lost","resource":"...",...}. Returns the length, 0 if
 * there is none; if it does not fit nothing is consumed. The queue is bounded: when it is full the oldest go, and an
 * event "dropped" with the count takes their place. One consumer. */
REDLOCK_API int64_t redlock_client_event(redlock_client *client, char *buf, size_t size);

/* The client in JSON: options, nodes, what each may vote on and why not, counters. Passwords are not in it. */
REDLOCK_API int64_t redlock_client_describe(redlock_client *client, char *buf, size_t size);

/* Why the last redlock_client_set or redlock_client_open failed; "" if it did not. Not thread-safe, as those. */
REDLOCK_API int64_t redlock_client_message(redlock_client *client, char *buf, size_t size);

/* The number of nodes; 0 before "nodes" was set. */
REDLOCK_API int redlock_client_node_count(redlock_client *client);

/* The name of node `node` (from 0) as messages show it, without credentials: "127.0.0.1:7001", "unix:/run/r.sock". */
REDLOCK_API int64_t redlock_client_node_name(redlock_client *client, int node, char *buf, size_t size);

/* ---- lock --------------------------------------------------------------------------------------------------- */

/* A handle on `resource` (1 byte to 512 MB, any bytes; copied). Takes no lock yet and does no I/O. NULL only for want
 * of memory: with a bad argument or a client that is not open the handle is in REDLOCK_STATE_INVALID and its message
 * says why. The caller owns it and ends it with redlock_lock_free. */
REDLOCK_API REDLOCK_CHECK redlock_lock *redlock_lock_new(redlock_client *client, const void *resource, size_t size);

/* Sets an option of this lock alone; names of scope "both". Otherwise as redlock_client_set. REDLOCK_IN_FLIGHT while
 * an operation runs; a held lock keeps its lease, the new value counts from the next operation. */
REDLOCK_API int redlock_lock_set(redlock_lock *lock, const char *name, const char *value);

/* The value of an option for this lock, as redlock_client_get. */
REDLOCK_API int64_t redlock_lock_get(redlock_lock *lock, const char *name, char *buf, size_t size);

/* The number that redlock_client_next gives for this lock; 0 before. REDLOCK_OK. */
REDLOCK_API int redlock_lock_set_tag(redlock_lock *lock, uint64_t tag);

/* Ends the handle. Never blocks: an operation in flight is cancelled, a held lock is released (the deletes are sent at
 * once, confirmed later), a detached or inherited one is left alone. NULL: nothing happens. */
REDLOCK_API void redlock_lock_free(redlock_lock *lock);

/* Takes the lock, waiting up to wait_ms: 0 one attempt, -1 without limit, -2 the option wait_ms. Allowed in the states
 * FREE, LOST and FORKED. REDLOCK_OK: held for at least min_validity_ms. REDLOCK_BUSY: others held it at the end.
 * REDLOCK_NO_QUORUM, REDLOCK_REFUSED_CONFIG: too few nodes answered or may vote. REDLOCK_TIMED_OUT: no verdict in
 * time. REDLOCK_CANCELLED. Each attempt uses a fresh token; what a failed one left behind is deleted. (lease rule) */
REDLOCK_API REDLOCK_CHECK int redlock_lock_acquire(redlock_lock *lock, int64_t wait_ms);

/* Prolongs a held or adopted lock to ttl_ms from now (0: the option ttl_ms); it never shortens a lease. REDLOCK_OK: a
 * majority confirmed. REDLOCK_NO_QUORUM: it did not, the lock stays held for redlock_lock_validity_ms. REDLOCK_LOST:
 * it is gone, for good (sticky: a late extension never revives a lock). REDLOCK_LIMIT: max_extensions or max_hold_ms.
 * REDLOCK_NOT_HELD: never taken. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_extend(redlock_lock *lock, int64_t ttl_ms);

/* Gives the lock up: it is not held from the first moment of the call, whatever is returned. REDLOCK_OK: it was held
 * at the call; nodes that did not answer are cleaned up later or by the TTL. REDLOCK_LOST: it had lapsed, the deletes
 * were sent all the same. REDLOCK_NOT_HELD: never taken. For an adopted token: REDLOCK_OK if a key was deleted,
 * REDLOCK_LOST if a majority says it was gone, REDLOCK_NO_QUORUM if too few answered. Only keys that still hold this
 * lock's token are deleted. */
REDLOCK_API int redlock_lock_release(redlock_lock *lock);

/* Starts `operation` (enum redlock_operation) and returns REDLOCK_OK without blocking or sending: the descriptor turns
 * readable and redlock_client_process sends, so that what was started in one turn of a loop leaves together. With
 * REDLOCK_AT_ONCE added the request leaves in this call, which suits an operation that is alone. What is refused at
 * once (INVALID, NOT_HELD, LOST, LIMIT, FORKED, IN_FLIGHT) is returned, and nothing was started. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_start(redlock_lock *lock, int operation, int64_t arg);

/* The result of the last operation, REDLOCK_PENDING while it runs, REDLOCK_NOT_HELD before the first. Any thread. */
REDLOCK_API int redlock_lock_status(redlock_lock *lock);

/* Drives or waits for the operation in flight until it ends: its status. REDLOCK_PENDING when limit_ms (-1: none) has
 * passed or a signal arrived, so that a language can run its signal handlers between calls: then call it again. A
 * thread that waits for another thread's I/O notices no signal: use slices (<= 25 ms) where that matters. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_wait(redlock_lock *lock, int64_t limit_ms);

/* Gives up the operation in flight: its status is REDLOCK_CANCELLED at once and the handle is free for another; an
 * acquisition's keys are deleted inside the client, a release goes on there. A lock that was already granted stays
 * held. REDLOCK_OK, also when nothing was in flight. Any thread, and signal handlers. */
REDLOCK_API int redlock_lock_cancel(redlock_lock *lock);

/* enum redlock_state, decided at the call from the local clock. Any thread. NULL: REDLOCK_STATE_INVALID. */
REDLOCK_API int redlock_lock_state(redlock_lock *lock);

/* How much longer the lock is held without an extension, in ms rounded down; 0 if it is not held, -REDLOCK_INVALID for
 * NULL. (lease rule) */
REDLOCK_API int64_t redlock_lock_validity_ms(redlock_lock *lock);

/* The token of the lock that is held or adopted, or that was last, as 40 hexadecimal digits; "" before. */
REDLOCK_API int64_t redlock_lock_token(redlock_lock *lock, char *buf, size_t size);

/* Takes over a token that another handle or process detached: the state is ADOPTED with validity 0, and only extend
 * and release are allowed. An extension that Q nodes confirm makes it held. That nobody else held the lock in between
 * is not promised. REDLOCK_INVALID for a token that is not 40 lower-case hex digits, and for a handle that is held. */
REDLOCK_API REDLOCK_CHECK int redlock_lock_adopt(redlock_lock *lock, const char *token);

/* Hands the lock over: the handle forgets it and nothing is deleted any more for that token, ever. Read the token
 * before or after. Requests to a minority of nodes may still be under way after an early win; an inspect before it
 * waits for them. REDLOCK_OK, or as redlock_lock_extend when there is nothing to hand over. */
REDLOCK_API int redlock_lock_detach(redlock_lock *lock);

/* What node `node` answered to the last operation: OK granted or confirmed, BUSY held by another, LOST the token is
 * gone there, PENDING not yet, TIMED_OUT not in time, UNREACHABLE, REFUSED_CONFIG it may not vote, NO_QUORUM it
 * answered with an error, NOT_HELD not asked or free. -REDLOCK_INVALID for a node that does not exist. */
REDLOCK_API int redlock_lock_vote(redlock_lock *lock, int node);

/* A field (enum redlock_answer_field) of that answer as text. */
REDLOCK_API int64_t redlock_lock_answer(redlock_lock *lock, int node, int field, char *buf, size_t size);

/* All of it in one line: "2 of 5 nodes granted orders:42, 3 needed: 127.0.0.1:7001 busy (4.2 s left), ...". Resources
 * are escaped and cut at 64 bytes. After a refusal it names the option, the value and what is allowed. */
REDLOCK_API int64_t redlock_lock_message(redlock_lock *lock, char *buf, size_t size);

/* The state x call table. "start" is meant where only start or the blocking call is written.
 *
 *            acquire   extend     release    adopt     detach    inspect
 *  FREE      ok        NOT_HELD   NOT_HELD   ok        NOT_HELD  ok
 *  HELD      INVALID   ok         ok         INVALID   ok        ok
 *  LOST      ok        LOST       LOST (*)   ok        LOST      ok         (*) the deletes are sent
 *  ADOPTED   INVALID   ok         ok         INVALID   ok        ok
 *  FORKED    ok        FORKED     FORKED     ok        FORKED    ok
 *  INVALID   INVALID in every column. With an operation in flight: IN_FLIGHT in every column.
 */

#ifdef __cplusplus
}
#endif

#endif

/* The objects of the core and who may touch what. All of it is read and written under the client's mutex.
 *
 *   client -> lock -> operation -> {quorum, waiting, node} -> {session, command, link} -> poller, platform
 *
 * A reply travels back the way the request came: link -> node (a reply becomes an answer) -> operation (counts). */
#ifndef RL_CORE_H
#define RL_CORE_H

#include <hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../include/redlock.h"
#include "bell.h"
#include "buffer.h"
#include "command.h"
#include "env.h"
#include "fork.h"
#include "options.h"
#include "poller.h"
#include "quorum.h"
#include "resolver.h"
#include "timer.h"
#include "url.h"
#include "wheel.h"

enum {
  RL_BATCH_MAX = 100,      /* locks in one renewal command */
  RL_OWED_MAX = 16384,     /* SETs and extensions that a node may owe an answer to; beyond it counts as down */
  RL_OWED_LATE_MAX = 256,  /* the same for a node whose oldest answer is overdue */
  RL_DEBTS_MAX = 16384,    /* given-up tokens that are remembered for nodes that could not be told */
  RL_REPLY_SIZE_MAX = 1 << 20,
  RL_EVENTS_MAX = 128,
  RL_WHY_SIZE = 96
};

/* ---- key and claim ------------------------------------------------------------------------------------------ */

/* A resource as a key, shared by its lock and the claims on it. */
struct rl_key {
  int users;
  size_t bulk_size;     /* of the RESP bulk string in bulk */
  size_t resource_size; /* the resource stands at its end, before CRLF */
  char *bulk;
};

enum {
  RL_MAY_HOLD = 1,   /* the token may be under the key on this node */
  RL_SAID_BUSY = 2,  /* it answered a definite nil: it cannot hold the token */
  RL_SET_OWED = 4,   /* its answer to the SET has not been read yet */
  RL_DELETE_OWED = 8, /* a delete is on its way on the node's connection */
  RL_SHORTENING_LOST = 0x8000, /* in shortenings */
  RL_SET_LOST = 16,   /* a SET may have been executed unnoticed: a nil to another is no proof of absence */
  RL_DELETE_LOST = 32 /* the same of a delete: that another one finds nothing proves nothing */
};

struct rl_claim_node {
  int64_t e_ns; /* the lease there is counted on until then; 0: it is not (rule 0) */
  uint8_t flags;
  uint8_t cut;  /* enum redlock_loss: why it is not counted on any more, before its time */
  uint16_t shortenings; /* whose answers are not read yet; RL_SHORTENING_LOST added: one may still be executed */
  int64_t cap_ns;       /* then it counts no longer than this, whatever is confirmed */
};

/* One token on N nodes: an attempt, then the lease, then what has to be deleted. It outlives its lock handle until no
 * node can hold the token and no reply names it. */
struct rl_claim {
  redlock_lock *lock; /* NULL when the handle has let go */
  struct rl_key *key;
  struct rl_claim *next, *previous; /* in client->claims */
  int owed;                         /* replies that name it */
  int holders;                      /* nodes with RL_MAY_HOLD */
  int over;                         /* given up: to be deleted wherever it may be */
  int64_t until_ns;                 /* no node holds it after that */
  size_t token_size;
  char *foreign;                    /* an adopted token of another size, else NULL */
  char token[RL_TOKEN_SIZE];
  struct rl_claim_node node[];
};

/* ---- node --------------------------------------------------------------------------------------------------- */

enum rl_owed_kind {
  RL_OWED_SETUP,
  RL_OWED_SET,
  RL_OWED_HINT,   /* PTTL for the waiting */
  RL_OWED_DELETE,
  RL_OWED_CONFIRM, /* the extension script, for a SET that may have met its own token */
  RL_OWED_EXTEND, /* the user's */
  RL_OWED_EXPIRE,
  RL_OWED_RENEW,  /* a batch of the keeper */
  RL_OWED_VALUE,  /* inspect */
  RL_OWED_TTL,
  RL_OWED_REMOVE,
  RL_OWED_NOTHING /* an answer that does not matter */
};

/* The locks of one renewal command, shared by the nodes it went to. */
struct rl_batch {
  int users, count;
  struct rl_terms terms;
  struct rl_claim *claim[RL_BATCH_MAX];
};

/* One reply that the server owes, in the order of the commands. */
struct rl_owed {
  enum rl_owed_kind kind;
  uint32_t round;         /* of the lock's operation; answers of an earlier one do not count. SETUP: the step */
  uint32_t size;          /* of the command */
  uint64_t position;      /* of the command in the stream */
  int64_t sent_ns;        /* before it was queued */
  int64_t lease_ns;       /* what a confirmation is worth, from sent_ns */
  struct rl_claim *claim; /* counted in claim->owed; NULL for SETUP, RENEW, NOTHING */
  struct rl_batch *batch; /* RENEW */
};

enum rl_reply_type { RL_REPLY_STATUS, RL_REPLY_ERROR, RL_REPLY_INTEGER, RL_REPLY_NIL, RL_REPLY_STRING, RL_REPLY_ARRAY };

/* A parsed reply; it lives until the next one is read. */
struct rl_reply {
  enum rl_reply_type type;
  int64_t integer;
  struct rl_buffer text; /* NUL-terminated; text.end without the NUL */
  int elements;          /* of an array, of whatever type */
  int count;             /* integers among them, the first RL_BATCH_MAX */
  int64_t integers[RL_BATCH_MAX];
  int is_id;             /* the last element was the word "id" ... */
  int64_t id;            /* ... and this came behind it (HELLO) */
  const char *fault;     /* why it can not be taken; NULL: the parser says it */
};

enum rl_node_state {
  RL_NODE_OFF,        /* backing off; its timer says when it is tried again */
  RL_NODE_RESOLVING,
  RL_NODE_CONNECTING,
  RL_NODE_SETUP,      /* the set-up's replies are outstanding */
  RL_NODE_READY,
  RL_NODE_REFUSED     /* connected, but it may not vote; only cleaning up before it is closed */
};

/* One connection to a node's server: what is written, what is owed for it, and its set-up. */
struct rl_line {
  struct rl_node *node;
  enum rl_node_state state;
  struct rl_link link;
  /* what is sent */
  struct rl_buffer out;
  uint64_t queued, written; /* positions in the stream */
  /* what is owed */
  struct rl_owed *owed; /* ring of owed_size, a power of two */
  uint32_t owed_size, owed_first, owed_count;
  int owed_asks; /* SETs and extensions among them */
  redisReader *reader;
  struct rl_reply reply;
  int64_t read_ns; /* when the last bytes came */
  char end[RL_WHY_SIZE]; /* why it is closed once the replies that have come are read; "" it is not */
  /* the set-up */
  int setup_left;  /* replies still to come */
  int setup_again; /* it has to be sent once more, without HELLO */
  int setup_fault; /* what the first error in it means: enum rl_fault */
  char setup_error[RL_WHY_SIZE];
  char run_id[41], role[16], mode[16], policy[32], version[24];
  int64_t maxmemory;
  int64_t client_id; /* the server's number for this connection; 0 unknown */
  struct rl_node *shared; /* the node under whose address the server votes already, or NULL */
};

struct rl_node {
  redlock_client *client;
  int index;
  struct rl_url url;
  enum rl_node_state state; /* that of its line */
  int failures;   /* in a row since it was ready */
  int refused;    /* the reason is its configuration, or ours */
  char why[RL_WHY_SIZE]; /* why it is not ready; "" at first */
  struct rl_timer timer; /* OFF: next try; until READY: time-out; READY: looks for overdue replies */
  struct rl_line lines[2];
  struct rl_line *line;   /* the one in use */
  struct rl_line *second; /* the other one, while it is set up beside a silent one */
  int64_t silent_ns;      /* since when the line owes something and says nothing; 0: it is not silent */
  int64_t second_ns;      /* the time-out of the second; without one: when the next is tried */
  int second_failures;    /* in a row */
  uint32_t generations; /* of links that were opened */
  struct rl_resolve *resolve;
  struct rl_address addresses[RL_ADDRESSES_MAX];
  int address_count, address_next;
  int dirty; /* in client->dirty_nodes */
  struct rl_node *next_dirty;
  int no_hello;       /* the server does not know HELLO */
  int session_proved; /* AUTH and SELECT of this URL have succeeded before (rule C.3) */
  char run_id[41], version[24]; /* of the last session that was set up */
  /* health */
  int64_t rtt_ns;        /* smoothed */
  int64_t busy_until_ns; /* no votes are asked for before: it said that it can't just now */
  int64_t debts_retry_ns;
  uint64_t connects, drops;
};

/* ---- lock --------------------------------------------------------------------------------------------------- */

/* What a node said to the lock's last operation. */
struct rl_said {
  int64_t counted_until_ns; /* release: the lease there, if it counted at the call */
  int64_t until_ns; /* BUSY, inspect: when its key ends; 0 unknown, RL_NEVER it does not */
  char *value;      /* inspect: escaped, or NULL */
  char error[48];   /* ERROR: the server's text, as far as it fits */
};

enum rl_phase {
  RL_IDLE,
  RL_ASKING_ALL,  /* a round on all nodes */
  RL_ASKING_HOME, /* a retry asks the home node first (rule F) */
  RL_SLEEPING     /* between two attempts */
};

struct redlock_lock {
  redlock_client *client; /* counted; valid until the lock is freed */
  redlock_lock *next, *previous;                 /* in client->locks */
  redlock_lock *next_flight, *previous_flight;   /* in client->flights while an operation runs */
  redlock_lock *next_ended, *previous_ended;     /* in client->ended */
  int is_ended;
  uint64_t tag;
  struct rl_key *key;
  struct rl_numbers options;
  char *refusal; /* why a call was refused, until the next operation */
  /* the lease */
  int state; /* enum redlock_state */
  int detached;
  struct rl_claim *claim; /* the current or last token; NULL before */
  struct rl_claim *probe; /* carries the answers of an inspect */
  struct rl_timer lease_timer;
  int64_t valid_until_ns;
  int64_t acquired_ns;
  int64_t extensions;    /* by the user */
  struct rl_terms terms; /* of the lease */
  int cut;               /* enum redlock_loss: why valid_until_ns is earlier than it was, until an extension */
  int is_limited;        /* no renewal follows: max_hold_ms */
  int loss;              /* enum redlock_loss: why the last lease was lost */
  /* renewal */
  struct rl_wheel_entry renewal;
  int64_t renewal_goal_ns; /* valid_until from which the round under way counts as confirmed; 0: none under way */
  int renewal_last;        /* that round reaches to max_hold_ms: no other follows */
  int renewed;             /* the keeper looks after it */
  int at_risk;
  /* the operation */
  int kind; /* enum redlock_operation */
  int status;
  int started;  /* by start: its end is told through client->ended */
  int occupied; /* a thread is inside a blocking call or a wait: the handle is its own until that returns */
  int settling; /* a thread waits for all answers to the last operation */
  int was_held;
  enum rl_phase phase;
  uint32_t round;
  int verdict;           /* of the last full round */
  int64_t deadline_ns;   /* of the whole operation */
  int64_t outage_until_ns; /* so long it puts up with too few nodes answering */
  int64_t asked_all_ns;  /* when all nodes were asked last */
  int64_t written_ns;    /* when the round's requests were written; 0: not yet */
  int unwritten;         /* in client->unwritten */
  redlock_lock *next_unwritten;
  int64_t attempts, attempts_max;
  int64_t wake_ns;       /* SLEEPING: without the hint */
  int timer_tight;       /* a quorum was asked: the time of the answers runs, from when they are written */
  int asking_again;      /* extend: the timer is the next try of those that failed */
  uint64_t counted;      /* release: nodes that counted at the call, as bits */
  uint64_t unproven;     /* ... that said that the token is gone only after its lease, when it may have expired */
  int home;              /* node asked first, or -1 */
  struct rl_terms asked; /* terms of the operation */
  struct rl_number ttl_text; /* the TTL of an acquisition, as it is sent */
  struct rl_timer timer;
  atomic_int cancelled;  /* asked for by redlock_lock_cancel */
  struct rl_waiter *waiter;
  struct rl_said *said;  /* per node */
  uint8_t answers[];     /* enum rl_answer per node */
};

/* A thread that waits for its operation while another one drives; it stands on that thread's stack. */
struct rl_waiter {
  struct rl_waiter *next, *previous;
  uint32_t bit; /* its set on the bell */
  int waits;  /* it stands in client->waiters */
  int drives; /* it has been handed the role of the driver */
};

/* ---- client ------------------------------------------------------------------------------------------------- */

enum rl_event_kind {
  RL_EVENT_LOST,
  RL_EVENT_AT_RISK,
  RL_EVENT_LIMIT,
  RL_EVENT_NODE_UP,
  RL_EVENT_NODE_DOWN,
  RL_EVENT_NODE_SILENT,
  RL_EVENT_NODE_REFUSED,
  RL_EVENT_NODE_RESTARTED,
  RL_EVENT_WARNING
};

struct rl_event {
  enum rl_event_kind kind;
  int node; /* -1: about a resource */
  int loss; /* enum redlock_loss */
  int64_t at_ms; /* wall clock, for people */
  uint16_t resource_size;
  char resource[65];
  char detail[RL_WHY_SIZE];
};

enum {
  RL_CLIENT_NEW,
  RL_CLIENT_OPEN,
  RL_CLIENT_DRAINING, /* takes no new work; others may still be driving */
  RL_CLIENT_LEAVING,  /* all deletes are queued: what is written is followed by a half-close */
  RL_CLIENT_CLOSED
};

struct redlock_client {
  pthread_mutex_t mutex;
  int users; /* the owner and every lock */
  int state;
  struct rl_env env;
  redlock_client *next, *previous; /* in the registry of the process */
  int registered;
  int tended; /* the keeper's thread is working in it */
  uint32_t fork_generation;
  char message[512];
  /* options */
  struct rl_numbers options;
  char *key_prefix, *client_name;
  struct rl_node *nodes;
  int node_count, quorum;
  /* the I/O */
  struct rl_poller poller;
  struct rl_node *dirty_nodes;
  struct rl_timers timers;
  int64_t polled_ns; /* when pending input was last looked for */
  /* who drives */
  int driven;   /* a thread is the driver, or has been handed the role */
  int sleeping; /* ... and waits in the poller */
  int kicked;   /* ... and has been woken already */
  int64_t sleeps_until_ns;
  const redlock_lock *driving; /* ... for this lock's operation; NULL: for the client's end */
  struct rl_waiter *waiters, *last_waiter;
  uint32_t waiter_count;
  struct rl_bell bell;
  uint32_t woken; /* bits to be rung when the mutex is given back */
  int notified;
  int ended_marked;     /* the list of the ended has grown: the descriptor has to tell */
  int64_t renew_due_ns; /* a renewal was scheduled: the thread that renews has to know; RL_NEVER: none was */
  atomic_int cancels; /* locks with a cancel to be looked at */
  atomic_int rung;    /* a cancel has made the public descriptor readable */
  /* what there is */
  redlock_lock *locks, *flights;
  redlock_lock *ended, *last_ended;
  int settling;            /* threads that wait for all answers */
  redlock_lock *unwritten; /* rounds whose requests wait to be written */
  struct rl_claim *claims, *last_claim; /* in the order of their making */
  struct rl_claim *spare_claims;        /* for reuse, singly linked by next */
  int spare_count, debts;
  struct rl_wheel wheel;
  int renewing;      /* locks that the keeper looks after */
  int renewals_open; /* those with a round under way */
  int64_t expired_ns; /* when expired debts were last looked for */
  int batches;              /* with answers to come */
  int64_t batch_answers_ns; /* so long the keeper waits for those that no majority needs: for a NOSCRIPT */
  struct rl_batch *spare_batch;
  /* tokens and jitter */
  uint64_t token_seed, token_count, random_state;
  /* what is told */
  struct rl_event *events;
  int events_first, events_count;
  uint64_t events_dropped;
  int event_fd; /* readable while there are events; -1: nobody asked for it */
  uint64_t acquired, lost, attempts, renewals, commands;
};

/* driver.c, client.c */
int64_t rl_now(redlock_client *client);
uint64_t rl_random(redlock_client *client);
void rl_seed(redlock_client *client);
/* config.c, drain.c */
void rl_client_free_nodes(redlock_client *client);
/* With the mutex held; -1: exit_drain_ms. */
int rl_client_drain(redlock_client *client, int64_t limit_ms);
/* Runs deadlines and renewals that are due at now; the caller flushes. */
void rl_client_step(redlock_client *client, int64_t now_ns);
void rl_client_flush(redlock_client *client);
/* Looks for input without waiting. */
void rl_client_poll(redlock_client *client);
/* Does all that is due, beside whoever drives. */
void rl_client_tend(redlock_client *client);
/* At the door of every entry: notices a fork that no handler saw. */
void rl_client_enter(redlock_client *client);
void rl_client_leave(redlock_client *client);
void rl_client_unref(redlock_client *client); /* with the mutex held; releases it */
/* A lock's started operation has ended, or it is at risk or lost: puts it into the list for redlock_client_next. */
void rl_client_tell(redlock_client *client, redlock_lock *lock);
void rl_client_renew_at(redlock_client *client, int64_t at_ns);
void rl_client_unlock(redlock_client *client);
void rl_client_notify(redlock_client *client); /* the public descriptor turns readable */
void rl_client_look_for_cancels(redlock_client *client);
void rl_client_handle(redlock_client *client, const struct rl_poll_event *events, int count);
/* Waits for input until until_ns without holding the mutex, then handles it. 0, or -EINTR. */
int rl_client_drive_once(redlock_client *client, int64_t until_ns);
void rl_client_kick(redlock_client *client); /* ends the driver's sleep, once per burst */
void rl_client_wake(redlock_client *client, struct rl_waiter *waiter);
void rl_client_unwait(redlock_client *client, struct rl_waiter *waiter); /* it waits no longer */
void rl_client_hand_over(redlock_client *client); /* the driver leaves: who waits longest takes over */
int rl_client_drive(redlock_client *client, redlock_lock *lock, int64_t until_ns, int interruptible);
/* What was queued leaves at once, or with the driver's next write. */
void rl_client_send(redlock_client *client);
/* ... or leaves with the next redlock_client_process: the descriptor turns readable. */
void rl_client_queued(redlock_client *client);
void rl_client_forked(redlock_client *client);

/* registry.c */
int rl_registry_add(redlock_client *client); /* REDLOCK_OK or REDLOCK_INTERNAL; a second time: nothing happens */
void rl_registry_remove(redlock_client *client);
redlock_client *rl_registry_lock(void); /* the first of the clients; before any client's mutex */
void rl_registry_unlock(void);

/* keeper.c */
void rl_keeper_forked(void);
int rl_keeper_ensure(void);
void rl_keeper_schedule(redlock_client *client, int64_t at_ns);

/* renewal.c: what is due */
void rl_renewal_begin(redlock_lock *lock, int64_t now_ns);
void rl_renewal_end(redlock_lock *lock);
void rl_renewal_confirmed(redlock_lock *lock, int64_t now_ns);
void rl_renewals_due(redlock_client *client, int64_t now_ns);
void rl_batch_drop(redlock_client *client, struct rl_batch *batch);
/* A batch of those that are still held, to be dropped by the caller; NULL when memory is out. */
struct rl_batch *rl_batch_again(redlock_client *client, struct rl_batch *batch, int64_t now_ns);

/* claim.c */
struct rl_key *rl_key_new(const char *prefix, const void *resource, size_t size);
void rl_key_drop(struct rl_key *key);
const char *rl_key_resource(const struct rl_key *key);
struct rl_claim *rl_claim_new(redlock_lock *lock);
int rl_claim_take_token(struct rl_claim *claim, const char *token, size_t size); /* 0, or -1 when memory is out */
const char *rl_claim_token(const struct rl_claim *claim);
void rl_claim_settle(redlock_client *client, struct rl_claim *claim);
void rl_claim_cleared(redlock_client *client, struct rl_claim *claim, int node);
/* Gives the token up: deletes go to every node where it may be, now or when the node can be told again. */
void rl_claim_give_up(redlock_client *client, struct rl_claim *claim, int whole, uint32_t round, int64_t now_ns);
void rl_claims_expire(redlock_client *client, int64_t now_ns);
void rl_claims_free(redlock_client *client);
void rl_claims_forked(redlock_client *client);
void rl_claim_forget(redlock_client *client, struct rl_claim *claim); /* no node is thought to hold it */
void rl_claim_let_go(redlock_client *client, struct rl_claim **claim);

/* lock.c */
redlock_client *rl_lock_enter(redlock_lock *lock); /* the client with its mutex held */
void rl_lock_drop_claim(redlock_lock *lock, int64_t now_ns);
/* Notices that the lease has run out (sticky): 1 if the lock is held at now. */
int rl_lock_is_held(redlock_lock *lock, int64_t now_ns);
/* reason is an enum redlock_loss. */
void rl_lock_lost(redlock_lock *lock, int reason);
void rl_lock_lapse(redlock_lock *lock, int64_t now_ns); /* the lease's timer */
void rl_lock_note_loss(redlock_lock *lock, int reason); /* of a lock that is being released */
/* The lease there changed: recounts how long the lock is valid. */
void rl_lock_recount(redlock_lock *lock, int64_t now_ns);
/* The node does not count any more, before its time. */
void rl_lock_cut(redlock_lock *lock, int node, int reason, int64_t now_ns);
void rl_lock_refuse(redlock_lock *lock, const char *text);
void rl_lock_forked(redlock_lock *lock);

/* round.c */
void rl_round_clear(redlock_lock *lock);
void rl_round_ask(redlock_lock *lock, struct rl_node *node, int64_t now_ns);
void rl_round_ask_or_note(redlock_lock *lock, int node, int64_t now_ns);
void rl_round_ask_all(redlock_lock *lock, int but, int64_t now_ns);
void rl_round_set_timer(redlock_lock *lock, int64_t at_ns); /* not beyond the operation's deadlines */
void rl_round_time(redlock_lock *lock, int64_t now_ns);
void rl_round_time_answers(redlock_lock *lock, int64_t now_ns);
void rl_round_written(redlock_lock *lock, int64_t now_ns);
int rl_round_has_time(redlock_lock *lock, int64_t now_ns); /* its timer has fired: 1 if it goes on, for slow nodes */
void rl_round_hurry(redlock_lock *lock, const struct rl_tally *tally);
int rl_round_awaits(const redlock_lock *lock, int node);
void rl_round_close(redlock_lock *lock);
int rl_round_hope(redlock_lock *lock, int64_t now_ns); /* the time is over, but some may still come: 1 */
int rl_round_is_open(const redlock_lock *lock);

/* acquire.c, extend.c, release.c: begin returns a status, advance looks at the answers, timer at what is due. */
int rl_acquire_begin(redlock_lock *lock, int64_t wait_ms, int64_t now_ns);
void rl_acquire_advance(redlock_lock *lock, int64_t now_ns);
void rl_acquire_timer(redlock_lock *lock, int64_t now_ns);
void rl_acquire_sleep(redlock_lock *lock, int64_t now_ns); /* until the next attempt: a hint has come */
void rl_acquire_retry(redlock_lock *lock, int64_t now_ns);
int rl_extend_begin(redlock_lock *lock, int kind, int64_t now_ns); /* REDLOCK_EXTEND or _EXPIRE */
void rl_extend_advance(redlock_lock *lock, int64_t now_ns);
void rl_extend_timer(redlock_lock *lock, int64_t now_ns);
int rl_release_begin(redlock_lock *lock, int64_t now_ns);
void rl_release_advance(redlock_lock *lock);
void rl_release_answered(redlock_lock *lock, int node, int answer, int64_t now_ns);
int rl_inspect_begin(redlock_lock *lock, int64_t now_ns);
void rl_inspect_advance(redlock_lock *lock);
int rl_remove_begin(redlock_lock *lock, int64_t now_ns);
void rl_remove_advance(redlock_lock *lock);

/* operation.c */
void rl_operation_start(redlock_lock *lock, int kind);
void rl_operation_advance(redlock_lock *lock, int64_t now_ns);
int rl_operation_begin(redlock_lock *lock, int kind, int64_t arg, int64_t now_ns);
void rl_operation_cancel(redlock_lock *lock, int64_t now_ns);
void rl_operation_end(redlock_lock *lock, int status);
void rl_operation_timer(redlock_lock *lock, int64_t now_ns);
void rl_operation_node_ready(struct rl_node *node, int64_t now_ns); /* connections that rounds wait for */
void rl_operation_node_down(struct rl_node *node, int64_t now_ns);
/* answer is an enum rl_answer for what owed asked; the claim belongs to the lock's current round if it counts. */
void rl_operation_answer(struct rl_node *node, const struct rl_owed *owed, int answer, int64_t now_ns);
void rl_operation_hint(struct rl_node *node, const struct rl_owed *owed, int64_t pttl_ms, int64_t now_ns);
void rl_operation_value(struct rl_node *node, const struct rl_owed *owed, const struct rl_reply *reply);
int rl_in_flight(const redlock_lock *lock);
int rl_is_awaited(const redlock_lock *lock); /* a thread has to go on waiting for it */
int rl_in_use(const redlock_lock *lock); /* by an operation, or by a thread that has not taken its result yet */

/* waiting.c */
int rl_waiting_home(redlock_lock *lock, int64_t now_ns);
int64_t rl_waiting_pause_ns(redlock_lock *lock);
int64_t rl_waiting_hint_ns(redlock_lock *lock, int64_t now_ns);

/* node.c */
void rl_node_init(struct rl_node *node, redlock_client *client, int index);
void rl_node_free(struct rl_node *node);
void rl_node_connect(struct rl_node *node, int64_t now_ns);
void rl_node_timer(struct rl_node *node, int64_t now_ns);
/* Closes the connection; what was asked counts as unknown. The node is tried again at once or after a pause. */
void rl_node_drop(struct rl_node *node, int at_once, const char *why, int64_t now_ns);
/* The same for a reason of configuration. */
void rl_node_refuse(struct rl_node *node, const char *why, int64_t now_ns);
void rl_node_abandon(struct rl_node *node); /* in a forked child */
void rl_node_look_at_name(struct rl_node *node, int64_t now_ns); /* whether its look-up has ended */
void rl_node_connect_line(struct rl_line *line, int64_t now_ns);
const char *rl_node_timed_out(const struct rl_line *line); /* what has taken too long */
int64_t rl_node_backoff_ns(struct rl_node *node, int failures);
/* What was asked on a connection that is gone is unknown; again: the node can be asked anew at once, or soon. */
void rl_node_fail_owed(struct rl_line *line, int again, int64_t now_ns);
/* The connection of a line is there, or is not to be had. */
void rl_node_connected(struct rl_line *line, int64_t now_ns);
void rl_node_unconnected(struct rl_line *line, const char *why, int64_t now_ns);
const char *rl_error_words(int error, char *out, size_t size);

/* line.c */
void rl_line_init(struct rl_line *line, struct rl_node *node);
void rl_line_free(struct rl_line *line);
int rl_line_open(struct rl_line *line, const struct rl_address *address); /* as the link's open */
int rl_line_begin(struct rl_line *line); /* to read and write, once it is connected: -1 when memory is out */
void rl_line_close(struct rl_line *line); /* what is owed stays */
void rl_line_abandon(struct rl_line *line);
void rl_line_be(struct rl_line *line, enum rl_node_state state);
/* The connection is of no use any more; at_once: it may be made anew without a pause. */
void rl_line_drop(struct rl_line *line, int at_once, const char *why, int64_t now_ns);
/* The same, but what has come already is read first. */
void rl_line_end(struct rl_line *line, const char *why);
void rl_line_read(struct rl_line *line);
void rl_node_flush(struct rl_node *node, int64_t now_ns);
/* An event of the link of that generation. */
void rl_node_event(struct rl_node *node, uint32_t generation, int what, int64_t now_ns);

/* silence.c: a second connection beside one that has gone silent */
void rl_silence_flushed(struct rl_node *node, int64_t now_ns); /* something may be owed from now on */
void rl_silence_timer(struct rl_node *node, int64_t now_ns);
void rl_silence_broken(struct rl_node *node, int64_t now_ns);  /* the connection has spoken */
void rl_silence_forget(struct rl_node *node);                  /* the connection is gone, and the second with it */
/* The set-up of the second has been answered: 1 if it is the node's connection from now on. */
int rl_silence_replace(struct rl_line *line, int64_t now_ns);
void rl_silence_second_failed(struct rl_node *node, const char *why, int64_t now_ns);
/* Whether a node that has not answered in time may answer yet, over a second connection. Only of one that had been idle
 * before is that expected if the time was chosen by the user (is_patient 0). */
int rl_silence_hope(const struct rl_node *node, int is_patient);

/* request.c */
/* An rl_answer: RL_ASKED if it can be asked now, RL_WAITING if its connection is being made, else why not. */
int rl_node_can_ask(struct rl_node *node, int64_t node_timeout_ns, int64_t now_ns);
int64_t rl_node_patience_ns(const struct rl_node *node, const struct rl_terms *terms);
int rl_node_is_late(const struct rl_node *node, int64_t node_timeout_ns, int64_t now_ns);
/* Each queues one command and what it is owed: 0, or -1 when memory is out. */
int rl_node_send_set(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_node_send_hint(struct rl_node *node, struct rl_claim *claim, uint32_t round, int64_t now_ns);
int rl_node_send_delete(struct rl_node *node, struct rl_claim *claim, int whole, uint32_t round, int64_t now_ns);
int rl_node_send_extend(struct rl_node *node, redlock_lock *lock, int whole, int64_t now_ns);
/* Sets what is left of the lease to lock->asked. From here on the node counts no longer than that, for the request may
 * be executed at any time; as long as its answer is not read, nothing that is confirmed counts for longer. */
int rl_node_send_expire(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_node_send_remove(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
/* The same for a SET of the lock's attempt that met a key which may be its own. */
int rl_node_send_confirm(struct rl_node *node, redlock_lock *lock, int whole, int64_t now_ns);
int rl_node_send_renewal(struct rl_node *node, struct rl_batch *batch, int whole, int64_t now_ns);
int rl_node_send_inspect(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
/* Notes what the command that was appended to line->out since its size was `before` is owed; details may be NULL. */
int rl_line_owe(struct rl_line *line, enum rl_owed_kind kind, size_t before, const struct rl_owed *details);
/* The token may be under its key there. */
void rl_node_may_hold(struct rl_node *node, struct rl_claim *claim, int64_t until_ns);
/* Takes back the SET of a finished attempt if not one byte of it was written (rule A.3.2). */
void rl_node_unsend(struct rl_node *node, struct rl_claim *claim);
void rl_node_pay_debts(struct rl_node *node, int64_t now_ns);

/* reply.c: a reader that parses into reply; NULL when memory is out */
redisReader *rl_reply_reader(struct rl_reply *reply);
/* An array of so many 0s and 1s, and nothing else. */
int rl_reply_is_answers(const struct rl_reply *reply, int count);

/* session.c */
int rl_session_begin(struct rl_line *line, int64_t now_ns);
void rl_session_reply(struct rl_line *line, int step, const struct rl_reply *reply, int64_t now_ns);
/* What an error reply means (rule A.7). */
enum rl_fault {
  RL_FAULT_NONE,
  RL_FAULT_OTHER,       /* no vote */
  RL_FAULT_ROLE,        /* not a master any more: set up anew, back off */
  RL_FAULT_LOADING,     /* set up anew, back off */
  RL_FAULT_FULL,        /* no room for a key: no vote, but scripts still work */
  RL_FAULT_PAUSE,       /* no votes for a moment; nothing was executed */
  RL_FAULT_UNWRITABLE,  /* writes and deletes are refused: deletes are tried again later */
  RL_FAULT_CONFIG,      /* permanent for the node */
  RL_FAULT_PERMISSION,  /* permanent for this command or key */
  RL_FAULT_NO_SCRIPT,
  RL_FAULT_UNKNOWN,     /* the server does not know the command */
  RL_FAULT_TYPE         /* a key of another kind: busy, or not ours */
};
enum rl_fault rl_fault_of(const char *text);

/* answer.c: a reply to what was owed; and what an error means for the node itself */
void rl_answer(struct rl_line *line, struct rl_owed *owed, const struct rl_reply *reply, int64_t now_ns);
/* A key may still be there: the node is told again a little later, as far as the TTL lets the key live. */
void rl_answer_keep_debt(struct rl_node *node, int64_t now_ns);
void rl_answer_fault(struct rl_node *node, enum rl_fault fault, const char *text, int64_t now_ns);

/* event.c, message.c, describe.c */
void rl_events_forked(redlock_client *client);
void rl_event_add(redlock_client *client, enum rl_event_kind kind, int node, redlock_lock *lock, const char *detail);
/* Why the lock was lost, with the number of nodes where they are the reason. */
void rl_loss_words(const redlock_lock *lock, struct rl_text *out);
void rl_answer_words(redlock_lock *lock, int node, struct rl_text *out, int64_t now_ns);

#endif

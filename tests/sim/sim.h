/* sim.h - the deterministic simulator: the unchanged core on virtual time, a simulated network and model servers.
 *
 * One seed is one world: it fixes the nodes, the processes, the faults and every delay. Times are nanoseconds of true
 * time (int64_t, from 0); the clock of a node or process is true time with an offset and a rate error.
 */
#ifndef SIM_H
#define SIM_H

#include <stddef.h>
#include <stdint.h>

#include "../../core/src/client/stepped.h"
#include "../../core/src/vote/plan.h"
#include "hard.h"
#include "permits.h"
#include "random.h"
#include "tester.h"
#include "threads.h"

#define MS RLK_NS_PER_MS
#define PASSWORD "secret"

enum {
  SLOTS_MAX = 3,
  READERS_MAX = 64,
  CONNECTIONS_MAX = 512,
  OPEN_MAX = 6 * NODES_MAX,
  HOLDINGS_MAX = 64,
  TOKEN_SIZE = 40,
  RUN_ID_SIZE = 41,
  TOKENS_AT_FIRST = 4096,
  WRITES_KEPT = 16,
  SETS_KEPT = 8,
  GONE_KEPT = 16,
  CHANNEL_MAX = 64,
  MARKER_MAX = 256,
  LOSSES_MAX = 128,
  EXCUSED_MAX = 16,
  MESSAGES_MAX = 1024,
  STRIKES_MAX = 8192,
  HARD_TTL_MS = 300000, /* of clients in some worlds with nights */
  MASTER = SLOTS_MAX,   /* threads of a process: one per slot, one that does everything else, one that renews */
  KEEPER,
  THREADS_PER_PROCESS = KEEPER + 1 + SIM_THREADS_MORE,
  EXIT_HARNESS = 70,            /* the simulator itself can not go on */
  REPLICA_INCARNATION = 1 << 16 /* a replica has a run_id of its own */
};

struct world;
struct rlk_poll_event;

/* ---- queue.c: what happens when ---- */

enum event_kind {
  EVENT_CONNECTED, /* a connect has its outcome */
  EVENT_UP,        /* bytes reach the server */
  EVENT_ORPHAN,    /* bytes of a broken connection reach the server after all */
  EVENT_UP_END,    /* the client's end of stream reaches the server */
  EVENT_DOWN,      /* bytes reach the client */
  EVENT_DOWN_END,  /* end of stream or reset reaches the client */
  EVENT_WRITABLE,  /* a stalled or fresh connection takes bytes */
  EVENT_WAKE,      /* a process's next deadline */
  EVENT_AWAKE,     /* a paused process goes on */
  EVENT_ACTION,    /* the program around a lock does something */
  EVENT_NEMESIS,   /* something breaks */
  EVENT_NODE_AWAKE,
  EVENT_CHILD,   /* the parent of a fork ends, its child goes on */
  EVENT_THREAD,  /* a thread may run */
  EVENT_OVERDUE, /* a blocking call should have returned */
  EVENT_ADDRESS, /* an address that led elsewhere leads to its own server again */
  EVENT_NODE_UP,
  EVENT_ROLLOUT, /* the operator goes a step further */
  EVENT_HARD,    /* what began in a hard world ends */
  EVENT_UNREAD   /* a poller tells again of what was not read */
};

struct event {
  int64_t at;
  uint64_t order; /* events of one instant happen in the order they were planned */
  uint32_t kind;
  uint32_t index;  /* connection, process, slot or node */
  uint32_t serial; /* of the connection or action: a stale event is ignored */
  uint32_t size;   /* bytes, for EVENT_UP and EVENT_DOWN */
};

struct queue {
  struct event *heap;
  size_t count, capacity;
  uint64_t order;
};

void queue_push(struct queue *queue, struct event event);
int queue_pop(struct queue *queue, struct event *event);

/* ---- network.c ---- */
struct stream {
  char *bytes;
  size_t head, arrived, end, capacity; /* [head, arrived) can be read, [arrived, end) is on its way */
  int64_t last_arrival;                /* nothing overtakes within a stream */
};

enum connection_state { CONNECTION_FREE, CONNECTION_CONNECTING, CONNECTION_OPEN, CONNECTION_FAILED };

struct written_set {
  char token[TOKEN_SIZE];
  uint64_t start; /* its place in the client's bytes */
};

struct gone { /* the answer of an extension that the token is not there */
  int resource;
  char token[TOKEN_SIZE];
  uint32_t losses;    /* how many there had been: it tells of none that came later */
  uint64_t reply_end; /* its place in the server's bytes, 0 once it was read, */
  uint32_t read;      /* with which read */
};

struct connection {
  struct process *process;
  uint32_t life;          /* of the process that opened it */
  int node;               /* the server at the other end */
  int link_node;          /* the core's number for the address: two addresses may lead to one server */
  uint32_t index, serial; /* the serial is unique in its world */
  uint32_t generation;    /* of the core's link */
  uint32_t in_flight;     /* events that name this connection */
  enum connection_state state;
  int client_open, server_open;
  int dropped;                        /* broken by the network or a node: bytes may have been lost */
  int cut_up, cut_down;               /* what was on its way in that direction never arrives */
  int ended, reset;                   /* the client sees end of stream or a reset once it has read what arrived */
  int want_write, stalled;            /* a stalled connection takes no bytes */
  int report;                         /* what a sleeping process has not been told yet */
  int64_t trouble_at;                 /* last time it did not flow freely */
  uint64_t replies_total, read_total; /* bytes the server has sent and the client has read */
  uint64_t written_total, executed_total;
  uint64_t write_ends[WRITES_KEPT]; /* where the client's last writes ended */
  uint32_t writes;
  struct written_set sets[SETS_KEPT]; /* the last SETs that were executed */
  uint32_t set_count;
  int authenticated, database;
  char channel[CHANNEL_MAX]; /* that it has subscribed to, "" for none */
  uint32_t client_id;        /* the server's number for it */
  int to_replica;
  uint64_t setup_end;  /* of the replies to the set-up so far, */
  uint64_t other_end;  /* and to the first other request after one that tells; 0: there was none */
  int64_t informed_at; /* when its last INFO was executed */
  uint64_t heard_end;  /* of a reply with the marker that has not been read yet; 0: there is none */
  int64_t written_at;  /* by the clock of its process, when the last bytes were */
  int setup_tells;     /* they name a run_id and role, and have not been read to the end yet */
  int setup_replica;
  uint32_t setup_incarnation, setup_epoch;
  int64_t allows_ms;     /* the largest number that a marker has told over it; 0: none has */
  char nonce[17];        /* of the first, */
  uint64_t told_end;     /* the end of the reply that has told the first, */
  uint64_t untold_total; /* and what the client has queued before it has read that */
  int whole_write_told;  /* one since then was taken whole */
  struct gone gone[GONE_KEPT];
  uint32_t gone_count;
  uint32_t reads;
  struct stream up, down;
};

struct connection *connection_of(struct world *world, uint32_t index, uint32_t serial);
void network_event(struct world *world, const struct event *event);
void network_nemesis_drop(struct world *world);
void network_cut(struct world *world, const struct process *process, int link_node);
void network_cut_one(struct world *world, struct connection *connection, int64_t after);
void network_drop_address(struct world *world, int link_node);
void network_node_down(struct world *world, int node);
int network_publish(struct world *world, int node, const char *channel, const char *message, size_t size);
int network_kill(struct world *world, int node, uint32_t client_id);
void network_node_awake(struct world *world, int node);
void network_report_all(struct process *process);
void network_start(struct world *world);
void network_note_set(struct connection *connection, const char *token);
void network_check_release(const struct connection *connection, const char *token, size_t size);
int network_is_quiet(const struct world *world);
int network_gather(struct process *process, struct rlk_poll_event *events, int most);
void stream_append(struct stream *stream, const char *bytes, size_t size);
extern const struct rlk_link_ops sim_link_ops;

/* ---- server.c: a model of one Redis server ---- */

struct reader { /* of a key that is shared */
  char token[TOKEN_SIZE + 1];
  int64_t expire_ms, expires_at;
  uint8_t links[PROCESSES_MAX];
};

struct key { /* of a lock, as the oracle knows it; the server has it in its store */
  int live;
  int reader_count, is_hash; /* it is a set of readers, and has no token; a hash, with its token as the field */
  struct reader readers[READERS_MAX];
  char token[TOKEN_SIZE + 1];
  int64_t expire_ms;            /* on the node's clock */
  int64_t expires_at;           /* the same in true time */
  int64_t freed_at;             /* true time of its end, if that was not its expiry */
  uint8_t links[PROCESSES_MAX]; /* addresses over which the process was told that its token is there */
  int64_t set_at, read_at;      /* true time of the SET, and of its reply being read by the client (0: not yet) */
  uint32_t connection, serial;
  uint64_t reply_end; /* position in that connection's replies */
};

enum node_error {
  NODE_ERROR_NONE,
  NODE_ERROR_BUSY,
  NODE_ERROR_OOM,
  NODE_ERROR_MISCONF,
  NODE_ERROR_LOADING,
  NODE_ERROR_READONLY, /* a replica for a while */
  NODE_ERROR_SELECT,   /* SELECT fails: nothing may be asked of database 0 instead */
  NODE_ERRORS
};

enum { ENTRIES_MAX = 32 };

struct node {
  int index;
  int64_t clock_offset;
  int64_t clock_ppm;
  int is_behind;      /* its clock was set back */
  int64_t stepped_at; /* when its clock was last stepped forward; 0: never */
  int asleep, down;
  int old;          /* knows no HELLO */
  int kills_nobody; /* CLIENT KILL is not allowed */
  enum node_error error;
  int64_t error_until;
  int64_t trouble_at;   /* last time it did not answer as it should */
  int64_t flipped_at;   /* when it was promoted again last; 0: never */
  int64_t right_at;     /* when its clock was set right that had been behind since it booted; 0: never */
  int64_t restarted_at; /* also when it stopped being a master: leases there do not count any more */
  uint32_t incarnation; /* its run_id */
  uint32_t epoch;       /* how often it has lost keys */
  uint32_t scripts;     /* bits of the script cache */
  uint32_t next_client_id;
  struct key keys[KEYS_MAX];
  int replaced;                  /* a writable replica answers at its address */
  char other_marker[MARKER_MAX]; /* of the database that it was swapped with */
  int swapped;
  int64_t ahead_ms;              /* its clock was stepped in the morning */
  int64_t behind_ms;             /* since it booted; 0: its clock is right */
  uint32_t former_master;        /* master_replid2 begins with it, 0: all zeros */
  int64_t lurks_until;           /* till then it loses its keys beside the next renewal of a process, */
  int lurks_for;                 /* ... of this one */
  char entries[ENTRIES_MAX][12]; /* clients that have told who they are */
  int entry_count;
  struct stream reply;
};

struct reader *keys_reader(const struct key *key, const char *token);
void keys_delete(struct world *world, struct node *node, int resource);
const struct object *keys_queue(const struct node *node, int resource); /* of those who wait; NULL: there was none */
void keys_forget_queues(const struct world *world, const struct node *node);
void keys_meddle(struct world *world, struct node *node, int resource);
void keys_forget_strays(const struct node *node);
void keys_set_fence(const struct world *world, const struct node *node, int resource, int64_t number);
void keys_age_fences(const struct world *world, const struct node *node, int are_lost);
void script_flush(struct node *node);
void server_start(struct world *world, int node);
void server_process(struct world *world, struct connection *connection);
void server_bootstrap(struct world *world, struct node *node);
void marker_swap(struct world *world, struct node *node);
void marker_lose(const struct node *node);
void marker_read_text(const struct node *node, char text[MARKER_MAX]); /* "": it has none */
void marker_write_text(const struct world *world, const struct node *node, const char *text);
int64_t marker_number(const struct world *world, const struct node *node);
int operator_looks(struct world *world, struct rlk_plan *plan, int mode);
void operator_writes(struct world *world, struct node *node, struct rlk_plan *plan, int mode);
void operator_changes(struct world *world, struct node *node, int mode, int64_t max_ttl_ms);
void server_run_id(const struct world *world, const struct node *node, int is_replica, char out[RUN_ID_SIZE]);
char *server_put_hex(char *out, uint32_t value); /* eight digits; returns what is behind them */
void server_expire(struct world *world, struct node *node, int resource);
void server_leave_key(struct world *world, struct node *node, int resource, int64_t ttl_ms);
int64_t server_clock_ms(const struct world *world, const struct node *node);

/* ---- process.c: a simulated client process: the core and the program around it ---- */

enum temper { TEMPER_CHURN, TEMPER_HOLD, TEMPER_EXTEND, TEMPER_RENEW, TEMPERS };

struct slot {
  struct process *process;
  redlock_lock *lock;
  int index; /* in the world, for tags and events */
  int resource;
  int is_permit, wants, key; /* one of several permits, any or this one from 1; the key it holds or held last */
  int is_shared;             /* its lock is, or will be with the next acquisition, */
  int spans, is_hash;        /* and it is one of all resources, else of its own alone; its key is a hash */
  enum temper temper;
  int64_t ttl_ms, max_hold_ms, outage_wait_ms;
  int64_t renewed_ms; /* what a renewal asks for */
  int operation;      /* what was started last, 0 when its end was seen */
  int64_t started_at;
  int overtaken;       /* how often one who came later was granted the lock before it */
  int64_t behind_at;   /* when last somebody waited who wants the resource in another form, or who hides it */
  int64_t must_end_by; /* true time; RLK_NEVER for an unlimited wait */
  int told;            /* redlock_client_next has named it since the operation was started */
  int last_status;
  int has_lapsed; /* ... before its last release began */
  uint32_t action_serial;
  int action_due;                /* it came while the process slept */
  char released[TOKEN_SIZE + 1]; /* held when its release was started; "" if it was not */
  int shortens;                  /* its holder has asked for an earlier end of the lease */
  const char *call;              /* the blocking call that its thread is in */
  uint32_t call_serial;
  int64_t leased_until;       /* no answer to what its thread has asked for can lengthen the lease beyond this */
  int64_t overdue_at;         /* it should have returned by then, */
  int64_t stolen_before;      /* if no more was stolen from the process than this */
  int holding;                /* index in the resource's ring, -1 if none */
  int step;                   /* of a history whose orders are enumerated */
  int is_reentrant;           /* its program acquires again what it holds; */
  int depth;                  /* how often, 0 if it has not yet; */
  char outer[TOKEN_SIZE + 1]; /* with the token of its outermost acquire; */
  uint64_t depth_random;      /* when: a stream of its own */
};

struct informed { /* what the last set-up on an address has told */
  int server;     /* -1: there was none */
  uint32_t incarnation;
  uint32_t epoch; /* losses of earlier ones are known */
};

struct heard {   /* the answers with a marker that were read from an address */
  int64_t at;    /* the last one; 0: none was */
  int64_t since; /* the first one of the server as it ran then, */
  uint32_t incarnation;
  int64_t before; /* and the last one of the server before; 0: none was */
};

struct process {
  struct world *world;
  int index;
  redlock_client *client;
  int64_t clock_offset;
  int64_t clock_ppm;
  uint64_t random;
  int asleep;
  int lagged; /* it slept within a call, which has returned only now */
  uint32_t sleep_serial;
  int64_t started_at, slept_at, woke_at;
  int64_t wake_at; /* planned EVENT_WAKE */
  int64_t lag;     /* time that has passed inside the running call */
  int looking;     /* the program reads its locks: no lag here */
  int forks;       /* it may: then all its memory is in an arena */
  int has_child;   /* which waits for its end */
  uint32_t life;   /* unique in its world; a child has one of its own */
  int muted;       /* killed: what it still writes goes nowhere */
  int blocking;    /* its threads use the blocking calls */
  int running;     /* threads that have not ended */
  int in_client;   /* threads within a call on the client itself: none may be when it is freed */
  int calls;       /* threads within a blocking call: without one nobody sends or reads */
  int mutex_taken; /* the client's */
  int has_to_leave, leaving, drained, ending;
  int64_t max_ttl_ms;      /* its client's, */
  int64_t next_max_ttl_ms; /* and that of the next client in its place */
  int64_t ttl_most_ms;     /* no lease that it asks for is longer, */
  int64_t next_ttl_most_ms;
  int64_t stolen;       /* time for which threads of it were kept from running, in all, */
  int64_t stolen_until; /* and the end of the last one of these times */
  int steps_now;        /* steps without time passing */
  int64_t steps_at;
  struct informed informed[NODES_MAX];
  struct heard heard[NODES_MAX];
  int64_t clock_read_at[NODES_MAX]; /* of a node, for the first time since it started; 0: not yet */
  uint32_t open[OPEN_MAX];          /* its connections */
  int open_count;
  int slot_count;
  struct slot slots[SLOTS_MAX];
};

/* ---- depth.c: locks that are acquired again ---- */

void depth_begin(struct slot *slot);  /* a new handle */
int depth_act(struct slot *slot);     /* 1: it was acquired or released once more */
void depth_unwind(struct slot *slot); /* all but the outermost release */
void depth_end(struct slot *slot);    /* ... and it is acquired again no more */

void process_start(struct world *world, int index);
void process_end(struct process *process);
void process_event(struct world *world, const struct event *event);
void process_told(struct process *process, struct connection *connection, int what);
void process_sleep(struct process *process, int64_t duration);
void process_replace(struct process *process, int killed);
void process_lag(struct process *process);
void process_stop_work(struct process *process);
int process_is_idle(const struct process *process);
int64_t process_clock(const struct process *process);
int64_t process_true_time(const struct process *process, int64_t clock);
void process_prove_alive(struct process *process, int operation);
void process_prove_served(struct process *process, int64_t wait_ms);
void process_idle(struct process *process);
void process_contend(struct slot *slot, int operation, int64_t wait_ms);
void process_threads_ended(struct process *process);

/* ---- program.c: what a process does with a lock ---- */

#define ALLOW(status) (UINT32_C(1) << REDLOCK_##status)

void slot_make_lock(struct slot *slot);
int64_t slot_ttl(const struct slot *slot, int64_t ttl_ms);
void slot_set_number(struct slot *slot, const char *name, int64_t value);
void slot_plan(struct slot *slot, int64_t delay);
void slot_act(struct slot *slot);
/* allowed: the statuses that starting may have, by ALLOW. limit_ms: the caller's own, 0 if only the time-outs of nodes
 * and connections bound the operation, -1 if nothing does. */
void slot_start(struct slot *slot, int operation, int64_t argument, int64_t limit_ms, uint32_t allowed);
void slot_release(struct slot *slot);
void slot_cancel(struct slot *slot);
void slot_replace_lock(struct slot *slot);
int64_t slot_pause(struct slot *slot);
int64_t slot_think_time(struct slot *slot);
int64_t slot_extension_limit_ms(const struct slot *slot);

/* ---- oracle.c ---- */
struct holding {
  int slot; /* index in the world, -1 for none */
  char token[TOKEN_SIZE + 1];
  int64_t since, until;   /* true time; until is what the holder's own clock says */
  int64_t first_until;    /* of the lease that it began with */
  int64_t promised_until; /* until, before it was given up */
  int64_t given_up_at;    /* release, free, detach; 0 if it lapsed or is still held */
  int open;
  int detached;            /* handed over: nobody has to delete it, and another may adopt it */
  int is_shared;           /* others may share it */
  int spans;               /* it is one of all resources: each has it in its ring */
  int robbed;              /* its key was lost where no guard sees it: others may be let in (README) */
  int64_t backed_until;    /* what was checked last, */
  uint64_t backed_changes; /* and when */
};

#define DAY (INT64_C(86400000) * MS)

struct loss { /* a key that a server has lost */
  char token[TOKEN_SIZE];
  int node;
  int by_hand; /* not by a server: no guard sees that */
  uint32_t epoch;
  int64_t expires_at; /* when it would have ended: nobody was told of more */
  uint8_t links[PROCESSES_MAX];
  uint8_t told[PROCESSES_MAX]; /* addresses over which the process has read that it is gone */
};

struct resource {
  char name[40];
  char detached[TOKEN_SIZE + 1]; /* a token that waits to be adopted; "" if there is none */
  struct holding ring[HOLDINGS_MAX];
  uint32_t holdings;
  struct loss losses[LOSSES_MAX];
  uint32_t loss_count;
  char excused[EXCUSED_MAX][TOKEN_SIZE]; /* granted by a node of which no guard can know that it lost keys */
  uint32_t excused_count;
  int64_t fence; /* of the last holder */
};

struct tokens { /* a hash set */
  uint64_t *marks;
  uint32_t *owners; /* the process that made it, 0 once it was handed over */
  uint64_t mask;
};

void oracle_start(struct world *world);
void oracle_observe(struct slot *slot);
struct holding *oracle_give_up(struct slot *slot);
void oracle_lost_in_call(const struct slot *slot, const struct holding *given_up);
void oracle_detach(struct slot *slot);
void oracle_released(struct slot *slot, int status);
void oracle_rob(struct world *world, int resource, const char *token);
void oracle_expired(struct world *world, struct node *node, int resource);
void oracle_quiet(struct world *world);
void oracle_token(struct world *world, const char *token, uint32_t life);
void oracle_speaks(struct world *world, const char *token, uint32_t life);
void oracle_share(struct world *world, const char *token);
void oracle_share_hold(struct slot *slot);

/* ---- backing.c ---- */

void backing_start(struct process *process);
void backing_lose(struct world *world, struct node *node, int resource, int by_hand);
int backing_was_lost(const struct resource *resource, const char *token);
int backing_was_robbed(const struct world *world, const struct resource *resource, const char *token);
void backing_age(struct world *world, struct node *node);
void backing_lose_all(struct world *world, struct node *node);
void backing_setup(struct world *world, struct connection *connection, uint64_t reply_end, int tells, int is_replica);
void backing_other(struct connection *connection, uint64_t reply_end);
void backing_gone(struct connection *connection, int resource, const char *token, uint64_t reply_end);
void backing_read(struct connection *connection);
void backing_close(struct connection *connection);
int64_t backing_until(struct process *process, int resource, const char *token);

/* ---- world.c ---- */

struct faults { /* the switches of one world; probabilities in parts per million */
  int64_t delay_min, delay_max;
  uint32_t tail, edge; /* of one delay: a heavy tail; right at the edge of a lease or time-out */
  uint32_t split;      /* of one write: it arrives in two pieces */
  uint32_t stall;      /* of one write: the socket takes only a part */
  uint32_t lag;        /* of one clock reading or write: the process loses the processor there */
  int64_t refuse;      /* of one connect */
  /* how often the nemesis does this or that, in proportion */
  uint32_t drop, node_pause, process_pause, restart, script_flush, node_error, replica, process_end;
  uint32_t loss, leftover, astray, fork, clock_step, outage;
  uint32_t siege, flip, behind, swap, night; /* of hard worlds */
  int64_t nemesis_every;
  int64_t timer_late;
};

/* Faults by name, so that some can be left out: first what the nemesis does, then what just happens. */
#define FAULTS(X)                                                                                                      \
  X(DROP, "drop")                                                                                                      \
  X(NODE_PAUSE, "node-pause")                                                                                          \
  X(PROCESS_PAUSE, "process-pause")                                                                                    \
  X(RESTART, "restart")                                                                                                \
  X(SCRIPT_FLUSH, "script-flush")                                                                                      \
  X(NODE_ERROR, "node-error")                                                                                          \
  X(REPLICA, "replica")                                                                                                \
  X(LOSS, "loss")                                                                                                      \
  X(LEFTOVER, "leftover")                                                                                              \
  X(ASTRAY, "astray")                                                                                                  \
  X(FORK, "fork")                                                                                                      \
  X(CLOCK_STEP, "clock-step")                                                                                          \
  X(OUTAGE, "outage")                                                                                                  \
  X(SIEGE, "siege")                                                                                                    \
  X(FLIP, "flip")                                                                                                      \
  X(BEHIND, "behind")                                                                                                  \
  X(SWAP, "swap")                                                                                                      \
  X(NIGHT, "night")                                                                                                    \
  X(PROCESS_END, "process-end")                                                                                        \
  X(TAIL, "tail")                                                                                                      \
  X(EDGE, "edge")                                                                                                      \
  X(SPLIT, "split")                                                                                                    \
  X(STALL, "stall")                                                                                                    \
  X(LAG, "lag")                                                                                                        \
  X(REFUSE, "refuse")

enum fault {
#define FAULT(name, text) FAULT_##name,
  FAULTS(FAULT)
#undef FAULT
      FAULT_COUNT
};

struct orders {     /* of messages: how long each takes is given instead of drawn */
  int history;      /* what the clients do, from 1; 0: all is drawn */
  int count, given; /* messages so far; those for which a delay is given: the others are in time */
  uint8_t delays[MESSAGES_MAX];
};

/* What of its faults a world does without, to see which of them a violation needs. */
struct omissions {
  uint32_t faults; /* a bit for each kind */
  uint64_t strikes[STRIKES_MAX / 64];
};

enum rollout_kind { ROLLOUT_NONE, ROLLOUT_RAISES, ROLLOUT_LOWERS, ROLLOUT_REGISTERS };

struct rollout { /* an operator uses bootstrap while programs run: max_ttl_ms is changed, or quarantines are ended */
  enum rollout_kind kind;
  int step;                   /* what the operator has done so far */
  int64_t small_ms, large_ms; /* 0: the number stays */
  int64_t since;              /* when the last step was complete */
  struct rlk_plan plan;       /* that was shown */
};

struct world {
  const struct tester *tester; /* NULL: it is one of a seed */
  uint64_t seed, random;
  struct omissions omissions;
  struct orders orders;
  uint32_t strikes; /* of the nemesis so far */
  int64_t now, end_of_work;
  int patient;            /* leases and waits are long, and some keys are left behind; else nothing breaks */
  int orderly;            /* everybody waits in order */
  int polls_every;        /* of the processes one in so many has wake=poll; 0: none */
  int64_t astray_at;      /* when an address began to lead to another server, or its own, last; 0: never */
  int64_t home_moves_at;  /* from then on processes trust a node whose clock is ahead, one after the other; 0: none */
  int64_t refused_ttl_ms; /* ... and now and then the nodes refuse leases that are longer; 0: they do not */
  int guarded;            /* its clients have the restart guard */
  int64_t max_ttl_ms;     /* the number that they have at first */
  struct rollout rollout;
  enum hard hard;
  struct away away[PROCESSES_MAX][NODES_MAX];
  struct siege siege;
  int64_t night_until, longest_hold; /* programs idle until then; so far */
  int64_t wall_offset;               /* of the clocks that were never stepped */
  int nights, late_riser;
  int fenced;         /* ... and fencing numbers */
  int mixed;          /* locks are plain, shared, of several resources and permits */
  uint64_t kinds;     /* from which that is drawn: all else is as in a world of plain locks */
  int faultless;      /* nothing breaks from the beginning: then no lock that is renewed may lapse */
  int calm;           /* faults have ended */
  int64_t contest_at; /* when everybody has begun to wait for one lock */
  int tracing;
  uint64_t hash;
  char violation[512];
  const char *hunted; /* only a violation with these words counts, NULL: each */
  uint64_t changes;   /* of what holders may count on */
  struct queue queue;
  struct faults faults;
  int64_t ttl_ms, node_timeout_ms, connect_timeout_ms;
  int explicit_timeout, drift_percent;
  int database;                           /* of all nodes; with one other than 0 there is a password too */
  int twin;                               /* address that leads to the server of node 0, -1 if none */
  uint32_t removes[PROCESSES_MAX];        /* resources whose key the process deletes whatever is under it */
  int leads_to[PROCESSES_MAX][NODES_MAX]; /* the server behind each address, for each process */
  int64_t last_ttl_ms;                    /* the longest lease that was asked for */
  int node_count, process_count, resource_count, slot_count, connections_used; /* beyond these all are free */
  int key_count;                                                               /* of resources, and of their slots */
  struct node nodes[NODES_MAX];
  struct process processes[PROCESSES_MAX];
  struct resource resources[KEYS_MAX]; /* as keys: a slot has holders of its own */
  struct connection connections[CONNECTIONS_MAX];
  uint32_t connection_serial, lives;
  struct tokens tokens;
  uint64_t attempts, wins, events;
};

struct slot *world_slot(struct world *world, uint32_t index);
/* By how much the clocks of a guarded world differ at most. */
int64_t clocks_apart_ms(const struct world *world);
extern int world_mixes; /* those that follow are mixed */
void world_run(struct world *world, uint64_t seed);
void world_plan(struct world *world, int64_t delay, uint32_t kind, uint32_t index, uint32_t serial);
void world_note(struct world *world, uint32_t kind, uint64_t a, uint64_t b);
void world_note_bytes(struct world *world, const char *bytes, size_t size);
/* What the simulator can not go on with: it ends, and no world is to blame. */
void world_fail(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void world_violation(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_trace(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t world_edge(struct world *world);
void world_pass(struct world *world, int64_t duration);
int world_step(struct world *world, int64_t end); /* the next event; 0: there is none until then */

/* How long one attempt may take. With fencing numbers nodes may have to be told one: a second round of answers. */
static inline int64_t world_attempt_ms(const struct world *world)
{
  return world->connect_timeout_ms + world->node_timeout_ms * (world->fenced ? 2 : 1);
}

/* An acquire without a wait: it tries again for 200 ms or 30 round trips, then there may be another pause as long. */
static inline int64_t world_single_ms(const struct world *world)
{
  int64_t trips_ms = world->faultless || world->patient ? 60 * world->faults.delay_max / RLK_NS_PER_MS : 6000;
  return 2 * (trips_ms > 200 ? trips_ms : 200) + 2 * world_attempt_ms(world);
}

/* For half a second, then not for as long. */
static inline int world_refuses(const struct world *world, int64_t ttl_ms)
{
  return world->refused_ttl_ms && ttl_ms > world->refused_ttl_ms && !world->calm && world->now / (500 * MS) % 2;
}

static inline int is_left_out(const uint64_t *strikes, uint32_t strike)
{
  return strike < STRIKES_MAX && (strikes[strike / 64] >> strike % 64 & 1);
}

static inline int does_without(const struct world *world, enum fault fault)
{
  return (int)(world->omissions.faults >> fault & 1);
}

static inline int own_server(const struct world *world, int address)
{
  return address == world->twin ? 0 : address;
}

/* ---- nemesis.c: what breaks, and when ---- */

void nemesis_event(struct world *world, const struct event *event);
void nemesis_boot(struct world *world, struct node *node, int loses, int64_t duration);
void nemesis_rest(struct world *world); /* what breaks for a while only is whole again */

/* ---- rollout.c: what the operator does ---- */

void rollout_choose(struct world *world);
void rollout_go_on(struct world *world);
void rollout_finish(struct world *world);
int rollout_allows(const struct world *world, const struct node *node, enum fault fault);

/* ---- serve.c: the model server alone ---- */

int serve_alone(struct world *world);
void script_print_all(void); /* those that servers were sent, each with its name and its size */

/* ---- contest.c: everybody wants one lock ---- */

void contest_try(struct world *world);
void contest_run(struct world *world);

/* ---- shrink.c: which faults a violation needs ---- */

int shrink_parse_faults(struct omissions *omissions, const char *names);    /* -1: a name is unknown */
int shrink_parse_strikes(struct omissions *omissions, const char *numbers); /* those that are kept; -1: no number */
int shrink(struct world *world, uint64_t seed, const char *mutant);

#define TRACE(world, ...)                                                                                              \
  do {                                                                                                                 \
    if ((world)->tracing)                                                                                              \
      world_trace((world), __VA_ARGS__);                                                                               \
  } while (0)

#endif

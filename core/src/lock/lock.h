/* A holder's handle on one resource: its lease, its renewal and the operation on it. */
#ifndef RLK_LOCK_H
#define RLK_LOCK_H

#include <stdatomic.h>

#include "../base/timer.h"
#include "../base/wheel.h"
#include "../rules/quorum.h"
#include "claim.h"
#include "engine.h"

/* What a node said to the lock's last operation. */
struct rlk_node_answer {
  int64_t counted_until_ns; /* release: the lease there, if it counted at the call */
  int64_t until_ns;         /* BUSY, inspect: when its key ends; 0 unknown, RLK_NEVER it does not */
  char *value;              /* inspect: escaped, or NULL */
  char *error;              /* ERROR: the server's text, or NULL */
};

enum { RLK_QUEUE_ANYWHERE = -2 /* the client is connecting: it does not know yet where others wait */ };

enum rlk_phase {
  RLK_IDLE,
  RLK_ASKING_ALL,   /* a round on all nodes */
  RLK_ASKING_HOME,  /* a retry asks the home node first (rule F) */
  RLK_ASKING_QUEUE, /* the home node, for a place */
  RLK_SLEEPING      /* between two attempts */
};

struct redlock_lock {
  struct rlk_engine *engine;                   /* its client is counted: valid until the lock is freed */
  redlock_lock *next, *previous;               /* in engine->locks */
  redlock_lock *next_flight, *previous_flight; /* in engine->flights while an operation runs */
  redlock_lock *next_ended, *previous_ended;   /* in engine->ended */
  int is_ended;
  uint64_t tag;
  struct rlk_key *key;
  int is_reserved; /* its key is one of the library's own: it may be looked at and removed, not taken */
  struct rlk_numbers options;
  char *refusal; /* why a call was refused, until the next operation */
  /* the lease */
  int state;               /* enum redlock_state */
  struct rlk_claim *claim; /* the current or last token; NULL before */
  struct rlk_claim *probe; /* carries the answers of an inspect */
  struct rlk_timer lease_timer;
  int64_t valid_until_ns;
  int64_t acquired_ns;
  int64_t extensions;     /* by the user */
  struct rlk_terms terms; /* of the lease */
  int cut;                /* enum redlock_loss: why valid_until_ns is earlier than it was, until an extension */
  int is_limited;         /* no renewal follows: max_hold_ms */
  int loss;               /* enum redlock_loss: why the last lease was lost */
  int64_t fence;          /* the fencing number of that or the last lease; 0: it has none */
  /* renewal */
  struct rlk_wheel_entry renewal;
  int64_t renewal_goal_ns; /* valid_until from which the round under way counts as confirmed; 0: none under way */
  int renewal_last;        /* that round reaches to max_hold_ms: no other follows */
  int renewed;             /* the keeper looks after it */
  int at_risk;
  /* the operation */
  int kind; /* enum redlock_operation */
  int status;
  int started;  /* by start: its end is told through engine->ended */
  int in_call;  /* a thread is inside a blocking call or a wait: the handle is its own until that returns */
  int settling; /* a thread waits for all answers to the last operation */
  int was_held;
  enum rlk_phase phase;
  uint32_t round;
  int verdict;             /* of the last full round */
  int64_t deadline_ns;     /* of the whole operation */
  int64_t outage_until_ns; /* so long it puts up with too few nodes answering */
  int64_t asked_all_ns;    /* when all nodes were asked last */
  int64_t written_ns;      /* when the round's requests were written; 0: not yet */
  int unwritten;           /* in engine->unwritten */
  redlock_lock *next_unwritten;
  int64_t attempts, attempts_max;
  int quarantine_is_told; /* acquire: that it waits for the guard */
  int64_t wake_ns;        /* SLEEPING: without the hint */
  int timer_tight;        /* a quorum was asked: the time of the answers runs, from when they are written */
  int asking_again;       /* extend: the timer is the next try of those that failed */
  uint64_t counted;       /* release: nodes that counted at the call, as bits */
  uint64_t unproven;      /* ... that said that the token is gone only after its lease, when it may have expired */
  int scripts_missing;    /* release: a node had lost its scripts */
  /* waiting in order */
  struct rlk_room *room; /* where it stands, or NULL */
  redlock_lock *next_waiting, *previous_waiting;
  redlock_lock *next_placed;  /* in its bucket of engine->placed */
  int64_t began_ns;           /* the acquisition */
  int64_t arrived_ns;         /* its place in the queue is by this */
  uint64_t arrival;           /* ... and among those of its client by this number */
  int64_t alone_ns;           /* when its release was told that nobody waits; 0: it was not */
  uint64_t place;             /* its number in the queue; 0: none */
  int place_home;             /* the node of that queue */
  int64_t rank;               /* of the last answer */
  int64_t rank_changed_ns;    /* since when it is that */
  int is_ranked;              /* there was an answer */
  int is_told;                /* that it is its turn, while an attempt was under way */
  int64_t step_ns;            /* how long one of those before it took; 0: not known */
  int64_t free_ns;            /* since when the home node says that nobody holds it; RLK_NEVER: somebody does */
  int in_vain;                /* attempts that failed although it says so */
  int queue_home;             /* the node that is asked behind its SET whether others wait, RLK_QUEUE_..., or -1 */
  uint64_t queue_asked;       /* nodes whose answer to that is outstanding, as bits */
  int64_t queue_until_ns;     /* a lock that is won waits for them no longer than that; 0: it does not wait */
  int others_wait;            /* the home node said so behind its vote */
  int home;                   /* node asked first, or -1 */
  int64_t fence_proposal;     /* of the attempt, to all nodes */
  struct rlk_terms asked;     /* terms of the operation */
  struct rlk_number ttl_text; /* the TTL of an acquisition, as it is sent */
  struct rlk_timer timer;
  atomic_int cancelled; /* asked for by redlock_lock_cancel */
  struct rlk_waiter *waiter;
  struct rlk_holder *holder;            /* who holds it, if that was asked for; else NULL */
  struct rlk_node_answer *node_answers; /* per node */
  uint8_t votes[];                      /* enum rlk_vote per node */
};

static inline int rlk_in_flight(const redlock_lock *lock)
{
  return lock->status == REDLOCK_PENDING;
}

/* By an operation, or by a thread that has not taken its result yet. */
static inline int rlk_in_use(const redlock_lock *lock)
{
  return lock->in_call || rlk_in_flight(lock);
}

#endif

/* A holder's handle on one resource: its lease, its renewal and the operation on it. */
#ifndef RLK_LOCK_H
#define RLK_LOCK_H

#include <stdatomic.h>

#include "../base/timer.h"
#include "../node/out.h"
#include "../rules/quorum.h"
#include "claim.h"
#include "engine.h"

/* A node's reply to the lock's last operation. */
struct rlk_node_answer {
  int64_t counted_until_ns; /* release: the lease there, if it counted at the call */
  int64_t until_ns;         /* BUSY, inspect: when its key ends; 0 unknown, RLK_NEVER it does not */
  int form;        /* release, extend: where the token is in place of where it should be (form.c); 0: nowhere */
  int part;        /* BUSY: which of several resources that is */
  int64_t readers; /* inspect: its key is a set of so many */
  char *value;     /* BUSY, inspect: escaped, or NULL */
  char *error;     /* ERROR: the server's text, or NULL */
};

enum rlk_phase {
  RLK_IDLE,
  RLK_ASKING_ALL,   /* a round on all nodes */
  RLK_ASKING_HOME,  /* a retry asks the home node first (rule F) */
  RLK_ASKING_QUEUE, /* the home node, for a place */
  RLK_SLEEPING      /* between two attempts */
};

/* The lease: the one that is held, or the last (lease.c). */
struct rlk_hold {
  struct rlk_timer timer;
  int64_t valid_until_ns;
  int64_t acquired_ns;
  int64_t extensions; /* by the user */
  int64_t depth;      /* how often it was acquired and not released yet (depth.c) */
  struct rlk_terms terms;
  int64_t number;         /* that of a fenced lock; 0: it has none */
  int slot;               /* that of a permit, from 1; 0: it has none */
  enum redlock_loss loss; /* why it was lost */
  enum redlock_loss cut;  /* why valid_until_ns is earlier than it was, until an extension */
  int is_limited;         /* no renewal or extension follows: max_hold_ms */
};

/* Renewal, done by the keeper (renewal.c). */
struct rlk_renewal {
  struct rlk_timer timer;
  int64_t goal_ns; /* valid_until_ns from which the round under way counts as confirmed; 0: none under way */
  int is_on;       /* the keeper looks after it */
  int is_last;     /* the round reaches to max_hold_ms: no other follows */
  int at_risk;
  int64_t hours_told; /* of the hold, in events */
};

struct rlk_verb;
struct rlk_node;

/* A call of an operation. */
struct rlk_call {
  const struct rlk_verb *verb;
  int64_t arg;
  int only_counts;        /* it is no operation (depth.c) */
  struct rlk_terms terms; /* if it takes a lease */
};

/* All in which one operation differs from another. begin, advance and timer return REDLOCK_PENDING, or how it ends. */
struct rlk_verb {
  enum redlock_operation kind;
  const char *name;
  int takes_a_lease;
  int asks_everybody;  /* an operation in its own right, whatever the state of the handle: all nodes are awaited */
  int leaves_refusals; /* the result of an operation that was refused stays */
  int (*begin)(redlock_lock *lock, const struct rlk_call *call, int64_t now_ns); /* may refuse: then it never flies */
  int (*ask)(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);         /* of a round: 0, or -1 */
  int (*advance)(redlock_lock *lock, int64_t now_ns);                            /* there are new answers */
  int (*timer)(redlock_lock *lock, int64_t now_ns);
  void (*ended)(redlock_lock *lock); /* it has just ended; may be NULL */
};

/* The operation that runs, or the last (operation.c). */
struct rlk_operation {
  const struct rlk_verb *verb;
  enum redlock_operation kind; /* 0: there was none */
  int status;
  enum redlock_operation inner; /* the last call only counted: an acquire or a release; 0: it was `kind` */
  int is_started;               /* by redlock_lock_start: its end goes to engine->ended */
  int in_call;  /* a thread is inside a blocking call or a wait: the handle is its own until that returns */
  int settling; /* a thread waits for all answers to the last operation */
  enum redlock_state state_before;
  enum rlk_phase phase;
  int64_t deadline_ns;
  int64_t outage_until_ns; /* deadline for tolerating fewer than Q answers */
  struct rlk_terms asked;
  struct rlk_timer timer;
  struct rlk_waiter *waiter;
  struct rlk_claim *probe; /* inspect, remove: carries the answers */
  uint64_t looking;        /* nodes asked what is under the key, or of what type that is, as bits */
  int forms_asked;         /* extend, release: the nodes without the token were asked for it in other forms */
  int asking_again;        /* extend: the timer is the next try at the failed nodes */
  int scripts_missing;     /* release: a node had lost its scripts */
  atomic_int cancelled;    /* by redlock_lock_cancel */
  uint64_t counted;        /* release: nodes that counted at the call, as bits */
  uint64_t unproven;       /* ... that said that the token is gone only after its lease, when it may have expired */
};

/* One request to every node (round.c). */
struct rlk_round {
  uint32_t number;
  int is_tight;         /* a quorum was asked: the time of the answers runs, from when they are written */
  int64_t asked_all_ns; /* when all nodes were asked last */
  int64_t written_ns;   /* when the requests were written; 0: not yet */
  int64_t took_ns;      /* how long a majority took to answer; 0: it has not */
  int is_unwritten;     /* in engine->unwritten */
  redlock_lock *next_unwritten;
};

/* An acquisition, and its last token (acquire.c). */
struct rlk_attempt {
  int64_t began_ns;
  int64_t tried_ns; /* when the last attempt began */
  int64_t count, max;
  int verdict;                             /* of the last full round */
  int home;                                /* node asked first, or -1 */
  int64_t wake_ns;                         /* RLK_SLEEPING: until then */
  int64_t proposal;                        /* to all nodes, of a kind that asks for a number */
  int offered;                             /* permits: the slot, from 1, that home offered last; 0: none */
  int is_offered_again;                    /* ... in vain, and again */
  int64_t asked_of_all;                    /* permits: the slot, counted on, that all nodes were asked for last */
  uint64_t full;                           /* permits: nodes that said that none is free, as bits */
  struct rlk_number ttl_text;              /* as it is sent */
  int quarantine_is_told, refusal_is_told; /* as events, once in a wait */
};

/* A refusal that stays as it was while it is asked who holds the lock (release.c). */
struct rlk_refused {
  const struct rlk_verb *verb;
  enum redlock_state state_before;
  struct rlk_node_answer *node_answers;
  uint8_t votes[];
};

struct redlock_lock {
  struct rlk_engine *engine;     /* its client is counted: valid until the lock is freed */
  redlock_lock *next, *previous; /* in engine->locks */
  struct {
    redlock_lock *next, *previous;
  } flight, ended; /* in engine->flights while an operation runs; in engine->ended */
  int is_ended;
  int is_reserved; /* its key is one of the library's own: it may be looked at and removed, not taken */
  uint64_t tag;
  struct rlk_key *key;
  struct rlk_numbers options;
  const struct rlk_kind *kind; /* by its options and resources */
  char *refusal;               /* why a call was refused, until the next operation */
  int is_fenced;               /* fence was set for this lock, not for all of the client's */
  enum redlock_state state;
  struct rlk_claim *claim; /* the current or last token; NULL before */
  struct rlk_hold hold;
  struct rlk_renewal renewal;
  struct rlk_operation op;
  struct rlk_round round;
  struct rlk_attempt attempt;
  struct rlk_wait *wait;                /* its own: what the floor above knows while it waits */
  struct rlk_holder *holder;            /* the holder, if it was asked for; else NULL */
  struct rlk_listing *listing;          /* the locks that it has listed; else NULL */
  struct rlk_refused *refused;          /* NULL: there is none, or nobody asks */
  struct rlk_node_answer *node_answers; /* per node */
  uint8_t votes[];                      /* enum rlk_vote per node */
};

static inline int rlk_in_flight(const redlock_lock *lock)
{
  return lock->op.status == REDLOCK_PENDING;
}

/* An acquire that does not wait, or has one attempt only. */
static inline int rlk_is_single(const redlock_lock *lock)
{
  return lock->op.kind == REDLOCK_ACQUIRE && lock->attempt.max == 1;
}

/* By an operation, or by a thread that has not taken its result yet. */
static inline int rlk_in_use(const redlock_lock *lock)
{
  return lock->op.in_call || rlk_in_flight(lock);
}

#endif

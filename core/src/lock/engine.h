/* The locks of a client and what they share. What is marked here is acted on when the client's mutex is given back. */
#ifndef RL_ENGINE_H
#define RL_ENGINE_H

#include "../../include/redlock.h"
#include "../base/macros.h"
#include "../base/wheel.h"
#include "../node/net.h"

struct rl_batch;
struct rl_claim;

/* A thread that waits for its operation while another one drives; it stands on that thread's stack. */
struct rl_waiter {
  struct rl_waiter *next, *previous;
  uint32_t bit; /* its set on the bell */
  int waits;  /* it stands in engine->waiters */
  int drives; /* it has been handed the role of the driver */
};

struct rl_engine {
  struct rl_net net;
  int quorum;
  /* what there is */
  redlock_lock *locks, *flights;
  redlock_lock *unwritten; /* rounds whose requests wait to be written */
  struct rl_claim *claims, *last_claim; /* in the order of their making */
  struct rl_claim *spare_claims;        /* for reuse, singly linked by next */
  int spare_count, debts;
  int64_t expired_ns; /* when expired debts were last looked for */
  uint64_t token_seed, token_count;
  /* renewal */
  struct rl_wheel wheel;
  int renewing;             /* locks that the keeper looks after */
  int renewals_open;        /* those with a round under way */
  int batches;              /* with answers to come */
  int64_t batch_answers_ns; /* so long the keeper waits for those that no majority needs: for a NOSCRIPT */
  struct rl_batch *spare_batch;
  /* marks */
  redlock_lock *ended, *last_ended;
  int ended_marked;     /* the list of the ended has grown: the descriptor has to tell */
  int64_t renew_due_ns; /* a renewal was scheduled: the thread that renews has to know; RL_NEVER: none was */
  struct rl_waiter *waiters, *last_waiter;
  uint32_t woken;       /* bits to be rung */
  /* what is told */
  uint64_t acquired, lost, attempts, renewals;
};

static inline struct rl_engine *rl_engine_of(struct rl_net *net)
{
  return RL_OWNER(struct rl_engine, net, net);
}

/* The lock's started operation has ended, or it is at risk or lost: redlock_client_next gives its tag. */
void rl_mark_ended(struct rl_engine *engine, redlock_lock *lock);
void rl_mark_woken(struct rl_engine *engine, struct rl_waiter *waiter);
void rl_unwait(struct rl_engine *engine, struct rl_waiter *waiter); /* it waits no longer */
void rl_mark_renewal(struct rl_engine *engine, int64_t at_ns);

#endif

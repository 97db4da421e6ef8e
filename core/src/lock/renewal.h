/* Which leases are due for renewal, and sending them together. */
#ifndef RL_RENEWAL_H
#define RL_RENEWAL_H

#include "../node/reply.h"
#include "lock.h"

enum { RL_BATCH_MAX = RL_INTEGERS_MAX /* locks in one renewal command */ };

/* The locks of one renewal command, shared by the nodes it went to. */
struct rl_batch {
  int users, count;
  struct rl_terms terms;
  struct rl_claim *claim[RL_BATCH_MAX];
};

void rl_renewal_begin(redlock_lock *lock);
void rl_renewal_end(redlock_lock *lock);
void rl_renewal_confirmed(redlock_lock *lock);
void rl_renewals_due(struct rl_engine *engine, int64_t now_ns);
void rl_batch_drop(struct rl_engine *engine, struct rl_batch *batch);
/* A batch of those that are still held, to be dropped by the caller; NULL when memory is out. */
struct rl_batch *rl_batch_again(struct rl_engine *engine, struct rl_batch *batch, int64_t now_ns);

#endif

/* Which leases are due for renewal, and sending them together. */
#ifndef RLK_RENEWAL_H
#define RLK_RENEWAL_H

#include "../node/reply.h"
#include "lock.h"

enum { RLK_BATCH_MAX = RLK_INTEGERS_MAX /* locks in one renewal command */ };

/* The locks of one renewal command, shared by the nodes it went to. */
struct rlk_batch {
  int users, count;
  struct rlk_terms terms;
  struct rlk_claim *claim[RLK_BATCH_MAX];
};

/* A node that does not count for the lock gets its token back: else each that was restarted, or was away at first,
 * would be lost to a long hold for ever. Late SETs are nothing new, and a lost lock is never revived by one (rule B.7).
 */
void rlk_renewal_heal(struct rlk_node *node, redlock_lock *lock, const struct rlk_terms *terms, int64_t now_ns);
void rlk_renewal_begin(redlock_lock *lock);
/* The lease may have become longer, by whatever request: is the round under way over? */
void rlk_renewal_confirmed(redlock_lock *lock);
void rlk_renewals_due(struct rlk_engine *engine, int64_t now_ns);
void rlk_batch_drop(struct rlk_engine *engine, struct rlk_batch *batch);
/* A batch of the locks that are still held, to be dropped by the caller; NULL when memory is out. */
struct rlk_batch *rlk_batch_again(struct rlk_engine *engine, struct rlk_batch *batch, int64_t now_ns);

#endif

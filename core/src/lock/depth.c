#include "depth.h"

#include "../base/mutant.h"
#include "cleanup.h"

int rlk_depth_is_owed(const redlock_lock *lock)
{
  return lock->state == REDLOCK_STATE_LOST && lock->hold.depth > 0 && RLK_INT(&lock->options, REENTRANT) &&
         !RLK_MUTANT(LOST_IS_REENTERED);
}

int rlk_depth_counts(const redlock_lock *lock, int operation)
{
  int is_entered = lock->state == REDLOCK_STATE_HELD || rlk_depth_is_owed(lock);
  return RLK_INT(&lock->options, REENTRANT) &&
         ((operation == REDLOCK_ACQUIRE && is_entered) || (operation == REDLOCK_RELEASE && lock->hold.depth > 1));
}

/* Only the status of the previous operation changes: its outstanding replies may still be added to the lease. */
void rlk_depth_count(redlock_lock *lock, enum redlock_operation operation, int64_t now)
{
  lock->hold.depth += operation == REDLOCK_ACQUIRE ? 1 : -1;
  if (operation == REDLOCK_RELEASE && RLK_MUTANT(INNER_RELEASE_DELETES))
    rlk_claim_give_up(lock->engine, lock->claim, 0, now);
  lock->op.inner = operation;
  lock->op.is_started = 0;
  lock->op.status = lock->state == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST;
}

#include "depth.h"

#include "../base/mutant.h"
#include "cleanup.h"

/* Only the status of the previous operation changes: its outstanding replies may still be added to the lease. */
static int end_at_once(redlock_lock *lock, const struct rlk_verb *verb, int status)
{
  lock->op.inner = verb->kind;
  lock->op.is_started = 0;
  lock->op.status = status;
  return REDLOCK_OK;
}

static int begin_acquire(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  (void)now;
  lock->hold.depth++;
  return end_at_once(lock, call->verb, REDLOCK_OK);
}

static int begin_release(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  lock->hold.depth--;
  if (RLK_MUTANT(INNER_RELEASE_DELETES))
    rlk_claim_give_up(lock->engine, lock->claim, 0, now);
  return end_at_once(lock, call->verb, lock->state == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST);
}

static const struct rlk_verb acquire_inner = {
    .kind = REDLOCK_ACQUIRE, .name = "acquire", .only_counts = 1, .begin = begin_acquire};
static const struct rlk_verb release_inner = {
    .kind = REDLOCK_RELEASE, .name = "release", .only_counts = 1, .begin = begin_release};

int rlk_depth_is_owed(const redlock_lock *lock)
{
  return lock->state == REDLOCK_STATE_LOST && lock->hold.depth > 0 && RLK_INT(&lock->options, REENTRANT) &&
         !RLK_MUTANT(LOST_IS_REENTERED);
}

const struct rlk_verb *rlk_depth_verb(const redlock_lock *lock, int operation)
{
  if (!RLK_INT(&lock->options, REENTRANT))
    return NULL;
  if (operation == REDLOCK_ACQUIRE && (lock->state == REDLOCK_STATE_HELD || rlk_depth_is_owed(lock)))
    return &acquire_inner;
  if (operation == REDLOCK_RELEASE && lock->hold.depth > 1)
    return &release_inner;
  return NULL;
}

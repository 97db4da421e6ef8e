/* What a handle knows of its lock without asking the nodes. */
#include "../lock/kind.h"
#include "../lock/lease.h"
#include "api.h"

/* Of a lease that has run out that is noticed first. */
static redlock_lock *now(redlock_lock *lock)
{
  rlk_lock_is_held(lock, rlk_client_now(rlk_client_of(lock)));
  return lock;
}

static int64_t validity_ms(redlock_lock *lock, int64_t now_ns)
{
  return rlk_lock_is_held(lock, now_ns) ? (lock->hold.valid_until_ns - now_ns) / RLK_NS_PER_MS : 0;
}

/* A lock that has all permits of a resource, as only one was asked for, has the slot that a plain lock takes. */
static int slot(const redlock_lock *lock)
{
  int is_only_one = lock->options.permits_are_set && lock->hold.acquired_ns;
  if (!lock->claim || lock->claim->kind->shares)
    return -1;
  return lock->claim->slots.count ? lock->hold.slot - 1 : is_only_one ? 0 : -1;
}

RLK_GETTER(int, redlock_lock_state, REDLOCK_STATE_INVALID, now(lock)->state)
RLK_GETTER(int, redlock_lock_loss, REDLOCK_LOSS_NONE, now(lock)->hold.loss)
RLK_GETTER(int64_t, redlock_lock_validity_ms, -REDLOCK_INVALID, validity_ms(lock, rlk_client_now(c)))
RLK_GETTER(int64_t, redlock_lock_attempts, 0, lock->attempt.count)
RLK_GETTER(int64_t, redlock_lock_fence, 0, lock->hold.number)
RLK_GETTER(int, redlock_lock_slot, -1, slot(lock))

/* An attempt that failed, or still may, is no hold. */
static int is_of_a_hold(const redlock_lock *lock)
{
  return lock->claim && lock->hold.acquired_ns > lock->attempt.began_ns;
}

int64_t redlock_lock_token(redlock_lock *lock, char *buf, size_t size)
{
  struct rlk_text text = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  if (c && is_of_a_hold(lock))
    rlk_text_bytes(&text, rlk_claim_token(lock->claim), lock->claim->token_size);
  return rlk_leave_text(c, &text);
}

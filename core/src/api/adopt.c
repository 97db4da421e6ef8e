/* Handing a lock to another handle or process: its token is adopted here, or detached. */
#include <string.h>

#include "../lock/asking.h"
#include "../lock/depth.h"
#include "../lock/form.h"
#include "../lock/lease.h"
#include "../wait/others.h"
#include "../wait/queue.h"
#include "api.h"

static int is_token(redlock_lock *lock, const void *token, size_t size)
{
  char why[80];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  if (token && size > 0 && size <= RLK_TOKEN_SIZE_MAX)
    return 1;
  rlk_text_format(&text, "token has %zu bytes; allowed: 1 to %d", token ? size : 0, RLK_TOKEN_SIZE_MAX);
  rlk_lock_refuse(lock, why);
  return 0;
}

static int adopt(redlock_lock *lock, const void *token, size_t size, int64_t now)
{
  struct rlk_claim *claim;
  int status = rlk_form_adopt(lock, token, size, &claim, now);
  if (status != REDLOCK_OK)
    return status;
  rlk_others_drop_claim(lock, now);
  lock->claim = claim;
  lock->state = REDLOCK_STATE_ADOPTED;
  lock->hold.acquired_ns = now;
  lock->hold.number = 0;
  lock->hold.depth = 0;
  lock->hold.loss = REDLOCK_LOSS_NONE;
  rlk_lock_refuse(lock, NULL);
  rlk_client_send(rlk_client_of(lock)); /* the deletes of what it had lost */
  return REDLOCK_OK;
}

int redlock_lock_adopt_bytes(redlock_lock *lock, const void *token, size_t size)
{
  redlock_client *c = rlk_enter_lock(lock);
  int64_t now = c ? rlk_client_now(c) : 0;
  int status = REDLOCK_INVALID;
  if (!c)
    return REDLOCK_INVALID;
  rlk_lock_is_held(lock, now);
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (c->engine.net.state != RLK_NET_OPEN)
    rlk_lock_refuse(lock, "the client has been closed");
  else if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED)
    rlk_lock_refuse(lock, "adopt: this handle already holds a lock; release or detach it first");
  else if (rlk_depth_is_owed(lock))
    rlk_lock_refuse(lock, "adopt: this handle has lost its lock; release it as often as it was acquired first");
  else if (lock->is_reserved)
    rlk_lock_refuse_name(lock);
  else if (lock->state != REDLOCK_STATE_INVALID && is_token(lock, token, size))
    status = adopt(lock, token, size, now);
  return rlk_leave(c, status);
}

int redlock_lock_adopt(redlock_lock *lock, const char *token)
{
  return redlock_lock_adopt_bytes(lock, token, token ? strlen(token) : 0);
}

static void detach(redlock_client *c, redlock_lock *lock)
{
  rlk_lock_end_hold(lock, REDLOCK_STATE_FREE);
  for (int i = 0; i < c->engine.net.node_count; i++)
    rlk_ask_not(&c->engine.net.nodes[i], lock->claim); /* no SET of ours may come after the hand-over */
  rlk_claim_forget(&c->engine, lock->claim);
  rlk_queue_forget(lock);
  lock->claim->is_detached = 1;
  rlk_client_send(c); /* it leaves the queue */
}

/* Sections that are not over rely on it. */
static int is_entered_again(redlock_lock *lock)
{
  char why[120];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  if (lock->state != REDLOCK_STATE_HELD || lock->hold.depth < 2 || !RLK_INT(&lock->options, REENTRANT))
    return 0;
  rlk_text_format(&text, "detach: the lock was acquired %lld times; release it until one is left",
                  (long long)lock->hold.depth);
  rlk_lock_refuse(lock, why);
  return 1;
}

int redlock_lock_detach(redlock_lock *lock)
{
  static const int status_of[] = {
      [REDLOCK_STATE_FREE] = REDLOCK_NOT_HELD, [REDLOCK_STATE_HELD] = REDLOCK_OK,
      [REDLOCK_STATE_ADOPTED] = REDLOCK_OK,    [REDLOCK_STATE_LOST] = REDLOCK_LOST,
      [REDLOCK_STATE_FORKED] = REDLOCK_FORKED, [REDLOCK_STATE_INVALID] = REDLOCK_INVALID,
  };
  redlock_client *c = rlk_enter_lock(lock);
  int status;
  if (!c)
    return REDLOCK_INVALID;
  rlk_lock_is_held(lock, rlk_client_now(c));
  status = rlk_in_use(lock) ? REDLOCK_IN_FLIGHT : status_of[lock->state];
  if (status == REDLOCK_OK && is_entered_again(lock))
    status = REDLOCK_INVALID;
  if (status == REDLOCK_OK)
    detach(c, lock);
  return rlk_leave(c, status);
}

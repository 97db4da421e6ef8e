/* What is known of a lease without asking anybody: until when it counts, and how it was lost. */
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "mutant.h"

/* The lock takes a new token or ends: what the old one may have left behind is deleted. */
void rl_lock_drop_claim(redlock_lock *lock, int64_t now)
{
  if (lock->claim && !lock->claim->over && !lock->detached)
    rl_claim_give_up(lock->client, lock->claim, 0, 0, now);
  rl_claim_let_go(lock->client, &lock->claim);
  lock->detached = 0;
}

void rl_lock_note_loss(redlock_lock *lock, int reason)
{
  char why[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(why, sizeof why);
  lock->loss = reason;
  lock->client->lost++;
  rl_loss_words(lock, &text);
  rl_event_add(lock->client, RL_EVENT_LOST, -1, lock, why);
}

void rl_lock_lost(redlock_lock *lock, int reason)
{
  redlock_client *c = lock->client;
  if (lock->state != REDLOCK_STATE_HELD && lock->state != REDLOCK_STATE_ADOPTED)
    return;
  lock->state = REDLOCK_STATE_LOST;
  lock->valid_until_ns = 0;
  rl_timer_clear(&c->timers, &lock->lease_timer);
  rl_renewal_end(lock);
  rl_lock_note_loss(lock, reason);
  rl_client_tell(c, lock);
}

int rl_lock_is_held(redlock_lock *lock, int64_t now)
{
  if (lock->state != REDLOCK_STATE_HELD)
    return 0;
  if (now < lock->valid_until_ns)
    return 1;
  if (!RL_MUTANT(LOSS_NOT_STICKY))
    rl_lock_lost(lock, lock->cut ? lock->cut : lock->is_limited ? REDLOCK_LOSS_LIMIT : REDLOCK_LOSS_EXPIRED);
  return 0;
}

void rl_lock_lapse(redlock_lock *lock, int64_t now)
{
  if (!rl_lock_is_held(lock, now))
    rl_operation_advance(lock, now); /* an extension ends with its lock */
}

static void recount(redlock_lock *lock, int reason, int64_t now)
{
  redlock_client *c = lock->client;
  int64_t e_ns[RL_NODES_MAX], before_ns = lock->valid_until_ns;
  if (lock->state != REDLOCK_STATE_HELD)
    return;
  for (int i = 0; i < c->node_count; i++)
    e_ns[i] = lock->claim->node[i].e_ns;
  lock->valid_until_ns = rl_valid_until(e_ns, c->node_count, c->quorum);
  if (lock->valid_until_ns < before_ns)
    lock->cut = reason;
  else if (lock->valid_until_ns > before_ns)
    lock->cut = REDLOCK_LOSS_NONE;
  if (rl_lock_is_held(lock, now))
    rl_timer_set(&c->timers, &lock->lease_timer, lock->valid_until_ns);
}

void rl_lock_recount(redlock_lock *lock, int64_t now)
{
  recount(lock, REDLOCK_LOSS_NONE, now);
}

void rl_lock_cut(redlock_lock *lock, int node, int reason, int64_t now)
{
  lock->claim->node[node].e_ns = 0;
  lock->claim->node[node].cut = (uint8_t)reason;
  recount(lock, reason, now);
}

void rl_lock_refuse(redlock_lock *lock, const char *text)
{
  free(lock->refusal);
  lock->refusal = text ? strdup(text) : NULL; /* without memory the status alone tells it */
}

/* In a child: the parent's lock is not ours. */
void rl_lock_forked(redlock_lock *lock)
{
  if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED)
    lock->state = REDLOCK_STATE_FORKED;
  if (rl_in_flight(lock)) {
    lock->state = REDLOCK_STATE_FORKED;
    lock->waiter = NULL;
    rl_operation_end(lock, REDLOCK_FORKED);
  }
  lock->occupied = 0;
  lock->valid_until_ns = 0;
  rl_timer_clear(&lock->client->timers, &lock->lease_timer);
  rl_renewal_end(lock);
}

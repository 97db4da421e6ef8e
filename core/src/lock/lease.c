/* What is known of a lease without asking anybody: until when it counts, and how it was lost. */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "lease.h"
#include "operation.h"
#include "renewal.h"

/* The lock takes a new token or ends: what the old one may have left behind is deleted. */
void rl_lock_drop_claim(redlock_lock *lock, int64_t now)
{
  if (lock->claim && !lock->claim->over && !lock->detached)
    rl_claim_give_up(lock->engine, lock->claim, 0, 0, now);
  rl_claim_let_go(lock->engine, &lock->claim);
  lock->detached = 0;
}

void rl_loss_words(const redlock_lock *lock, struct rl_text *out)
{
  static const char *const words[] = {
      [REDLOCK_LOSS_NONE] = "",
      [REDLOCK_LOSS_EXPIRED] = "the lease expired",
      [REDLOCK_LOSS_GONE] = "the token was gone on",
      [REDLOCK_LOSS_RESTARTED] = "restarted since the lock was acquired:",
      [REDLOCK_LOSS_REFUSED] = "ineligible to vote now:",
      [REDLOCK_LOSS_LIMIT] = "the lease expired: max_hold_ms allowed no further renewal",
  };
  int count = 0, nodes = lock->engine->net.node_count;
  for (int i = 0; lock->claim && i < nodes; i++)
    count += lock->claim->node[i].cut == lock->loss;
  rl_text_add(out, words[lock->loss]);
  if (lock->loss == REDLOCK_LOSS_GONE || lock->loss == REDLOCK_LOSS_RESTARTED || lock->loss == REDLOCK_LOSS_REFUSED)
    rl_text_format(out, " %d of %d nodes", count, nodes);
}

void rl_lock_tell(redlock_lock *lock, enum rl_event_kind kind, const char *detail)
{
  struct rl_event *event = rl_event_add(&lock->engine->net.events, kind, -1, detail);
  rl_event_about(event, rl_key_resource(lock->key), lock->key->resource_size,
                 kind == RL_EVENT_LOST ? lock->loss : REDLOCK_LOSS_NONE);
}

void rl_lock_note_loss(redlock_lock *lock, int reason)
{
  char why[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(why, sizeof why);
  lock->loss = reason;
  lock->engine->lost++;
  rl_loss_words(lock, &text);
  rl_lock_tell(lock, RL_EVENT_LOST, why);
}

void rl_lock_lost(redlock_lock *lock, int reason)
{
  struct rl_engine *e = lock->engine;
  if (lock->state != REDLOCK_STATE_HELD && lock->state != REDLOCK_STATE_ADOPTED)
    return;
  lock->state = REDLOCK_STATE_LOST;
  lock->valid_until_ns = 0;
  rl_timer_clear(&e->net.timers, &lock->lease_timer);
  rl_renewal_end(lock);
  rl_lock_note_loss(lock, reason);
  rl_mark_ended(e, lock);
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

int64_t rl_lock_counts_until(const redlock_lock *lock)
{
  const struct rl_engine *e = lock->engine;
  int64_t e_ns[RL_NODES_MAX];
  for (int i = 0; i < e->net.node_count; i++)
    e_ns[i] = lock->claim->node[i].e_ns;
  return rl_valid_until(e_ns, e->net.node_count, e->quorum);
}

static void set_validity(redlock_lock *lock, int64_t until_ns, int reason, int64_t now)
{
  if (until_ns < lock->valid_until_ns)
    lock->cut = reason;
  else if (until_ns > lock->valid_until_ns)
    lock->cut = REDLOCK_LOSS_NONE;
  lock->valid_until_ns = until_ns;
  if (rl_lock_is_held(lock, now))
    rl_timer_set(&lock->engine->net.timers, &lock->lease_timer, until_ns);
}

static void recount(redlock_lock *lock, int reason, int64_t now)
{
  if (lock->state == REDLOCK_STATE_HELD)
    set_validity(lock, rl_lock_counts_until(lock), reason, now);
}

void rl_lock_hold(redlock_lock *lock, int64_t until_ns, int64_t now)
{
  lock->state = REDLOCK_STATE_HELD;
  lock->terms = lock->asked;
  lock->acquired_ns = now;
  lock->extensions = 0;
  lock->cut = lock->is_limited = 0;
  set_validity(lock, until_ns, REDLOCK_LOSS_NONE, now);
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
  rl_timer_clear(&lock->engine->net.timers, &lock->lease_timer);
  rl_renewal_end(lock);
}

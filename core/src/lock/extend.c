/* Extending a lease, or setting what is left of it: until a majority has confirmed, the lease is nearly over or an
 * outage lasts too long. */
#include "extend.h"
#include "lease.h"
#include "operation.h"
#include "renewal.h"
#include "round.h"
#include "waiting.h"

#define MS RL_NS_PER_MS

/* The option renew counts from this operation on; a lease of another length has another time for its renewal. */
static void renew_as_asked(redlock_lock *lock)
{
  if (lock->kind == REDLOCK_EXPIRE || !RL_INT(&lock->options, RENEW))
    rl_renewal_end(lock);
  if (lock->state == REDLOCK_STATE_HELD)
    rl_renewal_begin(lock);
}

static void extended(redlock_lock *lock, int64_t now)
{
  if (lock->state == REDLOCK_STATE_ADOPTED)
    rl_lock_hold(lock, rl_lock_counts_until(lock), now);
  if (lock->kind == REDLOCK_EXPIRE)
    lock->terms = lock->asked;
  else
    lock->extensions++;
  renew_as_asked(lock);
  rl_operation_end(lock, lock->state == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST);
}

/* A node that could not be asked, or whose request came to nothing, may be asked again; one that may not vote may do so
 * later. */
static int may_ask_again(int answer)
{
  return answer == RL_DOWN || answer == RL_DROPPED || answer == RL_ERROR || answer == RL_OVERLOADED ||
         answer == RL_LATE || answer == RL_REFUSED;
}

static int some_failed(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (may_ask_again(lock->answers[i]))
      return 1;
  return 0;
}

static void ask_again(redlock_lock *lock, int64_t now)
{
  lock->asking_again = 0;
  lock->attempts++;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (may_ask_again(lock->answers[i]))
      rl_round_ask_or_note(lock, i, now);
  rl_round_set_timer(lock, RL_NEVER); /* the deadline */
}

/* Those that failed are asked again after a pause, while the others may still answer. */
static void pause(redlock_lock *lock, int64_t now)
{
  if (lock->asking_again || !some_failed(lock))
    return;
  lock->asking_again = 1;
  rl_round_set_timer(lock, now + rl_waiting_pause_ns(lock));
}

void rl_extend_advance(redlock_lock *lock, int64_t now)
{
  struct rl_tally tally = rl_count(lock->answers, lock->engine->net.node_count);
  int status = rl_judge_extend(&tally);
  int is_over = now >= lock->deadline_ns;
  if (lock->state == REDLOCK_STATE_LOST) {
    rl_operation_end(lock, REDLOCK_LOST);
  } else if (status == REDLOCK_OK) {
    extended(lock, now);
  } else if (status == REDLOCK_LOST) {
    rl_lock_lost(lock, REDLOCK_LOSS_GONE);
    rl_operation_end(lock, REDLOCK_LOST);
  } else if (status == REDLOCK_PENDING || (status == REDLOCK_NO_QUORUM && !is_over)) {
    pause(lock, now);
  } else {
    rl_operation_end(lock, status);
  }
}

void rl_extend_timer(redlock_lock *lock, int64_t now)
{
  if (now >= lock->deadline_ns)
    rl_round_close(lock);
  else
    ask_again(lock, now);
  rl_operation_advance(lock, now);
}

static int beyond_limits(redlock_lock *lock, int kind, int64_t now)
{
  char why[160];
  struct rl_text text = rl_text_in(why, sizeof why);
  int64_t extensions_max = RL_INT(&lock->options, MAX_EXTENSIONS);
  int64_t hold_max_ms = RL_INT(&lock->options, MAX_HOLD_MS);
  if (lock->state != REDLOCK_STATE_HELD)
    return 0;
  if (kind == REDLOCK_EXTEND && extensions_max >= 0 && lock->extensions >= extensions_max)
    rl_text_format(&text, "no further extension: max_extensions is %lld", (long long)extensions_max);
  else if (hold_max_ms >= 0 && now + lock->asked.ttl_ms * MS > lock->acquired_ns + hold_max_ms * MS)
    rl_text_format(&text, "no further extension by ttl_ms %lld: max_hold_ms is %lld, held for %lld ms",
                   (long long)lock->asked.ttl_ms, (long long)hold_max_ms, (long long)((now - lock->acquired_ns) / MS));
  else
    return 0;
  rl_lock_refuse(lock, why);
  return 1;
}

/* Until the lease leaves nothing to work with, and as long as an outage is put up with. */
static int64_t deadline_ns(const redlock_lock *lock, int64_t now)
{
  int64_t outage_wait_ms = RL_INT(&lock->options, OUTAGE_WAIT_MS);
  int64_t deadline = outage_wait_ms < 0 ? RL_NEVER : now + outage_wait_ms * MS;
  int64_t lease_end = lock->valid_until_ns - lock->asked.min_validity_ns;
  if (lock->state != REDLOCK_STATE_HELD)
    return deadline;
  if (lease_end < now + lock->asked.node_timeout_ns)
    lease_end = lock->valid_until_ns;
  return lease_end < deadline ? lease_end : deadline;
}

int rl_extend_begin(redlock_lock *lock, int kind, int64_t now)
{
  if (beyond_limits(lock, kind, now))
    return REDLOCK_LIMIT;
  lock->was_held = lock->state;
  rl_operation_start(lock, kind);
  lock->deadline_ns = deadline_ns(lock, now);
  lock->attempts = 1;
  lock->asking_again = 0;
  rl_round_clear(lock);
  rl_round_ask_all(lock, -1, now);
  rl_operation_advance(lock, now);
  return REDLOCK_OK;
}

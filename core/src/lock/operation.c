/* What all operations share: how they begin and end, and what moves them.
 *
 * An operation is a round on all nodes; an acquisition is several rounds with pauses between them. Everything moves by
 * three calls: an answer, a timer, a connection that came up or failed. Each step returns a status, and anything but
 * REDLOCK_PENDING ends the operation here. */
#include "../base/list.h"
#include "../base/mutant.h"
#include "acquire.h"
#include "cleanup.h"
#include "extend.h"
#include "holder.h"
#include "lease.h"
#include "operation.h"
#include "queue.h"
#include "release.h"
#include "round.h"

#define MS RLK_NS_PER_MS

int rlk_is_awaited(const redlock_lock *lock)
{
  return rlk_in_flight(lock) || (lock->op.settling && rlk_round_is_open(lock));
}

/* ---- beginning and ending ---- */

static void end(redlock_lock *lock, int status)
{
  struct rlk_engine *e = lock->engine;
  if (status == REDLOCK_PENDING)
    return;
  if (lock->op.kind == REDLOCK_ACQUIRE)
    e->figures.acquisitions[status]++;
  lock->op.status = status;
  lock->op.phase = RLK_IDLE;
  rlk_timer_clear(&e->net.timers, &lock->op.timer);
  RLK_LIST_REMOVE(e->flights, e->last_flight, lock, flight.);
  rlk_claim_let_go(e, &lock->op.probe);
  rlk_queue_leave(lock);
  if (lock->op.waiter)
    rlk_mark_woken(e, lock->op.waiter);
  if (lock->op.is_started)
    rlk_mark_ended(e, lock);
}

/* ---- all of them ---- */

static int advance(redlock_lock *lock, int64_t now)
{
  switch (lock->op.kind) {
  case REDLOCK_ACQUIRE: return rlk_acquire_advance(lock, now);
  case REDLOCK_EXTEND:
  case REDLOCK_EXPIRE: return rlk_extend_advance(lock, now);
  case REDLOCK_RELEASE: return rlk_release_advance(lock);
  case REDLOCK_REMOVE: return rlk_remove_advance(lock);
  default: return rlk_inspect_advance(lock);
  }
}

void rlk_operation_advance(redlock_lock *lock, int64_t now)
{
  if (rlk_in_flight(lock) && lock->op.phase != RLK_SLEEPING && lock->op.phase != RLK_ASKING_QUEUE)
    end(lock, advance(lock, now));
}

void rlk_operation_attempt(redlock_lock *lock, int64_t now)
{
  end(lock, rlk_acquire_attempt(lock, now));
}

void rlk_operation_retry(redlock_lock *lock, int64_t now)
{
  end(lock, rlk_acquire_retry(lock, now));
}

void rlk_operation_lapse(redlock_lock *lock, int64_t now)
{
  if (!rlk_lock_is_held(lock, now))
    rlk_operation_advance(lock, now); /* an extension ends with its lock */
}

static int is_operation(int kind)
{
  return kind >= REDLOCK_ACQUIRE && kind <= REDLOCK_REMOVE;
}

/* Says why a call was refused that never got as far as the nodes. */
static void explain(redlock_lock *lock, int kind, int status)
{
  static const char *const calls[] = {"", "acquire", "extend", "release", "inspect", "expire", "remove"};
  char why[400];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  rlk_text_format(&text, "%s: ", calls[kind]);
  rlk_text_escaped(&text, rlk_key_resource(lock->key), lock->key->resource_size);
  if (status == REDLOCK_LOST)
    rlk_text_add(&text, " is no longer held");
  else if (status == REDLOCK_FORKED)
    rlk_text_add(&text, " is held by the parent process");
  else
    rlk_text_add(&text, " was never acquired by this handle");
  rlk_lock_refuse(lock, why);
}

/* The table of state and call at the end of redlock.h. */
static int refusal(redlock_lock *lock, int kind)
{
  int owned = lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED;
  if (lock->state == REDLOCK_STATE_INVALID)
    return REDLOCK_INVALID;
  if (kind == REDLOCK_INSPECT || kind == REDLOCK_REMOVE)
    return REDLOCK_OK;
  if (lock->is_reserved) {
    rlk_lock_refuse_name(lock);
    return REDLOCK_INVALID;
  }
  if (kind == REDLOCK_ACQUIRE) {
    if (!owned)
      return REDLOCK_OK;
    rlk_lock_refuse(lock, "acquire: this handle already holds a lock; release or detach it first");
    return REDLOCK_INVALID;
  }
  if (lock->state == REDLOCK_STATE_FORKED)
    return REDLOCK_FORKED;
  if (lock->state == REDLOCK_STATE_LOST)
    return kind == REDLOCK_RELEASE ? REDLOCK_OK : REDLOCK_LOST;
  return owned ? REDLOCK_OK : REDLOCK_NOT_HELD;
}

static int check_arguments(redlock_lock *lock, int kind, int64_t arg, struct rlk_terms *terms)
{
  char why[256];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  int status = REDLOCK_OK;
  if (kind == REDLOCK_ACQUIRE && (arg < -2 || arg > RLK_YEAR_MS)) {
    rlk_text_format(&text, "wait_ms is %lld; allowed: -2 to %lld", (long long)arg, (long long)RLK_YEAR_MS);
    status = REDLOCK_INVALID;
  } else if ((kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE) && arg < 0) {
    rlk_text_format(&text, "ttl_ms is %lld; allowed: %d to max_ttl_ms (%lld), or 0 for the option", (long long)arg,
                    RLK_TTL_MS_MIN, (long long)RLK_INT(&lock->options, MAX_TTL_MS));
    status = REDLOCK_INVALID;
  } else if (!is_operation(kind)) {
    rlk_text_format(&text, "operation is %d; allowed: 1 to 6 (enum redlock_operation)", kind);
    status = REDLOCK_INVALID;
  } else if (kind == REDLOCK_ACQUIRE || kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE) {
    status = rlk_terms_for(&lock->options, kind == REDLOCK_ACQUIRE ? 0 : arg, terms, &text);
  }
  if (status != REDLOCK_OK)
    rlk_lock_refuse(lock, why);
  return status;
}

/* Release and inspect have no TTL of their own; one that does not fit the options must not keep them from running. */
static void default_terms(redlock_lock *lock)
{
  struct rlk_text nowhere = rlk_text_in(NULL, 0);
  if (rlk_terms_for(&lock->options, 0, &lock->op.asked, &nowhere) != REDLOCK_OK)
    lock->op.asked = (struct rlk_terms){
        .ttl_ms = RLK_TTL_MS_MIN, .node_timeout_ns = 50 * MS, .patience_min_ns = 50 * MS, .patience_max_ns = 50 * MS};
}

static int begin(redlock_lock *lock, int kind, const struct rlk_terms *terms, int64_t arg, int64_t now)
{
  if (kind == REDLOCK_ACQUIRE)
    return rlk_acquire_begin(lock, terms, arg, now);
  if (kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE)
    return rlk_extend_begin(lock, kind, terms, now);
  default_terms(lock);
  switch (kind) {
  case REDLOCK_RELEASE: return rlk_release_begin(lock, now);
  case REDLOCK_REMOVE: return rlk_remove_begin(lock, now);
  default: return rlk_inspect_begin(lock, now);
  }
}

int rlk_operation_begin(redlock_lock *lock, int kind, int64_t arg, int64_t now)
{
  struct rlk_terms terms; /* a refused call must not change those of votes that are still to come */
  int status;
  if (rlk_in_use(lock))
    return REDLOCK_IN_FLIGHT;
  if (lock->engine->net.state != RLK_NET_OPEN) {
    rlk_lock_refuse(lock, "the client has been closed");
    return REDLOCK_INVALID;
  }
  rlk_lock_is_held(lock, now);
  status = is_operation(kind) ? refusal(lock, kind) : REDLOCK_OK;
  if (status != REDLOCK_OK && status != REDLOCK_INVALID)
    explain(lock, kind, status);
  if (status == REDLOCK_OK)
    status = check_arguments(lock, kind, arg, &terms);
  if (status != REDLOCK_OK)
    return status;
  rlk_lock_refuse(lock, NULL);
  status = begin(lock, kind, &terms, arg, now);
  if (!rlk_in_flight(lock))
    return status; /* it was refused */
  end(lock, status);
  return REDLOCK_OK;
}

void rlk_operation_cancel(redlock_lock *lock, int64_t now)
{
  atomic_store(&lock->op.cancelled, 0);
  if (!rlk_in_flight(lock))
    return;
  if (lock->op.kind == REDLOCK_ACQUIRE && lock->claim && !lock->claim->given_up)
    rlk_claim_give_up(lock->engine, lock->claim, 0, now);
  end(lock, REDLOCK_CANCELLED);
}

static int timer(redlock_lock *lock, int64_t now)
{
  if (lock->op.kind == REDLOCK_ACQUIRE)
    return rlk_acquire_timer(lock, now);
  if (lock->op.kind == REDLOCK_EXTEND || lock->op.kind == REDLOCK_EXPIRE)
    return rlk_extend_timer(lock, now);
  if (rlk_round_has_time(lock, now))
    return REDLOCK_PENDING;
  rlk_round_close(lock);
  rlk_holder_stop_waiting(lock);
  return advance(lock, now);
}

void rlk_operation_timer(redlock_lock *lock, int64_t now)
{
  end(lock, timer(lock, now));
}

/* In a child: the parent's lock is not ours. */
void rlk_operation_forked(redlock_lock *lock)
{
  if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED)
    lock->state = REDLOCK_STATE_FORKED;
  if (rlk_in_flight(lock)) {
    lock->state = REDLOCK_STATE_FORKED;
    lock->op.waiter = NULL;
    end(lock, REDLOCK_FORKED);
  }
  lock->op.in_call = 0;
  lock->hold.valid_until_ns = 0;
  rlk_timer_clear(&lock->engine->net.timers, &lock->hold.timer);
  rlk_lock_end_renewal(lock);
}

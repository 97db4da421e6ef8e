/* Running an operation on a lock: blocking, or started. */
#include "../base/fork.h"
#include "../base/mutant.h"
#include "../client/driver.h"
#include "../client/keeper.h"
#include "../lock/depth.h"
#include "../lock/lease.h"
#include "../lock/listing.h"
#include "../lock/operation.h"
#include "../lock/release.h"
#include "../lock/round.h"
#include "../wait/acquire.h"
#include "../wait/others.h"
#include "api.h"

static int confers_a_lease(int kind)
{
  return kind == REDLOCK_ACQUIRE || kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE;
}

/* The renewal thread must exist before the lock is taken. */
static int get_keeper(redlock_lock *lock, int kind)
{
  redlock_client *c = rlk_client_of(lock);
  int status;
  if (!confers_a_lease(kind) || !RLK_INT(&lock->options, RENEW) || c->engine.net.env.stepped)
    return REDLOCK_OK;
  status = rlk_keeper_ensure();
  if (status == REDLOCK_OK)
    return REDLOCK_OK;
  rlk_enter(c);
  rlk_lock_refuse(lock, "renew: the renewal thread could not be started");
  return rlk_leave(c, status);
}

const struct rlk_verb *rlk_verb_of(int operation)
{
  static const struct rlk_verb *const verbs[] = {&rlk_acquire, &rlk_extend, &rlk_release, &rlk_inspect, &rlk_expire,
                                                 &rlk_remove,  &rlk_who,    &rlk_list,    &rlk_examine};
  return operation >= REDLOCK_ACQUIRE && operation <= REDLOCK_EXAMINE ? verbs[operation - REDLOCK_ACQUIRE] : NULL;
}

static void refuse_operation(redlock_lock *lock, int operation)
{
  char why[80];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  rlk_text_format(&text, "operation is %d; allowed: 1 to %d (enum redlock_operation)", operation, REDLOCK_EXAMINE);
  rlk_lock_refuse(lock, why);
}

/* Returns the client with its mutex held; *status is the status of beginning the operation. NULL if it failed. */
static redlock_client *begin(redlock_lock *lock, int kind, int64_t arg, int *status)
{
  const struct rlk_verb *verb = rlk_verb_of(kind);
  redlock_client *c;
  int64_t now;
  *status = lock ? get_keeper(lock, kind) : REDLOCK_INVALID;
  if (*status != REDLOCK_OK)
    return NULL;
  c = rlk_enter_lock(lock);
  now = rlk_client_now(c);
  /* input from before: replies, and connections that the server closed meanwhile (rule A.3.0) */
  if (!rlk_depth_counts(lock, kind) && !c->driven && now - c->polled_ns > RLK_NS_PER_MS) {
    rlk_client_poll(c);
    now = rlk_client_now(c);
    rlk_client_step(c, now);
  }
  *status = rlk_operation_begin(lock, verb, arg, now);
  if (!verb && *status == REDLOCK_INVALID)
    refuse_operation(lock, kind);
  return c;
}

/* The last call, also one that only counted. */
static int last_kind(const redlock_lock *lock)
{
  return lock->op.inner ? lock->op.inner : lock->op.kind;
}

/* The client leaves: it has released the lock, or is about to; an acquisition does not return OK then. */
static int is_given_back(const redlock_lock *lock)
{
  if (lock->state == REDLOCK_STATE_FREE)
    return !lock->claim || !lock->claim->is_detached;
  return last_kind(lock) == REDLOCK_ACQUIRE && lock->engine->net.state != RLK_NET_OPEN;
}

/* The last look before the caller relies on its lock: OK is never returned for a lock that is not held (rule A.1). */
static int last_look(redlock_lock *lock, int64_t now)
{
  if (RLK_MUTANT(NO_LAST_LOOK))
    return lock->op.status;
  rlk_lock_is_held(lock, now);
  if (lock->state == REDLOCK_STATE_INVALID)
    return REDLOCK_INVALID;
  if (lock->op.status != REDLOCK_OK || !confers_a_lease(last_kind(lock)))
    return lock->op.status;
  if (lock->state == REDLOCK_STATE_FORKED)
    lock->op.status = REDLOCK_FORKED;
  else if (is_given_back(lock))
    lock->op.status = REDLOCK_CANCELLED;
  else if (lock->state == REDLOCK_STATE_LOST)
    lock->op.status = REDLOCK_LOST;
  return lock->op.status;
}

/* Another thread may have won the lock for this one, which the system let run only after the lease was used up. */
static int won_too_late(const redlock_client *c, const redlock_lock *lock, int64_t now)
{
  if (lock->op.status != REDLOCK_OK || lock->op.kind != REDLOCK_ACQUIRE || c->engine.net.state != RLK_NET_OPEN ||
      RLK_MUTANT(LATE_WINNER))
    return 0;
  return lock->state == REDLOCK_STATE_LOST ||
         (lock->state == REDLOCK_STATE_HELD && lock->hold.valid_until_ns - now < lock->op.asked.min_validity_ns);
}

/* Waits for the end of the operation in flight and takes its result: a lock that was won too late counts as failed. */
static int result(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  int64_t now;
  lock->op.in_call = 1;
  rlk_client_drive(c, lock, until_ns, interruptible);
  now = rlk_client_now(c);
  while (won_too_late(c, lock, now)) {
    rlk_acquire_retry(lock, now);
    rlk_client_drive(c, lock, until_ns, interruptible);
    now = rlk_client_now(c);
  }
  lock->op.in_call = 0;
  return last_look(lock, now);
}

static int blocking(redlock_lock *lock, int kind, int64_t arg)
{
  int status;
  redlock_client *c = begin(lock, kind, arg, &status);
  if (!c)
    return status;
  if (status == REDLOCK_OK && lock->op.inner)
    return rlk_leave(c, lock->op.status);
  if (status == REDLOCK_OK)
    status = result(c, lock, RLK_NEVER, 0);
  if (status == REDLOCK_PENDING) { /* nothing to wait on could be made */
    rlk_operation_cancel(lock, rlk_client_now(c));
    status = REDLOCK_INTERNAL;
  }
  return rlk_leave(c, status);
}

int redlock_lock_acquire(redlock_lock *lock, int64_t wait_ms)
{
  return blocking(lock, REDLOCK_ACQUIRE, wait_ms);
}

int redlock_lock_extend(redlock_lock *lock, int64_t ttl_ms)
{
  return blocking(lock, REDLOCK_EXTEND, ttl_ms);
}

int redlock_lock_release(redlock_lock *lock)
{
  return blocking(lock, REDLOCK_RELEASE, 0);
}

int redlock_lock_expire(redlock_lock *lock, int64_t ttl_ms)
{
  return blocking(lock, REDLOCK_EXPIRE, ttl_ms);
}

int redlock_lock_remove(redlock_lock *lock)
{
  return blocking(lock, REDLOCK_REMOVE, 0);
}

int redlock_lock_list(redlock_lock *lock, int64_t limit_ms)
{
  return blocking(lock, REDLOCK_LIST, limit_ms);
}

int redlock_lock_start(redlock_lock *lock, int operation, int64_t arg)
{
  int status;
  redlock_client *c = begin(lock, operation > 0 ? operation & ~REDLOCK_AT_ONCE : operation, arg, &status);
  if (!c)
    return status;
  if (status == REDLOCK_OK) {
    lock->op.is_started = 1;
    if (!rlk_in_flight(lock))
      rlk_mark_ended(&c->engine, lock);
    if (operation & REDLOCK_AT_ONCE)
      rlk_client_send(c);
    else
      rlk_client_mark_queued(c);
  }
  return rlk_leave(c, status);
}

int redlock_lock_wait(redlock_lock *lock, int64_t limit_ms)
{
  redlock_client *c = limit_ms < -1 ? NULL : rlk_enter_lock(lock);
  int64_t until_ns;
  int status;
  if (!c)
    return REDLOCK_INVALID;
  until_ns = rlk_limit_ends(limit_ms, rlk_client_now(c));
  if (lock->op.in_call)
    status = REDLOCK_IN_FLIGHT;
  else if (rlk_in_flight(lock))
    status = result(c, lock, until_ns, 1);
  else /* it had ended before: do not wait for another try */
    status = last_look(lock, rlk_client_now(c));
  return rlk_leave(c, status);
}

int redlock_lock_settle(redlock_lock *lock, int64_t limit_ms)
{
  redlock_client *c = limit_ms < -1 ? NULL : rlk_enter_lock(lock);
  int64_t until_ns;
  int status = REDLOCK_OK;
  if (!c)
    return REDLOCK_INVALID;
  until_ns = rlk_limit_ends(limit_ms, rlk_client_now(c));
  if (rlk_in_use(lock)) {
    status = REDLOCK_IN_FLIGHT;
  } else if (lock->op.kind && c->engine.net.state == RLK_NET_OPEN) {
    lock->op.in_call = lock->op.settling = 1;
    c->settling++;
    rlk_client_drive(c, lock, until_ns, 1);
    status = rlk_round_is_open(lock) ? REDLOCK_PENDING : REDLOCK_OK;
    c->settling--;
    lock->op.in_call = lock->op.settling = 0;
  }
  return rlk_leave(c, status);
}

int redlock_lock_cancel(redlock_lock *lock)
{
  redlock_client *c;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_client_of(lock);
  atomic_store(&lock->op.cancelled, 1);
  atomic_fetch_add(&c->cancels, 1);
  /* nothing else is safe in a signal handler: every entry looks at the mark before it does anything */
  if (!c->engine.net.env.stepped && !rlk_fork_is_unseen(c->fork_generation)) { /* the descriptors may be the parent's */
    rlk_poller_wake(&c->engine.net.poller);
    rlk_poller_notify(&c->engine.net.poller);
    atomic_store(&c->rung, 1); /* after the ring: a thread that sees this can clear it */
  }
  return REDLOCK_OK;
}

RLK_GETTER(int, redlock_lock_status, REDLOCK_INVALID, last_look(lock, rlk_client_now(c)))

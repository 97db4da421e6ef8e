/* What all operations share: how they begin and end, and how they progress. An operation is a round on all nodes; an
 * acquisition is several rounds with pauses between them. There are three triggers: a reply, a timer, a connection
 * that came up or failed. Each step returns a status, and anything but REDLOCK_PENDING ends the operation here. */
#include "../base/list.h"
#include "cleanup.h"
#include "depth.h"
#include "form.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "operation.h"
#include "round.h"

#define MS RLK_NS_PER_MS

int rlk_is_awaited(const redlock_lock *lock)
{
  return rlk_in_flight(lock) ||
         (lock->op.settling && lock->engine->net.state == RLK_NET_OPEN && rlk_round_is_open(lock));
}

/* ---- beginning and ending ---- */

void rlk_flight_begin(redlock_lock *lock, const struct rlk_verb *verb)
{
  struct rlk_engine *e = lock->engine;
  lock->op.verb = verb;
  lock->op.kind = verb->kind;
  lock->op.status = REDLOCK_PENDING;
  lock->op.inner = 0;
  lock->op.phase = RLK_ASKING_ALL;
  lock->round.number++;
  lock->op.is_started = 0;
  lock->round.is_tight = 0;
  lock->op.asking_again = lock->op.forms_asked = 0;
  lock->op.looking = 0;
  lock->op.deadline_ns = lock->op.outage_until_ns = RLK_NEVER;
  atomic_store(&lock->op.cancelled, 0);
  rlk_holder_drop(lock);
  RLK_LIST_APPEND(e->flights, e->last_flight, lock, flight.);
}

static void finish(redlock_lock *lock, int status)
{
  struct rlk_engine *e = lock->engine;
  if (lock->op.kind == REDLOCK_ACQUIRE)
    e->figures.acquisitions[status]++;
  lock->op.status = status;
  lock->op.phase = RLK_IDLE;
  rlk_timer_clear(&e->net.timers, &lock->op.timer);
  RLK_LIST_REMOVE(e->flights, e->last_flight, lock, flight.);
  rlk_claim_let_go(e, &lock->op.probe);
  if (lock->op.verb->ended)
    lock->op.verb->ended(lock);
  if (lock->op.waiter)
    rlk_mark_woken(e, lock->op.waiter);
  if (lock->op.is_started)
    rlk_mark_ended(e, lock);
}

/* Handles the status of a step: most replies end no operation. */
RLK_HOT static inline void end(redlock_lock *lock, int status)
{
  if (status != REDLOCK_PENDING)
    finish(lock, status);
}

/* ---- moving on ---- */

void rlk_operation_advance(redlock_lock *lock, int64_t now)
{
  if (rlk_in_flight(lock) && lock->op.phase != RLK_SLEEPING && lock->op.phase != RLK_ASKING_QUEUE)
    end(lock, lock->op.verb->advance(lock, now));
}

void rlk_operation_end(redlock_lock *lock, int status)
{
  end(lock, status);
}

void rlk_operation_lapse(redlock_lock *lock, int64_t now)
{
  if (!rlk_lock_is_held(lock, now))
    rlk_operation_advance(lock, now); /* an extension ends with its lock */
}

/* Says why a call was refused that never got as far as the nodes. */
static void explain(redlock_lock *lock, const struct rlk_verb *verb, int status)
{
  char why[400];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  rlk_text_format(&text, "%s: \"", verb->name);
  rlk_text_escaped(&text, rlk_key_resource(lock->key), lock->key->resource_size);
  if (status == REDLOCK_LOST && verb->kind == REDLOCK_ACQUIRE)
    rlk_text_add(&text, "\" was lost; release it as often as it was acquired first");
  else if (status == REDLOCK_LOST)
    rlk_text_add(&text, "\" is no longer held");
  else if (status == REDLOCK_FORKED)
    rlk_text_add(&text, "\" is held by the parent process");
  else
    rlk_text_add(&text, "\" is not held by this handle");
  rlk_lock_refuse(lock, why);
}

/* The table of state and call at the end of redlock.h. */
static int refusal(redlock_lock *lock, const struct rlk_call *call)
{
  const struct rlk_verb *verb = call->verb;
  int owned = lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED;
  if (lock->state == REDLOCK_STATE_INVALID)
    return REDLOCK_INVALID;
  if (verb->asks_everybody)
    return REDLOCK_OK;
  if (lock->is_reserved)
    return rlk_lock_refuse_name(lock);
  if (verb->kind == REDLOCK_ACQUIRE && !call->only_counts)
    return owned ? rlk_lock_refuse(lock, "acquire: this handle already holds a lock; release or detach it first")
                 : REDLOCK_OK;
  if (lock->state == REDLOCK_STATE_FORKED)
    return REDLOCK_FORKED;
  if (lock->state == REDLOCK_STATE_LOST)
    return verb->kind == REDLOCK_RELEASE ? REDLOCK_OK : REDLOCK_LOST;
  return owned ? REDLOCK_OK : REDLOCK_NOT_HELD;
}

static int check_arguments(redlock_lock *lock, struct rlk_call *call)
{
  char why[300];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  int acquires = call->verb->kind == REDLOCK_ACQUIRE, status = REDLOCK_OK;
  if (acquires && (call->arg < -2 || call->arg > RLK_YEAR_MS)) {
    rlk_text_format(&text, RLK_NAMED("wait_ms") " is " RLK_MS "; allowed: 0 to " RLK_MS ", or -1 for no limit",
                    (long long)call->arg, (long long)RLK_YEAR_MS);
    status = REDLOCK_INVALID;
  } else if (call->verb->takes_a_lease && !acquires && call->arg < 0) {
    rlk_text_format(&text,
                    RLK_NAMED("ttl_ms") " is " RLK_MS "; allowed: " RLK_MS
                                        " to " RLK_NAMED("max_ttl_ms") " (" RLK_MS "), or 0 for the option",
                    (long long)call->arg, (long long)RLK_TTL_MS_MIN, (long long)RLK_INT(&lock->options, MAX_TTL_MS));
    status = REDLOCK_INVALID;
  } else if (call->verb->takes_a_lease && !call->only_counts) {
    status = rlk_terms_for(&lock->options, acquires ? 0 : call->arg, &call->terms, &text);
  }
  if (status == REDLOCK_OK && acquires && lock->kind->check)
    status = lock->kind->check(lock, &text);
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

/* REDLOCK_OK if the state of the handle and the arguments allow the call. */
static int check(redlock_lock *lock, struct rlk_call *call)
{
  int status = refusal(lock, call);
  if (status != REDLOCK_OK && status != REDLOCK_INVALID)
    explain(lock, call->verb, status);
  return status == REDLOCK_OK ? check_arguments(lock, call) : status;
}

int rlk_operation_begin(redlock_lock *lock, const struct rlk_verb *verb, int64_t arg, int64_t now)
{
  struct rlk_call call = {.verb = verb, .arg = arg, .only_counts = verb && rlk_depth_counts(lock, verb->kind)};
  int status;
  if (rlk_in_use(lock))
    return REDLOCK_IN_FLIGHT;
  if (lock->engine->net.state != RLK_NET_OPEN) {
    rlk_lock_refuse(lock, "the client has been closed");
    return verb && verb->kind == REDLOCK_RELEASE && lock->state == REDLOCK_STATE_LOST ? REDLOCK_LOST : REDLOCK_INVALID;
  }
  rlk_lock_is_held(lock, now);
  if (!verb)
    return REDLOCK_INVALID;
  status = check(lock, &call);
  if (status != REDLOCK_OK)
    return status;
  if (!verb->leaves_refusals)
    rlk_lock_refuse(lock, NULL);
  if (call.only_counts) {
    rlk_depth_count(lock, verb->kind, now);
    return REDLOCK_OK;
  }
  if (!verb->takes_a_lease)
    default_terms(lock);
  status = verb->asks_everybody ? REDLOCK_OK : rlk_form_follow(lock, now);
  if (status == REDLOCK_OK)
    status = verb->begin(lock, &call, now);
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
  if (lock->op.kind == REDLOCK_ACQUIRE)
    rlk_lock_give_up(lock, now);
  end(lock, REDLOCK_CANCELLED);
}

void rlk_operation_timer(redlock_lock *lock, int64_t now)
{
  end(lock, lock->op.verb->timer(lock, now));
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
  rlk_lock_end_hold(lock, lock->state);
  lock->hold.depth = 0;
}

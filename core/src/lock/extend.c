/* Extending a lease, or setting its remaining time: until a majority has confirmed, the lease is nearly over or an
 * outage lasts too long. */
#include "asking.h"
#include "form.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "operation.h"
#include "renewal.h"
#include "round.h"
#include "backoff.h"

#define MS RLK_NS_PER_MS

/* The option renew counts from this operation on; a lease of another length has another time for its renewal. */
static void renew_as_asked(redlock_lock *lock)
{
  if (lock->op.kind == REDLOCK_EXPIRE || !RLK_INT(&lock->options, RENEW))
    rlk_lock_end_renewal(lock);
  if (lock->state == REDLOCK_STATE_HELD)
    rlk_renewal_begin(lock);
}

static int extended(redlock_lock *lock, int64_t now)
{
  if (lock->state == REDLOCK_STATE_ADOPTED)
    rlk_lock_hold(lock, rlk_lock_counts_until(lock), now);
  lock->hold.is_limited = 0;
  lock->hold.extensions += lock->op.kind == REDLOCK_EXTEND;
  renew_as_asked(lock);
  return lock->state == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST;
}

/* A node that could not be asked, or whose request came to nothing, may be asked again; one that is ineligible may
 * become eligible. */
static int may_ask_again(int vote)
{
  return vote == RLK_DOWN || vote == RLK_DROPPED || vote == RLK_ERROR || vote == RLK_OVERLOADED || vote == RLK_LATE ||
         vote == RLK_REFUSED || vote == RLK_QUARANTINED;
}

static int some_failed(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (may_ask_again(lock->votes[i]))
      return 1;
  return 0;
}

static void ask_again(redlock_lock *lock, int64_t now)
{
  lock->op.asking_again = 0;
  lock->attempt.count++;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (may_ask_again(lock->votes[i]))
      rlk_round_ask_or_note(lock, i, now);
  rlk_round_set_timer(lock, RLK_NEVER); /* the deadline */
}

/* Asks the failed nodes again after a pause, while the others may still answer. */
static void pause(redlock_lock *lock, int64_t now)
{
  if (lock->op.asking_again || !some_failed(lock))
    return;
  lock->op.asking_again = 1;
  rlk_round_set_timer(lock, now + rlk_backoff_pause_ns(lock));
}

/* It is tried again until the deadline. */
static int may_pass(const redlock_lock *lock, int status)
{
  return status == REDLOCK_NO_QUORUM || (status == REDLOCK_REFUSED_CONFIG && !rlk_round_is_final(lock));
}

static int advance(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int status = rlk_judge_extend(&tally);
  int is_over = now >= lock->op.deadline_ns;
  if (lock->state == REDLOCK_STATE_LOST)
    return REDLOCK_LOST;
  if (status == REDLOCK_OK)
    return extended(lock, now);
  if (status == REDLOCK_LOST && lock->state == REDLOCK_STATE_ADOPTED) {
    status = rlk_form_judge(lock, now);
    if (status != REDLOCK_LOST)
      return status;
  }
  if (status == REDLOCK_LOST)
    rlk_lock_lost(lock, REDLOCK_LOSS_GONE);
  if (status != REDLOCK_PENDING && (is_over || !may_pass(lock, status)))
    return status;
  pause(lock, now);
  return REDLOCK_PENDING;
}

/* A node that has refused, and was asked again too late to answer, stands by its refusal. */
static void recall_refusals(redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_ASKED && lock->node_answers[i].error)
      lock->votes[i] = rlk_error_vote(rlk_fault_of(lock->node_answers[i].error));
}

static int timer(redlock_lock *lock, int64_t now)
{
  if (now >= lock->op.deadline_ns || lock->op.forms_asked) {
    recall_refusals(lock);
    rlk_round_close(lock);
    rlk_holder_stop_waiting(lock);
  } else
    ask_again(lock, now);
  return advance(lock, now);
}

/* An exclusive holder that goes on as one that shares does so from the call on, whatever the nodes confirm (rule G.2).
 * There is no way back: a late request of a reader would turn the string into a set again. */
static int may_change(redlock_lock *lock)
{
  const char *alone = lock->claim->kind->alone;
  char why[120];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  if (alone && RLK_INT(&lock->options, SHARED)) {
    rlk_text_format(&text, RLK_NAMED("shared") " is true; allowed for %s: false; release it first", alone);
    rlk_lock_refuse(lock, why);
  } else if (lock->kind->shares && !lock->claim->kind->shares && !rlk_claim_can_share(lock->claim))
    rlk_lock_refuse_token(lock);
  else if (!lock->kind->shares && lock->claim->kind->shares)
    rlk_lock_refuse(lock, RLK_NAMED("shared") " is false; allowed for a lock that is held shared: true, since it does "
                                              "not become exclusive; release it, and acquire it anew");
  else
    return 1;
  return 0;
}

static int begins_to_share(redlock_lock *lock)
{
  if (!lock->kind->shares || lock->claim->kind->shares)
    return 0;
  lock->claim->kind = lock->kind;
  return 1;
}

#define TTL RLK_NAMED("ttl_ms")
#define EXTENSIONS RLK_NAMED("max_extensions")
#define HOLD RLK_NAMED("max_hold_ms")

static int beyond_limits(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  char why[160];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  int64_t extensions_max = RLK_INT(&lock->options, MAX_EXTENSIONS);
  int64_t hold_max_ms = RLK_INT(&lock->options, MAX_HOLD_MS);
  if (lock->state != REDLOCK_STATE_HELD)
    return 0;
  if (call->verb == &rlk_extend && extensions_max >= 0 && lock->hold.extensions >= extensions_max)
    rlk_text_format(&text, "no further extension: " EXTENSIONS " is %lld", (long long)extensions_max);
  else if (now + call->terms.ttl_ms * MS > rlk_hold_end_ns(lock, call->terms.ttl_ms)) {
    lock->hold.is_limited = !lock->renewal.is_on;
    rlk_text_format(&text, "no further extension by " TTL " " RLK_MS ": " HOLD " is " RLK_MS ", held for %lld ms",
                    (long long)call->terms.ttl_ms, (long long)hold_max_ms,
                    (long long)((now - lock->hold.acquired_ns) / MS));
  } else
    return 0;
  rlk_lock_refuse(lock, why);
  return 1;
}

/* Until the lease leaves nothing to work with, and as long as an outage is put up with: 0 leaves the time of an answer.
 */
static int64_t deadline_ns(const redlock_lock *lock, int64_t now)
{
  int64_t outage_wait_ms = RLK_INT(&lock->options, OUTAGE_WAIT_MS);
  int64_t wait_ns = outage_wait_ms ? outage_wait_ms * MS : lock->op.asked.node_timeout_ns;
  int64_t deadline = wait_ns < 0 ? RLK_NEVER : now + wait_ns;
  int64_t lease_end = lock->hold.valid_until_ns - lock->op.asked.min_validity_ns;
  if (lock->state != REDLOCK_STATE_HELD)
    return deadline;
  if (lease_end < now + lock->op.asked.node_timeout_ns)
    lease_end = lock->hold.valid_until_ns;
  return lease_end < deadline ? lease_end : deadline;
}

/* A shorter lease counts from the call, also where it cannot be asked for yet, and is what renewals go on with: one
 * that is due before the answer must not lengthen it again. */
static void shorten(redlock_lock *lock, int64_t now)
{
  int64_t end_ns = now + lock->op.asked.lease_ns;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int64_t *counts_until_ns = &lock->claim->node[i].counts_until_ns;
    *counts_until_ns = *counts_until_ns > end_ns ? end_ns : *counts_until_ns;
  }
  lock->hold.terms = lock->op.asked;
  rlk_lock_recount(lock, now);
  renew_as_asked(lock);
}

static int begin(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  int is_shared_now;
  if (!may_change(lock))
    return REDLOCK_INVALID;
  if (beyond_limits(lock, call, now))
    return REDLOCK_LIMIT;
  lock->op.asked = call->terms;
  lock->op.state_before = lock->state;
  rlk_flight_begin(lock, call->verb);
  is_shared_now = begins_to_share(lock);
  if (call->verb == &rlk_expire)
    shorten(lock, now);
  lock->op.deadline_ns = deadline_ns(lock, now);
  lock->attempt.count = 1;
  rlk_round_clear(lock);
  rlk_round_ask_all(lock, -1, now);
  if (is_shared_now)
    lock->kind->let_in(lock, now);
  return advance(lock, now);
}

static int ask_extend(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  if (rlk_lock_is_held(lock, now))
    rlk_renewal_heal(n, lock, &lock->op.asked, now);
  return rlk_ask_extend(n, lock, now);
}

static int ask_expire(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  int status = rlk_ask_expire(n, lock, now);
  rlk_lock_recount(lock, now); /* a shorter lease counts from now on */
  return status;
}

#define EXTENDS .takes_a_lease = 1, .begin = begin, .advance = advance, .timer = timer
const struct rlk_verb rlk_extend = {.kind = REDLOCK_EXTEND, .name = "extend", .ask = ask_extend, EXTENDS};
const struct rlk_verb rlk_expire = {.kind = REDLOCK_EXPIRE, .name = "expire", .ask = ask_expire, EXTENDS};

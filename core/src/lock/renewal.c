/* Which leases are due for renewal, and sending them together: one command per node. */
#include <stdlib.h>

#include "asking.h"
#include "kind.h"
#include "lease.h"
#include "renewal.h"

#define MS RLK_NS_PER_MS
#define HOUR_NS (3600000 * MS)

/* Leases that are due at about the same time are renewed together: one command per node. */
static int64_t rounded(const redlock_lock *lock, int64_t at)
{
  int64_t grain = lock->hold.terms.ttl_ms * MS / 64;
  return grain > MS ? at - at % grain : at;
}

static void schedule(redlock_lock *lock, int64_t at)
{
  struct rlk_engine *e = lock->engine;
  rlk_timer_set(&e->renewal_timers, &lock->renewal.timer, at);
  rlk_mark_renewal(e, at);
}

static void cut(const redlock_lock *lock, struct rlk_terms *terms, int64_t ttl_ms)
{
  if (ttl_ms >= terms->ttl_ms)
    return;
  terms->ttl_ms = ttl_ms;
  terms->lease_ns = ttl_ms * MS - rlk_drift_ns(ttl_ms, RLK_FLOAT(&lock->options, DRIFT_FACTOR));
  if (terms->node_timeout_ns > ttl_ms * MS / 4)
    terms->node_timeout_ns = ttl_ms * MS / 4; /* the user chose it for a whole TTL */
}

/* As long as the markers of a majority allow: a longer renewal would not be confirmed. */
static struct rlk_terms terms_of_next(const redlock_lock *lock)
{
  struct rlk_terms terms = lock->hold.terms;
  const struct rlk_net *net = &lock->engine->net;
  int64_t allowed_ms[RLK_NODES_MAX];
  for (int i = 0; i < net->node_count; i++)
    allowed_ms[i] = rlk_guard_cap_ms(&net->nodes[i], terms.ttl_ms);
  cut(lock, &terms, rlk_valid_until(allowed_ms, net->node_count, lock->engine->quorum));
  return terms;
}

/* Half of the TTL after the oldest counted request (rule B.4). */
static void schedule_next(redlock_lock *lock)
{
  struct rlk_terms terms = terms_of_next(lock);
  schedule(lock, rounded(lock, lock->hold.valid_until_ns - terms.lease_ns + terms.ttl_ms * MS / 2));
}

void rlk_renewal_begin(redlock_lock *lock)
{
  if (!RLK_INT(&lock->options, RENEW) || lock->renewal.is_on)
    return;
  lock->renewal.is_on = 1;
  lock->renewal.is_last = lock->renewal.at_risk = 0;
  lock->renewal.hours_told = 0;
  lock->engine->renewing++;
  schedule_next(lock);
}

static void limit_reached(redlock_lock *lock)
{
  rlk_lock_tell(lock, RLK_EVENT_LIMIT, RLK_NAMED("max_hold_ms") " has been reached: the lease will expire");
  lock->hold.is_limited = 1;
  rlk_lock_end_renewal(lock);
}

void rlk_renewal_confirmed(redlock_lock *lock)
{
  if (!lock->renewal.is_on || !lock->renewal.goal_ns || lock->hold.valid_until_ns < lock->renewal.goal_ns)
    return;
  rlk_lock_end_renewal_round(lock);
  lock->renewal.at_risk = 0;
  lock->engine->renewals++;
  if (lock->renewal.is_last)
    limit_reached(lock);
  else
    schedule_next(lock);
}

void rlk_batch_drop(struct rlk_engine *e, struct rlk_batch *batch)
{
  if (--batch->users > 0)
    return;
  for (int i = 0; i < batch->count; i++) {
    batch->claim[i]->in_flight--;
    rlk_claim_settle(e, batch->claim[i]);
  }
  e->batches--;
  free(batch);
}

static struct rlk_batch *batch_new(struct rlk_engine *e)
{
  struct rlk_batch *batch = malloc(sizeof *batch);
  if (!batch)
    return NULL;
  e->batches++;
  batch->users = 1;
  batch->count = 0;
  return batch;
}

struct rlk_batch *rlk_batch_again(struct rlk_engine *e, struct rlk_batch *batch, int64_t now)
{
  struct rlk_batch *again = batch_new(e);
  if (!again)
    return NULL;
  again->terms = batch->terms;
  for (int i = 0; i < batch->count; i++) {
    struct rlk_claim *claim = batch->claim[i];
    int is_apart = batch->count > 1 && claim->kind->renew; /* it shares since: its extension is on the way */
    if (!claim->lock || claim->lock->claim != claim || claim->given_up || is_apart ||
        batch->terms.ttl_ms > claim->lock->hold.terms.ttl_ms || /* it was shortened since */
        !rlk_lock_is_held(claim->lock, now))
      continue;
    claim->in_flight++;
    again->claim[again->count++] = claim;
  }
  return again;
}

static void send_batch(struct rlk_engine *e, struct rlk_batch *batch, int64_t now)
{
  if (!batch)
    return;
  e->batch_answers_ns = now + batch->terms.node_timeout_ns;
  for (int i = 0; i < e->net.node_count && batch->count; i++) {
    struct rlk_node *n = &e->net.nodes[i];
    if (rlk_node_can_ask(n, rlk_node_patience_ns(n, &batch->terms), now) == RLK_ASKED)
      rlk_ask_renewal(n, batch, now); /* without memory the node misses this round */
  }
  rlk_batch_drop(e, batch);
}

/* The terms of the next renewal, cut to max_hold_ms: 0 when no time is left for one. */
static int terms_of(redlock_lock *lock, struct rlk_terms *terms, int64_t now)
{
  int64_t hold_max_ms = RLK_INT(&lock->options, MAX_HOLD_MS);
  int64_t left_ms;
  *terms = terms_of_next(lock);
  lock->renewal.is_last = 0; /* max_hold_ms may have been raised */
  if (hold_max_ms < 0)
    return 1;
  left_ms = hold_max_ms - (now - lock->hold.acquired_ns) / MS;
  if (left_ms >= terms->ttl_ms)
    return 1;
  lock->renewal.is_last = 1;
  if (left_ms < RLK_TTL_MS_MIN)
    return 0;
  cut(lock, terms, left_ms);
  return now + terms->lease_ns > lock->hold.valid_until_ns;
}

/* Nothing else ends a hold that was forgotten. */
static void tell_of_each_hour(redlock_lock *lock, int64_t now)
{
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  int64_t hours = (now - lock->hold.acquired_ns) / HOUR_NS;
  if (hours <= lock->renewal.hours_told)
    return;
  lock->renewal.hours_told = hours;
  rlk_text_format(&text, "held for %lld h and renewed until it is released", (long long)hours);
  rlk_lock_tell(lock, RLK_EVENT_HELD_LONG, words);
}

static void tell_risk(redlock_lock *lock)
{
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  int nodes = lock->engine->net.node_count, first = nodes, refused = 0;
  for (int i = nodes; i-- > 0;)
    if (lock->node_answers[i].error) {
      first = i;
      refused++;
    }
  rlk_text_add(&text, "a renewal was not confirmed in time");
  if (refused)
    rlk_text_format(&text, ": %d of %d nodes refused it: %s %s", refused, nodes,
                    lock->engine->net.nodes[first].url.name, lock->node_answers[first].error);
  rlk_text_mark_cut(&text);
  rlk_lock_tell(lock, RLK_EVENT_AT_RISK, words);
}

/* Whether the lock takes part in this round; then its terms are in *terms. */
static int due(redlock_lock *lock, struct rlk_terms *terms, int64_t now)
{
  if (!rlk_lock_is_held(lock, now))
    return 0;
  if (!terms_of(lock, terms, now)) {
    limit_reached(lock);
    return 0;
  }
  if (lock->renewal.goal_ns && !lock->renewal.at_risk) {
    lock->renewal.at_risk = 1;
    tell_risk(lock);
    rlk_mark_ended(lock->engine, lock);
  }
  tell_of_each_hour(lock, now);
  return 1;
}

void rlk_renewal_heal(struct rlk_node *n, redlock_lock *lock, const struct rlk_terms *terms, int64_t now)
{
  const struct rlk_claim_node *at = &lock->claim->node[n->index];
  int is_lost = at->counts_until_ns <= now && !at->shortenings && !(at->flags & RLK_SET_IN_FLIGHT);
  if (is_lost && !lock->claim->is_adopted && rlk_node_can_ask(n, rlk_node_patience_ns(n, terms), now) == RLK_ASKED &&
      !rlk_guard_waits(n, now) && terms->ttl_ms <= n->voter->ttl_limit_ms)
    rlk_ask_heal(n, lock, terms, now); /* without memory the next renewal does */
}

static void renew(redlock_lock *lock, const struct rlk_terms *terms, struct rlk_batch *batch, int64_t now)
{
  int64_t again_ns = terms->ttl_ms * MS / 8;
  if (again_ns < terms->node_timeout_ns)
    again_ns = terms->node_timeout_ns;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    rlk_renewal_heal(&lock->engine->net.nodes[i], lock, terms, now);
  if (!lock->renewal.goal_ns)
    lock->engine->renewals_open++;
  lock->renewal.goal_ns = now + terms->lease_ns;
  if (batch) {
    lock->claim->in_flight++;
    batch->claim[batch->count++] = lock->claim;
  }
  schedule(lock, now + again_ns);
}

static int same_terms(const struct rlk_terms *a, const struct rlk_terms *b)
{
  return a->ttl_ms == b->ttl_ms && a->lease_ns == b->lease_ns;
}

void rlk_renewals_due(struct rlk_engine *e, int64_t now)
{
  struct rlk_batch *batch = NULL;
  struct rlk_timer *timer;
  while ((timer = rlk_timers_pop(&e->renewal_timers, now)) != NULL) {
    redlock_lock *lock = RLK_OWNER(redlock_lock, renewal.timer, timer);
    struct rlk_terms terms;
    if (!due(lock, &terms, now))
      continue;
    if (batch && (batch->count == RLK_BATCH_MAX || !same_terms(&batch->terms, &terms) || lock->claim->kind->renew ||
                  (batch->count && batch->claim[0]->kind->renew))) {
      send_batch(e, batch, now);
      batch = NULL;
    }
    if (!batch) {
      batch = batch_new(e);
      if (batch)
        batch->terms = terms;
    }
    renew(lock, &terms, batch, now); /* without memory it is tried again like a round without answers */
  }
  send_batch(e, batch, now);
}

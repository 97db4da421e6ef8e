/* The local knowledge of a lease: until when it counts, and how it was lost. */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "kind.h"
#include "lease.h"

const char *rlk_loss_name(int reason)
{
  static const char *const names[] = {
      [REDLOCK_LOSS_NONE] = "",           [REDLOCK_LOSS_EXPIRED] = "expired",
      [REDLOCK_LOSS_GONE] = "gone",       [REDLOCK_LOSS_RESTARTED] = "restarted",
      [REDLOCK_LOSS_REFUSED] = "refused", [REDLOCK_LOSS_LIMIT] = "limit",
      [REDLOCK_LOSS_CLOCK] = "clock",     [REDLOCK_LOSS_CLOSED] = "closed",
  };
  return names[reason];
}

void rlk_loss_words(const redlock_lock *lock, struct rlk_text *out)
{
  static const char *const words[] = {
      [REDLOCK_LOSS_NONE] = "",
      [REDLOCK_LOSS_EXPIRED] = "the lease expired",
      [REDLOCK_LOSS_GONE] = "the token was gone on",
      [REDLOCK_LOSS_RESTARTED] = "restarted since the lock was acquired:",
      [REDLOCK_LOSS_REFUSED] = "ineligible to vote now:",
      [REDLOCK_LOSS_LIMIT] = "the lease expired: " RLK_NAMED("max_hold_ms") " allowed no further renewal",
      [REDLOCK_LOSS_CLOCK] = "the clock was stepped forward on",
      [REDLOCK_LOSS_CLOSED] = "the client was closed",
  };
  int count = 0, nodes = lock->engine->net.node_count;
  for (int i = 0; lock->claim && i < nodes; i++)
    count += lock->claim->node[i].cut == lock->hold.loss;
  rlk_text_add(out, words[lock->hold.loss]);
  if (lock->hold.loss == REDLOCK_LOSS_GONE || lock->hold.loss == REDLOCK_LOSS_RESTARTED ||
      lock->hold.loss == REDLOCK_LOSS_REFUSED || lock->hold.loss == REDLOCK_LOSS_CLOCK)
    rlk_text_format(out, " %d of %d nodes%s", count, nodes,
                    nodes - count < lock->engine->quorum ? "" : ", and others did not count");
}

void rlk_lock_tell(redlock_lock *lock, enum rlk_event_kind kind, const char *detail)
{
  struct rlk_event *event = rlk_event_add(&lock->engine->net.events, kind, -1, detail);
  rlk_event_about(event, rlk_key_resource(lock->key), lock->key->resource_size,
                  kind == RLK_EVENT_LOST ? lock->hold.loss : REDLOCK_LOSS_NONE);
}

void rlk_lock_note_loss(redlock_lock *lock, int reason)
{
  char why[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  lock->hold.loss = reason;
  lock->engine->lost++;
  lock->engine->figures.losses[reason]++;
  rlk_loss_words(lock, &text);
  rlk_lock_tell(lock, RLK_EVENT_LOST, why);
}

void rlk_lock_count_hold(redlock_lock *lock, int64_t now)
{
  rlk_histogram_add(&lock->engine->figures.hold_us, rlk_time_bounds_us, (now - lock->hold.acquired_ns) / 1000);
}

void rlk_lock_end_renewal_round(redlock_lock *lock)
{
  lock->engine->renewals_open -= lock->renewal.goal_ns != 0;
  lock->renewal.goal_ns = 0;
}

void rlk_lock_end_renewal(redlock_lock *lock)
{
  if (!lock->renewal.is_on)
    return;
  rlk_lock_end_renewal_round(lock);
  rlk_timer_clear(&lock->engine->renewal_timers, &lock->renewal.timer);
  lock->renewal.is_on = 0;
  lock->engine->renewing--;
}

/* Of a node without which the lock was lost: why it does not count (any more). */
static int vote_at_loss(const redlock_lock *lock, int node)
{
  static const uint8_t by_cut[] = {[REDLOCK_LOSS_GONE] = RLK_GONE,
                                   [REDLOCK_LOSS_RESTARTED] = RLK_GONE,
                                   [REDLOCK_LOSS_REFUSED] = RLK_REFUSED,
                                   [REDLOCK_LOSS_CLOCK] = RLK_QUARANTINED};
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  if (lock->claim->node[node].cut)
    return by_cut[lock->claim->node[node].cut];
  if (n->state != RLK_NODE_READY)
    return n->refused ? RLK_REFUSED : RLK_DOWN;
  if (lock->node_answers[node].error)
    return RLK_ERROR;
  return lock->votes[node] == RLK_GRANTED ? RLK_LATE : lock->votes[node];
}

/* What nodes said to an acquisition long ago tells nothing of a loss that renewals or news of nodes have brought. One
 * that confirms renewals counts for more than half of a lease when the time of the others runs out. */
static void note_votes(redlock_lock *lock, int reason, int64_t now)
{
  int is_lapse = reason == REDLOCK_LOSS_EXPIRED || reason == REDLOCK_LOSS_LIMIT;
  int64_t until_ns = is_lapse ? now + lock->hold.terms.lease_ns / 2 : now;
  if (!lock->op.kind || rlk_in_flight(lock) || (is_lapse && !lock->renewal.goal_ns) || !lock->op.verb->takes_a_lease)
    return;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    lock->votes[i] = rlk_claim_counts(lock->claim, i, until_ns) ? RLK_GRANTED : (uint8_t)vote_at_loss(lock, i);
}

void rlk_lock_end_hold(redlock_lock *lock, enum redlock_state state)
{
  rlk_lock_end_renewal(lock);
  rlk_timer_clear(&lock->engine->net.timers, &lock->hold.timer);
  lock->state = state;
  lock->hold.valid_until_ns = 0;
  if (state != REDLOCK_STATE_LOST)
    lock->hold.depth = 0;
}

void rlk_lock_lost(redlock_lock *lock, int reason)
{
  if (lock->state != REDLOCK_STATE_HELD && lock->state != REDLOCK_STATE_ADOPTED)
    return;
  if (lock->state == REDLOCK_STATE_HELD)
    rlk_lock_count_hold(lock, rlk_now(&lock->engine->net));
  note_votes(lock, reason, rlk_now(&lock->engine->net));
  rlk_lock_end_hold(lock, REDLOCK_STATE_LOST);
  if (lock->claim->kind->lost)
    lock->claim->kind->lost(lock); /* its program may release it much later */
  rlk_lock_note_loss(lock, reason);
  rlk_mark_ended(lock->engine, lock);
}

int rlk_lock_is_held(redlock_lock *lock, int64_t now)
{
  if (lock->state != REDLOCK_STATE_HELD)
    return 0;
  if (now < lock->hold.valid_until_ns)
    return 1;
  if (!RLK_MUTANT(LOSS_NOT_STICKY))
    rlk_lock_lost(lock, lock->hold.cut          ? lock->hold.cut
                        : lock->hold.is_limited ? REDLOCK_LOSS_LIMIT
                                                : REDLOCK_LOSS_EXPIRED);
  return 0;
}

int64_t rlk_lock_counts_until(const redlock_lock *lock)
{
  const struct rlk_engine *e = lock->engine;
  int64_t counts_until_ns[RLK_NODES_MAX];
  for (int i = 0; i < e->net.node_count; i++)
    counts_until_ns[i] = lock->claim->node[i].counts_until_ns;
  return rlk_valid_until(counts_until_ns, e->net.node_count, e->quorum);
}

static void set_validity(redlock_lock *lock, int64_t until_ns, int reason, int64_t now)
{
  if (until_ns < lock->hold.valid_until_ns)
    lock->hold.cut = reason;
  else if (until_ns > lock->hold.valid_until_ns)
    lock->hold.cut = REDLOCK_LOSS_NONE;
  lock->hold.valid_until_ns = until_ns;
  if (rlk_lock_is_held(lock, now))
    rlk_timer_set(&lock->engine->net.timers, &lock->hold.timer, until_ns);
}

static void recount(redlock_lock *lock, int reason, int64_t now)
{
  if (lock->state == REDLOCK_STATE_HELD)
    set_validity(lock, rlk_lock_counts_until(lock), reason, now);
}

void rlk_lock_hold(redlock_lock *lock, int64_t until_ns, int64_t now)
{
  lock->state = REDLOCK_STATE_HELD;
  lock->hold.terms = lock->op.asked;
  lock->hold.acquired_ns = now;
  lock->hold.extensions = 0;
  lock->hold.depth = 1;
  lock->hold.cut = lock->hold.is_limited = 0;
  set_validity(lock, until_ns, REDLOCK_LOSS_NONE, now);
}

void rlk_lock_recount(redlock_lock *lock, int64_t now)
{
  recount(lock, REDLOCK_LOSS_NONE, now);
}

void rlk_lock_cut(redlock_lock *lock, int node, int64_t until_ns, int reason, int64_t now)
{
  lock->claim->node[node].counts_until_ns = until_ns > now ? until_ns : 0;
  lock->claim->node[node].cut = (uint8_t)reason;
  if (lock->state != REDLOCK_STATE_HELD && lock->claim->settle_by_ns != RLK_NEVER)
    lock->claim->settle_by_ns = 0; /* a later vote must not fill in for it (rule D.2) */
  recount(lock, reason, now);
}

void rlk_leases_cut(struct rlk_engine *e, const struct rlk_node *n, int64_t by_ns, int reason, int64_t now)
{
  for (struct rlk_claim *claim = e->claims; claim; claim = claim->next) {
    int64_t *counts_until_ns = &claim->node[n->index].counts_until_ns, until_ns = *counts_until_ns - by_ns;
    if (!rlk_claim_counts(claim, n->index, now))
      continue;
    if (claim->lock && claim->lock->claim == claim && !claim->given_up)
      rlk_lock_cut(claim->lock, n->index, until_ns, reason, now);
    else
      *counts_until_ns = until_ns > now ? until_ns : 0;
  }
}

int rlk_lock_refuse(redlock_lock *lock, const char *text)
{
  free(lock->refusal);
  lock->refusal = text ? strdup(text) : NULL; /* without memory only the status has it */
  return REDLOCK_INVALID;
}

int rlk_lock_refuse_token(redlock_lock *lock)
{
  return rlk_lock_refuse(lock,
                         RLK_NAMED("shared") " is true; allowed for a token that is not all hexadecimal digits: false");
}

void rlk_lock_name_is_reserved(const char *resource, size_t size, struct rlk_text *why)
{
  rlk_text_add(why, "resource is \"");
  rlk_text_escaped(why, resource, size);
  rlk_text_add(why, "\"; names and keys that begin with libredlock: are reserved for the library's own keys");
}

int rlk_lock_refuse_name(redlock_lock *lock)
{
  char why[400];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  rlk_lock_name_is_reserved(rlk_key_resource(lock->key), lock->key->resource_size, &text);
  return rlk_lock_refuse(lock, why);
}

int64_t rlk_hold_end_ns(const redlock_lock *lock, int64_t ttl_ms)
{
  int64_t hold_max_ms = RLK_INT(&lock->options, MAX_HOLD_MS);
  int64_t acquired_with_ms = ttl_ms > hold_max_ms && ttl_ms <= RLK_INT(&lock->options, TTL_MS) ? ttl_ms : 0;
  return hold_max_ms < 0 ? RLK_NEVER : lock->hold.acquired_ns + (hold_max_ms + acquired_with_ms) * RLK_NS_PER_MS;
}

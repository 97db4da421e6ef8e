#include "vote.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../node/meaning.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "operation.h"
#include "release.h"
#include "renewal.h"

#define MS RLK_NS_PER_MS

RLK_COLD void rlk_vote_error(redlock_lock *lock, int node, const char *words)
{
  struct rlk_reason error;
  if (!lock)
    return;
  rlk_because_of(&error, RLK_WHY_ERROR, rlk_cause_in(words));
  free(lock->node_answers[node].error);
  lock->node_answers[node].error = strdup(error.words); /* without memory it is not shown */
}

void rlk_vote_note_error(struct rlk_node *n, const struct rlk_outcome *out)
{
  if (out->error)
    rlk_vote_error(out->request.claim->lock, n->index, out->error);
}

void rlk_vote_note(redlock_lock *lock, int node, const struct rlk_request *r, int vote, int64_t now)
{
  if (lock->round.number != r->round)
    return;
  lock->votes[node] = (uint8_t)vote;
  rlk_operation_advance(lock, now);
}

/* A shortening that may still be executed limits the lease that a confirmation gives. */
static int64_t capped(const struct rlk_claim_node *at, int64_t counts_until_ns)
{
  return at->shortenings && at->cap_ns < counts_until_ns && !RLK_MUTANT(SHORTENING_FORGOTTEN) ? at->cap_ns
                                                                                              : counts_until_ns;
}

/* Where a grant may mean that the token is there already it keeps the longer life that was confirmed. */
static int64_t granted_until_ns(const struct rlk_claim *claim, int node, const struct rlk_request *r)
{
  const struct rlk_claim_node *at = &claim->node[node];
  const struct rlk_ask *take = r->ask->role == RLK_ASK_MARKER ? r->of.vote : r->ask;
  int64_t counts_until_ns = capped(at, r->sent_ns + r->lease_ns);
  return take->finds_own && at->counts_until_ns > counts_until_ns ? at->counts_until_ns : counts_until_ns;
}

/* If healing restores the token, the extension that missed it is retried. */
static void ask_extension_again(redlock_lock *lock, int node, int64_t now)
{
  int extends = lock->op.kind == REDLOCK_EXTEND || lock->op.kind == REDLOCK_EXPIRE;
  if (!rlk_in_flight(lock) || !extends || lock->votes[node] != RLK_GONE)
    return;
  lock->votes[node] = RLK_DROPPED;
  rlk_operation_advance(lock, now);
}

/* What was said against it before is over. */
static void counted(redlock_lock *lock, int node, int64_t until_ns)
{
  lock->claim->node[node].counts_until_ns = until_ns;
  lock->claim->node[node].cut = REDLOCK_LOSS_NONE;
  free(lock->node_answers[node].error);
  lock->node_answers[node].error = NULL;
}

static void set_vote(redlock_lock *lock, int node, const struct rlk_request *r, int vote, int64_t now)
{
  struct rlk_claim *claim = r->claim;
  if (claim->given_up) { /* of a finished attempt (rule A.3.3): no vote, but it shows the holder, or why there's none */
    if (lock->round.number == r->round && (vote == RLK_BUSY || vote == RLK_ERROR || vote == RLK_REFUSED))
      lock->votes[node] = (uint8_t)vote;
    return;
  }
  if (vote == RLK_GRANTED)
    counted(lock, node, granted_until_ns(claim, node, r));
  if (vote == RLK_GRANTED && rlk_lock_is_held(lock, now)) {
    rlk_lock_recount(lock, now); /* a vote after the win makes the lock outlive more failures */
    rlk_renewal_confirmed(lock);
    rlk_holder_show(&lock->engine->net.nodes[node], lock->hold.terms.ttl_ms, now);
    if (claim->kind->joined)
      claim->kind->joined(lock, node, now);
    ask_extension_again(lock, node, now);
  }
  rlk_vote_note(lock, node, r, vote, now);
}

/* A request that is sent late, repeated or after a pause must not carry the lock beyond max_hold_ms. */
static int64_t within_hold(const redlock_lock *lock, int64_t lease_ns, int64_t counts_until_ns)
{
  int64_t end_ns = rlk_hold_end_ns(lock, lease_ns / MS);
  return lock->state == REDLOCK_STATE_HELD && end_ns < counts_until_ns ? end_ns : counts_until_ns;
}

/* A confirmation counts only while the lock is held: a late one never revives it (sticky, rules 0 and B.2). */
static void confirmed(redlock_lock *lock, int node, const struct rlk_request *r, int vote, int64_t now)
{
  struct rlk_claim *claim = r->claim;
  struct rlk_claim_node *at = &claim->node[node];
  int64_t counts_until_ns = capped(at, (RLK_MUTANT(EXTENSION_AT_REPLY) ? now : r->sent_ns) + r->lease_ns);
  int usable;
  rlk_lock_is_held(lock, now);
  counts_until_ns = within_hold(lock, r->lease_ns, counts_until_ns);
  usable = !claim->given_up && (lock->state == REDLOCK_STATE_ADOPTED || lock->state == REDLOCK_STATE_HELD);
  if (usable && vote == RLK_GRANTED && counts_until_ns > at->counts_until_ns)
    counted(lock, node, counts_until_ns);
  if (usable && vote == RLK_GONE && !RLK_MUTANT(GONE_IGNORED))
    rlk_lock_cut(lock, node, 0, REDLOCK_LOSS_GONE, now);
  else if (usable && lock->state == REDLOCK_STATE_HELD)
    rlk_lock_recount(lock, now);
}

redlock_lock *rlk_vote_lock(const struct rlk_request *r)
{
  redlock_lock *lock = r->claim->lock;
  return lock && (lock->claim == r->claim || lock->op.probe == r->claim) ? lock : NULL;
}

redlock_lock *rlk_vote_wanted(const struct rlk_request *r)
{
  redlock_lock *lock = r->claim->lock;
  return lock && lock->claim == r->claim && !r->claim->given_up && lock->round.number == r->round ? lock : NULL;
}

static void count_vote(const struct rlk_node *n, const struct rlk_request *r, int vote)
{
  struct rlk_peer *peer = rlk_peer_of(n);
  if (r->claim->given_up)
    peer->late++;
  else if (vote == RLK_GRANTED)
    peer->granted++;
  else if (vote == RLK_BUSY)
    peer->busy++;
  else
    peer->other++;
}

void rlk_vote_set(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  count_vote(n, r, vote);
  if (lock)
    set_vote(lock, n->index, r, vote, now);
}

void rlk_vote_delete(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (!lock)
    return;
  if (r->round == lock->round.number)
    rlk_release_answered(lock, n->index, vote, now);
  rlk_vote_note(lock, n->index, r, vote, now);
}

/* What counts goes on counting, whatever the guard says of the node; all else begins to as a vote does. */
int rlk_vote_checked(const struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  int counts = rlk_claim_counts(r->claim, n->index, RLK_MUTANT(LAPSED_COUNT) ? 0 : now);
  return vote != RLK_GRANTED || counts ? vote : rlk_guard_vote(n, r->ttl_ms, now);
}

void rlk_vote_denied(const struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (lock && lock->claim == r->claim && !r->claim->given_up && rlk_claim_counts(r->claim, n->index, now))
    rlk_lock_cut(lock, n->index, 0, REDLOCK_LOSS_GONE, now);
}

/* 1: it is granted, and counts if the marker behind it is the one that is known. */
static int awaits_proof(const struct rlk_node *n, const struct rlk_request *r, int vote)
{
  uint8_t *flags = &r->claim->node[n->index].flags;
  *flags &= (uint8_t)~RLK_UNCHECKED;
  if (vote != RLK_GRANTED || !rlk_net_has_markers(n->net))
    return 0;
  *flags |= RLK_UNCHECKED;
  return 1;
}

void rlk_vote_confirm(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (vote == RLK_BUSY)
    rlk_vote_denied(n, r, now);
  if (!awaits_proof(n, r, vote) && lock)
    set_vote(lock, n->index, r, vote, now);
}

void rlk_vote_extend(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  if (RLK_MUTANT(LAPSED_COUNT) || !awaits_proof(n, r, vote))
    rlk_vote_proved(n, r, vote, now);
}

void rlk_vote_proved(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (!lock)
    return;
  vote = rlk_vote_checked(n, r, vote, now);
  confirmed(lock, n->index, r, vote, now);
  rlk_renewal_confirmed(lock);
  rlk_vote_note(lock, n->index, r, vote, now); /* a renewal has no round */
}

void rlk_vote_expired(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim_node *at = &out->request.claim->node[n->index];
  if (out->fault == RLK_FAULT_LOST)
    at->shortenings |= RLK_SHORTENING_LOST;
  else /* executed or refused: it limits nothing any more */
    at->shortenings--;
  rlk_vote_note_error(n, out);
  rlk_vote_extend(n, &out->request, out->vote, out->now_ns);
}

void rlk_vote_removed(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  rlk_vote_note_error(n, out);
  if (lock)
    rlk_vote_note(lock, n->index, &out->request, out->vote, out->now_ns);
}

void rlk_vote_seen(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  if (lock && lock->votes[n->index] == RLK_ASKED)
    rlk_vote_removed(n, out);
  else
    rlk_vote_note_error(n, out);
}

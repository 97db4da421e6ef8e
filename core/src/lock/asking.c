#include "asking.h"

#include "claim.h"
#include "holder.h"
#include "kind.h"

#define MS RLK_NS_PER_MS

/* No node has the token after that, if it executes the request soon. */
static int64_t gone_by_ns(const struct rlk_terms *terms, int64_t now)
{
  return now + 2 * terms->ttl_ms * MS - terms->lease_ns;
}

/* Keys end by the server's clock: was it stepped? -1 when memory is out. */
static int ask_time(struct rlk_node *n, struct rlk_claim *claim, int64_t now)
{
  struct rlk_out out;
  if (rlk_out_begin(&out, n->line, 32) != 0)
    return -1;
  RLK_OUT_TEXT(&out, "*1\r\n$4\r\nTIME\r\n");
  rlk_out_end(&out, (struct rlk_request){.ask = &rlk_row_clock, .claim = claim, .sent_ns = now});
  if (claim)
    claim->in_flight++;
  return 0;
}

/* The rest of a vote or of an extension, which counts when the marker has come. Without memory it stays open until its
 * time is over. */
static void ask_proof(struct rlk_node *n, struct rlk_request vote)
{
  const struct rlk_net *net = n->net;
  struct rlk_out out;
  if (!rlk_net_has_markers(net) || ask_time(n, vote.claim, vote.sent_ns) != 0 ||
      rlk_out_begin(&out, n->line, net->marker_key_size + 32) != 0)
    return;
  RLK_OUT_TEXT(&out, "*2\r\n$3\r\nGET\r\n");
  rlk_out_bytes(&out, net->marker_key, net->marker_key_size);
  if (!vote.claim) { /* one marker proves a whole batch */
    vote.ask = &rlk_row_renewed;
    vote.of.batch->users++;
    rlk_out_end(&out, vote);
    return;
  }
  vote.of.vote = vote.ask;
  vote.ask = &rlk_row_marker;
  rlk_ask_end(&out, vote);
}

static int ask_set(struct rlk_node *n, struct rlk_request vote, const struct rlk_kind *kind,
                   const struct rlk_terms *terms, const struct rlk_number *ttl, int64_t proposal)
{
  struct rlk_claim *claim = vote.claim;
  struct rlk_out out;
  uint64_t position;
  rlk_session_look_first(n->line, vote.sent_ns);
  position = n->line->queued;
  if (kind->put_take(&out, n->line, claim, ttl, proposal) != 0)
    return -1;
  vote.ask = kind->take;
  vote.lease_ns = terms->lease_ns;
  vote.ttl_ms = terms->ttl_ms;
  rlk_ask_end(&out, vote);
  if (claim->node[n->index].flags & RLK_MAY_HOLD)
    claim->node[n->index].flags |= RLK_SET_LOST; /* it may meet its own key */
  rlk_claim_may_be_at(claim, n->index, gone_by_ns(terms, vote.sent_ns));
  claim->node[n->index].flags &= (uint8_t)~RLK_ANSWERED_BUSY;
  claim->node[n->index].flags |= RLK_SET_IN_FLIGHT;
  claim->node[n->index].set_position = position;
  ask_proof(n, vote);
  return 0;
}

int rlk_ask_set(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_request vote = {.claim = lock->claim, .round = lock->round.number, .sent_ns = now};
  return ask_set(n, vote, lock->claim->kind, &lock->op.asked, &lock->attempt.ttl_text, lock->attempt.proposal);
}

int rlk_ask_heal(struct rlk_node *n, redlock_lock *lock, const struct rlk_terms *terms, int64_t now)
{
  struct rlk_request vote = {.claim = lock->claim, .sent_ns = now}; /* of no round */
  struct rlk_number ttl = {.size = 0};
  rlk_number_set(&ttl, terms->ttl_ms);
  return ask_set(n, vote, lock->claim->kind, terms, &ttl, lock->hold.number);
}

int rlk_ask_ttl(struct rlk_node *n, const struct rlk_key *key, struct rlk_request request)
{
  struct rlk_out out;
  if (rlk_out_begin(&out, n->line, key->bulk_size + 32) != 0)
    return -1;
  RLK_OUT_TEXT(&out, "*2\r\n$4\r\nPTTL\r\n");
  rlk_out_bytes(&out, key->bulk, key->bulk_size);
  rlk_ask_end(&out, request);
  return 0;
}

/* ---- the end of a claim ---- */

int rlk_ask_delete(struct rlk_node *n, struct rlk_claim *claim, uint32_t round, int64_t now)
{
  const struct rlk_ask *ask;
  struct rlk_out out;
  if (n->line->requests.count >= RLK_REQUESTS_MAX || !(ask = claim->kind->put_give(&out, n->line, claim, now)))
    return -1;
  rlk_ask_end(&out, (struct rlk_request){.ask = ask, .claim = claim, .round = round, .sent_ns = now});
  claim->node[n->index].flags |= RLK_DELETE_IN_FLIGHT;
  if (claim->kind->leave)
    claim->kind->leave(n, claim, now);
  return 0;
}

/* An extension gives no longer a lease than the marker there names, as a node that lost its keys is kept out for so
 * long (rule C.3.1). */
static void cap(const struct rlk_node *n, struct rlk_request *vote)
{
  int64_t ttl_ms = rlk_guard_cap_ms(n, vote->ttl_ms);
  if (ttl_ms == vote->ttl_ms)
    return;
  vote->ttl_ms = ttl_ms;
  vote->lease_ns = ttl_ms * MS - rlk_drift_ns(ttl_ms, RLK_FLOAT(&n->net->options, DRIFT_FACTOR));
}

/* Of the lock's operation, which extends or shortens a lease. */
static struct rlk_request vote_of(const redlock_lock *lock, const struct rlk_node *n, const struct rlk_ask *ask,
                                  int64_t now)
{
  struct rlk_request vote = rlk_request_of(lock, lock->claim, ask, now);
  vote.lease_ns = lock->op.asked.lease_ns;
  vote.ttl_ms = lock->op.asked.ttl_ms;
  cap(n, &vote);
  return vote;
}

int rlk_put_extensions(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *const *claims, int count,
                       int64_t ttl_ms)
{
  size_t room = 64;
  for (int i = 0; i < count; i++)
    room += claims[i]->key->bulk_size + claims[i]->token_size + 16;
  if (rlk_out_script(out, l, &rlk_script_extend, count, 1 + count, room) != 0)
    return -1;
  for (int i = 0; i < count; i++)
    rlk_out_bytes(out, claims[i]->key->bulk, claims[i]->key->bulk_size);
  rlk_out_number(out, ttl_ms);
  for (int i = 0; i < count; i++)
    rlk_put_token(out, claims[i]);
  return 0;
}

static int ask_extend(struct rlk_node *n, redlock_lock *lock, const struct rlk_ask *ask, int64_t now)
{
  struct rlk_claim *claim = lock->claim;
  struct rlk_request vote = vote_of(lock, n, ask, now);
  struct rlk_out out;
  if (claim->kind->put_keep(&out, n->line, claim, vote.ttl_ms) != 0)
    return -1;
  rlk_ask_end(&out, vote);
  rlk_claim_may_be_at(claim, n->index, gone_by_ns(&lock->op.asked, now));
  ask_proof(n, vote);
  rlk_holder_show(n, lock->op.asked.ttl_ms, now);
  return 0;
}

int rlk_ask_extend(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  return ask_extend(n, lock, lock->claim->kind->keep, now);
}

/* A take that finds its own says more than that the token is there. */
int rlk_ask_confirm(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  if (lock->claim->kind->take->finds_own)
    return rlk_ask_set(n, lock, now);
  return ask_extend(n, lock, &rlk_row_confirm, now);
}

int rlk_ask_expire(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_claim *claim = lock->claim;
  struct rlk_claim_node *at = &claim->node[n->index];
  struct rlk_request vote = vote_of(lock, n, claim->kind->cut, now);
  int64_t end_ns = now + lock->op.asked.lease_ns;
  struct rlk_out out;
  if (claim->kind->put_cut(&out, n->line, claim, vote.ttl_ms) != 0)
    return -1;
  rlk_ask_end(&out, vote);
  ask_proof(n, vote);
  rlk_claim_may_be_at(claim, n->index, gone_by_ns(&lock->op.asked, now));
  if (!at->shortenings || end_ns < at->cap_ns)
    at->cap_ns = end_ns;
  at->shortenings++;
  if (at->counts_until_ns > at->cap_ns)
    at->counts_until_ns = at->cap_ns;
  return 0;
}

int rlk_ask_renewal(struct rlk_node *n, struct rlk_batch *batch, int64_t now)
{
  struct rlk_claim *first = batch->claim[0];
  const struct rlk_ask *alone = first->kind->renew;
  struct rlk_request request = {.ask = alone ? alone : &rlk_row_renew,
                                .sent_ns = now,
                                .lease_ns = batch->terms.lease_ns,
                                .ttl_ms = batch->terms.ttl_ms,
                                .of.batch = batch};
  struct rlk_out out;
  int status;
  cap(n, &request);
  status = alone ? first->kind->put_keep(&out, n->line, first, request.ttl_ms)
                 : rlk_put_extensions(&out, n->line, batch->claim, batch->count, request.ttl_ms);
  if (status != 0)
    return -1;
  for (int i = 0; i < batch->count; i++)
    rlk_claim_may_be_at(batch->claim[i], n->index, gone_by_ns(&batch->terms, now));
  rlk_out_end(&out, request);
  batch->users++;
  ask_proof(n, request);
  rlk_holder_show(n, batch->terms.ttl_ms, now);
  return 0;
}

int rlk_put_del(struct rlk_out *out, struct rlk_line *l, const struct rlk_key *key, int slots)
{
  if (rlk_out_begin(out, l, key->all_size + rlk_slots_room(l->node->net, key, slots) + 64) != 0)
    return -1;
  rlk_out_array(out, 1 + key->count + (slots > 1 ? slots - 1 : 0));
  RLK_OUT_TEXT(out, "$3\r\nDEL\r\n");
  rlk_out_bytes(out, key->bulk, key->all_size);
  rlk_put_slots(out, key, slots);
  return 0;
}

int rlk_ask_inspect(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  if (rlk_holder_ask_value(n, lock, rlk_request_of(lock, lock->op.probe, &rlk_row_value, now)) != 0)
    return -1;
  return rlk_ask_ttl(n, lock->op.probe->key, rlk_request_of(lock, lock->op.probe, &rlk_row_ttl, now));
}

int rlk_ask_remove(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  const struct rlk_claim *probe = lock->op.probe;
  struct rlk_out out;
  if (rlk_put_del(&out, n->line, probe->key, probe->slots.chosen ? 0 : probe->slots.count) != 0)
    return -1;
  rlk_ask_end(&out, rlk_request_of(lock, lock->op.probe, &rlk_row_remove, now));
  return 0;
}

void rlk_ask_not(struct rlk_node *n, struct rlk_claim *claim)
{
  struct rlk_claim_node *at = &claim->node[n->index];
  int is_set;
  if (!(at->flags & RLK_SET_IN_FLIGHT) || at->set_position < n->line->written)
    return;
  claim->in_flight -= rlk_requests_unsend(n->line, claim, &is_set);
  if (!is_set)
    return;
  at->flags &= (uint8_t)~RLK_SET_IN_FLIGHT;
  if (!(at->flags & RLK_SET_LOST)) /* else an earlier one may have put it there */
    rlk_claim_cleared(rlk_engine_of(n->net), claim, n->index);
}

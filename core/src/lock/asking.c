#include "asking.h"

#include "../base/mutant.h"
#include "claim.h"
#include "holder.h"
#include "kind.h"

#define MS RLK_NS_PER_MS

static inline void add(struct rlk_line *l, size_t before, struct rlk_request request)
{
  rlk_request_add(l, before, request);
  request.claim->in_flight++;
}

/* No node has the token after that, if it executes the request soon. */
static int64_t gone_by_ns(const struct rlk_terms *terms, int64_t now)
{
  return now + 2 * terms->ttl_ms * MS - terms->lease_ns;
}

/* Keys end by the server's clock: was it stepped? -1 when memory is out. */
static int ask_time(struct rlk_node *n, struct rlk_claim *claim, int64_t now)
{
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  if (rlk_command_time(&l->out) != 0)
    return -1;
  rlk_request_add(l, before, (struct rlk_request){.ask = &rlk_row_clock, .claim = claim, .sent_ns = now});
  if (claim)
    claim->in_flight++;
  return 0;
}

/* The rest of a vote. Without memory the vote stays open until its time is over. */
static void ask_marker(struct rlk_node *n, struct rlk_request vote)
{
  const struct rlk_net *net = n->net;
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  if (rlk_command_get(&l->out, net->marker_key, net->marker_key_size) != 0)
    return;
  vote.of.vote = vote.ask;
  vote.ask = &rlk_row_marker;
  add(l, before, vote);
}

static int ask_set(struct rlk_node *n, struct rlk_request vote, const struct rlk_kind *kind,
                   const struct rlk_terms *terms, const struct rlk_number *ttl, int64_t proposal)
{
  struct rlk_line *l = n->line;
  struct rlk_claim *claim = vote.claim;
  size_t before = rlk_buffer_size(&l->out);
  uint64_t position = l->queued;
  if (rlk_requests_reserve(&l->requests, 3) != 0 || kind->put_take(n, claim, ttl, proposal) != 0)
    return -1;
  vote.ask = kind->take;
  vote.lease_ns = terms->lease_ns;
  vote.ttl_ms = terms->ttl_ms;
  add(l, before, vote);
  if (claim->node[n->index].flags & RLK_MAY_HOLD)
    claim->node[n->index].flags |= RLK_SET_LOST; /* what it meets may be its own key */
  rlk_claim_may_be_at(claim, n->index, gone_by_ns(terms, vote.sent_ns));
  claim->node[n->index].flags &= (uint8_t)~RLK_ANSWERED_BUSY;
  claim->node[n->index].flags |= RLK_SET_IN_FLIGHT;
  claim->node[n->index].set_position = position;
  if (rlk_guard_checks_votes(n) && ask_time(n, claim, vote.sent_ns) == 0)
    ask_marker(n, vote);
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
  rlk_command_number(&ttl, terms->ttl_ms);
  return ask_set(n, vote, lock->claim->kind, terms, &ttl, lock->hold.number);
}

int rlk_ask_hint(struct rlk_node *n, struct rlk_claim *claim, uint32_t round, int64_t now)
{
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  if (rlk_requests_reserve(&l->requests, 1) != 0 ||
      rlk_command_pttl(&l->out, claim->key->bulk, claim->key->bulk_size) != 0)
    return -1;
  add(l, before, (struct rlk_request){.ask = &rlk_row_hint, .claim = claim, .round = round, .sent_ns = now});
  return 0;
}

/* ---- the queue ---- */

/* NULL when memory is out. */
static const struct rlk_queue_keys *queue_of(const struct rlk_net *net, struct rlk_key *key)
{
  if (!key->queue.text &&
      rlk_command_queue_keys(&key->queue, RLK_STRING(net, KEY_PREFIX), rlk_key_resource(key), key->resource_size) != 0)
    return NULL;
  return &key->queue;
}

/* The client's name and a number of its own; "" for none. */
static const char *place_name(const struct rlk_engine *e, uint64_t place, char *out, size_t size)
{
  struct rlk_text text = rlk_text_in(out, size);
  if (place)
    rlk_text_format(&text, "%s:%llu", e->queue_name, (unsigned long long)place);
  return out;
}

int rlk_ask_join(struct rlk_node *n, redlock_lock *lock, const struct rlk_promise *promise, int64_t now)
{
  struct rlk_line *l = n->line;
  const struct rlk_queue_keys *keys = queue_of(n->net, lock->key);
  size_t before = rlk_buffer_size(&l->out);
  char place[48];
  if (!keys || rlk_requests_reserve(&l->requests, 1) != 0 ||
      rlk_command_join(&l->out, rlk_line_needs_text(l, RLK_SCRIPT_JOIN), keys,
                       place_name(lock->engine, lock->wait.place, place, sizeof place),
                       RLK_MUTANT(PLACE_FORGOTTEN) ? 0 : (now - lock->attempt.arrived_ns) / 1000, promise) != 0)
    return -1;
  add(l, before,
      (struct rlk_request){.ask = &rlk_row_join, .claim = lock->claim, .round = lock->round.number, .sent_ns = now});
  return 0;
}

int rlk_ask_is_queued(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_line *l = n->line;
  const struct rlk_queue_keys *keys = queue_of(n->net, lock->key);
  size_t before = rlk_buffer_size(&l->out);
  if (!keys || rlk_requests_reserve(&l->requests, 1) != 0 || rlk_command_is_queued(&l->out, keys) != 0)
    return -1;
  add(l, before,
      (struct rlk_request){.ask = &rlk_row_queued, .claim = lock->claim, .round = lock->round.number, .sent_ns = now});
  return 0;
}

int rlk_ask_leave(struct rlk_node *n, redlock_lock *lock)
{
  struct rlk_line *l = n->line;
  const struct rlk_queue_keys *keys = queue_of(n->net, lock->key);
  size_t before = rlk_buffer_size(&l->out);
  char place[48];
  if (!keys || rlk_requests_reserve(&l->requests, 1) != 0 ||
      rlk_command_leave(&l->out, keys, place_name(lock->engine, lock->wait.place, place, sizeof place)) != 0)
    return -1;
  rlk_request_add(l, before, (struct rlk_request){.ask = &rlk_row_nothing, .sent_ns = rlk_now(n->net)});
  return 0;
}

int rlk_put_hand_over(struct rlk_node *n, struct rlk_claim *claim)
{
  const struct rlk_queue_keys *keys = queue_of(n->net, claim->key);
  char place[48];
  if (!keys)
    return -1;
  return rlk_command_hand_over(&n->line->out, rlk_sends_text(n, RLK_SCRIPT_HAND_OVER), keys, rlk_claim_token(claim),
                               claim->token_size, place_name(rlk_engine_of(n->net), claim->place, place, sizeof place));
}

/* ---- the end of a claim ---- */

int rlk_ask_delete(struct rlk_node *n, struct rlk_claim *claim, uint32_t round, int64_t now)
{
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  int hands_over = claim->hands_over == n->index || claim->hands_over == RLK_QUEUE_ANYWHERE;
  if (l->requests.count >= RLK_REQUESTS_MAX || rlk_requests_reserve(&l->requests, 1) != 0 ||
      claim->kind->put_give(n, claim, hands_over) != 0)
    return -1;
  add(l, before,
      (struct rlk_request){
          .ask = &rlk_row_delete, .claim = claim, .round = round, .sent_ns = now, .of.hands_over = hands_over});
  claim->node[n->index].flags |= RLK_DELETE_IN_FLIGHT;
  return 0;
}

/* Of the lock's operation, which extends or shortens a lease. */
static struct rlk_request vote_of(const redlock_lock *lock, const struct rlk_ask *ask, int64_t now)
{
  return (struct rlk_request){.ask = ask,
                              .claim = lock->claim,
                              .round = lock->round.number,
                              .sent_ns = now,
                              .lease_ns = lock->op.asked.lease_ns,
                              .ttl_ms = lock->op.asked.ttl_ms};
}

static int ask_extend(struct rlk_node *n, redlock_lock *lock, const struct rlk_ask *ask, int64_t now)
{
  struct rlk_line *l = n->line;
  struct rlk_claim *claim = lock->claim;
  struct rlk_request vote;
  size_t before = rlk_buffer_size(&l->out);
  if (rlk_requests_reserve(&l->requests, 3) != 0 || claim->kind->put_keep(n, claim, lock->op.asked.ttl_ms) != 0)
    return -1;
  vote = vote_of(lock, ask, now);
  add(l, before, vote);
  rlk_claim_may_be_at(claim, n->index, gone_by_ns(&lock->op.asked, now));
  if (rlk_guard_checks_votes(n))
    ask_time(n, claim, now);
  if (rlk_claim_is_unproved(claim, n))
    ask_marker(n, vote);
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
  if (lock->claim->kind->finds_own)
    return rlk_ask_set(n, lock, now);
  return ask_extend(n, lock, &rlk_row_confirm, now);
}

int rlk_ask_expire(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_line *l = n->line;
  struct rlk_claim *claim = lock->claim;
  struct rlk_claim_node *at = &claim->node[n->index];
  struct rlk_request vote;
  size_t before = rlk_buffer_size(&l->out);
  int64_t end_ns = now + lock->op.asked.lease_ns;
  if (rlk_requests_reserve(&l->requests, 2) != 0 || claim->kind->put_cut(n, claim, lock->op.asked.ttl_ms) != 0)
    return -1;
  vote = vote_of(lock, claim->kind->cut, now);
  add(l, before, vote);
  if (rlk_claim_is_unproved(claim, n))
    ask_marker(n, vote);
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
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out), size = 0;
  for (int i = 0; i < batch->count; i++)
    size += batch->claim[i]->key->bulk_size + batch->claim[i]->token_size;
  if (rlk_requests_reserve(&l->requests, 2) != 0 ||
      rlk_command_extend_begin(&l->out, rlk_line_needs_text(l, RLK_SCRIPT_EXTEND), batch->count, size) != 0)
    return -1;
  for (int i = 0; i < batch->count; i++)
    rlk_command_extend_key(&l->out, batch->claim[i]->key->bulk, batch->claim[i]->key->bulk_size);
  rlk_command_extend_ttl(&l->out, batch->terms.ttl_ms);
  for (int i = 0; i < batch->count; i++) {
    rlk_command_extend_token(&l->out, rlk_claim_token(batch->claim[i]), batch->claim[i]->token_size);
    rlk_claim_may_be_at(batch->claim[i], n->index, gone_by_ns(&batch->terms, now));
  }
  rlk_request_add(l, before,
                  (struct rlk_request){
                      .ask = &rlk_row_renew, .sent_ns = now, .lease_ns = batch->terms.lease_ns, .of.batch = batch});
  batch->users++;
  if (rlk_guard_checks_votes(n))
    ask_time(n, NULL, now);
  rlk_holder_show(n, batch->terms.ttl_ms, now);
  return 0;
}

int rlk_ask_inspect(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_line *l = n->line;
  struct rlk_claim *claim = lock->op.probe;
  size_t before = rlk_buffer_size(&l->out);
  if (rlk_requests_reserve(&l->requests, 2) != 0 ||
      rlk_command_peek(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  add(l, before,
      (struct rlk_request){.ask = &rlk_row_value, .claim = claim, .round = lock->round.number, .sent_ns = now});
  before = rlk_buffer_size(&l->out);
  if (rlk_command_pttl(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  add(l, before,
      (struct rlk_request){.ask = &rlk_row_ttl, .claim = claim, .round = lock->round.number, .sent_ns = now});
  return 0;
}

int rlk_ask_remove(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  if (rlk_requests_reserve(&l->requests, 1) != 0 ||
      rlk_command_remove(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  add(l, before,
      (struct rlk_request){
          .ask = &rlk_row_remove, .claim = lock->op.probe, .round = lock->round.number, .sent_ns = now});
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

#include "asking.h"

#include "claim.h"

#define MS RL_NS_PER_MS

static inline void add(struct rl_line *l, size_t before, struct rl_request request)
{
  rl_request_add(l, before, request);
  request.claim->in_flight++;
}

/* No node has the token after that, whenever it executes the request. */
static int64_t gone_by_ns(const struct rl_terms *terms, int64_t now)
{
  return now + 2 * terms->ttl_ms * MS - terms->lease_ns;
}

int rl_ask_set(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->claim;
  size_t before = rl_buffer_size(&l->out);
  if (rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_set(&l->out, claim->key->bulk, claim->key->bulk_size, claim->token, &lock->ttl_text) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_SET, .claim = claim, .round = lock->round, .sent_ns = now,
                                      .lease_ns = lock->asked.lease_ns});
  rl_claim_may_be_at(claim, n->index, gone_by_ns(&lock->asked, now));
  claim->node[n->index].flags |= RL_SET_OWED;
  return 0;
}

int rl_ask_hint(struct rl_node *n, struct rl_claim *claim, uint32_t round, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out);
  if (rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_pttl(&l->out, claim->key->bulk, claim->key->bulk_size) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_HINT, .claim = claim, .round = round, .sent_ns = now});
  return 0;
}

int rl_ask_delete(struct rl_node *n, struct rl_claim *claim, int whole, uint32_t round, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out);
  if (l->requests.count >= RL_REQUESTS_MAX || rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_release(&l->out, whole, claim->key->bulk, claim->key->bulk_size, rl_claim_token(claim),
                         claim->token_size) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_DELETE, .claim = claim, .round = round, .sent_ns = now});
  claim->node[n->index].flags |= RL_DELETE_OWED;
  return 0;
}

static int ask_extend(struct rl_node *n, redlock_lock *lock, enum rl_request_kind kind, int whole, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->claim;
  size_t before = rl_buffer_size(&l->out);
  if (rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_extend_begin(&l->out, whole, 1, claim->key->bulk_size + claim->token_size) != 0)
    return -1;
  rl_command_extend_key(&l->out, claim->key->bulk, claim->key->bulk_size);
  rl_command_extend_ttl(&l->out, lock->asked.ttl_ms);
  rl_command_extend_token(&l->out, rl_claim_token(claim), claim->token_size);
  add(l, before, (struct rl_request){.kind = kind, .claim = claim, .round = lock->round, .sent_ns = now,
                                      .lease_ns = lock->asked.lease_ns});
  rl_claim_may_be_at(claim, n->index, gone_by_ns(&lock->asked, now));
  return 0;
}

int rl_ask_extend(struct rl_node *n, redlock_lock *lock, int whole, int64_t now)
{
  return ask_extend(n, lock, RL_REQUEST_EXTEND, whole, now);
}

int rl_ask_confirm(struct rl_node *n, redlock_lock *lock, int whole, int64_t now)
{
  return ask_extend(n, lock, RL_REQUEST_CONFIRM, whole, now);
}

int rl_ask_expire(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->claim;
  struct rl_claim_node *at = &claim->node[n->index];
  size_t before = rl_buffer_size(&l->out);
  int64_t end_ns = now + lock->asked.lease_ns;
  if (rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_expire(&l->out, claim->key->bulk, claim->key->bulk_size, rl_claim_token(claim), claim->token_size,
                        lock->asked.ttl_ms) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_EXPIRE, .claim = claim, .round = lock->round,
                                      .sent_ns = now, .lease_ns = lock->asked.lease_ns});
  rl_claim_may_be_at(claim, n->index, gone_by_ns(&lock->asked, now));
  if (!at->shortenings || end_ns < at->cap_ns)
    at->cap_ns = end_ns;
  at->shortenings++;
  if (at->e_ns > at->cap_ns)
    at->e_ns = at->cap_ns;
  return 0;
}

int rl_ask_renewal(struct rl_node *n, struct rl_batch *batch, int whole, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out), size = 0;
  for (int i = 0; i < batch->count; i++)
    size += batch->claim[i]->key->bulk_size + batch->claim[i]->token_size;
  if (rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_extend_begin(&l->out, whole, batch->count, size) != 0)
    return -1;
  for (int i = 0; i < batch->count; i++)
    rl_command_extend_key(&l->out, batch->claim[i]->key->bulk, batch->claim[i]->key->bulk_size);
  rl_command_extend_ttl(&l->out, batch->terms.ttl_ms);
  for (int i = 0; i < batch->count; i++) {
    rl_command_extend_token(&l->out, rl_claim_token(batch->claim[i]), batch->claim[i]->token_size);
    rl_claim_may_be_at(batch->claim[i], n->index, gone_by_ns(&batch->terms, now));
  }
  rl_request_add(l, before, (struct rl_request){.kind = RL_REQUEST_RENEW, .batch = batch, .sent_ns = now,
                                                 .count = (uint32_t)batch->count,
                                                 .lease_ns = batch->terms.lease_ns});
  batch->users++;
  return 0;
}

int rl_ask_inspect(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->probe;
  size_t before = rl_buffer_size(&l->out);
  if (rl_requests_reserve(&l->requests, 2) != 0 ||
      rl_command_peek(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_VALUE, .claim = claim, .round = lock->round, .sent_ns = now});
  before = rl_buffer_size(&l->out);
  if (rl_command_pttl(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_TTL, .claim = claim, .round = lock->round, .sent_ns = now});
  return 0;
}

int rl_ask_remove(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out);
  if (rl_requests_reserve(&l->requests, 1) != 0 ||
      rl_command_remove(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  add(l, before, (struct rl_request){.kind = RL_REQUEST_REMOVE, .claim = lock->probe, .round = lock->round,
                                      .sent_ns = now});
  return 0;
}

void rl_ask_not(struct rl_node *n, struct rl_claim *claim)
{
  int is_set;
  claim->in_flight -= rl_requests_unsend(n->line, claim, &is_set);
  if (!is_set)
    return;
  claim->node[n->index].flags &= (uint8_t)~RL_SET_OWED;
  rl_claim_cleared(rl_engine_of(n->net), claim, n->index);
}

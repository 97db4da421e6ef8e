/* Asking a node: commands are queued together with the note of what is owed for them, in the order of the replies. */
#include <stdlib.h>

#include "../base/mutant.h"
#include "../lock/claim.h"
#include "../lock/lock.h"
#include "../lock/renewal.h"
#include "node.h"

#define MS RL_NS_PER_MS

/* How long an answer of this node is waited for: a few of its round trips (rule A.2). */
int64_t rl_node_patience_ns(const struct rl_node *n, const struct rl_terms *terms)
{
  int64_t patience_ns = 4 * n->rtt_ns;
  if (patience_ns < terms->patience_min_ns)
    patience_ns = terms->patience_min_ns;
  return patience_ns < terms->patience_max_ns ? patience_ns : terms->patience_max_ns;
}

int rl_node_is_late(const struct rl_node *n, int64_t node_timeout_ns, int64_t now)
{
  const struct rl_line *l = n->line;
  return l->owed_count > 0 && now - l->owed[l->owed_first].sent_ns > node_timeout_ns;
}

int rl_node_can_ask(struct rl_node *n, int64_t node_timeout_ns, int64_t now)
{
  int limit = RL_OWED_MAX;
  if (n->state == RL_NODE_RESOLVING || n->state == RL_NODE_CONNECTING || n->state == RL_NODE_SETUP)
    return n->failures == 0 ? RL_WAITING : RL_RETRYING;
  if (n->refused && n->state != RL_NODE_READY)
    return RL_REFUSED;
  if (n->state != RL_NODE_READY)
    return RL_DOWN;
  if (n->silent_ns) /* nothing more is put on its pile; who speaks first is asked */
    return n->second && n->second_failures == 0 ? RL_WAITING : RL_DOWN;
  if (now < n->busy_until_ns)
    return RL_ERROR;
  if (rl_node_is_late(n, node_timeout_ns, now))
    limit = RL_OWED_LATE_MAX;
  return n->line->owed_count < (uint32_t)limit ? RL_ASKED : RL_OVERLOADED;
}

static int reserve_owed(struct rl_line *l, uint32_t more)
{
  uint32_t size = l->owed_size ? l->owed_size : 32;
  struct rl_owed *owed;
  if (l->owed_count + more <= l->owed_size)
    return 0;
  while (size < l->owed_count + more)
    size *= 2;
  owed = malloc(size * sizeof *owed);
  if (!owed)
    return -1;
  for (uint32_t i = 0; i < l->owed_count; i++)
    owed[i] = l->owed[(l->owed_first + i) & (l->owed_size - 1)];
  free(l->owed);
  l->owed = owed;
  l->owed_size = size;
  l->owed_first = 0;
  return 0;
}

static void mark_dirty(struct rl_node *n)
{
  if (n->dirty)
    return;
  n->dirty = 1;
  n->next_dirty = n->net->dirty_nodes;
  n->net->dirty_nodes = n;
}

/* Notes what the command that was just appended (all bytes since `before`) is owed. Room was reserved. */
static void owe(struct rl_line *l, size_t before, const struct rl_owed *details)
{
  struct rl_owed *o = &l->owed[(l->owed_first + l->owed_count++) & (l->owed_size - 1)];
  *o = *details;
  o->size = (uint32_t)(rl_buffer_size(&l->out) - before);
  o->position = l->queued;
  l->queued += o->size;
  l->node->net->commands++;
  if (o->claim)
    o->claim->owed++;
  if (o->batch)
    o->batch->users++;
  mark_dirty(l->node);
}

int rl_line_owe(struct rl_line *l, enum rl_owed_kind kind, size_t before, const struct rl_owed *details)
{
  struct rl_owed plain = {.kind = kind};
  if (reserve_owed(l, 1) != 0)
    return -1;
  owe(l, before, details ? details : &plain);
  return 0;
}

void rl_node_may_hold(struct rl_node *n, struct rl_claim *claim, int64_t until_ns)
{
  struct rl_claim_node *at = &claim->node[n->index];
  if (!(at->flags & RL_MAY_HOLD))
    claim->holders++;
  at->flags |= RL_MAY_HOLD;
  if (until_ns > claim->until_ns)
    claim->until_ns = until_ns;
}

static int64_t gone_by_ns(const struct rl_terms *terms, int64_t now)
{
  return now + 2 * terms->ttl_ms * MS - terms->lease_ns;
}

int rl_node_send_set(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->claim;
  size_t before = rl_buffer_size(&l->out);
  if (reserve_owed(l, 1) != 0 ||
      rl_command_set(&l->out, claim->key->bulk, claim->key->bulk_size, claim->token, &lock->ttl_text) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_SET, .claim = claim, .round = lock->round, .sent_ns = now,
                                   .lease_ns = lock->asked.lease_ns});
  rl_node_may_hold(n, claim, gone_by_ns(&lock->asked, now));
  claim->node[n->index].flags |= RL_SET_OWED;
  return 0;
}

int rl_node_send_hint(struct rl_node *n, struct rl_claim *claim, uint32_t round, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out);
  if (reserve_owed(l, 1) != 0 || rl_command_pttl(&l->out, claim->key->bulk, claim->key->bulk_size) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_HINT, .claim = claim, .round = round, .sent_ns = now});
  return 0;
}

int rl_node_send_delete(struct rl_node *n, struct rl_claim *claim, int whole, uint32_t round, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out);
  if (l->owed_count >= RL_OWED_MAX || reserve_owed(l, 1) != 0 ||
      rl_command_release(&l->out, whole, claim->key->bulk, claim->key->bulk_size, rl_claim_token(claim),
                         claim->token_size) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_DELETE, .claim = claim, .round = round, .sent_ns = now});
  claim->node[n->index].flags |= RL_DELETE_OWED;
  return 0;
}

static int send_extend(struct rl_node *n, redlock_lock *lock, enum rl_owed_kind kind, int whole, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->claim;
  size_t before = rl_buffer_size(&l->out);
  if (reserve_owed(l, 1) != 0 ||
      rl_command_extend_begin(&l->out, whole, 1, claim->key->bulk_size + claim->token_size) != 0)
    return -1;
  rl_command_extend_key(&l->out, claim->key->bulk, claim->key->bulk_size);
  rl_command_extend_ttl(&l->out, lock->asked.ttl_ms);
  rl_command_extend_token(&l->out, rl_claim_token(claim), claim->token_size);
  owe(l, before, &(struct rl_owed){.kind = kind, .claim = claim, .round = lock->round, .sent_ns = now,
                                   .lease_ns = lock->asked.lease_ns});
  rl_node_may_hold(n, claim, gone_by_ns(&lock->asked, now));
  return 0;
}

int rl_node_send_extend(struct rl_node *n, redlock_lock *lock, int whole, int64_t now)
{
  return send_extend(n, lock, RL_OWED_EXTEND, whole, now);
}

int rl_node_send_confirm(struct rl_node *n, redlock_lock *lock, int whole, int64_t now)
{
  return send_extend(n, lock, RL_OWED_CONFIRM, whole, now);
}

int rl_node_send_expire(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->claim;
  struct rl_claim_node *at = &claim->node[n->index];
  size_t before = rl_buffer_size(&l->out);
  int64_t end_ns = now + lock->asked.lease_ns;
  if (reserve_owed(l, 1) != 0 || rl_command_expire(&l->out, claim->key->bulk, claim->key->bulk_size,
                                                   rl_claim_token(claim), claim->token_size, lock->asked.ttl_ms) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_EXPIRE, .claim = claim, .round = lock->round, .sent_ns = now,
                                   .lease_ns = lock->asked.lease_ns});
  rl_node_may_hold(n, claim, gone_by_ns(&lock->asked, now));
  if (!at->shortenings || end_ns < at->cap_ns)
    at->cap_ns = end_ns;
  at->shortenings++;
  if (at->e_ns > at->cap_ns)
    at->e_ns = at->cap_ns;
  return 0;
}

int rl_node_send_remove(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out);
  if (reserve_owed(l, 1) != 0 || rl_command_remove(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_REMOVE, .claim = lock->probe, .round = lock->round, .sent_ns = now});
  return 0;
}

int rl_node_send_renewal(struct rl_node *n, struct rl_batch *batch, int whole, int64_t now)
{
  struct rl_line *l = n->line;
  size_t before = rl_buffer_size(&l->out), size = 0;
  for (int i = 0; i < batch->count; i++)
    size += batch->claim[i]->key->bulk_size + batch->claim[i]->token_size;
  if (reserve_owed(l, 1) != 0 || rl_command_extend_begin(&l->out, whole, batch->count, size) != 0)
    return -1;
  for (int i = 0; i < batch->count; i++)
    rl_command_extend_key(&l->out, batch->claim[i]->key->bulk, batch->claim[i]->key->bulk_size);
  rl_command_extend_ttl(&l->out, batch->terms.ttl_ms);
  for (int i = 0; i < batch->count; i++) {
    rl_command_extend_token(&l->out, rl_claim_token(batch->claim[i]), batch->claim[i]->token_size);
    rl_node_may_hold(n, batch->claim[i], gone_by_ns(&batch->terms, now));
  }
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_RENEW, .batch = batch, .sent_ns = now,
                                   .lease_ns = batch->terms.lease_ns});
  return 0;
}

int rl_node_send_inspect(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_line *l = n->line;
  struct rl_claim *claim = lock->probe;
  size_t before = rl_buffer_size(&l->out);
  if (reserve_owed(l, 2) != 0 || rl_command_peek(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_VALUE, .claim = claim, .round = lock->round, .sent_ns = now});
  before = rl_buffer_size(&l->out);
  if (rl_command_pttl(&l->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  owe(l, before, &(struct rl_owed){.kind = RL_OWED_TTL, .claim = claim, .round = lock->round, .sent_ns = now});
  return 0;
}

/* Takes the entry at place i of the ring out; those behind it move up. */
static void remove_owed(struct rl_line *l, uint32_t i, uint64_t size)
{
  for (; i + 1 < l->owed_count; i++) {
    struct rl_owed *to = &l->owed[(l->owed_first + i) & (l->owed_size - 1)];
    *to = l->owed[(l->owed_first + i + 1) & (l->owed_size - 1)];
    to->position -= size;
  }
  l->owed_count--;
}

void rl_node_unsend(struct rl_node *n, struct rl_claim *claim)
{
  struct rl_line *l = n->line;
  for (uint32_t i = l->owed_count; i-- > 0;) {
    struct rl_owed o = l->owed[(l->owed_first + i) & (l->owed_size - 1)];
    if (o.position < l->written)
      return;
    if (o.claim != claim || (o.kind != RL_OWED_SET && o.kind != RL_OWED_HINT))
      continue;
    rl_buffer_cut(&l->out, (size_t)(o.position - l->written), o.size);
    l->queued -= o.size;
    remove_owed(l, i, o.size);
    claim->owed--;
    if (o.kind == RL_OWED_SET) {
      claim->node[n->index].flags &= (uint8_t)~RL_SET_OWED;
      rl_claim_cleared(rl_engine_of(n->net), claim, n->index);
    }
  }
}

void rl_node_pay_debts(struct rl_node *n, int64_t now)
{
  n->debts_retry_ns = 0;
  for (struct rl_claim *c = rl_engine_of(n->net)->claims; c; c = c->next) {
    int flags = c->node[n->index].flags;
    int given_up = c->over || RL_MUTANT(DEBT_OF_HELD);
    if (given_up && (flags & RL_MAY_HOLD) && !(flags & (RL_DELETE_OWED | RL_SET_OWED)) && c->until_ns > now &&
        rl_node_send_delete(n, c, n->net->state != RL_NET_OPEN, 0, now) != 0)
      return;
  }
}

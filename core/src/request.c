/* Asking a node: commands are queued together with the note of what is owed for them, in the order of the replies. */
#include <stdlib.h>

#include "core.h"

#define MS RL_NS_PER_MS

int rl_node_is_late(const struct rl_node *n, int64_t node_timeout_ns, int64_t now)
{
  return n->owed_count > 0 && now - n->owed[n->owed_first].sent_ns > node_timeout_ns;
}

int rl_node_can_ask(struct rl_node *n, int64_t node_timeout_ns, int64_t now)
{
  int limit = RL_OWED_MAX;
  if (n->refused && n->state != RL_NODE_READY)
    return RL_REFUSED;
  if (n->state == RL_NODE_RESOLVING || n->state == RL_NODE_CONNECTING || n->state == RL_NODE_SETUP)
    return n->failures == 0 ? RL_WAITING : RL_RETRYING;
  if (n->state != RL_NODE_READY)
    return RL_DOWN;
  if (now < n->busy_until_ns)
    return RL_ERROR;
  if (rl_node_is_late(n, node_timeout_ns, now))
    limit = RL_OWED_LATE_MAX;
  return n->owed_asks < limit ? RL_ASKED : RL_OVERLOADED;
}

static int reserve_owed(struct rl_node *n, uint32_t more)
{
  uint32_t size = n->owed_size ? n->owed_size : 32;
  struct rl_owed *owed;
  if (n->owed_count + more <= n->owed_size)
    return 0;
  while (size < n->owed_count + more)
    size *= 2;
  owed = malloc(size * sizeof *owed);
  if (!owed)
    return -1;
  for (uint32_t i = 0; i < n->owed_count; i++)
    owed[i] = n->owed[(n->owed_first + i) & (n->owed_size - 1)];
  free(n->owed);
  n->owed = owed;
  n->owed_size = size;
  n->owed_first = 0;
  return 0;
}

static void mark_dirty(struct rl_node *n)
{
  if (n->dirty)
    return;
  n->dirty = 1;
  n->next_dirty = n->client->dirty_nodes;
  n->client->dirty_nodes = n;
}

/* Notes what the command that was just appended (all bytes since `before`) is owed. Room was reserved. */
static void owe(struct rl_node *n, size_t before, const struct rl_owed *details)
{
  struct rl_owed *o = &n->owed[(n->owed_first + n->owed_count++) & (n->owed_size - 1)];
  *o = *details;
  o->size = (uint32_t)(rl_buffer_size(&n->out) - before);
  o->position = n->queued;
  n->queued += o->size;
  if (o->claim)
    o->claim->owed++;
  if (o->batch)
    o->batch->users++;
  n->owed_asks += o->kind == RL_OWED_SET || o->kind == RL_OWED_EXTEND || o->kind == RL_OWED_RENEW;
  mark_dirty(n);
}

int rl_node_owe(struct rl_node *n, enum rl_owed_kind kind, size_t before, const struct rl_owed *details)
{
  struct rl_owed plain = {.kind = kind};
  if (reserve_owed(n, 1) != 0)
    return -1;
  owe(n, before, details ? details : &plain);
  return 0;
}

static void may_hold(struct rl_node *n, struct rl_claim *claim, int64_t until_ns)
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
  struct rl_claim *claim = lock->claim;
  size_t before = rl_buffer_size(&n->out);
  if (reserve_owed(n, 1) != 0 ||
      rl_command_set(&n->out, claim->key->bulk, claim->key->bulk_size, claim->token, lock->asked.ttl_ms) != 0)
    return -1;
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_SET, .claim = claim, .round = lock->round, .sent_ns = now,
                                   .lease_ns = lock->asked.lease_ns});
  may_hold(n, claim, gone_by_ns(&lock->asked, now));
  claim->node[n->index].flags |= RL_SET_OWED;
  return 0;
}

int rl_node_send_hint(struct rl_node *n, struct rl_claim *claim, uint32_t round, int64_t now)
{
  size_t before = rl_buffer_size(&n->out);
  if (reserve_owed(n, 1) != 0 || rl_command_pttl(&n->out, claim->key->bulk, claim->key->bulk_size) != 0)
    return -1;
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_HINT, .claim = claim, .round = round, .sent_ns = now});
  return 0;
}

int rl_node_send_delete(struct rl_node *n, struct rl_claim *claim, int whole, uint32_t round, int64_t now)
{
  size_t before = rl_buffer_size(&n->out);
  if (reserve_owed(n, 1) != 0 ||
      rl_command_release(&n->out, whole, claim->key->bulk, claim->key->bulk_size, claim->token) != 0)
    return -1;
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_DELETE, .claim = claim, .round = round, .sent_ns = now});
  claim->node[n->index].flags |= RL_DELETE_OWED;
  return 0;
}

int rl_node_send_extend(struct rl_node *n, redlock_lock *lock, int whole, int64_t now)
{
  struct rl_claim *claim = lock->claim;
  size_t before = rl_buffer_size(&n->out);
  if (reserve_owed(n, 1) != 0 || rl_command_extend_begin(&n->out, whole, 1, claim->key->bulk_size) != 0)
    return -1;
  rl_command_extend_key(&n->out, claim->key->bulk, claim->key->bulk_size);
  rl_command_extend_ttl(&n->out, lock->asked.ttl_ms);
  rl_command_extend_token(&n->out, claim->token);
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_EXTEND, .claim = claim, .round = lock->round, .sent_ns = now,
                                   .lease_ns = lock->asked.lease_ns});
  may_hold(n, claim, gone_by_ns(&lock->asked, now));
  return 0;
}

int rl_node_send_renewal(struct rl_node *n, struct rl_batch *batch, int whole, int64_t now)
{
  size_t before = rl_buffer_size(&n->out), keys_size = 0;
  for (int i = 0; i < batch->count; i++)
    keys_size += batch->claim[i]->key->bulk_size;
  if (reserve_owed(n, 1) != 0 || rl_command_extend_begin(&n->out, whole, batch->count, keys_size) != 0)
    return -1;
  for (int i = 0; i < batch->count; i++)
    rl_command_extend_key(&n->out, batch->claim[i]->key->bulk, batch->claim[i]->key->bulk_size);
  rl_command_extend_ttl(&n->out, batch->terms.ttl_ms);
  for (int i = 0; i < batch->count; i++) {
    rl_command_extend_token(&n->out, batch->claim[i]->token);
    may_hold(n, batch->claim[i], gone_by_ns(&batch->terms, now));
  }
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_RENEW, .batch = batch, .sent_ns = now,
                                   .lease_ns = batch->terms.lease_ns});
  return 0;
}

int rl_node_send_inspect(struct rl_node *n, redlock_lock *lock, int64_t now)
{
  struct rl_claim *claim = lock->probe;
  size_t before = rl_buffer_size(&n->out);
  if (reserve_owed(n, 2) != 0 || rl_command_peek(&n->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_VALUE, .claim = claim, .round = lock->round, .sent_ns = now});
  before = rl_buffer_size(&n->out);
  if (rl_command_pttl(&n->out, lock->key->bulk, lock->key->bulk_size) != 0)
    return -1;
  owe(n, before, &(struct rl_owed){.kind = RL_OWED_TTL, .claim = claim, .round = lock->round, .sent_ns = now});
  return 0;
}

/* Takes the entry at place i of the ring out; those behind it move up. */
static void remove_owed(struct rl_node *n, uint32_t i, uint64_t size)
{
  for (; i + 1 < n->owed_count; i++) {
    struct rl_owed *to = &n->owed[(n->owed_first + i) & (n->owed_size - 1)];
    *to = n->owed[(n->owed_first + i + 1) & (n->owed_size - 1)];
    to->position -= size;
  }
  n->owed_count--;
}

void rl_node_unsend(struct rl_node *n, struct rl_claim *claim)
{
  for (uint32_t i = n->owed_count; i-- > 0;) {
    struct rl_owed o = n->owed[(n->owed_first + i) & (n->owed_size - 1)];
    if (o.position < n->written)
      return;
    if (o.claim != claim || (o.kind != RL_OWED_SET && o.kind != RL_OWED_HINT))
      continue;
    rl_buffer_cut(&n->out, (size_t)(o.position - n->written), o.size);
    n->queued -= o.size;
    remove_owed(n, i, o.size);
    claim->owed--;
    if (o.kind == RL_OWED_SET) {
      n->owed_asks--;
      claim->node[n->index].flags &= (uint8_t)~RL_SET_OWED;
      rl_claim_cleared(n->client, claim, n->index);
    }
  }
}

void rl_node_pay_debts(struct rl_node *n, int64_t now)
{
  n->debts_retry_ns = 0;
  for (struct rl_claim *c = n->client->claims; c; c = c->next) {
    int flags = c->node[n->index].flags;
    if (c->over && (flags & RL_MAY_HOLD) && !(flags & (RL_DELETE_OWED | RL_SET_OWED)) && c->until_ns > now &&
        rl_node_send_delete(n, c, n->client->state != RL_CLIENT_OPEN, 0, now) != 0)
      return;
  }
}

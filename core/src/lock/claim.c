/* Keys, and claims on them: one token on N nodes, until no node can hold it any more. Debts are claims that were given
 * up while some node could not be told. */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "asking.h"
#include "claim.h"
#include "lock.h"

#define SPARE_CLAIMS_MAX 1024
#define FRESH_BITS_EVERY 64 /* tokens; asking the kernel each time would cost a system call per lock */

/* ---- key ---- */

struct rl_key *rl_key_new(const char *prefix, const void *resource, size_t size)
{
  struct rl_key *key = malloc(sizeof *key);
  if (!key)
    return NULL;
  key->users = 1;
  key->resource_size = size;
  key->bulk = rl_command_bulk(prefix, resource, size, &key->bulk_size);
  if (key->bulk)
    return key;
  free(key);
  return NULL;
}

void rl_key_drop(struct rl_key *key)
{
  if (!key || --key->users > 0)
    return;
  free(key->bulk);
  free(key);
}

const char *rl_key_resource(const struct rl_key *key)
{
  return key->bulk + key->bulk_size - 2 - key->resource_size;
}

/* ---- claim ---- */

/* Random bits of the process, a count, the time of day in 40 bits and jitter: no two are equal in a process. Nor are
 * they in two that go on from one snapshot, of a machine or a process: those differ in the time at once, and in the
 * random bits a little later. */
static void make_token(struct rl_engine *e, char *token)
{
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[20];
  uint32_t more = (uint32_t)rl_random(&e->net);
  uint64_t count;
  if (++e->token_count % FRESH_BITS_EVERY == 0)
    rl_claims_seed(e);
  count = (e->token_count & 0xffffff) | (uint64_t)e->net.env.platform->wall_ns(e->net.env.context) << 24;
  if (RL_MUTANT(TOKEN_REUSED))
    more = count = e->token_count = 1;
  else if (RL_MUTANT(CHILD_KEEPS_SEED))
    count = e->token_count;
  memcpy(bytes, &e->token_seed, 8);
  memcpy(bytes + 8, &count, 8);
  memcpy(bytes + 16, &more, 4);
  for (int i = 0; i < 20; i++) {
    token[2 * i] = digits[bytes[i] >> 4];
    token[2 * i + 1] = digits[bytes[i] & 15];
  }
}

void rl_claims_seed(struct rl_engine *e)
{
  e->token_seed = rl_net_seed(&e->net);
  e->token_count = 0;
}

static struct rl_claim *take_spare(struct rl_engine *e)
{
  struct rl_claim *claim = e->spare_claims;
  if (!claim)
    return malloc(sizeof *claim + (size_t)e->net.node_count * sizeof claim->node[0]);
  e->spare_claims = claim->next;
  e->spare_count--;
  return claim;
}

struct rl_claim *rl_claim_new(redlock_lock *lock)
{
  struct rl_engine *e = lock->engine;
  struct rl_claim *claim = take_spare(e);
  if (!claim)
    return NULL;
  memset(claim, 0, sizeof *claim + (size_t)e->net.node_count * sizeof claim->node[0]);
  claim->lock = lock;
  claim->key = lock->key;
  claim->key->users++;
  make_token(e, claim->token);
  claim->token_size = RL_TOKEN_SIZE;
  claim->previous = e->last_claim;
  if (e->last_claim)
    e->last_claim->next = claim;
  else
    e->claims = claim;
  e->last_claim = claim;
  return claim;
}

int rl_claim_take_token(struct rl_claim *claim, const char *token, size_t size)
{
  claim->token_size = size;
  if (size == RL_TOKEN_SIZE) {
    memcpy(claim->token, token, size);
    return 0;
  }
  claim->foreign = malloc(size);
  if (!claim->foreign)
    return -1;
  memcpy(claim->foreign, token, size);
  return 0;
}

const char *rl_claim_token(const struct rl_claim *claim)
{
  return claim->foreign ? claim->foreign : claim->token;
}

void rl_claim_free(struct rl_engine *e, struct rl_claim *claim)
{
  if (claim->previous)
    claim->previous->next = claim->next;
  else
    e->claims = claim->next;
  if (claim->next)
    claim->next->previous = claim->previous;
  else
    e->last_claim = claim->previous;
  rl_key_drop(claim->key);
  free(claim->foreign);
  if (e->spare_count >= SPARE_CLAIMS_MAX) {
    free(claim);
    return;
  }
  claim->next = e->spare_claims;
  e->spare_claims = claim;
  e->spare_count++;
}

void rl_claim_cleared(struct rl_engine *e, struct rl_claim *claim, int node)
{
  if (!(claim->node[node].flags & RL_MAY_HOLD))
    return;
  claim->node[node].flags &= (uint8_t)~RL_MAY_HOLD;
  if (--claim->holders == 0 && claim->over)
    e->debts--;
}

void rl_claim_forget(struct rl_engine *e, struct rl_claim *claim)
{
  for (int i = 0; i < e->net.node_count; i++) {
    rl_claim_cleared(e, claim, i);
    claim->node[i].e_ns = 0;
  }
}

/* Deletes go on the connection that the SET went on, behind it (rule A.4.2). */
static int can_delete_now(const struct rl_node *n, int flags)
{
  return n->state == RL_NODE_READY || (n->state == RL_NODE_SETUP && (flags & RL_SET_OWED));
}

void rl_claim_give_up(struct rl_engine *e, struct rl_claim *claim, int whole, uint32_t round, int64_t now)
{
  int strict = claim->lock && RL_INT(&claim->lock->options, STRICT_RELEASE);
  if (!claim->over && claim->holders > 0)
    e->debts++;
  claim->over = 1;
  for (int i = 0; i < e->net.node_count; i++) {
    struct rl_node *n = &e->net.nodes[i];
    if ((claim->node[i].flags & RL_SET_OWED) && rl_buffer_size(&n->line->out) > 0)
      rl_ask_not(n, claim);
    int flags = claim->node[i].flags;
    int wanted = (flags & RL_MAY_HOLD) || (strict && (flags & RL_SAID_BUSY));
    claim->node[i].e_ns = 0;
    if (wanted && !(flags & RL_DELETE_OWED) && can_delete_now(n, flags) &&
        rl_ask_delete(n, claim, whole, round, now) != 0)
      rl_node_retry_deletes(n, RL_PAUSE_NS, now);
  }
  if (e->debts > RL_DEBTS_MAX)
    rl_claims_expire(e, now);
}

void rl_claims_pay(struct rl_engine *e, struct rl_node *n, int64_t now)
{
  for (struct rl_claim *claim = e->claims; claim; claim = claim->next) {
    int flags = claim->node[n->index].flags;
    int given_up = claim->over || RL_MUTANT(DEBT_OF_HELD);
    if (given_up && (flags & RL_MAY_HOLD) && !(flags & (RL_DELETE_OWED | RL_SET_OWED)) && claim->until_ns > now &&
        rl_ask_delete(n, claim, n->net->state != RL_NET_OPEN, 0, now) != 0)
      return;
  }
}

void rl_claims_note_leases(struct rl_engine *e)
{
  struct rl_net *net = &e->net;
  for (int i = 0; i < net->node_count; i++)
    net->nodes[i].leases_until_ns = 0;
  for (const struct rl_claim *claim = e->claims; claim; claim = claim->next)
    for (int i = 0; i < net->node_count && !claim->over; i++)
      if (claim->node[i].e_ns > net->nodes[i].leases_until_ns)
        net->nodes[i].leases_until_ns = claim->node[i].e_ns;
}

static struct rl_claim *oldest_debt(struct rl_engine *e)
{
  struct rl_claim *claim = e->claims;
  while (claim && !(claim->over && claim->holders))
    claim = claim->next;
  return claim;
}

/* Forgets debts whose keys have ended by their TTL, and the oldest if there are too many. */
void rl_claims_expire(struct rl_engine *e, int64_t now)
{
  struct rl_claim *next;
  e->expired_ns = now;
  for (struct rl_claim *claim = e->claims; claim; claim = next) {
    next = claim->next;
    if ((claim->lock && !claim->over) || !claim->holders || claim->until_ns > now)
      continue;
    rl_claim_forget(e, claim);
    rl_claim_settle(e, claim);
  }
  while (e->debts > RL_DEBTS_MAX) {
    struct rl_claim *claim = oldest_debt(e);
    if (!claim)
      return;
    rl_claim_forget(e, claim);
    rl_claim_settle(e, claim);
  }
}

/* In a child: the parent's tokens are none of its business. */
void rl_claims_forked(struct rl_engine *e)
{
  struct rl_claim *next;
  for (struct rl_claim *claim = e->claims; claim; claim = next) {
    next = claim->next;
    rl_claim_forget(e, claim);
    for (int i = 0; i < e->net.node_count; i++)
      claim->node[i] = (struct rl_claim_node){0};
    rl_claim_settle(e, claim);
  }
}

void rl_claims_free(struct rl_engine *e)
{
  struct rl_claim *next;
  for (struct rl_claim *claim = e->claims; claim; claim = next) {
    next = claim->next;
    claim->in_flight = claim->holders = 0;
    claim->lock = NULL;
    rl_claim_settle(e, claim);
  }
  for (struct rl_claim *claim = e->spare_claims; claim; claim = next) {
    next = claim->next;
    free(claim);
  }
  e->spare_claims = NULL;
  e->spare_count = e->debts = 0;
}

void rl_claim_let_go(struct rl_engine *e, struct rl_claim **claim)
{
  struct rl_claim *gone = *claim;
  if (!gone)
    return;
  *claim = NULL;
  gone->lock = NULL;
  rl_claim_settle(e, gone);
}

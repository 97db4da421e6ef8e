/* Keys, and claims on them: one token on N nodes, until no node can hold it any more. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../base/list.h"
#include "../base/mutant.h"
#include "../node/node.h"
#include "claim.h"
#include "lock.h"

#define SPARE_CLAIMS_MAX 1024
#define FRESH_BITS_EVERY 64 /* tokens; asking the kernel each time would cost a system call per lock */

/* ---- key ---- */

struct rlk_key *rlk_key_new(const char *prefix, const void *resource, size_t size)
{
  struct rlk_key *key = malloc(sizeof *key);
  struct rlk_buffer all = {0};
  if (!key || rlk_buffer_reserve(&all, strlen(prefix) + size + 32) != 0) {
    free(key);
    return NULL;
  }
  rlk_bulk_name(&all, prefix, "", resource, size);
  *key = (struct rlk_key){.users = 1,
                          .home = -1,
                          .queue_home = -1,
                          .count = 1,
                          .bulk = all.data,
                          .bulk_size = all.end,
                          .resource_size = size,
                          .all_size = all.end};
  return key;
}

struct rlk_key *rlk_key_join(struct rlk_key *key, struct rlk_key *last)
{
  size_t count = (size_t)key->count + 1;
  struct rlk_key *all = malloc(sizeof *all + count * sizeof all->part[0]);
  struct rlk_buffer bulk = {0};
  if (!all || rlk_buffer_reserve(&bulk, key->all_size + last->all_size) != 0) {
    free(all);
    return NULL;
  }
  rlk_buffer_append(&bulk, key->bulk, key->all_size);
  rlk_buffer_append(&bulk, last->bulk, last->all_size);
  *all = (struct rlk_key){.users = 1,
                          .count = (int)count,
                          .bulk = bulk.data,
                          .bulk_size = key->bulk_size,
                          .resource_size = key->resource_size,
                          .all_size = bulk.end};
  for (int i = 0; i < all->count; i++) {
    all->part[i] = i < key->count ? rlk_key_part(key, i) : last;
    all->part[i]->users++;
  }
  return all;
}

struct rlk_key *rlk_key_for(struct rlk_engine *e, const char *prefix, const void *resource, size_t size)
{
  struct rlk_key *key = e->last_key;
  if (!key || key->resource_size != size || memcmp(rlk_key_resource(key), resource, size) != 0) {
    key = rlk_key_new(prefix, resource, size);
    if (!key)
      return NULL;
    rlk_key_drop(e->last_key);
    e->last_key = key;
  }
  key->users++;
  return key;
}

int rlk_key_has(struct rlk_key *key, const void *resource, size_t size)
{
  for (int i = 0; i < key->count; i++) {
    const struct rlk_key *part = rlk_key_part(key, i);
    if (part->resource_size == size && memcmp(rlk_key_resource(part), resource, size) == 0)
      return 1;
  }
  return 0;
}

int rlk_key_is_same(const struct rlk_key *one, const struct rlk_key *other)
{
  return one == other || (one->all_size == other->all_size && memcmp(one->bulk, other->bulk, one->all_size) == 0);
}

void rlk_key_drop(struct rlk_key *key)
{
  if (!key || --key->users > 0)
    return;
  for (int i = 0; key->count > 1 && i < key->count; i++)
    rlk_key_drop(key->part[i]);
  free(key->bulk);
  free(key->queue.text);
  free(key);
}

const char *rlk_key_resource(const struct rlk_key *key)
{
  return key->bulk + key->bulk_size - 2 - key->resource_size;
}

int rlk_token_permits(const char *bytes, size_t size)
{
  static const char digits[] = "0123456789abcdef";
  const size_t mark = RLK_TOKEN_SIZE - RLK_TOKEN_MARK_SIZE;
  int permits = 1;
  if (size != RLK_TOKEN_SIZE)
    return -1;
  for (size_t i = 0; i < size; i++) {
    const char *digit = bytes[i] ? strchr(digits, bytes[i]) : NULL;
    if (!digit && (i != mark || bytes[i] != 'p'))
      return -1;
    if (i > mark)
      permits += (int)(digit - digits) << 4 * (RLK_TOKEN_SIZE - 1 - i);
  }
  return bytes[mark] == 'p' ? permits : 0;
}

/* ---- slots ---- */

enum { SLOT_NAME_SIZE = 32 };

/* What stands before the resource in the key of a slot above 0; slot 0 has the key of the resource. */
static void slot_name(char name[SLOT_NAME_SIZE], int slot)
{
  struct rlk_text text = rlk_text_in(name, SLOT_NAME_SIZE);
  rlk_text_add(&text, "");
  if (slot > 0)
    rlk_text_format(&text, "libredlock:s:%d:", slot);
}

/* Behind its prefix the key of a slot ends like that of the resource, whose queue and room it has in common. */
int rlk_claim_choose(struct rlk_claim *claim, const char *prefix, int slot)
{
  char name[SLOT_NAME_SIZE], before[SLOT_NAME_SIZE + RLK_PREFIX_SIZE_MAX];
  struct rlk_text text = rlk_text_in(before, sizeof before);
  struct rlk_key *key;
  slot_name(name, slot);
  rlk_text_add(&text, prefix);
  rlk_text_add(&text, name);
  key = slot > 0 ? rlk_key_new(before, rlk_key_resource(claim->key), claim->key->resource_size) : claim->key;
  if (!key)
    return -1;
  if (key != claim->key)
    rlk_key_drop(claim->key);
  claim->key = key;
  claim->slots.chosen = slot + 1;
  return 0;
}

/* ---- claim ---- */

static char *put_digits(char *at, uint64_t value, int count)
{
  for (int i = count; i-- > 0; value >>= 4)
    at[i] = "0123456789abcdef"[value & 15];
  return at + count;
}

/* The number of the client, the time of day, a count and random bits: no two are equal in a process. Nor are any
 * in two processes that go on from one snapshot of a machine or a process: their times differ at once, of which the
 * finer part is mixed into the random bits, and the random bits differ a little later. */
static void make_token(struct rlk_engine *e, char *token)
{
  uint64_t wall_ns = (uint64_t)e->net.env.platform->wall_ns(e->net.env.context), more;
  if (++e->token_count % FRESH_BITS_EVERY == 0)
    e->token_seed = rlk_net_seed(&e->net);
  if (RLK_MUTANT(TOKEN_REUSED) || RLK_MUTANT(CHILD_KEEPS_SEED))
    wall_ns = 0;
  more = rlk_random(&e->net) ^ e->token_seed ^ wall_ns;
  if (RLK_MUTANT(TOKEN_REUSED))
    more = e->token_count = 1;
  token = put_digits(token, e->token_client, RLK_TOKEN_CLIENT_DIGITS);
  token = put_digits(token, wall_ns >> RLK_TOKEN_TIME_SHIFT, RLK_TOKEN_TIME_DIGITS);
  token = put_digits(token, e->token_count, 6);
  put_digits(token, more, 12);
}

void rlk_claims_seed(struct rlk_engine *e)
{
  e->token_client = rlk_net_seed(&e->net);
  e->token_seed = rlk_net_seed(&e->net);
  e->token_count = 0;
}

void rlk_claims_client(const struct rlk_engine *e, char *out)
{
  *put_digits(out, e->token_client, RLK_TOKEN_CLIENT_DIGITS) = 0;
}

size_t rlk_slots_room(const struct rlk_net *net, const struct rlk_key *key, int count)
{
  return (size_t)count * (strlen(RLK_STRING(net, KEY_PREFIX)) + SLOT_NAME_SIZE + key->resource_size + 32);
}

void rlk_put_slots(struct rlk_out *out, const struct rlk_key *key, int count)
{
  const char *prefix = RLK_STRING(out->line->node->net, KEY_PREFIX);
  for (int i = 1; i < count; i++) {
    char name[SLOT_NAME_SIZE];
    slot_name(name, i);
    rlk_bulk_name(&out->line->out, prefix, name, rlk_key_resource(key), key->resource_size);
  }
}

void rlk_claim_mark(struct rlk_claim *claim)
{
  char *mark = claim->token + RLK_TOKEN_SIZE - RLK_TOKEN_MARK_SIZE;
  *mark = 'p';
  put_digits(mark + 1, (uint64_t)claim->slots.count - 1, RLK_TOKEN_MARK_SIZE - 1);
}

static struct rlk_claim *take_spare(struct rlk_engine *e)
{
  struct rlk_claim *claim = e->spare_claims;
  if (!claim)
    return malloc(sizeof *claim + (size_t)e->net.node_count * sizeof claim->node[0]);
  e->spare_claims = claim->next;
  e->spare_count--;
  return claim;
}

struct rlk_claim *rlk_claim_new(redlock_lock *lock)
{
  struct rlk_engine *e = lock->engine;
  struct rlk_claim *claim = take_spare(e);
  if (!claim)
    return NULL;
  memset(claim, 0, sizeof *claim + (size_t)e->net.node_count * sizeof claim->node[0]);
  claim->lock = lock;
  claim->key = lock->key;
  claim->key->users++;
  claim->kind = lock->kind;
  claim->settle_by_ns = RLK_NEVER;
  claim->hands_over = -1;
  make_token(e, claim->token);
  claim->token_size = RLK_TOKEN_SIZE;
  RLK_LIST_APPEND(e->claims, e->last_claim, claim, );
  return claim;
}

int rlk_claim_take_token(struct rlk_claim *claim, const char *token, size_t size)
{
  claim->token_size = size;
  claim->is_adopted = 1;
  if (size == RLK_TOKEN_SIZE) {
    memcpy(claim->token, token, size);
    return 0;
  }
  claim->foreign = malloc(size);
  if (!claim->foreign)
    return -1;
  memcpy(claim->foreign, token, size);
  return 0;
}

const char *rlk_claim_token(const struct rlk_claim *claim)
{
  return claim->foreign ? claim->foreign : claim->token;
}

int rlk_claim_can_share(const struct rlk_claim *claim)
{
  const char *token = rlk_claim_token(claim);
  for (size_t i = 0; i < claim->token_size; i++)
    if (!isxdigit((unsigned char)token[i]))
      return 0;
  return 1;
}

static void list(struct rlk_engine *e, struct rlk_claim *claim)
{
  claim->is_owed = 1;
  RLK_LIST_APPEND(e->owed, e->last_owed, claim, owed.);
  e->owed_count++;
}

static void unlist(struct rlk_engine *e, struct rlk_claim *claim)
{
  claim->is_owed = 0;
  RLK_LIST_REMOVE(e->owed, e->last_owed, claim, owed.);
  e->owed_count--;
}

void rlk_claim_count_debt(struct rlk_engine *e, struct rlk_claim *claim)
{
  int is_owed = 0;
  if (claim->given_up || !claim->lock)
    for (int i = 0; i < e->net.node_count; i++)
      is_owed |= rlk_claim_is_owed_at(claim, i);
  if (is_owed && !claim->is_owed)
    list(e, claim);
  else if (!is_owed && claim->is_owed)
    unlist(e, claim);
}

void rlk_claim_free(struct rlk_engine *e, struct rlk_claim *claim)
{
  RLK_LIST_REMOVE(e->claims, e->last_claim, claim, );
  if (claim->is_owed)
    unlist(e, claim);
  rlk_key_drop(claim->key);
  free(claim->foreign);
  if (e->spare_count >= SPARE_CLAIMS_MAX) {
    free(claim);
    return;
  }
  claim->next = e->spare_claims;
  e->spare_claims = claim;
  e->spare_count++;
}

void rlk_claim_cleared(struct rlk_engine *e, struct rlk_claim *claim, int node)
{
  if (!(claim->node[node].flags & RLK_MAY_HOLD))
    return;
  claim->node[node].flags &= (uint8_t)~RLK_MAY_HOLD;
  if (--claim->holders == 0 && claim->given_up)
    e->pending_deletes--;
}

void rlk_claim_forget(struct rlk_engine *e, struct rlk_claim *claim)
{
  claim->hands_over = -1;
  claim->queues = 0;
  for (int i = 0; i < e->net.node_count; i++) {
    rlk_claim_cleared(e, claim, i);
    claim->node[i].counts_until_ns = 0;
  }
}

void rlk_claims_note_leases(struct rlk_engine *e)
{
  struct rlk_net *net = &e->net;
  for (int i = 0; i < net->node_count; i++)
    net->nodes[i].voter->leases_until_ns = 0;
  for (const struct rlk_claim *claim = e->claims; claim; claim = claim->next)
    for (int i = 0; i < net->node_count && !claim->given_up; i++)
      if (claim->node[i].counts_until_ns > net->nodes[i].voter->leases_until_ns)
        net->nodes[i].voter->leases_until_ns = claim->node[i].counts_until_ns;
}

/* In a child: the parent's tokens are not its own. */
void rlk_claims_forked(struct rlk_engine *e)
{
  struct rlk_claim *next;
  for (struct rlk_claim *claim = e->claims; claim; claim = next) {
    next = claim->next;
    rlk_claim_forget(e, claim);
    for (int i = 0; i < e->net.node_count; i++)
      claim->node[i] = (struct rlk_claim_node){0};
    rlk_claim_settle(e, claim);
  }
}

void rlk_claims_free(struct rlk_engine *e)
{
  struct rlk_claim *next;
  for (struct rlk_claim *claim = e->claims; claim; claim = next) {
    next = claim->next;
    claim->in_flight = claim->holders = 0;
    claim->lock = NULL;
    rlk_claim_settle(e, claim);
  }
  for (struct rlk_claim *claim = e->spare_claims; claim; claim = next) {
    next = claim->next;
    free(claim);
  }
  rlk_key_drop(e->last_key);
  e->spare_claims = NULL;
  e->spare_count = e->pending_deletes = 0;
}

void rlk_claim_let_go(struct rlk_engine *e, struct rlk_claim **claim)
{
  struct rlk_claim *gone = *claim;
  if (!gone)
    return;
  *claim = NULL;
  gone->lock = NULL;
  rlk_claim_settle(e, gone);
}

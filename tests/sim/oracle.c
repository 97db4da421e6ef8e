/* The oracle: it knows true time and every process's own view, and compares the two.
 *
 * A holding lasts from the moment its program saw the lock held until its own clock says that the lease is over, or
 * until the program gave it up. Two holdings of one resource must not meet, neither at the same instant nor by one
 * lying inside what the other claims as an unbroken hold. A paused process holds until its validity ends. */
#include "sim.h"
#include "waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* redlock_lock_validity_ms is cut to whole milliseconds of the process's clock. */
static const int64_t rounding = 3 * MS / 2;

static struct holding *holding_of(const struct slot *slot)
{
  struct world *world = slot->process->world;
  return slot->holding < 0 ? NULL : &world->resources[slot->key].ring[slot->holding];
}

static struct holding *holding_with(struct resource *resource, const char *token)
{
  for (int i = 0; i < HOLDINGS_MAX; i++)
    if (!memcmp(resource->ring[i].token, token, TOKEN_SIZE))
      return &resource->ring[i];
  return NULL;
}

static struct holding *begin_holding(struct slot *slot, const char *token)
{
  struct world *world = slot->process->world;
  struct resource *resource = &world->resources[slot->key];
  do
    slot->holding = (int)(resource->holdings++ % HOLDINGS_MAX);
  while (resource->ring[slot->holding].open); /* of a process that sleeps */
  struct holding *holding = &resource->ring[slot->holding];
  memset(holding, 0, sizeof *holding);
  holding->slot = slot->index;
  holding->open = 1;
  holding->since = world->now;
  memcpy(holding->token, token, TOKEN_SIZE);
  holding->is_shared = slot->is_shared;
  holding->spans = slot->spans;
  for (int i = 0; i < world->key_count; i++)
    if ((slot->spans && i < world->resource_count) || i == slot->key)
      holding->robbed |= backing_was_robbed(world, &world->resources[i], token);
  world->wins++;
  return holding;
}

/* An exclusive hold beside anything, or what it claims as unbroken, on one resource. */
static int exclude(const struct holding *mine, const struct holding *other)
{
  return !(mine->is_shared && other->is_shared);
}

static void check_alone_on(struct world *world, const struct resource *resource, const struct holding *mine, int spans)
{
  uint32_t count = resource->holdings < HOLDINGS_MAX ? resource->holdings : HOLDINGS_MAX;
  for (uint32_t i = 0; i < count; i++) {
    const struct holding *other = &resource->ring[i];
    if (other == mine || (spans && !mine->spans && !other->spans) || !exclude(mine, other))
      continue;
    if (other->until <= mine->since || other->since >= mine->until || other->robbed || mine->robbed)
      continue;
    world_violation(world, "%s: %s is held by lock %d from %.3f to %.3f ms and by lock %d from %.3f to %.3f ms",
                    other->until > world->now ? "overlap" : "interleaving", resource->name, mine->slot,
                    (double)mine->since / MS, (double)mine->until / MS, other->slot, (double)other->since / MS,
                    (double)other->until / MS);
  }
}

static void check_alone(struct world *world, const struct resource *resource, const struct holding *mine)
{
  for (int i = 0; i < world->key_count; i++)
    if (&world->resources[i] == resource)
      check_alone_on(world, resource, mine, 0);
    else if (world->mixed && i < world->resource_count && resource < &world->resources[RESOURCES_MAX])
      check_alone_on(world, &world->resources[i], mine, 1);
}

/* Where keys were lost two may hold (README); then this says whether the holder believes more than it may. */
static void check_backed(const struct slot *slot, struct holding *holding, int64_t until)
{
  struct world *world = slot->process->world;
  int64_t backed_until;
  if (until <= holding->backed_until && holding->backed_changes == world->changes)
    return;
  holding->backed_until = until;
  holding->backed_changes = world->changes;
  backed_until = RLK_NEVER;
  for (int i = 0; i < world->key_count; i++) {
    int is_held = (slot->spans && i < world->resource_count) || i == slot->key;
    int64_t here = is_held ? backing_until(slot->process, i, holding->token) : RLK_NEVER;
    backed_until = here < backed_until ? here : backed_until;
  }
  if (backed_until < until)
    world_violation(world, "unbacked: lock %d is held until %.3f ms, a majority of the keys of %s until %.3f ms",
                    slot->index, (double)until / MS, world->resources[slot->key].name, (double)backed_until / MS);
}

void oracle_rob(struct world *world, int resource, const char *token)
{
  /* a token that was handed over has several */
  for (int r = 0; r < world->key_count; r++)
    for (int i = 0; i < HOLDINGS_MAX && (r == resource || world->mixed); i++) {
      struct holding *holding = &world->resources[r].ring[i];
      holding->robbed |= !memcmp(holding->token, token, TOKEN_SIZE);
    }
}

/* A lease may be cut short only where a node was restarted after it had granted a vote, which may have been before the
 * win, or where its address leads to another server. */
static int node_restarted_since(const struct world *world, int64_t since)
{
  since -= world->last_ttl_ms * MS * 11 / 10;
  if (world->astray_at && world->astray_at >= since)
    return 1;
  for (int i = 0; i < world->node_count; i++)
    if (world->nodes[i].restarted_at >= since)
      return 1;
  return 0;
}

/* A process that reads one more clock takes others for ones that are ahead if that one was set back (C.3.2). */
static int may_distrust(const struct process *process)
{
  const struct world *world = process->world;
  int64_t last = process->started_at;
  int is_behind = 0;
  for (int i = 0; i < world->node_count; i++) {
    is_behind |= world->nodes[i].is_behind;
    last = later(last, later(process->clock_read_at[i], world->nodes[i].restarted_at));
  }
  return is_behind && world->now - last < 2 * world->max_ttl_ms * MS;
}

static int may_end_early(const struct slot *slot, const struct holding *holding)
{
  return slot->shortens || node_restarted_since(slot->process->world, holding->since) || may_distrust(slot->process);
}

static void check_limit(const struct slot *slot, const struct holding *holding, int64_t until)
{
  int64_t most = slot->max_hold_ms * 110 / 100 * MS;
  if (slot->max_hold_ms > 0 && until > holding->first_until + rounding && until - holding->since > most)
    world_violation(slot->process->world, "lock %d is held beyond max_hold_ms", slot->index);
}

/* No more than that hold a resource at this instant, whichever slots they say they have. */
static void check_permits(const struct slot *slot)
{
  struct world *world = slot->process->world;
  int count = 0;
  for (int i = 0; slot->is_permit && i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *other = world_slot(world, (uint32_t)i);
    int uses_it = other->lock && (other->resource == slot->resource || other->spans);
    const struct holding *holding = uses_it ? holding_of(other) : NULL;
    count += holding && !holding->robbed && !holding->is_shared && holding->until > world->now;
  }
  if (count > PERMITS)
    world_violation(world, "permits: %d hold %s, of which there are %d", count, world->resources[slot->resource].name,
                    PERMITS);
}

/* Which of the keys it holds; -1, and a violation: the slot is none. */
static int held_key(const struct slot *slot)
{
  int number = slot->process->world->mixed ? redlock_lock_slot(slot->lock) : -1;
  if (slot->is_permit != (number >= 0) || number >= PERMITS)
    world_violation(slot->process->world, "permits: lock %d holds slot %d", slot->index, number);
  return permit_key(slot->resource, number < PERMITS ? number : 0);
}

static void see_held(struct slot *slot, struct holding *holding, int64_t until)
{
  struct world *world = slot->process->world;
  if (until < holding->until - rounding && !may_end_early(slot, holding))
    world_violation(world, "lock %d lost %.3f ms of its validity without a reason", slot->index,
                    (double)(holding->until - until) / MS);
  if (until < holding->until - rounding || until > holding->until)
    holding->until = until;
  if (!holding->first_until)
    holding->first_until = until;
  check_limit(slot, holding, until);
  check_backed(slot, holding, until);
  check_alone(world, &world->resources[slot->key], holding);
  check_permits(slot);
}

/* It has ended, and was to last until then. */
static void check_end(const struct slot *slot, const struct holding *holding, int64_t until)
{
  struct world *world = slot->process->world;
  int64_t now = world->now + slot->process->lag;
  if (now < until - rounding && !may_end_early(slot, holding))
    world_violation(world, "lock %d ended %.3f ms early without a reason", slot->index, (double)(until - now) / MS);
}

/* Four tenths of a lease are left when it is renewed: a round trip, with a timer that is late, has to fit into that. */
static int has_time_to_renew(const struct slot *slot)
{
  return slot->renewed_ms * MS >= 10 * slot->process->world->faults.delay_max;
}

static void see_not_held(struct slot *slot, struct holding *holding)
{
  struct world *world = slot->process->world;
  check_end(slot, holding, holding->until);
  if (world->faultless && slot->temper == TEMPER_RENEW && !slot->shortens && has_time_to_renew(slot))
    world_violation(world, "lock %d was renewed and lapsed although nothing broke", slot->index);
  TRACE(world, "process %d lock %d: lapsed", slot->process->index, slot->index);
  world->longest_hold = later(world->longest_hold, world->now - holding->since);
  if (holding->until > world->now)
    holding->until = world->now;
  holding->open = 0;
  slot->holding = -1;
}

/* By the clocks of a majority, or nearly: numbers are drawn a little ahead of them. */
static int is_reached(const struct world *world, int64_t fence)
{
  int nodes = 0;
  for (int i = 0; i < world->node_count; i++)
    nodes += server_clock_ms(world, &world->nodes[i]) * 1000 + DAY / 24000 >= fence;
  return nodes > world->node_count / 2;
}

/* Of two holders the later one has the larger number, whatever happened between them; one whose keys were deleted by
 * hand while it was stopped may find only later that it has won. */
static void check_fence(const struct slot *slot, const struct holding *holding)
{
  struct world *world = slot->process->world;
  struct resource *resource = &world->resources[slot->resource];
  int64_t fence = redlock_lock_fence(slot->lock);
  if (holding->robbed && fence > 0 && fence < resource->fence)
    return;
  if (fence <= resource->fence)
    world_violation(world, "fence: lock %d holds %s with the number %lld after %lld", slot->index, resource->name,
                    (long long)fence, (long long)resource->fence);
  if (!is_reached(world, fence - DAY / 1000))
    world_violation(world, "fence: lock %d holds %s with the number %lld, which no clock can reach", slot->index,
                    resource->name, (long long)fence);
  resource->fence = fence;
}

void oracle_observe(struct slot *slot)
{
  struct process *process = slot->process;
  struct world *world = process->world;
  struct holding *holding;
  char token[TOKEN_SIZE + 1] = "";
  int held = redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD;
  int64_t validity_ms = held ? redlock_lock_validity_ms(slot->lock) : 0;
  int key = held && slot->holding < 0 ? held_key(slot) : slot->key;
  if (held && slot->holding < 0)
    redlock_lock_token(slot->lock, token, sizeof token);
  if (process->leaving)
    return; /* another thread has begun to give it back meanwhile */
  holding = holding_of(slot);
  if (!held) {
    if (holding)
      see_not_held(slot, holding);
    return;
  }
  if (!holding) {
    slot->key = key;
    holding = holding_with(&world->resources[key], token);
    if (holding && !holding->detached)
      world_violation(world, "lock %d came back after it had ended", slot->index);
    int is_adopted = holding != NULL;
    holding = begin_holding(slot, token);
    if (world->fenced && !is_adopted && !slot->is_shared && !slot->spans && !slot->is_permit && !slot->is_hash)
      check_fence(slot, holding);
    slot->shortens = 0;
    holding->until = holding->since;
    TRACE(world, "process %d lock %d: holds %s for %d ms", process->index, slot->index,
          world->resources[slot->key].name, (int)validity_ms);
  }
  see_held(slot, holding, process_true_time(process, process_clock(process) + validity_ms * MS));
}

/* The holding that ends, NULL if there is none. */
struct holding *oracle_give_up(struct slot *slot)
{
  struct world *world = slot->process->world;
  struct holding *holding = holding_of(slot);
  if (!holding)
    return NULL;
  world->longest_hold = later(world->longest_hold, world->now - holding->since);
  holding->given_up_at = world->now;
  holding->promised_until = holding->until;
  holding->open = 0;
  if (holding->until > world->now)
    holding->until = world->now;
  slot->holding = -1;
  return holding;
}

/* The call that was to give it back has found it lost. */
void oracle_lost_in_call(const struct slot *slot, const struct holding *given_up)
{
  if (given_up)
    check_end(slot, given_up, given_up->promised_until);
}

/* Whoever held at the call is told otherwise only where a server has lost the key. */
void oracle_released(struct slot *slot, int status)
{
  struct world *world = slot->process->world;
  const struct resource *resource = &world->resources[slot->key];
  int astray = world->faults.astray || world->twin >= 0; /* a delete may go to another server, or to one twice */
  int was_lost = backing_was_lost(resource, slot->released);
  for (int i = 0; slot->spans && i < world->resource_count; i++)
    was_lost |= backing_was_lost(&world->resources[i], slot->released);
  if (status == REDLOCK_LOST && slot->released[0] && !astray && !was_lost)
    world_violation(world, "lock %d was held when its release began, which says that it was lost", slot->index);
  slot->released[0] = 0;
}

/* Others may share it from now on. */
void oracle_share_hold(struct slot *slot)
{
  struct holding *holding = holding_of(slot);
  if (holding)
    holding->is_shared = 1;
}

void oracle_detach(struct slot *slot)
{
  struct holding *holding = holding_of(slot);
  oracle_give_up(slot);
  if (!holding)
    return;
  holding->detached = 1;
  holding->given_up_at = 0;
}

/* ---- residue ---- */

static int flows_freely(const struct world *world, const struct connection *connection)
{
  return connection && connection->client_open && !connection->dropped && !connection->stalled &&
         connection->up.head == connection->up.end && connection->process->client && !connection->process->asleep &&
         (!connection->process->running || connection->process->calls) && !world->nodes[connection->node].asleep;
}

/* One of several resources is noted with one of them. */
static const struct holding *holding_of_token(struct world *world, int resource, const char *token)
{
  const struct holding *holding = holding_with(&world->resources[resource], token);
  for (int i = 0; !holding && world->mixed && i < world->key_count; i++)
    holding = holding_with(&world->resources[i], token);
  return holding;
}

/* The moment from which nothing excuses that the key is still there, RLK_NEVER while something does. */
static int64_t due_at(struct world *world, const struct node *node, int resource)
{
  const struct key *key = &node->keys[resource];
  const struct connection *connection = connection_of(world, key->connection, key->serial);
  const struct holding *holding = holding_of_token(world, resource, key->token);
  int64_t due = later(key->read_at, node->trouble_at);
  int64_t grace = (world->node_timeout_ms + world->connect_timeout_ms + 20) * MS;
  if (!flows_freely(world, connection) || !key->read_at || node->restarted_at >= key->set_at)
    return RLK_NEVER;
  if (holding && !holding->given_up_at)
    return RLK_NEVER;
  due = later(due, connection->trouble_at);
  due = later(due, later(connection->process->woke_at, connection->process->stolen_until));
  if (holding)
    due = later(due, holding->given_up_at);
  if (node->trouble_at >= key->set_at)
    grace += 200 * MS; /* a refused delete is tried again after a pause */
  return due + grace;
}

/* A key that ends by its TTL although everything worked was left behind. */
void oracle_expired(struct world *world, struct node *node, int resource)
{
  const struct key *key = &node->keys[resource];
  int64_t expired_at = world->now - (server_clock_ms(world, node) - key->expire_ms) * MS;
  if (due_at(world, node, resource) < expired_at)
    world_violation(world, "residue: the key of %s with token %s was never deleted on node %d",
                    world->resources[resource].name, key->token, node->index);
}

static int is_held(struct world *world, int resource, const char *token)
{
  const struct holding *holding = holding_of_token(world, resource, token);
  return holding && !holding->given_up_at;
}

/* All is quiet: every reply was read, nothing is on its way, and no program holds a lock or wants one. */
void oracle_quiet(struct world *world)
{
  for (int i = 0; i < world->node_count; i++)
    for (int r = 0; r < world->key_count; r++) {
      struct node *node = &world->nodes[i];
      server_expire(world, node, r);
      const struct key *key = &node->keys[r];
      const struct connection *connection = connection_of(world, key->connection, key->serial);
      if (key->live && !key->reader_count && !is_held(world, r, key->token) && flows_freely(world, connection) &&
          node->trouble_at < key->set_at && node->restarted_at < key->set_at)
        world_violation(world, "residue: token %s of %s remains on node %d when all is quiet", key->token,
                        world->resources[r].name, i);
    }
}

/* ---- attempts: each has a token of its own ---- */

static uint64_t mark_of(const char *token)
{
  uint64_t mark = 0, part;
  for (int i = 0; i < TOKEN_SIZE; i += 8) {
    memcpy(&part, token + i, 8);
    mark = (mark ^ part) * UINT64_C(0x9E3779B97F4A7C15);
    mark ^= mark >> 29;
  }
  return mark | 1;
}

/* Where it is, or would be. */
static uint64_t place_of(const struct tokens *tokens, uint64_t mark)
{
  uint64_t at = mark & tokens->mask;
  while (tokens->marks[at] && tokens->marks[at] != mark)
    at = (at + 1) & tokens->mask;
  return at;
}

static void resize(struct tokens *tokens, uint64_t size)
{
  struct tokens old = *tokens;
  tokens->mask = size - 1;
  tokens->marks = memset(heap_realloc(NULL, size * sizeof *tokens->marks), 0, size * sizeof *tokens->marks);
  tokens->owners = heap_realloc(NULL, size * sizeof *tokens->owners);
  for (uint64_t i = 0; old.marks && i <= old.mask; i++) {
    uint64_t at = old.marks[i] ? place_of(tokens, old.marks[i]) : 0;
    if (!old.marks[i])
      continue;
    tokens->marks[at] = old.marks[i];
    tokens->owners[at] = old.owners[i];
  }
  free(old.marks);
  free(old.owners);
}

void oracle_start(struct world *world)
{
  struct tokens *tokens = &world->tokens;
  if (!tokens->marks)
    resize(tokens, TOKENS_AT_FIRST);
  tokens->mask = TOKENS_AT_FIRST - 1;
  memset(tokens->marks, 0, TOKENS_AT_FIRST * sizeof *tokens->marks);
  world->attempts = world->wins = 0;
}

/* Programs think and waiters back off, so there are never many attempts in a short time. */
static void check_pace(struct world *world)
{
  uint64_t most = 500 + (uint64_t)(world->slot_count * (world->now / MS));
  if (world->attempts > most)
    world_violation(world, "%" PRIu64 " attempts in %.0f ms: somebody does not back off", world->attempts,
                    (double)world->now / MS);
}

void oracle_token(struct world *world, const char *token, uint32_t life)
{
  struct tokens *tokens = &world->tokens;
  uint64_t mark = mark_of(token), at = place_of(tokens, mark);
  if (tokens->marks[at] && tokens->owners[at] && tokens->owners[at] != life)
    world_violation(world, "two processes take token %.*s for their own", TOKEN_SIZE, token);
  if (tokens->marks[at])
    return;
  tokens->marks[at] = mark;
  tokens->owners[at] = life;
  if (++world->attempts > tokens->mask / 2)
    resize(tokens, 2 * (tokens->mask + 1));
  check_pace(world);
}

/* A process extends and deletes what it has made itself, and what was handed over to it. */
void oracle_speaks(struct world *world, const char *token, uint32_t life)
{
  uint64_t at = place_of(&world->tokens, mark_of(token));
  if (world->tokens.marks[at] && world->tokens.owners[at] && world->tokens.owners[at] != life)
    world_violation(world, "a process speaks for token %.*s, which another one has made", TOKEN_SIZE, token);
}

void oracle_share(struct world *world, const char *token)
{
  uint64_t at = place_of(&world->tokens, mark_of(token));
  if (world->tokens.marks[at])
    world->tokens.owners[at] = 0;
}

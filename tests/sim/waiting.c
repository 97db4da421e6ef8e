/* The oracle of those who wait: they see in time that a lock is free, and nobody is overtaken again and again. */
#include "waiting.h"

#include "sim.h"

/* Since when nobody's key has been on a majority of the servers; RLK_NEVER if it is. */
static int64_t free_since(const struct world *world, int resource)
{
  int64_t since[NODES_MAX] = {0};
  for (int i = 0; i < world->node_count; i++) {
    const struct key *key = &world->nodes[i].keys[resource];
    int64_t moment = !key->live ? key->freed_at : key->expires_at <= world->now ? key->expires_at : RLK_NEVER;
    if (i == world->twin) /* no address leads there */
      moment = RLK_NEVER;
    int at = i;
    for (; at > 0 && since[at - 1] > moment; at--)
      since[at] = since[at - 1];
    since[at] = moment;
  }
  return since[world->node_count / 2];
}

/* Nobody has released it: then nobody tells whose turn it is. */
static int has_lapsed(const struct world *world, int resource)
{
  for (int i = 0; i < world->node_count; i++) {
    const struct key *key = &world->nodes[i].keys[resource];
    if (key->live ? key->expires_at <= world->now : key->freed_at == key->expires_at)
      return 1;
  }
  return 0;
}

/* The end of the last key that nobody has deleted, in the future if it is still there; 0: all were. */
static int64_t last_end(const struct world *world, int resource)
{
  int64_t last = 0;
  for (int i = 0; i < world->node_count; i++) {
    const struct key *key = &world->nodes[i].keys[resource];
    if (key->live || key->freed_at == key->expires_at)
      last = later(last, key->expires_at);
  }
  return last;
}

/* A key that is there for longer than the majority has been free: of a lock that was handed over and that nobody has
 * released everywhere. Its node, which may be home, does not know that the lock is free. */
static int has_leftover(const struct world *world, int resource, int64_t free_since)
{
  for (int i = 0; i < world->node_count; i++) {
    const struct key *key = &world->nodes[i].keys[resource];
    if (key->live && key->expires_at > world->now && key->set_at < free_since)
      return 1;
  }
  return 0;
}

/* The nodes refuse its leases now and then: it may have to wait for longer than others, and go behind them. */
static int may_be_refused(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  return world->refused_ttl_ms && slot->ttl_ms > world->refused_ttl_ms;
}

/* Refused waiters are woken before those behind them, one after the other. Each takes four delays: for the wake-up, the
 * SETs, the answers and the LEAVE. */
static int64_t refused_before(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  int64_t count = 0;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *other = world_slot(slot->process->world, (uint32_t)i);
    count += other != slot && other->resource == slot->resource && other->operation == REDLOCK_ACQUIRE &&
             may_be_refused(other);
  }
  return count * 4 * world->faults.delay_max;
}

/* Within what time of `since` the lock is granted to somebody. */
static int64_t wait_most(const struct slot *slot, int64_t since)
{
  const struct world *world = slot->process->world;
  int is_lapsed = has_lapsed(world, slot->resource);
  if (!world->orderly || world->faults.leftover || world->mixed)
    return 1500 * MS;
  if (world->faultless && !is_lapsed && !has_leftover(world, slot->resource, since))
    return 60 * MS + refused_before(slot); /* it is told */
  /* home may keep the key of a holder that died in its release */
  if (is_lapsed || has_leftover(world, slot->resource, since))
    return later(since, last_end(world, slot->resource)) - since + 500 * MS;
  return 1300 * MS;
}

static int plain_ones_wait(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *other = world_slot(slot->process->world, (uint32_t)i);
    if (other->resource == slot->resource && other->operation == REDLOCK_ACQUIRE && !other->is_permit)
      return 1;
  }
  return 0;
}

/* Since when a majority would grant what it waits for: of several permits the one that has been free for longest. */
static int64_t wanted_since(const struct slot *slot)
{
  int64_t since = free_since(slot->process->world, slot->resource);
  if (slot->wants)
    return free_since(slot->process->world, permit_key(slot->resource, slot->wants - 1));
  for (int i = 1; slot->is_permit && i < PERMITS; i++) {
    int64_t one = free_since(slot->process->world, permit_key(slot->resource, i));
    since = one < since ? one : since;
  }
  return since;
}

/* Where nothing breaks a waiter that a majority would grant the lock sees that soon, unless somebody else is granted
 * it: whatever was left behind on the other nodes, whoever cannot win stands before it, and how many have died. */
void oracle_waits(const struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t since = later(wanted_since(slot), slot->started_at), soon = wait_most(slot, since);
  if (slot->spans || (slot->is_permit && plain_ones_wait(slot)))
    return; /* it is not told of the other resource; or a waiter before it may want the first permit alone */
  if (!world->patient || world->contest_at || slot->operation != REDLOCK_ACQUIRE ||
      world->now - slot->started_at < soon || may_be_refused(slot))
    return;
  if (since <= world->now - soon)
    world_violation(world, "missed: a majority has been free for %.3f ms, and lock %d still waits for %s",
                    (double)(world->now - since) / MS, slot->index, world->resources[slot->resource].name);
}

/* Nothing breaks any more, and somebody waits: then a lock that a majority would grant is granted soon. Nobody is told
 * where a key or a place of one who has died is left, and waiters that listen ask every 4 s. */
void oracle_stands_still(struct world *world, int resource)
{
  int64_t since = later(free_since(world, resource), world->contest_at);
  const int64_t soon = 5000 * MS;
  if (since < world->now - soon)
    world_violation(world, "stuck: a majority has been free for %.3f ms, and nobody is granted %s",
                    (double)(world->now - since) / MS, world->resources[resource].name);
}

/* A node that was distrusted at first becomes home: those who notice that later stand in another queue for a while. */
static int waits_at_two_homes(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  int64_t at = world->home_moves_at;
  return at && world->now >= at && slot->started_at < at * 12 / 10;
}

/* Where everybody waits in order nobody is overtaken again and again. A few times are granted: keys are left behind,
 * and places are lost. */
void oracle_order(struct slot *winner)
{
  const int overtaken_max = 3;
  struct world *world = winner->process->world;
  int agree = !world->faults.process_end; /* one that has just begun distrusts a clock that is ahead, and so home */
  for (int i = 0; world->orderly && !world->mixed && agree && i < world->process_count * SLOTS_MAX; i++) {
    struct slot *slot = world_slot(world, (uint32_t)i);
    if (slot == winner || slot->resource != winner->resource || slot->operation != REDLOCK_ACQUIRE ||
        may_be_refused(slot) || waits_at_two_homes(slot) ||
        slot->started_at + 2 * (world->now - slot->started_at) * world->drift_percent / 100 >= winner->started_at)
      continue; /* who came first is known by clocks that drift */
    if (++slot->overtaken > overtaken_max)
      world_violation(world, "overtaken: %d times others who came later were granted %s before lock %d",
                      slot->overtaken, world->resources[slot->resource].name, slot->index);
  }
}

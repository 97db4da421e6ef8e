/* When all is whole again everybody tries to take one lock at once, and one of them wins. Then all wait for it, and one
 * dies. As long as a majority would grant it, somebody is granted it soon: whatever the servers have lost before, and
 * whoever stands first in the queue. */
#include "sim.h"
#include "waiting.h"

enum { RESOURCE = 0, LASTS_MS = 60000 };

static int takes_part(const struct slot *slot)
{
  return slot->lock && slot->resource == RESOURCE && slot->process->client;
}

/* All that wait, or hold; 0 when the contest is over. */
static int go_on(struct world *world)
{
  int count = 0;
  for (int i = 0; i < world->process_count * SLOTS_MAX && !world->violation[0]; i++) {
    struct slot *slot = world_slot(world, (uint32_t)i);
    int is_held = slot->holding >= 0;
    if (!takes_part(slot) || (!slot->operation && !is_held))
      continue;
    count++;
    if (!slot->operation && random_in(&world->random, 0, 2) == 0)
      process_contend(slot, REDLOCK_RELEASE, 0);
    if (slot->operation == REDLOCK_ACQUIRE)
      oracle_stands_still(slot);
  }
  return count;
}

/* One that excludes all others that try. */
static int tries(const struct slot *slot)
{
  return takes_part(slot) && !slot->is_shared && !slot->is_permit;
}

/* 0: some are not told yet. */
static int is_decided(struct world *world)
{
  int count = 0, won = 0, busy = 0;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *slot = world_slot(world, (uint32_t)i);
    if (tries(slot) && slot->operation)
      return 0;
    count += tries(slot);
    won += tries(slot) && slot->last_status == REDLOCK_OK;
    busy += tries(slot) && slot->last_status == REDLOCK_BUSY;
  }
  if (count > 0 && !won && busy == count) /* a node may be too slow for its time-out */
    world_violation(world, "nobody: each of %d single attempts at once was told that others hold %s", count,
                    world->resources[RESOURCE].name);
  return 1;
}

void contest_try(struct world *world)
{
  TRACE(world, "world     everybody tries to take %s", world->resources[RESOURCE].name);
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++)
    if (tries(world_slot(world, (uint32_t)i)))
      process_contend(world_slot(world, (uint32_t)i), REDLOCK_ACQUIRE, 0);
  for (int64_t until = world->now + LASTS_MS * MS; world->now < until && !world->violation[0] && !is_decided(world);)
    world_pass(world, MS);
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++)
    if (tries(world_slot(world, (uint32_t)i)) && world_slot(world, (uint32_t)i)->holding >= 0)
      process_contend(world_slot(world, (uint32_t)i), REDLOCK_RELEASE, 0);
}

void contest_run(struct world *world)
{
  struct process *victim = &world->processes[random_in(&world->random, 0, world->process_count - 1)];
  int64_t begun = world->now, dies_at = begun + random_in(&world->random, 0, 20 * MS);
  TRACE(world, "world     everybody wants %s", world->resources[RESOURCE].name);
  world->contest_at = begun;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++)
    if (takes_part(world_slot(world, (uint32_t)i)))
      process_contend(world_slot(world, (uint32_t)i), REDLOCK_ACQUIRE, -1);
  while (go_on(world) && !world->violation[0]) {
    world_pass(world, MS);
    if (victim && world->now >= dies_at) {
      process_replace(victim, 1);
      victim = NULL;
    }
    if (world->now > begun + LASTS_MS * MS) {
      world_violation(world, "stuck: not everybody is granted %s within a minute", world->resources[RESOURCE].name);
      return; /* a hunt for a mutant may be for another violation */
    }
  }
}

/* Forks. The child's memory is a copy of its parent's at that moment; it gets the processor only once the parent has
 * ended, which has gone on meanwhile and made, extended and released locks of which the child knows nothing. */
#include "sim.h"

#include <string.h>

void rlk_client_forked(redlock_client *client); /* what the core's fork handler runs in a child */

static struct process images[PROCESSES_MAX];

void fork_process(struct process *process)
{
  struct world *world = process->world;
  if (!process->forks || !process->client || process->asleep || process->has_child)
    return;
  TRACE(world, "process %d forks", process->index);
  arena_copy(process->index);
  images[process->index] = *process;
  process->has_child = 1;
  world_plan(world, world_edge(world) * random_in(&world->random, 0, 4) / 2, EVENT_CHILD, (uint32_t)process->index,
             process->life);
}

/* Nothing of the parent is the child's: neither a lock, nor an operation, nor what it was told. */
static void disown(struct slot *slot, const struct slot *parents)
{
  struct world *world = slot->process->world;
  int state = redlock_lock_state(slot->lock);
  int owned = slot->operation || slot->holding >= 0;
  slot->operation = 0;
  slot->released[0] = 0;
  slot->holding = -1;
  slot->depth = 0;
  slot->action_serial = parents->action_serial;
  if (owned && state != REDLOCK_STATE_FORKED)
    world_violation(world, "lock %d has state %d in the child of a fork", slot->index, state);
}

/* The child takes the place of its parent, which has ended. */
void fork_child(struct process *process)
{
  struct world *world = process->world;
  struct process parent = *process;
  arena_put_back(process->index);
  *process = images[process->index];
  process->has_child = process->lagged = process->open_count = 0;
  process->lag = 0;
  process->sleep_serial = parent.sleep_serial + 1;
  process->wake_at = -1;
  process->started_at = process->woke_at = world->now;
  process->random = random_next(&world->random);
  process->life = ++world->lives;
  TRACE(world, "process %d goes on as the child of the fork", process->index);
  backing_start(process);
  rlk_client_forked(process->client);
  for (int i = 0; i < process->slot_count; i++)
    disown(&process->slots[i], &parent.slots[i]);
}

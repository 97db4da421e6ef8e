/* The operator changes max_ttl_ms while programs run, as docs/day-two.md says: a program that gets another number is
 * started anew, and bootstrap --replace rewrites the markers, node by node, in no order and not all at once. Or ends
 * quarantines by bootstrap, whose question stays open until no lock is live that the named nodes may have lost; other
 * nodes lose their keys meanwhile. */
#include "sim.h"

enum { /* steps of one that raises */
       RAISE_PROGRAMS = 1,
       RAISE_MARKERS,
};

enum { /* and of one that lowers */
       LOWER_LEASES = 1,
       LOWER_MARKERS,
       LOWER_PROGRAMS,
};

enum { /* and of one that registers */
       REGISTER_QUESTION = 1,
       REGISTER_NODES
};

/* The number is so large that quarantines last for longer than all leases. A step of a clock between the answer and
 * the write would be forgiven with the rest: there it takes a moment, and here as long as a lease. */
static void choose_registering(struct world *world)
{
  world->rollout.kind = ROLLOUT_REGISTERS;
  world->max_ttl_ms = 8 * world->ttl_ms;
  if (!world->explicit_timeout && world->max_ttl_ms / 10 > world->node_timeout_ms)
    world->node_timeout_ms = world->max_ttl_ms / 10;
  world->faults.clock_step = 0;
  if (!world->faultless)
    world->faults.loss = 2;
  world_plan(world, world_edge(world), EVENT_ROLLOUT, 0, 0);
}

void rollout_choose(struct world *world)
{
  struct rollout *rollout = &world->rollout;
  uint64_t dice = world->seed / 4 % 8; /* of those that are guarded; fenced ones are odd */
  *rollout = (struct rollout){.kind = ROLLOUT_NONE};
  if (!world->guarded || world->patient || world->hard || world->orders.history ||
      (dice != 2 && dice != 4 && dice != 6))
    return;
  if (dice == 4) {
    choose_registering(world);
    return;
  }
  rollout->small_ms = 2 * world->ttl_ms;
  rollout->large_ms = 4 * world->ttl_ms;
  rollout->kind = dice == 2 ? ROLLOUT_RAISES : ROLLOUT_LOWERS;
  world->max_ttl_ms = rollout->kind == ROLLOUT_RAISES ? rollout->small_ms : rollout->large_ms;
  world->last_ttl_ms = rollout->large_ms;
  if (!world->explicit_timeout && rollout->large_ms / 10 > world->node_timeout_ms)
    world->node_timeout_ms = rollout->large_ms / 10;
  world->faults.fork = 0; /* a child goes on with the number that its parent had */
  if (!world->faultless)
    world->faults.loss = 2;
  world_plan(world, world_edge(world), EVENT_ROLLOUT, 0, 0);
}

static void start_anew(struct process *process, int64_t max_ttl_ms, int64_t ttl_most_ms)
{
  process->next_max_ttl_ms = max_ttl_ms;
  process->next_ttl_most_ms = ttl_most_ms;
  process_replace(process, (int)random_in(&process->world->random, 0, 1));
}

/* Gives these numbers to one more program; 1 when all have them. */
static int give(struct world *world, int64_t max_ttl_ms, int64_t ttl_most_ms)
{
  for (int i = 0; i < world->process_count; i++) {
    struct process *process = &world->processes[i];
    if (process->max_ttl_ms == max_ttl_ms && process->ttl_most_ms == ttl_most_ms)
      continue;
    if (process->next_max_ttl_ms != max_ttl_ms || process->next_ttl_most_ms != ttl_most_ms)
      start_anew(process, max_ttl_ms, ttl_most_ms);
    return 0;
  }
  return 1;
}

/* A node that cannot be asked keeps its number; 1 when the others have the new one. */
static int replace_markers(struct world *world, int64_t max_ttl_ms)
{
  int first = (int)random_in(&world->random, 0, world->node_count - 1);
  for (int i = 0; i < world->node_count; i++) {
    struct node *node = &world->nodes[(first + i) % world->node_count];
    int64_t number = marker_number(world, node);
    if (node->asleep || node->down || node->replaced || !number || number == max_ttl_ms)
      continue;
    operator_changes(world, node, REDLOCK_BOOTSTRAP_REPLACE, max_ttl_ms);
    return 0;
  }
  return 1;
}

static int all_are_registered(const struct world *world)
{
  for (int i = 0; i < world->node_count; i++)
    if (!marker_number(world, &world->nodes[i]))
      return 0;
  return 1;
}

static void next_step(struct world *world)
{
  world->rollout.step++;
  world->rollout.since = world->now;
  TRACE(world, "operator  step %d", world->rollout.step);
}

/* By any clock of a program. */
static int has_passed(const struct world *world, int64_t ms)
{
  return world->now - world->rollout.since > ms * MS * 12 / 10;
}

static void raise_number(struct world *world)
{
  struct rollout *rollout = &world->rollout;
  switch (rollout->step) {
  case 0:
    if (all_are_registered(world))
      next_step(world);
    break;
  case RAISE_PROGRAMS:
    if (give(world, rollout->large_ms, rollout->large_ms))
      next_step(world);
    break;
  case RAISE_MARKERS:
    if (has_passed(world, rollout->large_ms))
      replace_markers(world, rollout->large_ms);
    break;
  }
}

static void lower_number(struct world *world)
{
  struct rollout *rollout = &world->rollout;
  switch (rollout->step) {
  case 0: next_step(world); break;
  case LOWER_LEASES:
    if (give(world, rollout->large_ms, rollout->small_ms))
      next_step(world);
    break;
  case LOWER_MARKERS: /* when the last longer lease is over */
    if (has_passed(world, rollout->large_ms) && replace_markers(world, rollout->small_ms))
      next_step(world);
    break;
  case LOWER_PROGRAMS: give(world, rollout->small_ms, rollout->small_ms); break;
  }
}

/* What the question asks, of the nodes that it names. */
static int is_no_lock_live(const struct world *world)
{
  for (int i = 0; i < world->node_count; i++)
    if (world->rollout.plan.nodes[i].wanted.nodes &&
        world->now - world->nodes[i].restarted_at <= world->last_ttl_ms * MS * 12 / 10)
      return 0;
  return 1;
}

static void register_nodes(struct world *world)
{
  struct rollout *rollout = &world->rollout;
  switch (rollout->step) {
  case 0:
    if (operator_looks(world, &rollout->plan, REDLOCK_BOOTSTRAP_YES | REDLOCK_BOOTSTRAP_DRY))
      next_step(world);
    break;
  case REGISTER_QUESTION:
    if (is_no_lock_live(world))
      next_step(world);
    break;
  default:
    operator_writes(world, &world->nodes[rollout->step - REGISTER_NODES], &rollout->plan, REDLOCK_BOOTSTRAP_YES);
    next_step(world);
    if (rollout->step == REGISTER_NODES + world->node_count)
      rollout->step = 0;
  }
}

void rollout_go_on(struct world *world)
{
  int64_t most_ms = (int64_t)(1 + world->seed / 32 % 2 * 7) * world->ttl_ms;
  if (world->calm)
    return;
  switch (world->rollout.kind) {
  case ROLLOUT_RAISES: raise_number(world); break;
  case ROLLOUT_LOWERS: lower_number(world); break;
  default: register_nodes(world); most_ms = world->ttl_ms / 2;
  }
  world_plan(world, random_in(&world->random, 1, most_ms * MS), EVENT_ROLLOUT, 0, 0);
}

/* What was begun is brought to an end: no lease is live, and nothing breaks any more. */
void rollout_finish(struct world *world)
{
  struct rollout *rollout = &world->rollout;
  int is_raised = rollout->kind == ROLLOUT_RAISES && rollout->step >= RAISE_PROGRAMS;
  int is_lowered = rollout->kind == ROLLOUT_LOWERS && rollout->step >= LOWER_PROGRAMS;
  int64_t number_ms = is_raised ? rollout->large_ms : is_lowered ? rollout->small_ms : world->max_ttl_ms;
  if (!rollout->kind)
    return;
  for (int i = 0; i < world->process_count; i++)
    if (world->processes[i].max_ttl_ms != number_ms)
      start_anew(&world->processes[i], number_ms, world->processes[i].next_ttl_most_ms);
  for (int i = 0; i < world->node_count; i++)
    for (int mode = REDLOCK_BOOTSTRAP_YES; mode <= REDLOCK_BOOTSTRAP_REPLACE; mode++)
      operator_changes(world, &world->nodes[i], mode, number_ms);
}

/* While programs have different numbers, only a minority of the nodes may lose its markers (docs/guard.md). */
int rollout_allows(const struct world *world, const struct node *node, enum fault fault)
{
  const struct rollout *rollout = &world->rollout;
  int differs = rollout->kind == ROLLOUT_RAISES && rollout->step == RAISE_PROGRAMS;
  int is_loss = fault == FAULT_RESTART || fault == FAULT_LOSS || fault == FAULT_CLOCK_STEP;
  if (!differs)
    return 1;
  return fault != FAULT_OUTAGE && !(is_loss && node->index >= (world->node_count - 1) / 2);
}

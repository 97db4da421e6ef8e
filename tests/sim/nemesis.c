/* What breaks in a world, and when: nodes, addresses, keys, clocks and processes. */
#include "orders.h"
#include "sim.h"

#include <string.h>

/* ---- what may break ---- */

static void pause_node(struct world *world, struct node *node)
{
  int64_t duration = world_edge(world);
  if (node->asleep || node->down)
    return;
  TRACE(world, "node %d    is stopped for %.3f ms", node->index, (double)duration / MS);
  node->asleep = 1;
  world_plan(world, duration, EVENT_NODE_AWAKE, (uint32_t)node->index, 0);
}

static void wake_node(struct world *world, struct node *node)
{
  if (!node->asleep)
    return;
  TRACE(world, "node %d    goes on", node->index);
  node->asleep = 0;
  node->trouble_at = world->now;
  network_node_awake(world, node->index);
}

/* What a node has when it is back. */
enum data { DATA_ALL, DATA_OLDER, DATA_NONE };

static void kill_node(struct world *world, struct node *node, enum data data, int64_t duration)
{
  static const char *const words[] = {"with all data", "with older data", "empty"};
  TRACE(world, "node %d    is killed, back in %.3f ms %s", node->index, (double)duration / MS, words[data]);
  node->down = 1;
  script_flush(node);
  node->restarted_at = world->now;
  if (data == DATA_OLDER)
    backing_age(world, node);
  else if (data == DATA_NONE)
    backing_lose_all(world, node);
  node->incarnation++;
  node->former_master = 0;
  network_node_down(world, node->index);
  world_plan(world, duration, EVENT_NODE_UP, (uint32_t)node->index, 0);
}

void nemesis_boot(struct world *world, struct node *node, int loses, int64_t duration)
{
  kill_node(world, node, loses ? DATA_NONE : DATA_ALL, duration);
}

static int is_up(const struct node *node)
{
  return !node->asleep && !node->down && !node->replaced;
}

/* With its data when it is back soon; without it when every lease that it had granted is over, unless it forgets. */
static void restart_node(struct world *world, struct node *node, int forgets)
{
  int64_t memory = world->last_ttl_ms * MS * 3 / 2;
  /* under a second address it would seem to be another server, which has the same keys */
  int keeps = !forgets && random_in(&world->random, 0, 1) && world->twin < 0;
  int is_old = keeps && world->guarded && random_in(&world->random, 0, 1);
  int64_t duration = keeps || forgets ? random_in(&world->random, 1, 100) * MS : 2 * memory;
  if (is_up(node))
    kill_node(world, node, is_old ? DATA_OLDER : keeps ? DATA_ALL : DATA_NONE, duration);
}

/* A power failure: all nodes, with all data, with older data or without, each as its disk has it. Fencing numbers that
 * a majority has lost are in no node's power to continue. */
static void fail_together(struct world *world)
{
  int alike = (int)random_in(&world->random, 0, 3); /* DATA_NONE + 1: each as it happens */
  for (int i = 0; i < world->node_count; i++) {
    enum data data = (enum data)(alike <= DATA_NONE ? alike : random_in(&world->random, 0, DATA_NONE));
    int64_t duration = random_in(&world->random, 1, 100) * MS;
    if (world->twin >= 0 || world->faults.astray) /* see restart_node */
      data = DATA_NONE;
    else if (data == DATA_OLDER && world->fenced)
      data = DATA_ALL;
    if (is_up(&world->nodes[i]))
      kill_node(world, &world->nodes[i], data, duration);
  }
}

/* A wrong turn of a failover: for a while the address leads to a replica that takes writes and has none of the keys. */
static void replace_node(struct world *world, struct node *node)
{
  if (node->asleep || node->down || node->replaced)
    return;
  TRACE(world, "node %d    is replaced by a replica", node->index);
  node->replaced = 1;
  node->restarted_at = world->now;
  keys_forget_strays(node);
  network_node_down(world, node->index);
  world_plan(world, world_edge(world), EVENT_NODE_UP, (uint32_t)node->index, 0);
}

/* The address leads to its replica from now on, which is promoted: with the marker, older keys, and no scripts. */
static void promote_replica(struct world *world, struct node *node)
{
  TRACE(world, "node %d    is replaced by its replica, which is promoted", node->index);
  script_flush(node);
  backing_age(world, node);
  node->incarnation++;
  node->former_master = 1 + node->incarnation;
  network_node_down(world, node->index);
}

/* The address leads to another of the servers for a while, for one process or for all: two addresses, one server. */
static void lead_astray(struct world *world, int address)
{
  int server = (int)random_in(&world->random, 0, world->node_count - 1);
  int process = (int)random_in(&world->random, -1, world->process_count - 1);
  TRACE(world, "network   address %d leads to node %d", address, server);
  world->astray_at = world->now;
  for (int i = 0; i < world->process_count; i++)
    if (process < 0 || process == i)
      world->leads_to[i][address] = server;
  if (random_in(&world->random, 0, 1))
    network_drop_address(world, address);
  world_plan(world, 2 * world_edge(world), EVENT_ADDRESS, (uint32_t)address, 0);
}

static void lead_back(struct world *world, int address)
{
  TRACE(world, "network   address %d leads to its own node", address);
  if (world->astray_at)
    world->astray_at = world->now;
  for (int i = 0; i < PROCESSES_MAX; i++)
    world->leads_to[i][address] = own_server(world, address);
  if (world->calm || random_in(&world->random, 0, 1))
    network_drop_address(world, address);
}

static void node_up(struct world *world, struct node *node)
{
  TRACE(world, "node %d    is up again", node->index);
  if (node->replaced)
    network_node_down(world, node->index);
  node->down = node->replaced = 0;
  node->restarted_at = world->now;
}

static void break_node(struct world *world, struct node *node)
{
  node->error = (enum node_error)random_in(&world->random, 1, NODE_ERRORS - 1);
  if (node->error == NODE_ERROR_READONLY)
    node->restarted_at = world->now;
  node->error_until = world->now + random_in(&world->random, 1, world->ttl_ms) * MS;
  node->trouble_at = node->error_until;
  TRACE(world, "node %d    answers with error %d until %.3f ms", node->index, node->error,
        (double)node->error_until / MS);
}

static void flush_scripts(struct world *world, struct node *node)
{
  TRACE(world, "node %d    forgets its scripts, and somebody meddles with a queue", node->index);
  script_flush(node);
  keys_meddle(world, node, (int)random_in(&world->random, 0, world->resource_count - 1));
}

static void demote(struct world *world, struct node *node)
{
  TRACE(world, "node %d    becomes the replica of an empty master", node->index);
  backing_lose_all(world, node);
  node->error = NODE_ERROR_READONLY;
  node->error_until = world->now + random_in(&world->random, 1, 2 * world->ttl_ms) * MS;
  node->trouble_at = node->error_until;
}

/* SWAPDB: what the clients find there is the data of another database, in which the library is used as well. */
static void swap_database(struct world *world, struct node *node)
{
  TRACE(world, "node %d    SWAPDB", node->index);
  backing_lose_all(world, node);
  marker_swap(world, node);
}

/* Of a resource, or of one of its slots. */
static int any_key(struct world *world)
{
  int resource = (int)random_in(&world->random, 0, world->resource_count - 1);
  return world->mixed ? permit_key(resource, (int)random_in(&world->kinds, 0, PERMITS - 1)) : resource;
}

/* Leases end where nobody has ended them: new ones may be granted at once. */
static void lose_keys(struct world *world, struct node *node)
{
  int64_t kind = random_in(&world->random, 0, world->guarded ? 5 : 3);
  if (node->asleep || node->down || node->replaced)
    return;
  switch (kind) {
  case 0: restart_node(world, node, 1); break;
  case 1:
    TRACE(world, "node %d    FLUSHALL", node->index);
    backing_lose_all(world, node);
    break;
  case 2:
    TRACE(world, "node %d    a key is deleted by hand", node->index);
    backing_lose(world, node, any_key(world), 1);
    break;
  case 3: demote(world, node); break;
  case 4: swap_database(world, node); break;
  default: promote_replica(world, node);
  }
}

static int has_keys(const struct world *world, const struct node *node)
{
  for (int i = 0; i < world->key_count; i++)
    if (node->keys[i].live)
      return 1;
  return 0;
}

/* A step forward has ended its keys, and the leases for which they stood may last until now. A process that starts
 * after the step back cannot know (docs/guard.md, What it does not notice). */
static int has_just_stepped(const struct world *world, const struct node *node)
{
  return node->stepped_at && world->now - node->stepped_at < world->last_ttl_ms * MS * 11 / 10;
}

/* No lease is shortened by that; a marker is from the future then. */
static void set_clock_back(struct world *world, struct node *node)
{
  int64_t step_ms = random_in(&world->random, 1, 10) * 5 * (world->last_ttl_ms + 2000);
  if (has_keys(world, node) || server_clock_ms(world, node) < step_ms)
    return; /* keys would live for longer than any lease */
  if (has_just_stepped(world, node))
    return;
  TRACE(world, "node %d    has its clock set back by %lld ms", node->index, (long long)step_ms);
  keys_forget_queues(world, node);
  node->clock_offset -= step_ms * MS;
  node->is_behind = 1;
}

/* Ends all leases of the node. Only a minority is stepped: the clocks of a majority cannot show that most are ahead.
 * Nor is a clock that is behind: a process that has not read it meanwhile does not notice the step (docs/guard.md). */
static void step_clock(struct world *world, struct node *node)
{
  int64_t step_ms = random_in(&world->random, 1, 10) * 5 * (world->last_ttl_ms + 2000);
  if (random_in(&world->random, 0, 3) == 0) {
    set_clock_back(world, node);
    return;
  }
  if (node->index >= (world->node_count - 1) / 2 || node->is_behind)
    return;
  TRACE(world, "node %d    has its clock stepped forward by %lld ms", node->index, (long long)step_ms);
  for (int i = 0; i < world->key_count; i++)
    backing_lose(world, node, i, 0);
  keys_forget_queues(world, node);
  keys_forget_strays(node);
  node->restarted_at = node->stepped_at = world->now;
  node->clock_offset += step_ms * MS;
}

/* All processes but one are killed, whoever holds among them. */
static void leave_one(struct world *world, const struct process *process)
{
  for (int i = 0; i < world->process_count; i++)
    if (&world->processes[i] != process)
      process_replace(&world->processes[i], 1);
}

/* ---- one strike after the other ---- */

/* The kind of the next fault by its weight, or -1 where nothing breaks. */
static int64_t draw_fault(struct world *world)
{
  const struct faults *faults = &world->faults;
  const uint32_t weights[] = {faults->drop,         faults->node_pause, faults->process_pause, faults->restart,
                              faults->script_flush, faults->node_error, faults->replica,       faults->loss,
                              faults->leftover,     faults->astray,     faults->fork,          faults->clock_step,
                              faults->outage,       faults->siege,      faults->flip,          faults->behind,
                              faults->swap,         faults->night,      faults->process_end};
  int64_t total = 0, kind = 0;
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
    total += weights[i];
  if (!total)
    return -1;
  for (int64_t dice = random_in(&world->random, 0, total - 1); dice >= weights[kind]; kind++)
    dice -= weights[kind];
  return kind;
}

static void strike(struct world *world)
{
  struct node *node = &world->nodes[random_in(&world->random, 0, world->node_count - 1)];
  struct process *process = &world->processes[random_in(&world->random, 0, world->process_count - 1)];
  int64_t fault = draw_fault(world);
  if (fault < 0 || does_without(world, (enum fault)fault) || !rollout_allows(world, node, (enum fault)fault))
    return;
  switch (fault) {
  case FAULT_DROP: network_nemesis_drop(world); break;
  case FAULT_NODE_PAUSE: pause_node(world, node); break;
  case FAULT_PROCESS_PAUSE: process_sleep(process, world_edge(world)); break;
  case FAULT_RESTART: restart_node(world, node, 0); break;
  case FAULT_SCRIPT_FLUSH: flush_scripts(world, node); break;
  case FAULT_NODE_ERROR: break_node(world, node); break;
  case FAULT_REPLICA: replace_node(world, node); break;
  case FAULT_LOSS: lose_keys(world, node); break;
  case FAULT_LEFTOVER:
    server_leave_key(world, node, any_key(world), random_in(&world->random, 1, world->last_ttl_ms));
    break;
  case FAULT_ASTRAY: lead_astray(world, node->index); break;
  case FAULT_FORK: fork_process(process); break;
  case FAULT_CLOCK_STEP: step_clock(world, node); break;
  case FAULT_OUTAGE: fail_together(world); break;
  case FAULT_SIEGE:
  case FAULT_FLIP:
  case FAULT_BEHIND:
  case FAULT_SWAP:
  case FAULT_NIGHT: hard_strike(world, node, (int)fault); break;
  default:
    if (world->orderly)
      leave_one(world, process);
    else
      process_replace(process, (int)random_in(&world->random, 0, 1));
  }
}

static void nemesis(struct world *world)
{
  uint64_t random = world->random;
  if (world->calm)
    return;
  if (world->now < world->night_until) {
    world_plan(world, world->night_until - world->now, EVENT_NEMESIS, 0, 0);
    return;
  }
  if (world->orders.history) {
    orders_strike(world);
    return;
  }
  /* each strike has numbers of its own: one that is left out changes none of the others */
  world->random = (world->seed ^ (uint64_t)world->strikes << 32) * UINT64_C(0xD1342543DE82EF95);
  if (!is_left_out(world->omissions.strikes, world->strikes))
    strike(world);
  world->random = random;
  world->strikes++;
  world_plan(world, random_in(&world->random, 1, 2 * world->faults.nemesis_every), EVENT_NEMESIS, 0, 0);
}

void nemesis_event(struct world *world, const struct event *event)
{
  switch (event->kind) {
  case EVENT_NEMESIS: nemesis(world); break;
  case EVENT_NODE_AWAKE: wake_node(world, &world->nodes[event->index]); break;
  case EVENT_ADDRESS: lead_back(world, (int)event->index); break;
  default: node_up(world, &world->nodes[event->index]);
  }
}

void nemesis_rest(struct world *world)
{
  for (int i = 0; i < world->node_count; i++) {
    lead_back(world, i);
    world->nodes[i].error_until = 0;
    wake_node(world, &world->nodes[i]);
  }
}

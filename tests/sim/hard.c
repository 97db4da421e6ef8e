/* Hard worlds: all is done to get past the restart guard. Each emphasises one way:
 *
 *   sieges  a holder does not reach one node for longer than its TTL, and then another one, while ways of others are
 *           slow; the node loses its keys before, within or after the write in which it is asked to renew
 *   flips   a server becomes the replica of one that lacks keys, and is promoted again: same run id, same marker
 *   behind  a server boots without its keys and with its clock behind, which is set right when it is registered
 *   swaps   SWAPDB there and, later, back
 *   nights  programs idle for minutes to hours; in the morning a clock is stepped
 *
 * At the end of each a process idles while all nodes are restarted, one after the other: it is served at once. */
#include "sim.h"

#include <string.h>

#include "../../core/src/rules/marker.h"

#define LOOK_MS 1000 /* the role of a server is not asked for more often (docs/guard.md) */
enum { MOST_NIGHTS = 2, SERVED_MS = 300 };

static int64_t any_of(struct world *world, const int64_t *from, int count)
{
  return from[random_in(&world->random, 0, count - 1)];
}

/* The sizes were drawn: those that would hide what the world is about are replaced. */
void hard_choose(struct world *world)
{
  static const int64_t ttls_ms[] = {100, 100, 120, 250, 400};
  struct faults *faults = &world->faults;
  int is_crowded = world->hard == HARD_SIEGES || world->hard == HARD_NIGHTS;
  world->patient = world->orderly = world->faultless = 0;
  world->refused_ttl_ms = 0;
  if (world->hard == HARD_SIEGES)
    world->resource_count = 1;
  world->node_count = is_crowded || world->seed / 8 % 4 ? 3 : 5;
  if (world->process_count < 2) {
    world->process_count = 2;
    world->processes[1].slot_count = 1;
  }
  world->ttl_ms = any_of(world, ttls_ms, world->hard == HARD_SIEGES ? 3 : 5);
  world->explicit_timeout &= world->hard != HARD_SIEGES;
  world->node_timeout_ms = world->explicit_timeout ? world->ttl_ms / 8 : world->ttl_ms > 250 ? world->ttl_ms / 5 : 50;
  world->connect_timeout_ms = world->ttl_ms / 2;
  world->last_ttl_ms = 2 * world->ttl_ms;
  world->twin = -1;
  world->end_of_work = world->ttl_ms * random_in(&world->random, 30, 80) * MS;
  faults->nemesis_every = world->ttl_ms * MS * random_in(&world->random, 1, 4) / 2;
  faults->delay_min = faults->delay_min ? faults->delay_min : 100000;
  faults->delay_max = faults->delay_max ? faults->delay_max : 400000;
  faults->astray = faults->replica = faults->loss = faults->outage = faults->restart = faults->node_error = 0;
  faults->siege = world->hard == HARD_SIEGES ? 6 : 0;
  faults->flip = world->hard == HARD_FLIPS ? 6 : 0;
  faults->behind = world->hard == HARD_BEHIND ? 6 : 0;
  faults->swap = world->hard == HARD_SWAPS ? 6 : 0;
  faults->night = world->hard == HARD_NIGHTS ? 6 : 0;
  if (world->hard >= HARD_SWAPS) /* who has just started sees nothing of that (docs/guard.md) */
    faults->fork = faults->process_end = 0;
  if (world->hard == HARD_NIGHTS)
    faults->process_pause = faults->node_pause = faults->lag = faults->edge = faults->tail = 0;
}

static int is_up(const struct node *node)
{
  return !node->asleep && !node->down && node->error_until == 0 && !node->swapped && !node->behind_ms;
}

static void plan_end(struct world *world, int64_t delay, const struct node *node, enum fault fault)
{
  world_plan(world, delay, EVENT_HARD, (uint32_t)node->index, (uint32_t)fault);
}

/* ---- sieges ---- */

static struct slot *any_holder(struct world *world)
{
  int count = world->process_count * SLOTS_MAX, first = (int)random_in(&world->random, 0, count - 1);
  for (int i = 0; i < count; i++) {
    struct slot *slot = world_slot(world, (uint32_t)((first + i) % count));
    if (slot->lock && slot->holding >= 0 && slot->temper == TEMPER_RENEW)
      return slot;
  }
  return NULL;
}

static void take_away(struct world *world, int process, int node, int64_t from, int64_t until, int64_t slow)
{
  world->away[process][node] = (struct away){from, until, slow};
  TRACE(world, "network   the way from process %d to node %d is %s from %.3f to %.3f ms", process, node,
        slow ? "slow" : "away", (double)from / MS, (double)until / MS);
}

/* First the way to one node is cut for longer than a TTL. */
static void besiege(struct world *world)
{
  struct slot *slot = any_holder(world);
  struct siege *siege = &world->siege;
  if (!slot || world->now < siege->until)
    return;
  *siege = (struct siege){.slot = slot->index, .until = world->now + 4 * slot->renewed_ms * MS};
  siege->first = (int)random_in(&world->random, 0, world->node_count - 1);
  siege->second = (siege->first + (int)random_in(&world->random, 1, world->node_count - 1)) % world->node_count;
  take_away(world, slot->process->index, siege->first, world->now, siege->until, 0);
  network_cut(world, slot->process, siege->first);
  plan_end(world, slot->renewed_ms * MS * random_in(&world->random, 10, 110) / 100, &world->nodes[siege->first],
           FAULT_SIEGE);
}

/* Then that to a second one. Before the key there ends the first is reached again, where another client has been
 * granted the lock meanwhile, which is about to ask the second node, too. */
static void close_in(struct world *world)
{
  const struct siege *siege = &world->siege;
  const struct slot *slot = world_slot(world, (uint32_t)siege->slot);
  struct node *node = &world->nodes[siege->first];
  const struct key *key = &world->nodes[siege->second].keys[slot->resource];
  int64_t timeout = world->node_timeout_ms * MS,
          back_at = key->expires_at - random_in(&world->random, 0, 3 * timeout / 2);
  int process = slot->process->index;
  if (world->calm || !key->live || slot->holding < 0 || back_at < world->now)
    return;
  take_away(world, process, siege->second, world->now, siege->until, 0);
  take_away(world, process, siege->first, world->now, back_at, 0);
  for (int i = 0; i < world->process_count; i++)
    if (i != process)
      take_away(world, i, siege->second, back_at - timeout, key->expires_at + timeout, timeout);
  node->lurks_for = process;
  node->lurks_until = siege->until;
}

/* It waits for a key that is another's. */
void hard_execute(struct world *world, struct node *node, int step)
{
  int has_keys = 0;
  for (int i = 0; i < world->key_count; i++)
    has_keys |= node->keys[i].live;
  if (!step || (step == 1 ? !has_keys : random_in(&world->random, 0, 7) > 0) || !random_in(&world->random, 0, 3))
    return;
  TRACE(world, "node %d    FLUSHALL, within a write", node->index);
  backing_lose_all(world, node);
  node->lurks_until = 0;
}

int64_t hard_lag(struct world *world, const struct connection *connection, uint32_t kind, int64_t lag)
{
  const struct away *away = &world->away[connection->process->index][connection->link_node];
  if (!world->hard || world->calm || world->now < away->from || world->now >= away->until)
    return lag;
  if (away->slow)
    return kind == EVENT_DOWN ? lag : lag + random_in(&world->random, 0, away->slow);
  return lag > away->until - world->now ? lag : away->until - world->now;
}

/* ---- flips ---- */

static void flip(struct world *world, struct node *node)
{
  int64_t duration = random_in(&world->random, 1, world->ttl_ms) * MS;
  if (!is_up(node))
    return;
  TRACE(world, "node %d    becomes the replica of a server that lacks keys", node->index);
  backing_age(world, node);
  node->error = NODE_ERROR_READONLY;
  node->error_until = RLK_NEVER;
  plan_end(world, duration, node, FAULT_FLIP);
}

static void promote(struct world *world, struct node *node)
{
  if (node->error_until != RLK_NEVER)
    return;
  TRACE(world, "node %d    is promoted again", node->index);
  node->error_until = 0;
  node->former_master = (uint32_t)(world->now / MS);
  node->flipped_at = node->trouble_at = node->restarted_at = world->now;
}

/* ---- clocks ---- */

static void step_forward(struct world *world, struct node *node, int64_t step_ms)
{
  TRACE(world, "node %d    has its clock stepped forward by %lld ms", node->index, (long long)step_ms);
  for (int i = 0; i < world->key_count; i++)
    backing_lose(world, node, i, 0);
  keys_forget_queues(world, node);
  keys_forget_strays(node);
  node->restarted_at = node->stepped_at = world->now;
  node->clock_offset += step_ms * MS;
}

/* Half of the processes do not reach it before it is set right: all they see is that it is another server. */
static void boot_behind(struct world *world, struct node *node)
{
  int64_t behind_ms = world->max_ttl_ms * random_in(&world->random, 5, 50) / 5;
  int64_t duration = world->max_ttl_ms * random_in(&world->random, 1, 30) * MS / 20;
  if (!is_up(node) || server_clock_ms(world, node) < 2 * behind_ms)
    return;
  nemesis_boot(world, node, 1, random_in(&world->random, 1, 50) * MS);
  TRACE(world, "node %d    boots with its clock behind by %lld ms", node->index, (long long)behind_ms);
  node->behind_ms = behind_ms;
  node->is_behind = 1;
  node->clock_offset -= behind_ms * MS;
  for (int i = 0; i < world->process_count; i++)
    if (random_in(&world->random, 0, 1))
      take_away(world, i, node->index, world->now, world->now + duration, 0);
  plan_end(world, duration, node, FAULT_BEHIND);
}

static void set_right(struct world *world, struct node *node)
{
  if (!node->behind_ms)
    return;
  step_forward(world, node, node->behind_ms);
  node->behind_ms = 0;
  node->right_at = world->now;
}

/* ---- SWAPDB ---- */

/* A connection of the process has told of the marker that is there. */
static int knows_marker(const struct process *process, const struct node *node)
{
  struct rlk_marker marker;
  char text[MARKER_MAX];
  marker_read_text(node, text);
  for (int i = 0; i < process->open_count && rlk_marker_read(text, &marker); i++) {
    const struct connection *connection = &process->world->connections[process->open[i]];
    if (connection->node == node->index && connection->told_end && connection->read_total >= connection->told_end &&
        !strcmp(connection->nonce, marker.nonce))
      return 1;
  }
  return 0;
}

static int all_know_marker(const struct world *world, const struct node *node)
{
  for (int i = 0; i < world->process_count; i++)
    if (!knows_marker(&world->processes[i], node))
      return 0;
  return 1;
}

/* Whoever has not seen the marker can not know later that it was there (docs/guard.md). */
static void swap_there(struct world *world, struct node *node)
{
  if (!is_up(node) || !all_know_marker(world, node))
    return;
  TRACE(world, "node %d    SWAPDB", node->index);
  marker_read_text(node, node->other_marker);
  backing_lose_all(world, node);
  marker_swap(world, node);
  node->swapped = 1;
  plan_end(world, world->max_ttl_ms * random_in(&world->random, 10, 30) * MS / 10, node, FAULT_SWAP);
}

/* The same is true of the marker of meanwhile. */
static void swap_back(struct world *world, struct node *node)
{
  if (!node->swapped)
    return;
  if (!world->calm && !all_know_marker(world, node)) {
    plan_end(world, world->ttl_ms * MS, node, FAULT_SWAP);
    return;
  }
  TRACE(world, "node %d    SWAPDB back", node->index);
  backing_lose_all(world, node);
  marker_write_text(world, node, node->other_marker);
  node->swapped = 0;
}

/* ---- nights ---- */

static void fall_asleep(struct world *world, const struct node *node)
{
  static const int64_t minutes[] = {1, 10, 60, 600, 600};
  int64_t duration = any_of(world, minutes, 5) * 60000 * MS, morning = 20 * world->ttl_ms * MS;
  if (world->nights == MOST_NIGHTS || world->now < world->night_until + morning)
    return;
  TRACE(world, "world     all programs idle for %.0f s", (double)duration / MS / 1000);
  world->nights++;
  world->night_until = world->now + duration;
  world->late_riser = (int)random_in(&world->random, 0, world->process_count - 1);
  world->end_of_work += duration + morning;
  for (int i = 0; i < world->process_count; i++)
    process_idle(&world->processes[i]);
  plan_end(world, duration, node, FAULT_NIGHT);
}

/* When the first program acts after a night. */
int64_t hard_dawn(struct world *world, const struct process *process)
{
  int64_t latest = (process->index == world->late_riser ? 16 : 2) * world->ttl_ms * MS;
  return world->night_until - world->now + random_in(&world->random, 0, latest);
}

static int is_held_there(const struct world *world, const struct node *node)
{
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *slot = world_slot((struct world *)world, (uint32_t)i);
    const struct holding *holding = slot->holding < 0 ? NULL : &world->resources[slot->key].ring[slot->holding];
    if (holding && node->keys[slot->key].live && !memcmp(node->keys[slot->key].token, holding->token, TOKEN_SIZE))
      return 1;
  }
  return 0;
}

/* One clock of them all, under a lease, by more than what a client takes for a difference between clocks; while the way
 * of the early risers to another node is away. */
static void step_in_the_morning(struct world *world)
{
  struct node *stepped = &world->nodes[world->seed / 16 % (uint64_t)world->node_count];
  int other = (stepped->index + (int)random_in(&world->random, 1, world->node_count - 1)) % world->node_count;
  int64_t passed = world->now - world->night_until;
  if (passed == 0)
    for (int i = 0; i < world->process_count; i++)
      if (i != world->late_riser && random_in(&world->random, 0, 3))
        take_away(world, i, other, world->now, world->now + 8 * world->ttl_ms * MS, 0);
  if (passed < 8 * world->ttl_ms * MS && !is_held_there(world, stepped))
    plan_end(world, random_in(&world->random, 1, world->ttl_ms * MS / 4), stepped, FAULT_NIGHT);
  else {
    int64_t step_ms = random_in(&world->random, 2000, 9000);
    step_forward(world, stepped, step_ms);
    stepped->ahead_ms += step_ms;
  }
}

/* ---- one after the other ---- */

void hard_strike(struct world *world, struct node *node, int fault)
{
  switch (fault) {
  case FAULT_SIEGE: besiege(world); break;
  case FAULT_FLIP: flip(world, node); break;
  case FAULT_BEHIND: boot_behind(world, node); break;
  case FAULT_SWAP: swap_there(world, node); break;
  default: fall_asleep(world, node);
  }
}

void hard_event(struct world *world, const struct event *event)
{
  struct node *node = &world->nodes[event->index];
  switch (event->serial) {
  case FAULT_SIEGE: close_in(world); break;
  case FAULT_FLIP: promote(world, node); break;
  case FAULT_BEHIND: set_right(world, node); break;
  case FAULT_SWAP: swap_back(world, node); break;
  default:
    if (!world->calm)
      step_in_the_morning(world);
  }
}

void hard_end(struct world *world)
{
  for (int i = 0; world->hard && i < world->node_count; i++) {
    world->nodes[i].lurks_until = 0;
    promote(world, &world->nodes[i]);
    set_right(world, &world->nodes[i]);
    swap_back(world, &world->nodes[i]);
  }
}

/* ---- what the guard need not notice (docs/guard.md) ---- */

void hard_read(struct connection *connection)
{
  struct heard *heard = &connection->process->heard[connection->link_node];
  int64_t now = connection->process->world->now;
  if (!connection->heard_end || connection->read_total < connection->heard_end)
    return;
  if (!heard->at || heard->incarnation != connection->setup_incarnation)
    *heard = (struct heard){.since = now, .incarnation = connection->setup_incarnation, .before = heard->at};
  heard->at = now;
  connection->heard_end = 0;
}

/* A clock was set right that the process had not read before; nor had it, for longer than any lease, heard the server
 * that ran before. It may read of this vote as late as the lease ends. */
static int is_set_right_unseen(const struct world *world, const struct node *node, const struct process *process)
{
  const struct heard *heard = &process->heard[node->index];
  int64_t lease = world->last_ttl_ms * MS, max_ttl = world->max_ttl_ms * MS;
  if (!node->right_at || world->now - node->right_at >= lease * 11 / 10)
    return 0;
  if (!heard->at || heard->incarnation != node->incarnation)
    return !heard->at || world->now + lease - heard->at >= max_ttl;
  return heard->since > node->right_at && (!heard->before || heard->since - heard->before >= max_ttl);
}

static int is_excused(const struct world *world, const struct node *node, const struct connection *connection)
{
  if (node->flipped_at && connection->informed_at < node->flipped_at &&
      world->now - connection->informed_at < (LOOK_MS + 4 * world->ttl_ms) * MS)
    return 1;
  return is_set_right_unseen(world, node, connection->process);
}

void hard_granted(struct world *world, const struct node *node, const struct connection *connection, int resource,
                  const char *token)
{
  struct resource *at = &world->resources[resource];
  if (!is_excused(world, node, connection))
    return;
  memcpy(at->excused[at->excused_count++ % EXCUSED_MAX], token, TOKEN_SIZE);
  oracle_rob(world, resource, token);
}

/* ---- it is served ---- */

static void prove(struct world *world, struct process *process)
{
  process_prove_alive(process, REDLOCK_ACQUIRE);
  world_pass(world, 500 * MS);
  process_prove_alive(process, REDLOCK_RELEASE);
  world_pass(world, 100 * MS);
}

/* A node that is ahead of the others votes for nobody who has just met it. */
static void set_back(struct world *world)
{
  for (int i = 0; i < world->node_count; i++) {
    world->nodes[i].clock_offset -= world->nodes[i].ahead_ms * MS;
    world->nodes[i].ahead_ms = 0;
  }
}

static void pass_guard_time(struct world *world)
{
  world_pass(world, (world->max_ttl_ms * 5 / 4 + 2 * world->last_ttl_ms) * MS);
}

/* Each node is restarted once the one before votes again. */
void hard_prove_served(struct world *world)
{
  struct process *idle = &world->processes[world->process_count - 1];
  char message[320] = "";
  if (world->violation[0])
    return;
  set_back(world);
  prove(world, &world->processes[0]);
  pass_guard_time(world);
  process_sleep(idle, RLK_NEVER / 4);
  for (int i = 0; i < world->node_count && !world->violation[0]; i++) {
    nemesis_boot(world, &world->nodes[i], (int)random_in(&world->random, 0, 1), random_in(&world->random, 1, 100) * MS);
    world_pass(world, 2000 * MS);
    prove(world, &world->processes[0]);
    pass_guard_time(world);
  }
  world_plan(world, 0, EVENT_AWAKE, (uint32_t)idle->index, idle->sleep_serial);
  world_pass(world, MS);
  if (world->violation[0])
    return;
  process_prove_served(idle, SERVED_MS);
  world_pass(world, (SERVED_MS + 200) * MS);
  redlock_lock_message(idle->slots[0].lock, message, sizeof message);
  if (!world->violation[0] && (idle->slots[0].operation || idle->slots[0].last_status != REDLOCK_OK))
    world_violation(world, "not served: process %d, which was idle while all nodes were restarted: %s: %s", idle->index,
                    redlock_status_name(idle->slots[0].last_status), message);
  if (world->violation[0])
    return;
  process_prove_alive(idle, REDLOCK_RELEASE);
  world_pass(world, 100 * MS);
}

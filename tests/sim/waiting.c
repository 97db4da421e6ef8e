/* The oracle of those who wait: they see in time that a lock is free, and nobody is overtaken again and again. */
#include "store.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

#include "../../core/src/client/client.h"
#include "../../core/src/wait/room.h"
#include "sim.h"

static int64_t key_free_since(const struct world *world, const struct key *key)
{
  return !key->live ? key->freed_at : key->expires_at <= world->now ? key->expires_at : RLK_NEVER;
}

/* Since when nobody's key of these resources has been on a majority of the servers; RLK_NEVER if one is. */
static int64_t all_free_since(const struct world *world, int first, int count)
{
  int64_t since[NODES_MAX] = {0};
  for (int i = 0; i < world->node_count; i++) {
    int64_t moment = 0;
    for (int r = first; r < first + count; r++)
      moment = later(moment, key_free_since(world, &world->nodes[i].keys[r]));
    if (i == world->twin) /* no address leads there */
      moment = RLK_NEVER;
    int at = i;
    for (; at > 0 && since[at - 1] > moment; at--)
      since[at] = since[at - 1];
    since[at] = moment;
  }
  return since[world->node_count / 2];
}

static int64_t free_since(const struct world *world, int resource)
{
  return all_free_since(world, resource, 1);
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

/* A node's key was deleted: a waiter that polls is not told, and does not know when that was. */
static int was_released(const struct world *world, int resource)
{
  for (int i = 0; i < world->node_count; i++) {
    const struct key *key = &world->nodes[i].keys[resource];
    if (!key->live && key->freed_at != key->expires_at)
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

/* A node that was distrusted at first becomes home: those who notice that later stand in another queue for a while. */
static int waits_at_two_homes(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  int64_t at = world->home_moves_at;
  return at && world->now >= at && slot->started_at < at * 12 / 10;
}

/* The lock that asks the nodes for this waiter, which may be another one of its client; NULL: it has no place. */
static const redlock_lock *placed_for(const struct slot *slot)
{
  const redlock_lock *leader = slot->lock && slot->lock->wait->room ? rlk_room_leader(slot->lock) : NULL;
  return leader && rlk_has_place(leader) ? leader : NULL;
}

/* The queue in which it stands, as its client has it; NULL: in none. */
static const struct object *queue_at_home(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  const redlock_lock *leader = placed_for(slot);
  return leader ? keys_queue(&world->nodes[own_server(world, leader->wait->home)], slot->resource) : NULL;
}

static uint64_t number_of(const char *text)
{
  const char *comma = strchr(text, ',');
  text = comma ? comma + 1 : text;
  return strtoull(*text == 's' ? text + 1 : text, NULL, 10) >> 1;
}

/* How many stand before it in that queue; -1: it does not stand there. */
static int rank_of(const struct slot *slot, const struct object *queue)
{
  const redlock_lock *leader = placed_for(slot);
  const char *client = slot->process->client->engine.waits->queue_name;
  size_t size = strlen(client);
  for (int i = 0; leader && queue && i < queue->count; i++) {
    const struct member *place = &queue->members[i];
    if ((size_t)place->size > size && memcmp(place->text, client, size) == 0 &&
        number_of(place->text + size + 1) == leader->wait->place.number)
      return i;
  }
  return -1;
}

/* Within what time of `since` the lock is granted to somebody. */
static int64_t wait_most(const struct slot *slot, int64_t since)
{
  const struct world *world = slot->process->world;
  int is_lapsed = has_lapsed(world, slot->resource);
  if (slot->is_permit && !slot->wants) /* home may hide a free one: all nodes are asked for one after the other */
    return (PERMITS + 1) * 750 * MS;
  if (!world->orderly || world->faults.leftover || world->mixed ||
      (world->polls_every && was_released(world, slot->resource)))
    return 1500 * MS;
  if (world->faultless && !is_lapsed && !has_leftover(world, slot->resource, since) && !waits_at_two_homes(slot))
    return 60 * MS + refused_before(slot); /* it is told */
  /* home may keep the key of a holder that died in its release */
  if (is_lapsed || has_leftover(world, slot->resource, since))
    return later(since, last_end(world, slot->resource)) - since + 500 * MS;
  return 1000 * MS;
}

static int have_a_resource_in_common(const struct slot *one, const struct slot *other)
{
  return one->spans || other->spans || one->resource == other->resource;
}

/* Locks of one resource ought to be of one form: permits and others do not know of each other's slots. */
static int another_form_waits(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *other = world_slot(slot->process->world, (uint32_t)i);
    if (other->operation == REDLOCK_ACQUIRE && other->is_permit != slot->is_permit &&
        have_a_resource_in_common(slot, other))
      return 1;
  }
  return 0;
}

/* Since when a majority would grant what it waits for: of several permits the one that has been free for longest. */
static int64_t wanted_since(const struct slot *slot)
{
  int64_t since = free_since(slot->process->world, slot->resource);
  if (slot->spans)
    return all_free_since(slot->process->world, 0, slot->process->world->resource_count);
  if (slot->wants)
    return free_since(slot->process->world, permit_key(slot->resource, slot->wants - 1));
  for (int i = 1; slot->is_permit && i < PERMITS; i++) {
    int64_t one = free_since(slot->process->world, permit_key(slot->resource, i));
    since = one < since ? one : since;
  }
  return since;
}

/* Home says that it is held: its key is there, or those of all permits are. */
static int is_held_at(const struct node *home, const struct slot *slot)
{
  const struct world *world = slot->process->world;
  for (int i = 0; i < (slot->is_permit ? PERMITS : 1); i++) {
    const struct key *key = &home->keys[permit_key(slot->resource, i)];
    if (!key->live || key->expires_at <= world->now)
      return 0;
  }
  return 1;
}

/* Home may have a key that nobody will delete. The first two in its queue ask the other nodes, too; those that wait for
 * permits ask for one after the other: those behind them believe home. */
static int is_hidden_behind_others(const struct slot *slot)
{
  struct world *world = slot->process->world;
  const redlock_lock *leader = placed_for(slot);
  const struct node *home = leader ? &world->nodes[own_server(world, leader->wait->home)] : NULL;
  const struct object *queue = home ? keys_queue(home, slot->resource) : NULL;
  int in_vain[] = {0, 0};
  if (!home || slot->spans || !is_held_at(home, slot) || rank_of(slot, queue) < 2 ||
      all_free_since(world, 0, world->resource_count) != RLK_NEVER)
    return 0;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *other = world_slot(world, (uint32_t)i);
    int rank = other->operation == REDLOCK_ACQUIRE && other->is_permit ? rank_of(other, queue) : -1;
    if (rank == 0 || rank == 1)
      in_vain[rank] = 1;
  }
  return in_vain[0] && in_vain[1];
}

static int is_waiting(const struct world *world, const struct object *queue, int rank)
{
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *slot = world_slot((struct world *)world, (uint32_t)i);
    if (slot->operation == REDLOCK_ACQUIRE && rank_of(slot, queue) == rank)
      return 1;
  }
  return 0;
}

/* One before it that polled, or had no listener yet, has died: it is missed when its promise ends. */
static int is_behind_silent_dead(const struct slot *slot)
{
  const struct object *queue = queue_at_home(slot);
  for (int i = queue ? rank_of(slot, queue) - 1 : -1; i >= 0; i--) {
    const struct member *place = &queue->members[i];
    if (place->text[place->size - 1] % 2 == 0 && !is_waiting(slot->process->world, queue, i))
      return 1;
  }
  return 0;
}

/* Since when it could have been granted the lock, and nobody stood before it of whom it could not know. */
static int64_t could_since(const struct slot *slot)
{
  return later(wanted_since(slot), later(slot->started_at, slot->behind_at));
}

static int has_to_wait(const struct slot *slot)
{
  int64_t now = slot->process->world->now;
  return is_hidden_behind_others(slot) ||
         (now - could_since(slot) > 300 * MS && now - wanted_since(slot) < 1500 * MS && is_behind_silent_dead(slot));
}

/* From here on the next in that queue has to ask the other nodes. Who is hidden until now may look much later. */
void oracle_moves_up(struct world *world)
{
  for (int i = 0; world->patient && i < world->process_count * SLOTS_MAX; i++) {
    struct slot *slot = world_slot(world, (uint32_t)i);
    if (slot->operation == REDLOCK_ACQUIRE && has_to_wait(slot))
      slot->behind_at = world->now;
  }
}

/* How many came before it for one of its resources, each of which it may have to wait for, and those that hold them. */
static int64_t turns_before(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  int64_t turns = 2 * world->resource_count;
  for (int i = 0; i < world->process_count * SLOTS_MAX; i++) {
    const struct slot *other = world_slot(slot->process->world, (uint32_t)i);
    if (other != slot && other->operation == REDLOCK_ACQUIRE && other->started_at <= slot->started_at)
      turns += other->spans ? world->resource_count : 1;
  }
  return turns;
}

/* A lock of several resources is served in a time that depends on those before it, and on how long others hold. */
static void several_wait(const struct slot *slot)
{
  const struct world *world = slot->process->world;
  int64_t most = later(turns_before(slot), 12) * world->longest_hold + 500 * MS;
  if (world->orderly && !world->faults.process_end && !world->faults.leftover && !may_be_refused(slot) &&
      !waits_at_two_homes(slot) && world->now - slot->started_at > most)
    world_violation(slot->process->world, "several: lock %d waits for %.3f ms, and the longest hold was %.3f ms",
                    slot->index, (double)(world->now - slot->started_at) / MS, (double)world->longest_hold / MS);
}

/* Where nothing breaks a waiter that a majority would grant the lock sees that soon, unless somebody else is granted
 * it: whatever was left behind on the other nodes, whoever cannot win stands before it, and how many have died. */
void oracle_waits(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t since, soon;
  if (!world->patient || world->contest_at || slot->operation != REDLOCK_ACQUIRE)
    return;
  if (slot->spans)
    several_wait(slot);
  if (another_form_waits(slot) || has_to_wait(slot)) {
    slot->behind_at = world->now; /* a waiter before it may want the first permit alone */
    return;
  }
  since = could_since(slot);
  soon = wait_most(slot, since);
  if (world->now - slot->started_at < soon || may_be_refused(slot))
    return;
  if (since <= world->now - soon)
    world_violation(world, "missed: a majority has been free for %.3f ms, and lock %d still waits for %s",
                    (double)(world->now - since) / MS, slot->index, world->resources[slot->resource].name);
}

/* Nothing breaks any more: then what a majority would grant to one that waits is granted soon. Nobody is told where a
 * key or a place of one who has died is left, and waiters that listen ask every 4 s. */
void oracle_stands_still(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t since;
  const int64_t soon = 5000 * MS;
  if (another_form_waits(slot))
    slot->behind_at = world->now;
  since = later(wanted_since(slot), later(world->contest_at, slot->behind_at));
  if (since < world->now - soon)
    world_violation(world, "stuck: a majority has been free for %.3f ms, and nobody is granted %s",
                    (double)(world->now - since) / MS, world->resources[slot->resource].name);
}

/* One holds although the other came before: it wants something else, or in another form, or they may hold together. */
static int excludes(const struct slot *winner, const struct slot *slot)
{
  if ((winner->is_shared && slot->is_shared) || winner->is_permit != slot->is_permit)
    return 0;
  return !slot->wants || winner->key == permit_key(slot->resource, slot->wants - 1);
}

/* Where everybody waits in order nobody is overtaken again and again. A few times are granted: keys are left behind,
 * and places are lost. */
void oracle_order(struct slot *winner)
{
  const int overtaken_max = 3;
  struct world *world = winner->process->world;
  int agree = !world->faults.process_end; /* one that has just begun distrusts a clock that is ahead, and so home */
  for (int i = 0; world->orderly && agree && i < world->process_count * SLOTS_MAX; i++) {
    struct slot *slot = world_slot(world, (uint32_t)i);
    if (slot == winner || slot->resource != winner->resource || slot->operation != REDLOCK_ACQUIRE || slot->spans ||
        winner->spans || !excludes(winner, slot) || may_be_refused(slot) || waits_at_two_homes(slot) ||
        slot->started_at + 2 * (world->now - slot->started_at) * world->drift_percent / 100 >= winner->started_at)
      continue; /* who came first is known by clocks that drift */
    if (++slot->overtaken > overtaken_max)
      world_violation(world, "overtaken: %d times others who came later were granted %s before lock %d",
                      slot->overtaken, world->resources[slot->resource].name, slot->index);
  }
}

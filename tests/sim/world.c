/* One world: what its seed makes of it, and its course from the first connect to the last key's end. */
#include "orders.h"
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MAX (1300 * MS)
#define MORTAL_TTL_MS 1000 /* in patient worlds in which processes are killed: their leases end within the work */

struct slot *world_slot(struct world *world, uint32_t index)
{
  return &world->processes[index / SLOTS_MAX].slots[index % SLOTS_MAX];
}

/* ---- telling ---- */

void world_note(struct world *world, uint32_t kind, uint64_t a, uint64_t b)
{
  uint64_t hash = world->hash ^ ((uint64_t)world->now * 31 + kind);
  hash = (hash ^ a * 7) * UINT64_C(0xff51afd7ed558ccd);
  hash = (hash ^ hash >> 32 ^ b) * UINT64_C(0xc4ceb9fe1a85ec53);
  world->hash = hash ^ hash >> 29;
}

void world_note_bytes(struct world *world, const char *bytes, size_t size)
{
  uint64_t part;
  for (; size >= 8; bytes += 8, size -= 8) {
    memcpy(&part, bytes, 8);
    world->hash = (world->hash ^ part) * UINT64_C(0x9E3779B97F4A7C15);
    world->hash ^= world->hash >> 32;
  }
  for (part = 0; size; size--)
    part = part << 8 | (uint8_t)*bytes++;
  world->hash = (world->hash ^ part) * UINT64_C(0x9E3779B97F4A7C15);
}

void world_fail(const struct world *world, const char *format, ...)
{
  va_list arguments;
  char why[512];
  if (world->tester) {
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    world->tester->fail(why);
  }
  fflush(stdout);
  fprintf(stderr, "sim: SEED=%" PRIu64 " at %.6f ms: ", world->seed, (double)world->now / MS);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(EXIT_HARNESS);
}

void world_violation(struct world *world, const char *format, ...)
{
  va_list arguments;
  char text[sizeof world->violation];
  if (world->violation[0])
    return;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (world->hunted && !strstr(text, world->hunted))
    return;
  memcpy(world->violation, text, sizeof text);
  TRACE(world, "VIOLATION %s", world->violation);
}

void world_trace(struct world *world, const char *format, ...)
{
  va_list arguments;
  char text[1024];
  int size = snprintf(text, sizeof text, "%12.6f  ", (double)world->now / MS);
  va_start(arguments, format);
  vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
  va_end(arguments);
  if (world->tester)
    world->tester->hear(text);
  else
    puts(text);
}

void world_plan(struct world *world, int64_t delay, uint32_t kind, uint32_t index, uint32_t serial)
{
  struct event event = {world->now + delay, 0, kind, index, serial, 0};
  queue_push(&world->queue, event);
}

/* ---- what the seed makes ---- */

/* Delays that fall evenly never meet the edges of a lease or of a time-out: these do. */
int64_t world_edge(struct world *world)
{
  int64_t ttl = world->ttl_ms * MS * random_in(&world->random, 3, 6) / 3;
  int64_t timeout = world->node_timeout_ms * MS;
  int64_t percent = random_in(&world->random, 930, 1030);
  switch (random_in(&world->random, 0, 5)) {
  case 0: return ttl * random_in(&world->random, 200, 600) / 1000;
  case 1:
  case 2: return timeout * percent / 1000;
  default: return ttl * percent / 1000;
  }
}

static uint32_t pick(struct world *world, const uint32_t *from, int count)
{
  return from[random_in(&world->random, 0, count - 1)];
}

#define PICK(world, ...)                                                                                               \
  pick((world), (const uint32_t[]){__VA_ARGS__}, (int)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static void choose_faults(struct world *world)
{
  struct faults *faults = &world->faults;
  memset(faults, 0, sizeof *faults);
  faults->delay_min = PICK(world, 20000, 100000, 500000);
  faults->delay_max = faults->delay_min * PICK(world, 2, 4, 10);
  faults->timer_late = PICK(world, 50000, 200000, 1000000);
  faults->nemesis_every = PICK(world, 20, 60, 200) * MS;
  world->faultless = random_in(&world->random, 0, 9) == 0;
  if (world->faultless)
    return;
  if (world->patient) {
    faults->process_end = world->ttl_ms == MORTAL_TTL_MS;
    faults->leftover = !faults->process_end;
    faults->nemesis_every = PICK(world, 300, 1000, 3000) * MS;
    return;
  }
  faults->edge = PICK(world, 0, 2000, 10000, 30000);
  faults->tail = PICK(world, 0, 10000, 100000);
  faults->split = PICK(world, 0, 0, 50000);
  faults->stall = PICK(world, 0, 0, 20000);
  faults->lag = PICK(world, 0, 100, 1000, 5000);
  faults->refuse = PICK(world, 0, 0, 300000);
  faults->drop = PICK(world, 0, 1, 4);
  faults->node_pause = PICK(world, 0, 1, 2);
  faults->process_pause = PICK(world, 0, 1, 4);
  faults->restart = PICK(world, 0, 0, 1);
  faults->script_flush = PICK(world, 0, 0, 1);
  faults->node_error = PICK(world, 0, 0, 1);
  faults->process_end = PICK(world, 0, 0, 1);
  faults->replica = PICK(world, 0, 0, 2);
  faults->loss = PICK(world, 0, 0, 2);
  faults->outage = world->seed % 4 == 1 ? world->seed / 32 % 2 : 0; /* without the guard it is nobody's to survive */
  faults->fork = PICK(world, 0, 0, 0, 0, 2);
  faults->astray = world->twin < 0 ? PICK(world, 0, 0, 0, 2) : 0;
  if (faults->astray)
    faults->restart = 0; /* no run_id tells that a server which kept its keys is the one behind another address, too */
}

static void leave_out(struct world *world)
{
  struct faults *faults = &world->faults;
  faults->tail *= !does_without(world, FAULT_TAIL);
  faults->edge *= !does_without(world, FAULT_EDGE);
  faults->split *= !does_without(world, FAULT_SPLIT);
  faults->stall *= !does_without(world, FAULT_STALL);
  faults->lag *= !does_without(world, FAULT_LAG);
  faults->refuse *= !does_without(world, FAULT_REFUSE);
}

static void choose_sizes(struct world *world)
{
  world->node_count = (int)PICK(world, 1, 2, 3, 3, 3, 3, 4, 5, 5, 7);
  world->process_count = (int)PICK(world, 1, 2, 2, 3, 3, 4, 5);
  world->resource_count = (int)PICK(world, 1, 1, 2);
  world->patient = random_in(&world->random, 0, 14) == 0;
  world->orderly = world->patient && random_in(&world->random, 0, 3) > 0;
  world->refused_ttl_ms = 0;
  world->ttl_ms = world->patient ? PICK(world, 2000, 5000, 10000) : PICK(world, 60, 100, 150, 250, 400);
  if (world->orderly && random_in(&world->random, 0, 1))
    world->refused_ttl_ms = world->ttl_ms * 4 / 3;
  else if (world->orderly)
    world->ttl_ms = MORTAL_TTL_MS;
  world->explicit_timeout = random_in(&world->random, 0, 3) == 0;
  world->node_timeout_ms = world->explicit_timeout ? world->ttl_ms / 8 : world->ttl_ms > 250 ? world->ttl_ms / 5 : 50;
  world->connect_timeout_ms = world->ttl_ms / 2;
  world->last_ttl_ms = 2 * world->ttl_ms;
  world->drift_percent = (int)PICK(world, 1, 1, 1, 10);
  world->database = (int)PICK(world, 0, 0, 3);
  world->twin = world->node_count >= 3 && random_in(&world->random, 0, 4) == 0 ? world->node_count - 1 : -1;
  world->end_of_work = (world->patient ? 200 : world->ttl_ms) * random_in(&world->random, 20, 60) * MS;
  for (int i = 0; i < world->process_count; i++)
    world->processes[i].slot_count = (int)PICK(world, 1, 1, 2, 3);
}

static void lay_out(struct world *world)
{
  for (int i = 0; i < NODES_MAX; i++)
    for (int process = 0; process < PROCESSES_MAX; process++)
      world->leads_to[process][i] = own_server(world, i);
  for (int i = 0; i < world->resource_count; i++)
    snprintf(world->resources[i].name, sizeof world->resources[i].name, "orders:%d", i);
  world->key_count = world->mixed ? KEYS_MAX : world->resource_count;
  for (int i = 0; world->mixed && i < world->resource_count; i++)
    for (int slot = 1; slot < PERMITS; slot++) {
      struct resource *key = &world->resources[permit_key(i, slot)];
      snprintf(key->name, sizeof key->name, "libredlock:s:%d:orders:%d", slot, i);
    }
  world->slot_count = 0;
  for (int i = 0; i < world->process_count; i++)
    world->slot_count += world->processes[i].slot_count;
}

/* A rate error within what the drift allows two clocks to run apart; often at its edge. With the guard, which looks at
 * clocks over longer times, one of clocks that are kept right. Where nothing is drawn all are at the edge. */
static int64_t choose_ppm(struct world *world, int sign)
{
  int64_t most = world->drift_percent == 1 ? 4900 : 45000;
  int64_t ppm = random_in(&world->random, -most, most);
  if (world->orders.history)
    return sign * most;
  ppm = random_in(&world->random, 0, 3) ? ppm : ppm < 0 ? -most : most;
  return world->guarded ? ppm % 200 : ppm;
}

static void start_slots(struct world *world, struct process *process)
{
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = &process->slots[i];
    memset(slot, 0, sizeof *slot);
    slot->process = process;
    slot->index = process->index * SLOTS_MAX + i;
    slot->resource = (int)random_in(&world->random, 0, world->resource_count - 1);
  }
}

static void start_processes(struct world *world)
{
  for (int i = 0; i < world->process_count; i++) {
    struct process *process = &world->processes[i];
    int slot_count = process->slot_count;
    memset(process, 0, sizeof *process);
    process->index = i;
    process->slot_count = slot_count;
    process->clock_offset = random_in(&world->random, 1, 100000) * 1000 * MS;
    process->clock_ppm = choose_ppm(world, -1);
    process->blocking =
        !world->patient && world->hard != HARD_NIGHTS && !world->orders.history && random_in(&world->random, 0, 4) == 0;
    process->forks = world->faults.fork && !process->blocking;
    process->next_max_ttl_ms = process->next_ttl_most_ms = world->max_ttl_ms;
    start_slots(world, process);
    process_start(world, i);
    arena_use(NULL);
  }
}

/* ---- the course ---- */

static void handle(struct world *world, const struct event *event)
{
  world->events++;
  world_note(world, event->kind, event->index, event->size);
  switch (event->kind) {
  case EVENT_WAKE:
  case EVENT_AWAKE:
  case EVENT_ACTION:
  case EVENT_CHILD: process_event(world, event); break;
  case EVENT_THREAD: thread_event(world, event); break;
  case EVENT_OVERDUE: blocking_overdue(world, event); break;
  case EVENT_ROLLOUT: rollout_go_on(world); break;
  case EVENT_HARD: hard_event(world, event); break;
  case EVENT_NEMESIS:
  case EVENT_NODE_AWAKE:
  case EVENT_ADDRESS:
  case EVENT_NODE_UP: nemesis_event(world, event); break;
  default: network_event(world, event);
  }
}

int world_step(struct world *world, int64_t end)
{
  struct event event;
  if (world->violation[0] || !world->queue.count || world->queue.heap[0].at > end)
    return 0;
  queue_pop(&world->queue, &event);
  world->now = event.at;
  handle(world, &event);
  return 1;
}

static void run_until(struct world *world, int64_t end)
{
  while (world_step(world, end))
    ;
  if (world->now < end)
    world->now = end;
}

static int is_quiet(const struct world *world)
{
  for (int i = 0; i < world->process_count; i++)
    if (!process_is_idle(&world->processes[i]))
      return 0;
  for (int i = 0; i < world->node_count; i++)
    if (world->nodes[i].down || world->nodes[i].replaced)
      return 0;
  return network_is_quiet(world);
}

static void run_until_quiet(struct world *world)
{
  int64_t limit = world->now + (20 * world->last_ttl_ms + 10000) * MS;
  do
    run_until(world, world->now + 5 * MS);
  while (!world->violation[0] && !is_quiet(world) && world->now < limit);
  if (!is_quiet(world))
    world_violation(world, "the world does not become quiet");
}

static void calm_down(struct world *world)
{
  TRACE(world, "world     faults and work end");
  world->calm = 1;
  hard_end(world);
  nemesis_rest(world);
  for (int i = 0; i < world->process_count && !world->violation[0]; i++)
    process_stop_work(&world->processes[i]);
  run_until_quiet(world);
  oracle_quiet(world);
}

static void check_empty(struct world *world, const char *when)
{
  for (int i = 0; i < world->node_count; i++)
    for (int r = 0; r < world->key_count; r++) {
      server_expire(world, &world->nodes[i], r);
      if (world->nodes[i].keys[r].live)
        world_violation(world, "residue: node %d has a key of %s %s", i, world->resources[r].name, when);
    }
}

/* A node that may have lost keys votes again by then. */
static int64_t guard_time(const struct world *world)
{
  return world->guarded ? world->max_ttl_ms * MS * 5 / 4 + 2 * BACKOFF_MAX : 0;
}

/* A short lease may be over before all is quiet. */
static int is_proof(const struct slot *slot, int operation)
{
  int is_late = operation == REDLOCK_RELEASE && slot->has_lapsed;
  return slot->last_status == REDLOCK_OK || (is_late && slot->last_status == REDLOCK_LOST);
}

static void report_dead(struct world *world, const struct slot *slot, int operation)
{
  char message[320] = "";
  redlock_lock_message(slot->lock, message, sizeof message);
  world_violation(world, "process %d can not %s in a world without faults: %s: %s", slot->process->index,
                  operation == REDLOCK_RELEASE ? "release" : "acquire", redlock_status_name(slot->last_status),
                  message);
}

/* When all leases are over nothing stands in the way of a new lock, for anybody. */
static void prove_alive(struct world *world)
{
  for (int i = 0; i < 2 * world->process_count && !world->violation[0]; i++) {
    struct process *process = &world->processes[i / 2];
    int operation = i % 2 ? REDLOCK_RELEASE : REDLOCK_ACQUIRE;
    process_prove_alive(process, operation);
    run_until_quiet(world);
    if (!is_proof(&process->slots[0], operation))
      report_dead(world, &process->slots[0], operation);
  }
}

void world_pass(struct world *world, int64_t duration)
{
  run_until(world, world->now + duration);
}

static void contest(struct world *world)
{
  enum { TRIES = 3 };
  if (world->orders.history || world->violation[0])
    return;
  for (int i = 0; i < TRIES && !world->violation[0]; i++) {
    contest_try(world);
    run_until_quiet(world);
  }
  contest_run(world);
  run_until_quiet(world);
  run_until(world, world->now + (world->last_ttl_ms * 12 / 10 + 100) * MS); /* one has died with its keys */
  check_empty(world, "after all have had it");
}

/* Whoever leaves takes its lock along (rule A.5), but from a server whose marker it has just found changed: it has to
 * connect anew first; and, since nobody waits for answers here, from one that has forgotten the script. */
static void leave(struct world *world)
{
  if (!world->violation[0])
    process_prove_alive(&world->processes[0], REDLOCK_ACQUIRE);
  run_until_quiet(world);
  for (int i = 0; i < world->process_count; i++)
    process_end(&world->processes[i]);
  run_until_quiet(world);
  if (world->guarded || world->faults.script_flush)
    run_until(world, world->now + (world->last_ttl_ms * 12 / 10 + 100) * MS);
  check_empty(world, "although its process has left");
}

static void reset(struct world *world, uint64_t seed)
{
  for (int i = 0; i < (world_mixes ? KEYS_MAX : RESOURCES_MAX); i++)
    memset(&world->resources[i], 0, sizeof world->resources[i]);
  oracle_start(world);
  world->queue.count = world->queue.order = 0;
  world->lives = 0;
  world->strikes = 0;
  memset(world->removes, 0, sizeof world->removes);
  world->seed = seed;
  world->random = seed * UINT64_C(0xD1342543DE82EF95) + 1;
  world->now = MS;
  world->calm = 0;
  world->contest_at = world->night_until = world->nights = 0;
  world->siege = (struct siege){.until = 0};
  memset(world->away, 0, sizeof world->away);
  world->home_moves_at = world->astray_at = 0;
  world->hash = seed;
  world->violation[0] = 0;
  world->events = 0;
  network_start(world);
  threads_forget();
}

/* With the guard a node whose clock is ahead does not vote, and fencing numbers grow as long as clocks differ by less
 * than a quarantine. */
int64_t clocks_apart_ms(const struct world *world)
{
  return world->ttl_ms < 500 ? world->ttl_ms : 500;
}

static void run_alike(const struct world *world, struct node *node)
{
  const struct node *first = &world->nodes[0];
  int64_t apart = node->clock_offset / (1000 * MS) * clocks_apart_ms(world);
  node->clock_ppm = first->clock_ppm;
  if (node != first)
    node->clock_offset = first->clock_offset + apart;
}

/* What its clients have for a guard. */
static void choose_guard(struct world *world, uint64_t seed)
{
  int is_drawn = !world->orders.history;
  world->guarded = is_drawn ? world->hard || seed % 4 == 1 : orders_are_guarded(world);
  world->max_ttl_ms = world->hard == HARD_NIGHTS && seed / 8 % 2 ? HARD_TTL_MS : 4 * world->ttl_ms;
  world->fenced = is_drawn ? world->guarded && !world->hard && seed / 4 % 2 : orders_are_fenced(world);
  if (world->guarded && !world->hard && !world->fenced && !world->faultless && !world->orderly && world->twin < 0 &&
      !world->faults.astray)
    world->faults.clock_step = seed / 8 % 3 * 2;
}

/* In half of the worlds in which all processes but one are killed, all of them or every second one poll: a node does
 * not notice that such a waiter has died before its promise ends. */
static void choose_wake(struct world *world)
{
  static const int polls_every[] = {0, 1, 2, 0};
  int is_mortal = world->orderly && world->faults.process_end;
  world->polls_every = is_mortal ? polls_every[world->seed / 16 % 4] : 0;
}

/* The last node's numbers are far ahead, as one that lies has them, or its clock is. */
static void mislead(struct world *world, struct node *node)
{
  uint64_t how = world->seed / 32 % 4;
  int is_last = node == &world->nodes[world->node_count - 1];
  if (!world->fenced || world->orders.history || world->node_count < 3 || !is_last || world->twin >= 0)
    return;
  if (how == 1) {
    node->clock_offset += 10 * DAY;
    world->home_moves_at = world->max_ttl_ms * MS;
  }
  for (int i = 0; how == 2 && i < world->resource_count; i++)
    keys_set_fence(world, node, i, (server_clock_ms(world, node) * MS + 30 * DAY) / 1000);
}

/* No lease is live on it, and its guard knows; else it is a first deployment. */
static void start_node(struct world *world, int index)
{
  struct node *node = &world->nodes[index];
  int is_known = world->patient || world->orders.history || world->hard || world->seed / 4 % 8 != 0;
  server_start(world, index);
  node->clock_ppm = choose_ppm(world, 1);
  if (world->guarded || world->fenced)
    run_alike(world, node);
  if (index == 0)
    world->wall_offset = node->clock_offset;
  mislead(world, node);
  if (world->guarded && is_known)
    server_bootstrap(world, node);
}

int world_mixes, world_is_hard;

void world_run(struct world *world, uint64_t seed)
{
  reset(world, seed);
  world->hard = world_is_hard && !world->orders.history ? (enum hard)(1 + seed % (HARDS - 1)) : HARD_NONE;
  world->mixed = world_mixes && !world->orders.history;
  world->kinds = seed * UINT64_C(0x9E3779B97F4A7C15) + 7;
  if (world->orders.history) {
    orders_choose(world);
  } else {
    choose_sizes(world);
    choose_faults(world);
    if (world->hard)
      hard_choose(world);
    leave_out(world);
  }
  if (world->mixed)
    world->resource_count = RESOURCES_MAX;
  lay_out(world);
  choose_guard(world, seed);
  choose_wake(world);
  rollout_choose(world);
  for (int i = 0; i < world->node_count; i++)
    start_node(world, i);
  start_processes(world);
  world_plan(world, world->faults.nemesis_every, EVENT_NEMESIS, 0, 0);
  while (world->now < world->end_of_work && !world->violation[0])
    run_until(world, world->end_of_work);
  calm_down(world);
  run_until(world, world->now + (world->last_ttl_ms * 12 / 10 + 100) * MS);
  check_empty(world, "that no lease explains");
  rollout_finish(world);
  run_until(world, world->now + BACKOFF_MAX + guard_time(world)); /* a refused node is looked at again by then */
  prove_alive(world);
  if (world->hard)
    hard_prove_served(world);
  if (world->guarded) /* who has found only now that keys were lost deletes over a new connection */
    run_until(world, world->now + BACKOFF_MAX);
  check_empty(world, "after the last release");
  contest(world);
  leave(world);
}

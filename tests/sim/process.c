/* A simulated client process: one redlock_client of the unchanged core in the started shape, stepped by events. */
#include "orders.h"
#include "sim.h"
#include "waiting.h"

#include "../../core/src/base/mutant.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_WITHOUT_TIME_MAX = 2000 };

/* ---- clock and random bits ---- */

/* The processor may be taken away between any two instructions; these are the places where it shows. */
void process_lag(struct process *process)
{
  struct world *world = process->world;
  int64_t lag;
  if (world->calm || process->muted || (process->blocking && !thread_is_running()) ||
      !random_hits(&world->random, world->faults.lag))
    return;
  lag = random_in(&world->random, 0, 1) ? world_edge(world) : random_in(&world->random, 0, 5 * MS);
  if (thread_is_running()) {
    thread_preempt(lag);
    return;
  }
  process->lag += lag;
  TRACE(world, "process %d lags by %.3f ms", process->index, (double)process->lag / MS);
}

int64_t process_clock(const struct process *process)
{
  int64_t now = process->world->now + process->lag;
  return process->clock_offset + now + now * process->clock_ppm / 1000000;
}

int64_t process_true_time(const struct process *process, int64_t clock)
{
  int64_t elapsed = clock - process->clock_offset;
  int64_t now = elapsed - elapsed * process->clock_ppm / (1000000 + process->clock_ppm);
  while (now + now * process->clock_ppm / 1000000 < elapsed)
    now++;
  return now;
}

static int64_t sim_now_ns(void *context)
{
  struct process *process = context;
  if (!process->looking)
    process_lag(process);
  return process_clock(process);
}

static uint64_t sim_random(void *context)
{
  return random_next(&((struct process *)context)->random);
}

/* The clocks of clients and servers differ by less than a quarantine: this one proposes fencing numbers, and it may say
 * that a node is right which others take for one that is ahead. It is never stepped, or it would hide the same step of
 * a server. */
static int64_t sim_wall_ns(void *context)
{
  const struct process *process = context;
  const struct world *world = process->world;
  return world->wall_offset + world->now + world->now * world->nodes[0].clock_ppm / 1000000 +
         process->index % 4 * clocks_apart_ms(world) * MS / 4;
}

static int64_t sim_process(void *context, char *host, size_t size)
{
  (void)context;
  snprintf(host, size, "sim");
  return 1;
}

static const struct rlk_platform sim_platform = {sim_now_ns, sim_random, sim_wall_ns, sim_process};

/* ---- stepping ---- */

/* A lock that was just granted must have min_validity left, unless the process lost time between that and this look. */
static void check_grant(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t validity_ms = redlock_lock_validity_ms(slot->lock), wanted_ms = slot->ttl_ms / 10;
  if (!slot->process->lagged && validity_ms + 1 < (wanted_ms > 5 ? wanted_ms : 5))
    world_violation(world, "lock %d was granted with %" PRId64 " ms left", slot->index, validity_ms);
}

static void operation_ended(struct slot *slot, int status)
{
  int operation = slot->operation;
  slot->operation = 0;
  slot->last_status = status;
  if (operation == REDLOCK_RELEASE)
    oracle_released(slot, status);
  slot->released[0] = 0;
  TRACE(slot->process->world, "process %d lock %d: operation %d ends: %s", slot->process->index, slot->index, operation,
        redlock_status_name(status));
  if (!slot->told)
    world_violation(slot->process->world, "operation %d on lock %d ended and nobody was told", operation, slot->index);
  if (operation == REDLOCK_EXTEND && status == REDLOCK_OK && slot->is_shared)
    oracle_share_hold(slot);
  if (operation == REDLOCK_ACQUIRE && status == REDLOCK_OK)
    check_grant(slot);
  if (operation == REDLOCK_ACQUIRE && status == REDLOCK_OK)
    oracle_order(slot);
  if (!slot->process->world->calm)
    slot_plan(slot, slot_pause(slot));
}

static void check_deadline(struct slot *slot)
{
  struct world *world = slot->process->world;
  if (slot->operation && slot->must_end_by < world->now)
    world_violation(world, "operation %d on lock %d has not ended %" PRId64 " ms after its deadline", slot->operation,
                    slot->index, (world->now - slot->must_end_by) / MS);
}

/* Texts must be right in every state; what they say is for people. */
static void read_texts(struct process *process)
{
  char text[256];
  for (int i = 0; i < process->slot_count; i++) {
    redlock_lock_message(process->slots[i].lock, text, sizeof text);
    for (int node = 0; node < process->world->node_count; node++) {
      redlock_lock_vote(process->slots[i].lock, node);
      redlock_lock_answer(process->slots[i].lock, node, REDLOCK_ANSWER_WORDS, text, sizeof text);
    }
  }
  redlock_client_describe(process->client, text, sizeof text);
  redlock_client_event(process->client, text, sizeof text);
}

static void hear(struct process *process, uint64_t tag)
{
  world_slot(process->world, (uint32_t)tag - 1)->told = 1;
}

/* What the program sees when it looks at its locks. */
static void look(struct process *process)
{
  uint64_t tag;
  process->looking = 1;
  while (redlock_client_next(process->client, &tag) == 1)
    hear(process, tag);
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = &process->slots[i];
    int status = slot->operation ? redlock_lock_status(slot->lock) : REDLOCK_PENDING;
    oracle_observe(slot);
    oracle_waits(slot);
    if (status != REDLOCK_PENDING)
      operation_ended(slot, status);
    check_deadline(slot);
  }
  if (random_hits(&process->world->random, 2000))
    read_texts(process);
  process->looking = 0;
}

static void waits_for_nothing(struct slot *slot)
{
  char message[512] = "";
  redlock_lock_message(slot->lock, message, sizeof message);
  world_violation(slot->process->world, "operation %d on lock %d waits for nothing: %s", slot->operation, slot->index,
                  message);
}

static void plan_wake(struct process *process)
{
  struct world *world = process->world;
  int64_t deadline = rlk_client_next_deadline(process->client), at;
  if (deadline == RLK_NEVER) {
    for (int i = 0; i < process->slot_count; i++)
      if (process->slots[i].operation)
        waits_for_nothing(&process->slots[i]);
    return;
  }
  at = process_true_time(process, deadline);
  at = (at > world->now ? at : world->now) + random_in(&world->random, 0, world->faults.timer_late);
  if (process->wake_at >= world->now && process->wake_at <= at)
    return;
  process->wake_at = at;
  world_plan(world, at - world->now, EVENT_WAKE, (uint32_t)process->index, 0);
}

static void check_progress(struct process *process)
{
  struct world *world = process->world;
  if (process->steps_at != world->now) {
    process->steps_at = world->now;
    process->steps_now = 0;
  } else if (++process->steps_now > STEPS_WITHOUT_TIME_MAX) {
    world_violation(world, "process %d is busy without end", process->index);
  }
}

/* After every call into the core. A lag that it met takes effect when it returns. */
static void settle(struct process *process)
{
  int64_t lag = process->lag;
  process->lag = 0;
  check_progress(process);
  if (lag) {
    process_sleep(process, lag);
    process->lagged = 1;
    return;
  }
  look(process);
  plan_wake(process);
}

static void step(struct process *process)
{
  uint64_t tag;
  if (process->index % 2) /* both forms that an event loop may use */
    redlock_client_process(process->client);
  else if (redlock_client_advance(process->client, &tag) == 1)
    hear(process, tag);
  settle(process);
}

static void told(struct process *process, struct connection *connection, int what)
{
  if (!process->client)
    return;
  if (!process->blocking) /* else it is read when it looks for input */
    rlk_client_link_event(process->client, connection->link_node, connection->generation, what);
  step(process);
}

void process_told(struct process *process, struct connection *connection, int what)
{
  void *before = arena_use(process);
  told(process, connection, what);
  arena_return(before);
}

/* ---- pauses ---- */

void process_sleep(struct process *process, int64_t duration)
{
  struct world *world = process->world;
  if (process->asleep || !process->client)
    return;
  TRACE(world, "process %d is paused for %.3f ms", process->index, (double)duration / MS);
  process->asleep = 1;
  process->slept_at = world->now;
  process->wake_at = -1;
  world_plan(world, duration, EVENT_AWAKE, (uint32_t)process->index, ++process->sleep_serial);
}

static void wake(struct process *process)
{
  struct world *world = process->world;
  if (!process->asleep)
    return;
  TRACE(world, "process %d goes on", process->index);
  process->asleep = 0;
  process->woke_at = world->now;
  if (process->running) {
    process->stolen += world->now - process->slept_at;
    threads_awake(process);
    threads_poke(process);
    return;
  }
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = &process->slots[i];
    if (slot->must_end_by != RLK_NEVER)
      slot->must_end_by += world->now - process->slept_at;
  }
  look(process);
  process->lagged = 0;
  if (random_in(&world->random, 0, 1))
    step(process);
  network_report_all(process);
  if (!process->asleep)
    step(process);
  if (world->calm)
    process_stop_work(process);
  for (int i = 0; i < process->slot_count && !world->calm; i++)
    if (process->slots[i].action_due)
      slot_plan(&process->slots[i], 0);
}

/* ---- events ---- */

static void wake_event(struct process *process, int64_t at)
{
  if (at != process->wake_at)
    return;
  process->wake_at = -1;
  if (rlk_client_next_deadline(process->client) <= process_clock(process))
    step(process);
  else
    plan_wake(process);
}

static void action_event(struct world *world, const struct event *event)
{
  struct slot *slot = world_slot(world, event->index);
  if (event->serial != slot->action_serial || world->calm || !slot->process->client)
    return;
  if (slot->process->asleep) {
    slot->action_due = 1;
    return;
  }
  if (world->now < world->night_until) {
    process_idle(slot->process);
    slot_plan(slot, hard_dawn(world, slot->process));
    return;
  }
  slot_act(slot);
  step(slot->process);
}

static void handle(struct process *process, const struct event *event)
{
  struct world *world = process->world;
  if (event->kind == EVENT_ACTION)
    action_event(world, event);
  else if (event->kind == EVENT_CHILD && event->serial == process->life && process->has_child && !world->calm)
    process_replace(process, (int)random_in(&world->random, 0, 1));
  else if (event->kind == EVENT_AWAKE && event->serial == process->sleep_serial)
    wake(process);
  else if (event->kind == EVENT_WAKE && process->client && !process->asleep && !process->running)
    wake_event(process, event->at);
}

void process_event(struct world *world, const struct event *event)
{
  int is_slot = event->kind == EVENT_ACTION;
  struct process *process = is_slot ? world_slot(world, event->index)->process : &world->processes[event->index];
  void *before = arena_use(process);
  handle(process, event);
  arena_return(before);
}

/* ---- life ---- */

static void client_option(struct process *process, const char *name, const char *value)
{
  char message[256] = "";
  if (redlock_client_set(process->client, name, value) == REDLOCK_OK)
    return;
  redlock_client_message(process->client, message, sizeof message);
  world_violation(process->world, "client option is refused: %s", message);
}

static void client_number(struct process *process, const char *name, int64_t value)
{
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  client_option(process, name, text);
}

static void set_nodes(struct process *process)
{
  char urls[NODES_MAX * 48] = "";
  size_t at = 0;
  for (int i = 0; i < process->world->node_count; i++)
    at += (size_t)snprintf(urls + at, sizeof urls - at, "%sredis://%s10.0.0.%d:6379/%d", i ? "," : "",
                           process->world->database ? ":" PASSWORD "@" : "", i + 1, process->world->database);
  client_option(process, "nodes", urls);
}

void process_start(struct world *world, int index)
{
  struct process *process = &world->processes[index];
  struct rlk_env env = {&sim_platform, &sim_link_ops, process, !process->blocking};
  process->world = world;
  process->index = index;
  process->muted = process->asleep = process->lagged = 0;
  process->lag = 0;
  process->wake_at = -1;
  process->started_at = world->now;
  memset(process->clock_read_at, 0, sizeof process->clock_read_at);
  memset(process->heard, 0, sizeof process->heard);
  process->random = random_next(&world->random);
  process->life = ++world->lives;
  process->has_child = process->open_count = 0;
  backing_start(process);
  if (process->forks)
    arena_start(index);
  arena_use(process); /* until its caller has done with it */
  process->client = rlk_client_new_in(&env);
  set_nodes(process);
  process->max_ttl_ms = process->next_max_ttl_ms;
  process->ttl_most_ms = process->next_ttl_most_ms;
  client_number(process, "max_ttl_ms", process->max_ttl_ms);
  client_number(process, "ttl_ms", world->max_ttl_ms == HARD_TTL_MS && index % 2 ? HARD_TTL_MS : world->ttl_ms);
  client_option(process, "guard", world->guarded ? "marker" : "off");
  client_option(process, "fence", world->fenced ? "true" : "false");
  client_number(process, "connect_timeout_ms", world->connect_timeout_ms);
  client_option(process, "drift_factor", world->drift_percent == 1 ? "0.01" : "0.1");
  if (world->explicit_timeout)
    client_number(process, "node_timeout_ms", world->node_timeout_ms);
  if (world->polls_every && process->index % world->polls_every == 0)
    client_option(process, "wake", "poll");
  threads_open(process);
  if (redlock_client_open(process->client) != REDLOCK_OK)
    client_option(process, "open", "");
  for (int i = 0; i < process->slot_count; i++) {
    slot_make_lock(&process->slots[i]);
    if (world->orders.history)
      orders_make_lock(&process->slots[i]);
    else if (!process->blocking)
      slot_plan(&process->slots[i], random_in(&world->random, 0, world->ttl_ms * MS / 4));
  }
  if (process->blocking)
    blocking_start(process);
  else
    step(process);
}

static void free_locks(struct process *process)
{
  for (int i = 0; i < process->slot_count; i++) {
    redlock_lock_free(process->slots[i].lock);
    process->slots[i].lock = NULL;
    process->slots[i].operation = 0;
  }
}

/* Locks and client may be freed in any order. */
static void leave(struct process *process)
{
  int client_first = (int)random_in(&process->world->random, 0, 1);
  for (int i = 0; i < process->slot_count; i++)
    oracle_give_up(&process->slots[i]);
  if (client_first)
    redlock_client_free(process->client);
  free_locks(process);
  if (!client_first)
    redlock_client_free(process->client);
  process->client = NULL;
  process->asleep = 0;
  process->lag = 0;
}

static void go_on_as_child(struct process *process)
{
  fork_child(process);
  for (int i = 0; i < process->slot_count; i++)
    slot_plan(&process->slots[i], slot_think_time(&process->slots[i]));
  step(process);
}

/* It ends and another one takes its place: its child, if it has forked. One that is killed sends nothing more; its
 * kernel closes the connections. */
static void replace(struct process *process, int killed)
{
  if (!process->client)
    return;
  if (process->blocking) {
    blocking_leave(process);
    return;
  }
  TRACE(process->world, "process %d %s", process->index, killed ? "is killed" : "ends");
  process->muted = killed;
  leave(process);
  if (process->has_child)
    go_on_as_child(process);
  else
    process_start(process->world, process->index);
}

void process_replace(struct process *process, int killed)
{
  void *before = arena_use(process);
  replace(process, killed);
  arena_return(before);
}

static void end(struct process *process)
{
  process->ending = 1;
  if (process->client && process->blocking)
    blocking_leave(process);
  else if (process->client)
    leave(process);
}

void process_end(struct process *process)
{
  void *before = arena_use(process);
  end(process);
  arena_return(before);
}

/* After the client was drained or freed; or else an event loop goes on with it. */
void process_threads_ended(struct process *process)
{
  process->woke_at = process->world->now; /* since the last call nobody has sent or read */
  if (!process->leaving) {
    step(process);
    return;
  }
  leave(process);
  process->leaving = 0;
  if (!process->ending)
    process_start(process->world, process->index);
}

/* ---- the end of a world ---- */

/* A sleeper does this when it wakes. */
static void stop_work(struct process *process)
{
  struct world *world = process->world;
  if (process->running)
    blocking_cancel(process);
  if (process->asleep || process->running)
    return;
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = &process->slots[i];
    if (slot->operation && random_in(&world->random, 0, 1))
      slot_cancel(slot);
    step(process);
    int state = redlock_lock_state(slot->lock);
    if (!slot->operation)
      depth_end(slot);
    if (slot->operation || state == REDLOCK_STATE_ADOPTED || random_in(&world->random, 0, 1))
      slot_replace_lock(slot);
    else if (state == REDLOCK_STATE_HELD || state == REDLOCK_STATE_LOST)
      slot_release(slot);
    step(process);
  }
}

void process_stop_work(struct process *process)
{
  void *before = arena_use(process);
  stop_work(process);
  arena_return(before);
}

/* At night. */
void process_idle(struct process *process)
{
  if (process->client && !process->asleep && !process->running)
    process_stop_work(process);
}

int process_is_idle(const struct process *process)
{
  for (int i = 0; i < process->slot_count; i++)
    if (process->slots[i].operation)
      return 0;
  return !process->asleep && !process->running;
}

static void prove_alive(struct process *process, int operation)
{
  struct slot *slot = &process->slots[0];
  slot->has_lapsed = redlock_lock_state(slot->lock) == REDLOCK_STATE_LOST;
  if (operation == REDLOCK_RELEASE)
    oracle_give_up(slot);
  else
    slot_set_number(slot, "outage_wait_ms", 5000);
  slot_start(slot, operation, operation == REDLOCK_ACQUIRE ? 5000 : 0, operation == REDLOCK_ACQUIRE ? 5000 : 0,
             ALLOW(OK));
  step(process);
}

/* It is the first use for a long time. */
void process_prove_served(struct process *process, int64_t wait_ms)
{
  void *before = arena_use(process);
  slot_set_number(&process->slots[0], "outage_wait_ms", wait_ms);
  slot_start(&process->slots[0], REDLOCK_ACQUIRE, wait_ms, wait_ms, ALLOW(OK));
  step(process);
  arena_return(before);
}

void process_prove_alive(struct process *process, int operation)
{
  void *before = arena_use(process);
  prove_alive(process, operation);
  arena_return(before);
}

void process_contend(struct slot *slot, int operation, int64_t wait_ms)
{
  void *before = arena_use(slot->process);
  if (operation == REDLOCK_RELEASE) {
    slot_release(slot);
  } else {
    slot_set_number(slot, "outage_wait_ms", -1);
    slot_start(slot, REDLOCK_ACQUIRE, wait_ms, wait_ms, ALLOW(OK));
  }
  step(slot->process);
  arena_return(before);
}

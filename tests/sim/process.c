/* A simulated client process: one redlock_client of the unchanged core in the started shape, and a program around each
 * of its locks that takes it, holds it for a while, extends it, gives it up or forgets about it. */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_WITHOUT_TIME_MAX = 2000 };

/* ---- clock and random bits ---- */

/* The processor may be taken away between any two instructions; these are the places where it shows. */
void process_lag(struct process *process)
{
  struct world *world = process->world;
  if (world->calm || process->muted || !random_hits(&world->random, world->faults.lag))
    return;
  process->lag += random_in(&world->random, 0, 1) ? world_edge(world) : random_in(&world->random, 0, 5 * MS);
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

static const struct rl_platform sim_platform = {sim_now_ns, sim_random};

/* ---- stepping ---- */

static void plan_action(struct slot *slot, int64_t delay)
{
  struct world *world = slot->process->world;
  slot->action_due = 0;
  world_plan(world, delay, EVENT_ACTION, (uint32_t)slot->index, ++slot->action_serial);
}

static int64_t hold_time(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t ttl = slot->ttl_ms * MS;
  switch (slot->temper) {
  case TEMPER_CHURN:
    return random_in(&world->random, 0, 2 * MS);
  case TEMPER_HOLD:
    return ttl * random_in(&world->random, 30, 110) / 100;
  case TEMPER_EXTEND:
    return ttl * random_in(&world->random, 5, 80) / 100;
  default:
    return ttl * random_in(&world->random, 50, 400) / 100;
  }
}

static int64_t think_time(struct slot *slot)
{
  struct world *world = slot->process->world;
  return random_in(&world->random, 0, 9) ? random_in(&world->random, 0, 3 * MS) : random_in(&world->random, 0, 80 * MS);
}

/* How long the program waits before it does something about a pending operation. */
static int64_t patience(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t longest = random_in(&world->random, 0, 1) ? world->node_timeout_ms : 4 * slot->ttl_ms;
  return random_in(&world->random, 0, longest * MS);
}

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
  TRACE(slot->process->world, "process %d lock %d: operation %d ends: %s", slot->process->index, slot->index, operation,
        redlock_status_name(status));
  if (!slot->told)
    world_violation(slot->process->world, "operation %d on lock %d ended and nobody was told", operation, slot->index);
  if (operation == REDLOCK_ACQUIRE && status == REDLOCK_OK)
    check_grant(slot);
  if (!slot->process->world->calm)
    plan_action(slot, redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD ? hold_time(slot) : think_time(slot));
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
    if (status != REDLOCK_PENDING)
      operation_ended(slot, status);
    check_deadline(slot);
  }
  if (random_hits(&process->world->random, 2000))
    read_texts(process);
  process->looking = 0;
}

static void plan_wake(struct process *process)
{
  struct world *world = process->world;
  int64_t deadline = rl_client_next_deadline(process->client), at;
  if (deadline == RL_NEVER) {
    for (int i = 0; i < process->slot_count; i++)
      if (process->slots[i].operation)
        world_violation(world, "operation %d on lock %d waits for nothing", process->slots[i].operation,
                        process->slots[i].index);
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

void process_told(struct process *process, struct connection *connection, int what)
{
  if (!process->client)
    return;
  rl_client_link_event(process->client, connection->link_node, connection->generation, what);
  step(process);
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
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = &process->slots[i];
    if (slot->must_end_by != RL_NEVER)
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
      plan_action(&process->slots[i], 0);
}

/* ---- the program around a lock ---- */

static void set_number(struct slot *slot, const char *name, int64_t value)
{
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  if (redlock_lock_set(slot->lock, name, text) != REDLOCK_OK)
    world_violation(slot->process->world, "lock option %s = %s is refused", name, text);
}

static void make_lock(struct slot *slot)
{
  struct world *world = slot->process->world;
  const char *name = world->resources[slot->resource].name;
  slot->temper = (enum temper)random_in(&world->random, 0, TEMPERS - 1);
  slot->ttl_ms = world->ttl_ms * random_in(&world->random, 3, 6) / 3;
  slot->holding = -1;
  slot->operation = 0;
  slot->last_status = REDLOCK_NOT_HELD;
  slot->lock = redlock_lock_new(slot->process->client, name, strlen(name));
  redlock_lock_set_tag(slot->lock, (uint64_t)slot->index + 1);
  set_number(slot, "ttl_ms", slot->ttl_ms);
  set_number(slot, "wait_ms", 3 * slot->ttl_ms);
  set_number(slot, "retry_delay_ms", random_in(&world->random, 5, 100));
  set_number(slot, "renew", slot->temper == TEMPER_RENEW);
  set_number(slot, "strict_release", random_in(&world->random, 0, 1));
  if (slot->temper == TEMPER_EXTEND)
    set_number(slot, "max_extensions", random_in(&world->random, 2, 20));
  slot->max_hold_ms = slot->temper == TEMPER_HOLD ? 2 * slot->ttl_ms : -1;
  set_number(slot, "max_hold_ms", slot->max_hold_ms);
}

static void expect(struct slot *slot, const char *what, int status, uint32_t allowed)
{
  char message[256] = "";
  if (allowed >> status & 1)
    return;
  redlock_lock_message(slot->lock, message, sizeof message);
  world_violation(slot->process->world, "%s on lock %d returns %s: %s", what, slot->index, redlock_status_name(status),
                  message);
}

#define ALLOW(status) (UINT32_C(1) << REDLOCK_##status)

/* limit_ms: the caller's own, 0 if only the time-outs of nodes and connections bound it, -1 if nothing does. */
static void start(struct slot *slot, int operation, int64_t argument, int64_t limit_ms, uint32_t allowed)
{
  struct world *world = slot->process->world;
  int64_t slack_ms = limit_ms ? 10 : world->node_timeout_ms + world->connect_timeout_ms + 10;
  int manner = slot->index % 2 ? REDLOCK_AT_ONCE : 0;
  int status = redlock_lock_start(slot->lock, operation | manner, argument);
  TRACE(world, "process %d lock %d: starts operation %d (%" PRId64 "): %s", slot->process->index, slot->index,
        operation, argument, redlock_status_name(status));
  expect(slot, "start", status, allowed);
  if (status != REDLOCK_OK) {
    plan_action(slot, think_time(slot));
    return;
  }
  slot->operation = operation;
  slot->told = 0;
  slot->must_end_by = world->now + slot->process->lag + (limit_ms + slack_ms) * MS * (100 + world->drift_percent) / 100;
  if (limit_ms < 0)
    slot->must_end_by = RL_NEVER;
  plan_action(slot, patience(slot)); /* its end makes another plan */
}

static void acquire(struct slot *slot)
{
  struct world *world = slot->process->world;
  switch (random_in(&world->random, 0, 9)) {
  case 0:
    start(slot, REDLOCK_ACQUIRE, -1, -1, ALLOW(OK));
    break;
  case 1:
    start(slot, REDLOCK_ACQUIRE, -2, 3 * slot->ttl_ms, ALLOW(OK));
    break;
  case 2:
  case 3:
  case 4: {
    int64_t wait_ms = random_in(&world->random, 1, 2 * slot->ttl_ms);
    start(slot, REDLOCK_ACQUIRE, wait_ms, wait_ms, ALLOW(OK));
    break;
  }
  default:
    start(slot, REDLOCK_ACQUIRE, 0, 0, ALLOW(OK));
  }
}

static void release(struct slot *slot)
{
  oracle_give_up(slot);
  start(slot, REDLOCK_RELEASE, 0, 0, ALLOW(OK) | ALLOW(LOST));
}

static void extend(struct slot *slot)
{
  static const int percent[] = {0, 50, 70, 100, 100, 150, 200, 300};
  struct world *world = slot->process->world;
  int64_t ttl_ms = world->ttl_ms * percent[random_in(&world->random, 0, 7)] / 100;
  if (ttl_ms > world->last_ttl_ms)
    world->last_ttl_ms = ttl_ms;
  start(slot, REDLOCK_EXTEND, ttl_ms, 0, ALLOW(OK) | ALLOW(LOST) | ALLOW(LIMIT));
}

static void replace_lock(struct slot *slot)
{
  TRACE(slot->process->world, "process %d lock %d: freed", slot->process->index, slot->index);
  oracle_give_up(slot);
  redlock_lock_free(slot->lock);
  make_lock(slot);
}

static void cancel(struct slot *slot)
{
  TRACE(slot->process->world, "process %d lock %d: cancel", slot->process->index, slot->index);
  expect(slot, "cancel", redlock_lock_cancel(slot->lock), ALLOW(OK));
  slot->must_end_by = slot->process->world->now + slot->process->lag + 2 * MS;
}

static void detach(struct slot *slot)
{
  struct resource *resource = &slot->process->world->resources[slot->resource];
  char token[TOKEN_SIZE + 1] = "";
  int status;
  redlock_lock_token(slot->lock, token, sizeof token);
  oracle_detach(slot);
  status = redlock_lock_detach(slot->lock);
  TRACE(slot->process->world, "process %d lock %d: detach: %s", slot->process->index, slot->index,
        redlock_status_name(status));
  expect(slot, "detach", status, ALLOW(OK) | ALLOW(LOST));
  memcpy(resource->detached, token, sizeof token);
  plan_action(slot, think_time(slot));
}

static void adopt(struct slot *slot)
{
  struct resource *resource = &slot->process->world->resources[slot->resource];
  int status = redlock_lock_adopt(slot->lock, resource->detached);
  TRACE(slot->process->world, "process %d lock %d: adopt: %s", slot->process->index, slot->index,
        redlock_status_name(status));
  expect(slot, "adopt", status, ALLOW(OK));
  resource->detached[0] = 0;
  if (random_in(&slot->process->world->random, 0, 3))
    extend(slot);
  else
    release(slot);
}

static void act_while_pending(struct slot *slot)
{
  switch (random_in(&slot->process->world->random, 0, 9)) {
  case 0:
    cancel(slot);
    break;
  case 1:
    replace_lock(slot);
    plan_action(slot, think_time(slot));
    break;
  case 2: /* in flight, unless its end is due and seen only by this very call */
    start(slot, REDLOCK_ACQUIRE, 0, 0, ALLOW(IN_FLIGHT) | ALLOW(OK) | ALLOW(INVALID));
    break;
  default:
    plan_action(slot, patience(slot));
  }
}

static void act_while_held(struct slot *slot)
{
  int64_t dice = random_in(&slot->process->world->random, 0, 99);
  int extends = slot->temper == TEMPER_EXTEND ? 75 : slot->temper == TEMPER_CHURN ? 5 : 25;
  if (dice < extends)
    extend(slot);
  else if (dice < extends + 4)
    replace_lock(slot), plan_action(slot, think_time(slot));
  else if (dice < extends + 12)
    plan_action(slot, hold_time(slot));
  else if (dice < extends + 13)
    detach(slot);
  else if (dice < extends + 14)
    start(slot, REDLOCK_INSPECT, 0, 0, ALLOW(OK));
  else
    release(slot);
}

static void act_without(struct slot *slot, int state)
{
  int64_t dice = random_in(&slot->process->world->random, 0, 99);
  if (state == REDLOCK_STATE_ADOPTED)
    dice < 50 ? extend(slot) : release(slot);
  else if (dice < 4)
    replace_lock(slot), plan_action(slot, think_time(slot));
  else if (dice < 6)
    start(slot, REDLOCK_INSPECT, 0, 0, ALLOW(OK));
  else if (dice < 50 && state == REDLOCK_STATE_LOST)
    start(slot, REDLOCK_RELEASE, 0, 0, ALLOW(OK) | ALLOW(LOST));
  else if (dice < 60 && slot->process->world->resources[slot->resource].detached[0])
    adopt(slot);
  else
    acquire(slot);
}

static void act(struct slot *slot)
{
  struct process *process = slot->process;
  int state = redlock_lock_state(slot->lock);
  if (slot->operation && redlock_lock_status(slot->lock) == REDLOCK_PENDING)
    act_while_pending(slot);
  else if (slot->operation)
    plan_action(slot, 0);
  else if (state == REDLOCK_STATE_HELD)
    act_while_held(slot);
  else
    act_without(slot, state);
  step(process);
}

/* ---- events ---- */

static void wake_event(struct process *process, int64_t at)
{
  if (at != process->wake_at)
    return;
  process->wake_at = -1;
  if (rl_client_next_deadline(process->client) <= process_clock(process))
    step(process);
  else
    plan_wake(process);
}

static void action_event(struct world *world, const struct event *event)
{
  struct slot *slot = world_slot(world, event->index);
  if (event->serial != slot->action_serial || world->calm || !slot->process->client)
    return;
  if (slot->process->asleep)
    slot->action_due = 1;
  else
    act(slot);
}

void process_event(struct world *world, const struct event *event)
{
  if (event->kind == EVENT_ACTION) {
    action_event(world, event);
    return;
  }
  struct process *process = &world->processes[event->index];
  if (event->kind == EVENT_AWAKE && event->serial == process->sleep_serial)
    wake(process);
  else if (event->kind == EVENT_WAKE && process->client && !process->asleep)
    wake_event(process, event->at);
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
  struct rl_env env = {&sim_platform, &sim_link_ops, process, 1};
  process->world = world;
  process->index = index;
  process->muted = process->asleep = process->lagged = 0;
  process->lag = 0;
  process->wake_at = -1;
  process->random = random_next(&world->random);
  process->client = rl_client_new_in(&env);
  set_nodes(process);
  client_number(process, "max_ttl_ms", 4 * world->ttl_ms);
  client_number(process, "ttl_ms", world->ttl_ms);
  client_number(process, "connect_timeout_ms", world->connect_timeout_ms);
  client_option(process, "drift_factor", world->drift_percent == 1 ? "0.01" : "0.1");
  if (world->explicit_timeout)
    client_number(process, "node_timeout_ms", world->node_timeout_ms);
  if (redlock_client_open(process->client) != REDLOCK_OK)
    client_option(process, "open", "");
  for (int i = 0; i < process->slot_count; i++) {
    make_lock(&process->slots[i]);
    plan_action(&process->slots[i], random_in(&world->random, 0, world->ttl_ms * MS / 4));
  }
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

/* It ends and another one takes its place. One that is killed sends nothing more; its kernel closes the connections. */
void process_replace(struct process *process, int killed)
{
  if (!process->client)
    return;
  TRACE(process->world, "process %d %s", process->index, killed ? "is killed" : "ends");
  process->muted = killed;
  leave(process);
  process_start(process->world, process->index);
}

void process_end(struct process *process)
{
  if (process->client)
    leave(process);
}

/* ---- the end of a world ---- */

/* A sleeper does this when it wakes. */
void process_stop_work(struct process *process)
{
  struct world *world = process->world;
  if (process->asleep)
    return;
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = &process->slots[i];
    if (slot->operation && random_in(&world->random, 0, 1))
      cancel(slot);
    step(process);
    int state = redlock_lock_state(slot->lock);
    if (slot->operation || state == REDLOCK_STATE_ADOPTED || random_in(&world->random, 0, 1))
      replace_lock(slot);
    else if (state == REDLOCK_STATE_HELD || state == REDLOCK_STATE_LOST)
      release(slot);
    step(process);
  }
}

int process_is_idle(const struct process *process)
{
  for (int i = 0; i < process->slot_count; i++)
    if (process->slots[i].operation)
      return 0;
  return !process->asleep;
}

void process_prove_alive(struct process *process, int operation)
{
  struct slot *slot = &process->slots[0];
  if (operation == REDLOCK_RELEASE)
    oracle_give_up(slot);
  start(slot, operation, operation == REDLOCK_ACQUIRE ? 5000 : 0, operation == REDLOCK_ACQUIRE ? 5000 : 0,
        ALLOW(OK));
  step(process);
}

/* All orders instead of some: short histories of two clients and three nodes, in which nothing is drawn. Each message
 * takes one of a few times; the worlds differ in these only, and one after the other has every combination in which no
 * more messages are delayed than asked for. */
#include "orders.h"
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS 60
#define NODE_TIMEOUT_MS (TTL_MS / 4)
#define FIRST_ACTION (10 * MS) /* by then all connections are set up */
#define LOSS (15 * MS)         /* the first attempts are over, and their leases are not */
#define SEED 2                 /* for what has to be drawn all the same: tokens, clocks and pauses between attempts */

enum step { STEP_NONE, STEP_TRY, STEP_WAIT, STEP_EXTEND, STEP_LENGTHEN, STEP_RELEASE };

struct history {
  const char *name;
  int renews, fenced; /* all of its locks */
  int loses;          /* clients have the restart guard, and a node loses its keys */
  enum step steps[2][5];
};

static const struct history histories[] = {
    {"loss", 0, 0, 1, {{STEP_TRY, STEP_EXTEND}, {STEP_WAIT, STEP_WAIT}}},
    {"contend", 0, 0, 0, {{STEP_TRY}, {STEP_TRY, STEP_WAIT}}},
    {"release", 0, 0, 0, {{STEP_TRY, STEP_RELEASE, STEP_WAIT}, {STEP_WAIT}}},
    {"extend", 0, 0, 0, {{STEP_TRY, STEP_EXTEND, STEP_EXTEND}, {STEP_TRY, STEP_WAIT}}},
    {"fence", 0, 1, 0, {{STEP_TRY, STEP_RELEASE, STEP_WAIT}, {STEP_WAIT, STEP_RELEASE}}},
    {"renew", 1, 1, 0, {{STEP_TRY, STEP_LENGTHEN}, {STEP_WAIT}}},
};

enum { HISTORIES = sizeof histories / sizeof *histories };

/* In time; after what the other client sends meanwhile, but in time for the attempt; when the lease is over. */
static const int64_t delays[] = {MS / 10, NODE_TIMEOUT_MS *MS * 2 / 3, TTL_MS *MS * 11 / 10};

enum { DELAYS = sizeof delays / sizeof *delays };

/* ---- one world ---- */

static const struct history *history_of(const struct world *world)
{
  return &histories[world->orders.history - 1];
}

void orders_choose(struct world *world)
{
  world->orders.count = 0;
  world->node_count = 3;
  world->process_count = 2;
  world->resource_count = 1;
  for (int i = 0; i < world->process_count; i++)
    world->processes[i].slot_count = 1;
  world->patient = world->orderly = world->faultless = 0;
  world->ttl_ms = TTL_MS;
  world->last_ttl_ms = 2 * TTL_MS;
  world->explicit_timeout = !history_of(world)->renews; /* else a slow node would not be asked again meanwhile */
  world->node_timeout_ms = world->explicit_timeout ? NODE_TIMEOUT_MS : 50;
  world->connect_timeout_ms = TTL_MS / 2;
  world->drift_percent = 1;
  world->database = 0;
  world->twin = -1;
  world->end_of_work = FIRST_ACTION + 4 * TTL_MS * MS;
  memset(&world->faults, 0, sizeof world->faults);
  world->faults.delay_min = world->faults.delay_max = delays[0];
  world->faults.nemesis_every = history_of(world)->loses ? LOSS : world->end_of_work;
}

int orders_are_fenced(const struct world *world)
{
  return history_of(world)->fenced;
}

int orders_are_guarded(const struct world *world)
{
  return history_of(world)->loses;
}

void orders_strike(struct world *world)
{
  if (!history_of(world)->loses)
    return;
  TRACE(world, "node 0    FLUSHALL");
  backing_lose_all(world, &world->nodes[0]);
}

int64_t orders_delay(struct world *world)
{
  struct orders *orders = &world->orders;
  if (world->now < FIRST_ACTION || orders->count == MESSAGES_MAX)
    return delays[0];
  if (orders->count >= orders->given)
    orders->delays[orders->count] = 0;
  return delays[orders->delays[orders->count++]];
}

void orders_make_lock(struct slot *slot)
{
  slot->temper = TEMPER_HOLD;
  slot->ttl_ms = TTL_MS;
  slot->max_hold_ms = slot->outage_wait_ms = -1;
  slot_set_number(slot, "ttl_ms", TTL_MS);
  slot_set_number(slot, "max_hold_ms", -1);
  slot_set_number(slot, "outage_wait_ms", -1);
  slot_set_number(slot, "retry_delay_ms", TTL_MS / 4);
  slot_set_number(slot, "renew", history_of(slot->process->world)->renews);
  slot_set_number(slot, "queue", 0);
  slot_plan(slot, FIRST_ACTION);
}

/* The next that makes sense: what is not held is acquired. */
static enum step next_step(struct slot *slot)
{
  const enum step *steps = history_of(slot->process->world)->steps[slot->process->index];
  int is_held = redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD;
  while (steps[slot->step] && is_held != (steps[slot->step] >= STEP_EXTEND))
    slot->step++;
  return steps[slot->step] ? steps[slot->step++] : STEP_NONE;
}

/* The end of an operation plans the next. */
void orders_act(struct slot *slot)
{
  if (slot->operation)
    return;
  switch (next_step(slot)) {
  case STEP_TRY: slot_start(slot, REDLOCK_ACQUIRE, 0, 0, ALLOW(OK)); break;
  case STEP_WAIT: slot_start(slot, REDLOCK_ACQUIRE, 2 * TTL_MS, 2 * TTL_MS, ALLOW(OK)); break;
  case STEP_EXTEND: slot_start(slot, REDLOCK_EXTEND, 0, slot_extension_limit_ms(slot), ALLOW(OK) | ALLOW(LOST)); break;
  case STEP_LENGTHEN:
    slot_start(slot, REDLOCK_EXTEND, 2 * TTL_MS, slot_extension_limit_ms(slot), ALLOW(OK) | ALLOW(LOST));
    break;
  case STEP_RELEASE: slot_release(slot); break;
  default: break;
  }
}

/* ---- all of them ---- */

static int delayed(const struct orders *orders, int messages)
{
  int count = 0;
  for (int i = 0; i < messages; i++)
    count += orders->delays[i] > 0;
  return count;
}

/* The next combination: the last message that can take longer does, and those behind it are in time. */
static int next(struct orders *orders, int most)
{
  for (int i = orders->count - 1; i >= 0; i--) {
    int is_allowed = orders->delays[i] > 0 || delayed(orders, i) < most;
    if (is_allowed && orders->delays[i] + 1 < DELAYS) {
      orders->delays[i]++;
      orders->given = i + 1;
      return 1;
    }
  }
  return 0;
}

static void print_replay(const struct world *world, const char *mutant)
{
  const struct orders *orders = &world->orders;
  printf("%s\nreplay it with: sim --order %s:", world->violation, histories[orders->history - 1].name);
  for (int i = 0; i < orders->given; i++)
    putchar('0' + orders->delays[i]);
  printf("%s%s --trace\n", mutant ? " --mutant " : "", mutant ? mutant : "");
}

static int run_history(struct world *world, int history, int most, const char *mutant)
{
  uint64_t worlds = 0, wins = 0;
  int longest = 0;
  memset(&world->orders, 0, sizeof world->orders);
  world->orders.history = history + 1;
  do {
    world_run(world, SEED);
    worlds++;
    wins += world->wins;
    longest = world->orders.count > longest ? world->orders.count : longest;
  } while (!world->violation[0] && next(&world->orders, most));
  printf("%s: %" PRIu64 " orders of up to %d messages, at most %d of them delayed; %" PRIu64 " wins\n",
         histories[history].name, worlds, longest, most, wins);
  if (world->violation[0])
    print_replay(world, mutant);
  return world->violation[0] != 0;
}

/* Its index, or -1. */
static int named(const char *name, size_t length)
{
  for (int i = 0; i < HISTORIES; i++)
    if (strlen(histories[i].name) == length && memcmp(name, histories[i].name, length) == 0)
      return i;
  return -1;
}

int orders_has(const char *history)
{
  return named(history, strlen(history)) >= 0;
}

int orders_run(struct world *world, int most, const char *mutant, const char *history)
{
  int found = 0;
  for (int i = 0; i < HISTORIES && !found; i++)
    if (!history || strcmp(history, histories[i].name) == 0)
      found = run_history(world, i, most, mutant);
  return mutant ? !found : found;
}

/* NAME:DELAYS, as it was printed. -1: that is no order. */
int orders_parse(struct world *world, const char *text)
{
  struct orders *orders = &world->orders;
  size_t length = strcspn(text, ":");
  orders->history = named(text, length) + 1;
  if (!orders->history || text[length] != ':')
    return -1;
  for (text += length + 1; *text; text++) {
    if (*text < '0' || *text >= '0' + DELAYS || orders->given == MESSAGES_MAX)
      return -1;
    orders->delays[orders->given++] = (uint8_t)(*text - '0');
  }
  return 0;
}

int orders_replay(struct world *world)
{
  world_run(world, SEED);
  printf("%s\n", world->violation[0] ? world->violation : "no violation");
  return world->violation[0] != 0;
}

/* The program around a lock of a simulated process, in the started shape: it takes the lock, holds it for a while,
 * extends it, gives it up or forgets about it. */
#include "orders.h"
#include "sim.h"
#include "../../core/src/base/mutant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- times ---- */

void slot_plan(struct slot *slot, int64_t delay)
{
  struct world *world = slot->process->world;
  slot->action_due = 0;
  world_plan(world, delay, EVENT_ACTION, (uint32_t)slot->index, ++slot->action_serial);
}

static int64_t hold_time(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t ttl = slot->ttl_ms * MS;
  if (world->patient)
    return random_in(&world->random, 0, (world->orderly ? 100 : 1000) * MS);
  switch (slot->temper) {
  case TEMPER_CHURN: return random_in(&world->random, 0, 2 * MS);
  case TEMPER_HOLD: return ttl * random_in(&world->random, 30, 110) / 100;
  case TEMPER_EXTEND: return ttl * random_in(&world->random, 5, 80) / 100;
  default: return ttl * random_in(&world->random, 50, 400) / 100;
  }
}

int64_t slot_think_time(struct slot *slot)
{
  struct world *world = slot->process->world;
  if (world->orderly && random_in(&world->random, 0, 1)) /* it comes again at once */
    return 0;
  if (world->patient)
    return random_in(&world->random, 0, (world->orderly ? 300 : 3000) * MS);
  return random_in(&world->random, 0, 9) ? random_in(&world->random, 0, 3 * MS) : random_in(&world->random, 0, 80 * MS);
}

int64_t slot_pause(struct slot *slot)
{
  if (slot->process->world->orders.history)
    return redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD ? slot->ttl_ms * MS / 3 : MS;
  return redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD ? hold_time(slot) : slot_think_time(slot);
}

/* How long the program waits before it does something about a pending operation. */
static int64_t patience(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t longest = random_in(&world->random, 0, 1) && !world->patient ? world->node_timeout_ms : 4 * slot->ttl_ms;
  return random_in(&world->random, 0, longest * MS);
}

/* ---- locks and operations ---- */

void slot_set_number(struct slot *slot, const char *name, int64_t value)
{
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  if (redlock_lock_set(slot->lock, name, text) != REDLOCK_OK && !slot->process->leaving)
    world_violation(slot->process->world, "lock option %s = %s is refused", name, text);
}

/* No longer than what the program asks for. */
int64_t slot_ttl(const struct slot *slot, int64_t ttl_ms)
{
  return ttl_ms < slot->process->ttl_most_ms ? ttl_ms : slot->process->ttl_most_ms;
}

/* What its lock is: in a world of plain locks nothing is drawn. */
static void choose_kind(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t dice = world->mixed ? random_in(&world->kinds, 0, 16) : 0;
  slot->is_shared = dice >= 4 && dice <= 9 && dice != 8;
  slot->spans = dice == 8 || dice == 9 || dice == 16;
  slot->is_permit = dice >= 10 && dice <= 13;
  slot->is_hash = dice >= 14;
}

static int is_plain(const struct slot *slot)
{
  return !slot->is_shared && !slot->spans && !slot->is_permit && !slot->is_hash;
}

static void set_kind(struct slot *slot)
{
  struct world *world = slot->process->world;
  for (int i = 0; slot->spans && i < world->resource_count; i++) {
    const char *name = world->resources[i].name;
    if (i != slot->resource && redlock_lock_add(slot->lock, name, strlen(name)) != REDLOCK_OK &&
        !slot->process->leaving)
      world_violation(world, "a resource is refused");
  }
  if (slot->is_hash && redlock_lock_set(slot->lock, "layout", "hash") != REDLOCK_OK && !slot->process->leaving)
    world_violation(world, "a layout is refused");
  if (slot->is_shared)
    slot_set_number(slot, "shared", 1);
  if (slot->is_permit)
    slot_set_number(slot, "permits", PERMITS);
  slot->wants = slot->is_permit && random_in(&world->kinds, 0, 4) == 0 ? (int)random_in(&world->kinds, 1, PERMITS) : 0;
  if (slot->wants)
    slot_set_number(slot, "slot", slot->wants - 1);
}

void slot_make_lock(struct slot *slot)
{
  struct world *world = slot->process->world;
  const char *name = world->resources[slot->resource].name;
  slot->temper = (enum temper)random_in(&world->random, 0, TEMPERS - 1);
  slot->ttl_ms = world->ttl_ms * random_in(&world->random, 3, 6) / 3;
  if (world->rollout.large_ms && random_in(&world->random, 0, 1))
    slot->ttl_ms *= 2;
  if (world->hard == HARD_SIEGES) /* the attempts of others go on beside several renewals */
    slot->ttl_ms = slot->temper == TEMPER_RENEW ? world->ttl_ms : 2 * world->ttl_ms;
  slot->ttl_ms = slot->renewed_ms = slot_ttl(slot, slot->ttl_ms);
  slot->holding = -1;
  slot->key = slot->resource;
  slot->operation = 0;
  slot->released[0] = 0;
  slot->last_status = REDLOCK_NOT_HELD;
  slot->lock = redlock_lock_new(slot->process->client, name, strlen(name));
  redlock_lock_set_tag(slot->lock, (uint64_t)slot->index + 1);
  choose_kind(slot);
  set_kind(slot);
  slot_set_number(slot, "ttl_ms", slot->ttl_ms);
  slot_set_number(slot, "wait_ms", 3 * slot->ttl_ms);
  slot_set_number(slot, "retry_delay_ms", random_in(&world->random, 5, 100));
  slot_set_number(slot, "renew", slot->temper == TEMPER_RENEW);
  slot_set_number(slot, "strict_release", random_in(&world->random, 0, 1));
  slot_set_number(slot, "queue", world->orderly || random_in(&world->random, 0, 4) > 0);
  if (slot->temper == TEMPER_EXTEND)
    slot_set_number(slot, "max_extensions", random_in(&world->random, 2, 20));
  slot->max_hold_ms = slot->temper == TEMPER_HOLD ? 2 * slot->ttl_ms : -1;
  slot_set_number(slot, "max_hold_ms", slot->max_hold_ms);
  slot->outage_wait_ms = random_in(&world->random, 0, 3) ? random_in(&world->random, 1, 10 * slot->ttl_ms) : -1;
  slot_set_number(slot, "outage_wait_ms", slot->outage_wait_ms);
  depth_begin(slot);
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

void slot_start(struct slot *slot, int operation, int64_t argument, int64_t limit_ms, uint32_t allowed)
{
  struct world *world = slot->process->world;
  int64_t round_ms = operation == REDLOCK_ACQUIRE ? world_single_ms(world) : world_attempt_ms(world);
  int64_t slack_ms = limit_ms ? 10 : round_ms + 10;
  int manner = slot->index % 2 ? REDLOCK_AT_ONCE : 0;
  int status = redlock_lock_start(slot->lock, operation | manner, argument);
  TRACE(world, "process %d lock %d: starts operation %d (%" PRId64 "): %s", slot->process->index, slot->index,
        operation, argument, redlock_status_name(status));
  expect(slot, "start", status, allowed);
  if (status != REDLOCK_OK) {
    slot_plan(slot, slot_think_time(slot));
    return;
  }
  slot->operation = operation;
  slot->started_at = world->now;
  slot->told = slot->overtaken = 0;
  slot->must_end_by = world->now + slot->process->lag + (limit_ms + slack_ms) * MS * (100 + world->drift_percent) / 100;
  if (limit_ms < 0)
    slot->must_end_by = RLK_NEVER;
  slot_plan(slot, patience(slot)); /* its end makes another plan */
}

static void acquire(struct slot *slot)
{
  struct world *world = slot->process->world;
  switch (world->patient ? 0 : random_in(&world->random, 0, 9)) {
  case 0: slot_start(slot, REDLOCK_ACQUIRE, -1, -1, ALLOW(OK)); break;
  case 1: slot_start(slot, REDLOCK_ACQUIRE, -2, 3 * slot->ttl_ms, ALLOW(OK)); break;
  case 2:
  case 3:
  case 4: {
    int64_t wait_ms = random_in(&world->random, 1, 2 * slot->ttl_ms);
    slot_start(slot, REDLOCK_ACQUIRE, wait_ms, wait_ms, ALLOW(OK));
    break;
  }
  default: slot_start(slot, REDLOCK_ACQUIRE, 0, 0, ALLOW(OK));
  }
}

void slot_release(struct slot *slot)
{
  depth_unwind(slot);
  if (slot->holding >= 0 && redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD)
    redlock_lock_token(slot->lock, slot->released, sizeof slot->released);
  struct holding *given_up = oracle_give_up(slot);
  slot_start(slot, REDLOCK_RELEASE, 0, 0, ALLOW(OK) | ALLOW(LOST));
  if (slot->operation && redlock_lock_loss(slot->lock) == REDLOCK_LOSS_NONE)
    return;
  oracle_lost_in_call(slot, given_up); /* between the look and the call */
  slot->released[0] = 0;
}

/* It goes on as long as the lease, and no longer than an outage is put up with. */
int64_t slot_extension_limit_ms(const struct slot *slot)
{
  int64_t left_ms = redlock_lock_validity_ms(slot->lock) + 1;
  int is_held = redlock_lock_state(slot->lock) == REDLOCK_STATE_HELD;
  if (is_held && (slot->outage_wait_ms < 0 || slot->outage_wait_ms > left_ms))
    return left_ms;
  return slot->outage_wait_ms;
}

static void extend(struct slot *slot)
{
  static const int percent[] = {0, 50, 70, 100, 100, 150, 200, 300};
  struct world *world = slot->process->world;
  int64_t ttl_ms = slot_ttl(slot, world->ttl_ms * percent[random_in(&world->random, 0, 7)] / 100);
  if (ttl_ms && world->rollout.large_ms && random_in(&world->random, 0, 1))
    ttl_ms = slot->process->ttl_most_ms;
  if (ttl_ms > world->last_ttl_ms)
    world->last_ttl_ms = ttl_ms;
  slot->renewed_ms = ttl_ms ? ttl_ms : slot->ttl_ms;
  slot_start(slot, REDLOCK_EXTEND, ttl_ms, slot_extension_limit_ms(slot), ALLOW(OK) | ALLOW(LOST) | ALLOW(LIMIT));
}

/* The lease is to end at another time, mostly earlier. */
static void expire(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t ttl_ms = slot->ttl_ms * random_in(&world->random, 30, 120) / 100;
  int64_t least_ms = world->explicit_timeout ? 4 * world->node_timeout_ms : 20;
  slot->shortens = 1;
  slot_start(slot, REDLOCK_EXPIRE, slot_ttl(slot, ttl_ms > least_ms ? ttl_ms : least_ms), slot_extension_limit_ms(slot),
             ALLOW(OK) | ALLOW(LOST) | ALLOW(LIMIT));
  slot->process->looking = 1;
  oracle_observe(slot); /* the earlier end counts from the call, also for a process that is paused now */
  slot->process->looking = 0;
}

void slot_replace_lock(struct slot *slot)
{
  TRACE(slot->process->world, "process %d lock %d: freed", slot->process->index, slot->index);
  oracle_give_up(slot);
  redlock_lock_free(slot->lock);
  slot_make_lock(slot);
}

void slot_cancel(struct slot *slot)
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
  depth_unwind(slot);
  oracle_detach(slot);
  status = redlock_lock_detach(slot->lock);
  TRACE(slot->process->world, "process %d lock %d: detach: %s", slot->process->index, slot->index,
        redlock_status_name(status));
  expect(slot, "detach", status, ALLOW(OK) | ALLOW(LOST));
  if (status == REDLOCK_OK) { /* what had lapsed is still its own to delete */
    memcpy(resource->detached, token, sizeof token);
    oracle_share(slot->process->world, token);
  }
  slot_plan(slot, slot_think_time(slot));
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
    slot_release(slot);
}

static void act_while_pending(struct slot *slot)
{
  int64_t dice = random_in(&slot->process->world->random, 0, 9);
  switch (dice == 2 && slot->is_reentrant ? 3 : dice) { /* it may be held by now */
  case 0: slot_cancel(slot); break;
  case 1:
    slot_replace_lock(slot);
    slot_plan(slot, slot_think_time(slot));
    break;
  case 2: /* in flight, unless its end is due and seen only by this very call */
    slot_start(slot, REDLOCK_ACQUIRE, 0, 0, ALLOW(IN_FLIGHT) | ALLOW(OK) | ALLOW(INVALID));
    break;
  default: slot_plan(slot, patience(slot));
  }
}

/* It goes on as a reader, from the call on. */
static int downgrade(struct slot *slot)
{
  struct world *world = slot->process->world;
  if (!world->mixed || slot->is_shared || slot->is_permit || slot->is_hash || random_in(&world->kinds, 0, 9) > 0)
    return 0;
  slot_set_number(slot, "shared", 1);
  slot->is_shared = 1;
  if (!RLK_MUTANT(DOWNGRADE_BELIEVED))
    oracle_share_hold(slot);
  extend(slot);
  return 1;
}

static void act_while_held(struct slot *slot)
{
  if (downgrade(slot))
    return;
  int64_t dice = random_in(&slot->process->world->random, 0, 99);
  int extends = slot->temper == TEMPER_EXTEND ? 75 : slot->temper == TEMPER_CHURN ? 5 : 25;
  if (dice < extends)
    extend(slot);
  else if (dice < extends + 4)
    slot_replace_lock(slot), slot_plan(slot, slot_think_time(slot));
  else if (dice < extends + 12)
    slot_plan(slot, hold_time(slot));
  else if (dice < extends + 13) /* a shorter lease that is on its way would end the lease of whoever adopts it */
    slot->shortens || !is_plain(slot) ? slot_release(slot) : detach(slot);
  else if (dice < extends + 16)
    expire(slot);
  else if (dice < extends + 17 && !slot->spans && !slot->is_permit)
    slot_start(slot, REDLOCK_INSPECT, 0, 0, ALLOW(OK));
  else
    slot_release(slot);
}

/* Whoever holds the lock is robbed. */
static void remove_by_force(struct slot *slot)
{
  slot->process->world->removes[slot->process->index] |= UINT32_C(1) << slot->resource;
  slot_start(slot, REDLOCK_REMOVE, 0, 0, ALLOW(OK));
}

static void release_lost(struct slot *slot)
{
  depth_unwind(slot);
  slot_start(slot, REDLOCK_RELEASE, 0, 0, ALLOW(OK) | ALLOW(LOST));
}

static void act_without(struct slot *slot, int state)
{
  const struct world *world = slot->process->world;
  int64_t dice = random_in(&slot->process->world->random, 0, 99);
  if (state == REDLOCK_STATE_ADOPTED)
    dice < 50 ? extend(slot) : slot_release(slot);
  else if (dice < 4)
    slot_replace_lock(slot), slot_plan(slot, slot_think_time(slot));
  else if (dice < 6 && (slot->spans || slot->is_permit)) /* nobody looks at all of them at once */
    state == REDLOCK_STATE_LOST ? release_lost(slot) : acquire(slot);
  else if (dice < 5 || (dice == 5 && !world->faults.loss))
    slot_start(slot, REDLOCK_INSPECT, 0, 0, ALLOW(OK));
  else if (dice == 5)
    remove_by_force(slot);
  else if ((dice < 50 || slot->is_reentrant) && state == REDLOCK_STATE_LOST)
    release_lost(slot);
  else if (dice < 60 && slot->process->world->resources[slot->resource].detached[0] && is_plain(slot))
    adopt(slot);
  else if (dice < 64 && state == REDLOCK_STATE_FORKED)
    slot_start(slot, dice % 2 ? REDLOCK_RELEASE : REDLOCK_EXTEND, 0, 0, ALLOW(FORKED));
  else
    acquire(slot);
}

void slot_act(struct slot *slot)
{
  int state = redlock_lock_state(slot->lock);
  if (slot->process->world->orders.history)
    orders_act(slot);
  else if (slot->operation && redlock_lock_status(slot->lock) == REDLOCK_PENDING)
    act_while_pending(slot);
  else if (slot->operation)
    slot_plan(slot, 0);
  else if (depth_act(slot))
    slot_plan(slot, slot_pause(slot));
  else if (state == REDLOCK_STATE_HELD)
    act_while_held(slot);
  else
    act_without(slot, state);
}

/* A program that acquires a lock again which it holds, and releases it as often: only the outermost release may give it
 * up, and what was lost is not taken again before that. Its choices are drawn apart from those of the world. */
#include "sim.h"

#include <string.h>

enum { DEPTH_MAX = 4 };

static int64_t draw(struct slot *slot, int64_t low, int64_t high)
{
  return random_in(&slot->depth_random, low, high);
}

void depth_begin(struct slot *slot)
{
  struct world *world = slot->process->world;
  if (!slot->depth_random)
    slot->depth_random = world->seed * 64 + (uint64_t)slot->index + 1;
  slot->depth = 0;
  slot->is_reentrant = !world->calm && !world->orders.history && draw(slot, 0, 3) == 0;
  if (slot->is_reentrant)
    slot_set_number(slot, "reentrant", 1);
}

/* By a blocking call, or started: both end at once. */
static int call(struct slot *slot, int operation)
{
  int64_t wait_ms = operation == REDLOCK_ACQUIRE ? draw(slot, -2, 100) : 0;
  int status;
  if (draw(slot, 0, 1))
    return operation == REDLOCK_ACQUIRE ? redlock_lock_acquire(slot->lock, wait_ms) : redlock_lock_release(slot->lock);
  status = redlock_lock_start(slot->lock, operation | (draw(slot, 0, 1) ? REDLOCK_AT_ONCE : 0), wait_ms);
  return status == REDLOCK_OK ? redlock_lock_status(slot->lock) : status;
}

static void check_status(const struct slot *slot, const char *what, int status)
{
  if (!slot->process->leaving && status != REDLOCK_OK && status != REDLOCK_LOST)
    world_violation(slot->process->world, "depth: %s lock %d again returns %s", what, slot->index,
                    redlock_status_name(status));
}

static void enter(struct slot *slot)
{
  struct world *world = slot->process->world;
  char token[TOKEN_SIZE + 1] = "";
  int was_lost = redlock_lock_state(slot->lock) == REDLOCK_STATE_LOST, status;
  if (slot->depth == 0) {
    slot->depth = 1;
    redlock_lock_token(slot->lock, slot->outer, sizeof slot->outer);
  }
  status = call(slot, REDLOCK_ACQUIRE);
  redlock_lock_token(slot->lock, token, sizeof token);
  TRACE(world, "process %d lock %d: acquired again: %s", slot->process->index, slot->index,
        redlock_status_name(status));
  if (slot->process->leaving)
    return;
  if (strcmp(token, slot->outer) != 0 || (was_lost && status != REDLOCK_LOST))
    world_violation(world, "depth: lock %d is acquired anew before its outermost release", slot->index);
  check_status(slot, "acquiring", status);
  slot->depth += status == REDLOCK_OK;
}

static void leave(struct slot *slot)
{
  struct world *world = slot->process->world;
  int status = call(slot, REDLOCK_RELEASE);
  slot->depth--;
  TRACE(world, "process %d lock %d: released to depth %d: %s", slot->process->index, slot->index, slot->depth,
        redlock_status_name(status));
  check_status(slot, "releasing", status);
  if (redlock_lock_state(slot->lock) == REDLOCK_STATE_FREE && !slot->process->leaving)
    world_violation(world, "depth: an inner release of lock %d has given it up", slot->index);
}

int depth_act(struct slot *slot)
{
  int state = slot->is_reentrant ? redlock_lock_state(slot->lock) : REDLOCK_STATE_FREE;
  int is_inside = state == REDLOCK_STATE_HELD || (state == REDLOCK_STATE_LOST && slot->depth > 0);
  if (!is_inside || draw(slot, 0, 2) == 0)
    return 0;
  if (slot->depth == DEPTH_MAX || (slot->depth > 1 && draw(slot, 0, 1)))
    leave(slot);
  else
    enter(slot);
  return 1;
}

void depth_unwind(struct slot *slot)
{
  while (slot->depth > 1)
    leave(slot);
  slot->depth = 0;
}

void depth_end(struct slot *slot)
{
  depth_unwind(slot);
  if (slot->is_reentrant)
    slot_set_number(slot, "reentrant", 0);
  slot->is_reentrant = 0;
}

/* A simulated process whose threads use the blocking calls: one thread per lock, one that cancels, looks and leaves,
 * and one in the place of the keeper. */
#include "sim.h"
#include "../../core/src/client/client.h"

#include <inttypes.h>
#include <stdio.h>

enum { ENDED = ALLOW(CANCELLED) | ALLOW(INVALID) }; /* what every call may return once the client leaves */

static struct slot *slot_of(struct process *process, int number)
{
  return &process->slots[number];
}

static int goes_on(const struct process *process)
{
  return !process->world->calm && !process->leaving && !process->world->violation[0];
}

/* ---- calls ---- */

static int64_t stolen_so_far(const struct process *process)
{
  int64_t ahead = process->stolen_until - process->world->now;
  return process->stolen - (ahead > 0 ? ahead : 0);
}

static void expect_return(struct slot *slot, int64_t within)
{
  slot->overdue_at = slot->process->world->now + within;
  world_plan(slot->process->world, within, EVENT_OVERDUE, (uint32_t)slot->index, slot->call_serial);
}

/* limit_ms: how long the call may take, -1 if nothing bounds it. */
static void begin_call(struct slot *slot, const char *name, int64_t limit_ms)
{
  struct world *world = slot->process->world;
  slot->call = name;
  slot->call_serial++;
  if (slot->process->calls++ == 0)
    slot->process->woke_at = world->now;
  slot->stolen_before = stolen_so_far(slot->process);
  slot->started_at = world->now;
  TRACE(world, "process %d lock %d: %s begins", slot->process->index, slot->index, name);
  if (limit_ms >= 0)
    expect_return(slot, (limit_ms + 20) * MS * (100 + world->drift_percent) / 100);
}

static void check_status(struct slot *slot, int status, uint32_t allowed)
{
  struct world *world = slot->process->world;
  char message[256] = "";
  if (slot->process->leaving)
    allowed |= ENDED;
  if (allowed >> status & 1)
    return;
  redlock_lock_message(slot->lock, message, sizeof message);
  world_violation(world, "%s on lock %d returns %s: %s", slot->call, slot->index, redlock_status_name(status), message);
}

/* Nobody is told OK of a lock that is not held when the call returns, or for less than min_validity. */
static void check_lease(struct slot *slot, int status, int is_fresh)
{
  struct world *world = slot->process->world;
  uint32_t switches = thread_switches();
  int64_t usual_ms = slot->ttl_ms / 10 > 5 ? slot->ttl_ms / 10 : 5;
  int64_t least_ms = is_fresh ? usual_ms - 1 : 0, validity_ms;
  if (status != REDLOCK_OK)
    return;
  validity_ms = redlock_lock_validity_ms(slot->lock);
  if (switches != thread_switches())
    return; /* time has passed */
  if (redlock_lock_state(slot->lock) != REDLOCK_STATE_HELD && switches == thread_switches())
    world_violation(world, "%s on lock %d returned OK, but it is not held", slot->call, slot->index);
  else if (validity_ms < least_ms)
    world_violation(world, "%s on lock %d was granted with %" PRId64 " ms left", slot->call, slot->index, validity_ms);
}

static void observe(struct slot *slot)
{
  if (slot->process->leaving || !slot->lock)
    return; /* another thread may be giving it back */
  thread_look(1);
  oracle_observe(slot);
  thread_look(0);
}

static void end_call(struct slot *slot, int status, uint32_t allowed, int confers)
{
  TRACE(slot->process->world, "process %d lock %d: %s returns %s", slot->process->index, slot->index, slot->call,
        redlock_status_name(status));
  thread_look(1);
  check_status(slot, status, allowed);
  if (confers)
    check_lease(slot, status, confers > 1);
  thread_look(0);
  slot->call = NULL;
  slot->process->calls--;
  observe(slot);
}

/* It did not return in time; what was stolen from the process meanwhile is granted. */
void blocking_overdue(struct world *world, const struct event *event)
{
  struct slot *slot = world_slot(world, event->index);
  struct process *process = slot->process;
  int64_t stolen = process->stolen - slot->stolen_before;
  if (!slot->call || event->serial != slot->call_serial || world->now < slot->overdue_at)
    return;
  slot->stolen_before = process->stolen;
  if (process->asleep)
    stolen += 5 * MS;
  if (world->now + stolen < process->stolen_until)
    stolen = process->stolen_until - world->now;
  if (stolen > 0)
    expect_return(slot, stolen + MS);
  else
    world_violation(world, "%s on lock %d has not returned %.3f ms after it began", slot->call, slot->index,
                    (double)(world->now - slot->started_at) / MS);
}

/* ---- the program around a lock ---- */

static const uint32_t acquired =
    ALLOW(OK) | ALLOW(BUSY) | ALLOW(NO_QUORUM) | ALLOW(TIMED_OUT) | ALLOW(CANCELLED) | ALLOW(REFUSED_CONFIG);

/* The started shape, waited for by slices. */
static int start_and_wait(struct slot *slot, int64_t wait_ms)
{
  struct world *world = slot->process->world;
  int status = redlock_lock_start(slot->lock, REDLOCK_ACQUIRE, wait_ms);
  for (int i = 0; status == REDLOCK_OK || status == REDLOCK_PENDING; i++) {
    status = redlock_lock_wait(slot->lock, random_in(&world->random, 0, 20));
    if (status != REDLOCK_PENDING)
      break;
    if (i == 10 && random_in(&world->random, 0, 3) == 0)
      redlock_lock_cancel(slot->lock);
  }
  return status;
}

/* Leases of so much were asked for until now; a node that is connected a little later is asked, too. */
static void note_asked(struct slot *slot, int64_t ttl_ms)
{
  struct world *world = slot->process->world;
  int64_t until = world->now + (ttl_ms + world->connect_timeout_ms) * MS;
  if (until > slot->leased_until)
    slot->leased_until = until;
}

static void acquire(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t wait_ms = 0, limit_ms = world_single_ms(world);
  int is_started = random_in(&world->random, 0, 3) == 0, status;
  switch (random_in(&world->random, 0, 5)) {
  case 0: wait_ms = limit_ms = -1; break;
  case 1:
  case 2:
  case 3: wait_ms = limit_ms = random_in(&world->random, 1, 2 * slot->ttl_ms);
  }
  oracle_give_up(slot); /* if it has lapsed since the last look */
  begin_call(slot, is_started ? "start and wait" : "acquire", limit_ms);
  status = is_started ? start_and_wait(slot, wait_ms) : redlock_lock_acquire(slot->lock, wait_ms);
  slot->leased_until = 0;
  note_asked(slot, slot->ttl_ms);
  if (is_started) /* it may lapse before it is waited for, or be about to */
    end_call(slot, status, acquired | ALLOW(LOST), 1);
  else
    end_call(slot, status, acquired, 2);
}

static void release(struct slot *slot)
{
  depth_unwind(slot);
  oracle_give_up(slot);
  begin_call(slot, "release", world_attempt_ms(slot->process->world));
  end_call(slot, redlock_lock_release(slot->lock), ALLOW(OK) | ALLOW(LOST) | ALLOW(CANCELLED), 0);
}

/* It goes on as long as the lease, which the answers to all that was asked before may lengthen: the call reads them
 * first. Renewals are asked for at any time. */
static int64_t extension_limit_ms(struct slot *slot)
{
  int64_t limit_ms = slot_extension_limit_ms(slot), longest_ms;
  if (slot->temper == TEMPER_RENEW)
    note_asked(slot, slot->ttl_ms);
  longest_ms = (slot->leased_until - slot->process->world->now) / MS + 1;
  if (slot->outage_wait_ms >= 0 && slot->outage_wait_ms < longest_ms)
    longest_ms = slot->outage_wait_ms;
  return limit_ms > longest_ms ? limit_ms : longest_ms;
}

static void extend(struct slot *slot)
{
  struct world *world = slot->process->world;
  int64_t ttl_ms = slot_ttl(slot, world->ttl_ms * random_in(&world->random, 1, 4) / 2);
  int status;
  if (ttl_ms > world->last_ttl_ms)
    world->last_ttl_ms = ttl_ms;
  slot->renewed_ms = ttl_ms;
  begin_call(slot, "extend", extension_limit_ms(slot));
  status = redlock_lock_extend(slot->lock, ttl_ms);
  note_asked(slot, ttl_ms);
  end_call(slot, status,
           ALLOW(OK) | ALLOW(LOST) | ALLOW(LIMIT) | ALLOW(NO_QUORUM) | ALLOW(CANCELLED) | ALLOW(REFUSED_CONFIG), 1);
}

/* Nobody else may use the handle while it is freed. */
static void replace_lock(struct slot *slot)
{
  redlock_lock *lock = slot->lock;
  if (slot->process->leaving)
    return; /* another thread may be freeing the client */
  oracle_give_up(slot);
  slot->lock = NULL;
  slot->process->in_client++;
  redlock_lock_free(lock);
  slot_make_lock(slot);
  slot->process->in_client--;
}

static void act(struct slot *slot)
{
  struct world *world = slot->process->world;
  int state = redlock_lock_state(slot->lock);
  int64_t dice = random_in(&world->random, 0, 99);
  if (state != REDLOCK_STATE_HELD && state != REDLOCK_STATE_LOST)
    acquire(slot);
  else if (depth_act(slot))
    return;
  else if (dice < 30 && state == REDLOCK_STATE_HELD)
    extend(slot);
  else if (dice < 50 && state == REDLOCK_STATE_LOST && !slot->is_reentrant)
    acquire(slot);
  else if (dice < 55)
    replace_lock(slot);
  else if (dice < 90)
    release(slot);
}

/* Sleeps as a program that works under its lock, and looks at it now and then. */
static void pass(struct slot *slot)
{
  struct process *process = slot->process;
  int64_t duration = slot_pause(slot);
  for (int i = 0; i < 4 && goes_on(process); i++) {
    thread_nap(duration / 4);
    observe(slot);
  }
}

static void take_and_hold(struct process *process, int number)
{
  struct slot *slot = slot_of(process, number);
  int state;
  thread_nap(random_in(&process->world->random, 0, process->world->ttl_ms * MS / 4));
  while (goes_on(process)) {
    act(slot);
    if (goes_on(process))
      pass(slot);
  }
  if (process->leaving)
    return;
  depth_end(slot);
  state = redlock_lock_state(slot->lock);
  if (random_in(&process->world->random, 0, 1))
    replace_lock(slot);
  else if (state == REDLOCK_STATE_HELD || state == REDLOCK_STATE_LOST)
    release(slot); /* of a lock that was lost, too: a vote for it may come late */
  else
    oracle_give_up(slot);
}

/* ---- the thread that does everything else ---- */

static void leave(struct process *process)
{
  struct world *world = process->world;
  int64_t limit_ms = random_in(&world->random, 0, 2 * world->ttl_ms);
  int64_t begun = world->now, stolen = stolen_so_far(process);
  for (int i = 0; i < process->slot_count; i++) {
    struct slot *slot = slot_of(process, i);
    oracle_give_up(slot);
    if (slot->call)
      expect_return(slot, (limit_ms + 500 + 50) * MS * 12 / 10);
  }
  process->leaving = 1;
  if (process->in_client || random_in(&world->random, 0, 1)) {
    TRACE(world, "process %d: drain, at most %" PRId64 " ms", process->index, limit_ms);
    redlock_client_drain(process->client, limit_ms);
    process->drained = 1;
  } else {
    TRACE(world, "process %d: the client is freed", process->index);
    limit_ms = 500;
    redlock_client_free(process->client);
    process->client = NULL;
  }
  TRACE(world, "process %d: has left", process->index);
  stolen = process->stolen - stolen;
  if (world->now - begun > (limit_ms + 20) * MS * (100 + world->drift_percent) / 100 + stolen)
    world_violation(world, "process %d needs %.3f ms to leave within %" PRId64 " ms", process->index,
                    (double)(world->now - begun) / MS, limit_ms);
}

static void disturb(struct process *process)
{
  struct world *world = process->world;
  struct slot *slot = slot_of(process, (int)random_in(&world->random, 0, process->slot_count - 1));
  char text[512];
  switch (random_in(&world->random, 0, 5)) {
  case 0:
  case 1:
  case 2:
    TRACE(world, "process %d lock %d: cancel", process->index, slot->index);
    if (slot->lock)
      redlock_lock_cancel(slot->lock);
    break;
  case 3: redlock_client_process(process->client); break;
  default: redlock_client_describe(process->client, text, sizeof text);
  }
}

static void look_after(struct process *process, int number)
{
  struct world *world = process->world;
  (void)number;
  while (goes_on(process) && !process->has_to_leave) {
    thread_nap(random_in(&world->random, 0, 4 * world->ttl_ms * MS));
    if (goes_on(process) && !process->has_to_leave)
      disturb(process);
    if (world->faults.process_end && goes_on(process) && random_in(&world->random, 0, 7) == 0)
      process->has_to_leave = 1;
  }
  if (process->has_to_leave && !world->violation[0])
    leave(process);
}

static int64_t next_renewal(const struct process *process)
{
  const redlock_client *client = process->client;
  return client ? rlk_timers_next(&client->engine.renewal_timers) : RLK_NEVER;
}

/* As long as there are others whose leases may be due. */
static int keeps(const struct process *process)
{
  return !process->leaving && process->running > 1 && !process->world->violation[0];
}

/* The real keeper runs the same step when a renewal is due, and while one is under way. */
static void keep(struct process *process, int number)
{
  struct world *world = process->world;
  int64_t listens_until = 0;
  (void)number;
  while (keeps(process)) {
    int64_t next = next_renewal(process);
    int64_t at = next == RLK_NEVER ? world->now + 100 * MS : process_true_time(process, next);
    if (world->now < listens_until && at > world->now + MS)
      at = world->now + MS;
    if (at > world->now)
      thread_nap(at - world->now);
    next = next_renewal(process);
    if (!keeps(process) || (world->now >= listens_until && process_clock(process) < next))
      continue;
    if (process_clock(process) >= next)
      listens_until = world->now + world->node_timeout_ms * MS;
    redlock_client_process(process->client);
  }
}

/* ---- life ---- */

void blocking_keep(struct process *process)
{
  thread_start(process, KEEPER, keep);
}

void blocking_start(struct process *process)
{
  process->leaving = process->has_to_leave = process->drained = process->mutex_taken = 0;
  process->calls = process->in_client = 0;
  for (int i = 0; i < process->slot_count; i++)
    thread_start(process, i, take_and_hold);
  thread_start(process, MASTER, look_after);
  blocking_keep(process);
}

/* All that its threads wait for is given up. */
void blocking_cancel(struct process *process)
{
  for (int i = 0; i < process->slot_count && process->client; i++)
    if (process->slots[i].lock)
      redlock_lock_cancel(process->slots[i].lock);
}

void blocking_leave(struct process *process)
{
  process->has_to_leave = 1;
  if (process->running)
    thread_wake(process, MASTER);
  else
    thread_start(process, MASTER, look_after);
}

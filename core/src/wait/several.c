/* several.c - waiting for several resources. Locks of one resource may go ahead of it, other locks of several may not,
 * which all stand in the same order in all queues. Where it is the first of them everywhere, it keeps what gets free
 * for a part of the time that it has waited, then lets others pass for longer. */
#include "several.h"

#include <stdlib.h>

#include "../lock/backoff.h"
#include "../lock/round.h"
#include "../node/listener.h"
#include "home.h"
#include "room.h"

#define MS RLK_NS_PER_MS
#define KEEP_MIN_NS (50 * MS)
#define KEEP_SHARE 6  /* it keeps free resources for this part of its wait, */
#define PASS_FACTOR 4 /* then lets others pass for so many times as long */

/* By the clock of the home of the first resource: it is the same number in all queues, so no two such locks stand
 * crosswise. Clocks that differ cost order alone. */
static int64_t arrival_us(const redlock_lock *lock, int home, int64_t now)
{
  const struct rlk_env *env = &lock->engine->net.env;
  const struct rlk_clock *clock = home >= 0 ? &lock->engine->net.nodes[home].voter->clock : NULL;
  int64_t waited_ns = now - lock->wait->arrived_ns;
  int64_t at_ns = clock && clock->at_ns ? now + clock->low_ns : env->platform->wall_ns(env->context);
  return (at_ns - waited_ns) / 1000;
}

/* 1: no other such lock is before it in any queue; 0: nobody at all, whom readers would pass. */
static int ranks_at_most(const redlock_lock *lock, int rank)
{
  for (int i = 0; i < lock->key->count; i++)
    if (lock->wait->parts[i].rank.before > rank)
      return 0;
  return 1;
}

static int all_are_free(const redlock_lock *lock)
{
  for (int i = 0; i < lock->key->count; i++)
    if (!lock->wait->parts[i].is_free)
      return 0;
  return 1;
}

static int is_its_turn(const redlock_lock *lock, int64_t now)
{
  return ranks_at_most(lock, 0) && (all_are_free(lock) || rlk_round_is_overdue(lock, now));
}

static void ask_all_now(redlock_lock *lock)
{
  for (int i = 0; i < lock->key->count; i++)
    lock->wait->parts[i].ask_ns = 0;
}

/* ---- keeping and letting pass ---- */

static void keep(redlock_lock *lock, int64_t now)
{
  int64_t share_ns = (now - lock->wait->arrived_ns) / KEEP_SHARE;
  lock->wait->keep_ns = share_ns > KEEP_MIN_NS ? share_ns : KEEP_MIN_NS;
  lock->wait->keeps = 1;
  lock->wait->keeps_until_ns = now + lock->wait->keep_ns;
  ask_all_now(lock);
}

static void let_pass(redlock_lock *lock, int64_t until_ns)
{
  lock->wait->keeps = 0;
  lock->wait->keeps_until_ns = until_ns;
  ask_all_now(lock);
}

static void take_turns(redlock_lock *lock, int64_t now)
{
  if (!ranks_at_most(lock, 1)) {
    if (lock->wait->keeps)
      let_pass(lock, 0);
    lock->wait->keeps_until_ns = 0;
  } else if (now >= lock->wait->keeps_until_ns) {
    if (lock->wait->keeps)
      let_pass(lock, now + PASS_FACTOR * lock->wait->keep_ns);
    else
      keep(lock, now);
  }
}

/* ---- the places ---- */

static void leave(redlock_lock *lock, int part)
{
  struct rlk_part_wait *at = &lock->wait->parts[part];
  if (at->home < 0)
    return;
  rlk_place_mark(&lock->wait->place.listens, at->home, at->listens);
  rlk_place_leave(lock, at->home, part);
  at->home = -1;
}

static void ask(redlock_lock *lock, int part, int64_t now)
{
  struct rlk_part_wait *at = &lock->wait->parts[part];
  int home = rlk_room_home(lock, rlk_key_part(lock->key, part), now);
  if (at->home >= 0 && at->home != home)
    leave(lock, part);
  at->home = home;
  at->asked_ns = now;
  at->ask_ns = now + rlk_larger(rlk_smaller(rlk_rank_pause_ns(lock, &at->rank, home, now), RLK_LATE_NS),
                                home >= 0 ? 2 * lock->engine->net.nodes[home].rtt_ns : 0); /* unless it is answered */
  if (home < 0 || rlk_place_ask_at(lock, home, &rlk_row_place_of_several, part, now) != 0) {
    at->rank.before = 0; /* it tries beside that queue */
    at->is_free = 1;
  }
}

/* Or it was to be woken, and its listener is gone. */
static int is_due(const redlock_lock *lock, const struct rlk_part_wait *at, int64_t now)
{
  return now >= at->ask_ns ||
         (at->home >= 0 && at->listens && !rlk_listener_is_ready(&lock->engine->net.nodes[at->home]));
}

static int64_t ask_those_due(redlock_lock *lock, int64_t now)
{
  int64_t due_ns = RLK_NEVER;
  for (int i = 0; i < lock->key->count; i++)
    if (is_due(lock, &lock->wait->parts[i], now))
      ask(lock, i, now);
  for (int i = 0; i < lock->key->count; i++)
    due_ns = lock->wait->parts[i].ask_ns < due_ns ? lock->wait->parts[i].ask_ns : due_ns;
  return due_ns;
}

/* ---- its turn ---- */

static enum rlk_turn sleep(redlock_lock *lock, int64_t due_ns, int64_t now)
{
  if (lock->wait->keeps_until_ns && lock->wait->keeps_until_ns < due_ns)
    due_ns = lock->wait->keeps_until_ns;
  if (is_its_turn(lock, now) && lock->wait->pause_until_ns > now && lock->wait->pause_until_ns < due_ns)
    due_ns = lock->wait->pause_until_ns;
  return rlk_sleep_until(lock, due_ns);
}

enum rlk_turn rlk_several_step(redlock_lock *lock, int64_t now)
{
  if (now >= lock->wait->pause_until_ns && is_its_turn(lock, now))
    return RLK_TURN_ATTEMPT;
  take_turns(lock, now);
  return sleep(lock, ask_those_due(lock, now), now);
}

/* What it knew was not so. */
static void know_nothing(redlock_lock *lock, int64_t at_ns)
{
  for (int i = 0; i < lock->key->count; i++) {
    lock->wait->parts[i].is_free = 0;
    lock->wait->parts[i].ask_ns = at_ns;
  }
}

static int begin(redlock_lock *lock, int64_t now)
{
  if (!lock->wait->parts && !(lock->wait->parts = calloc((size_t)lock->key->count, sizeof *lock->wait->parts)))
    return -1;
  if (!lock->claim && !(lock->claim = rlk_claim_new(lock))) /* carries the answers */
    return -1;
  rlk_place_take(lock);
  for (int i = 0; i < lock->key->count; i++)
    lock->wait->parts[i] = (struct rlk_part_wait){.home = -1, .rank = {.before = 2, .changed_ns = now}};
  lock->wait->arrival_us = arrival_us(lock, rlk_room_home(lock, rlk_key_part(lock->key, 0), now), now);
  lock->wait->keeps = 0;
  lock->wait->keeps_until_ns = 0;
  return 0;
}

enum rlk_turn rlk_several_wait(redlock_lock *lock, int64_t now)
{
  if (rlk_has_place(lock))
    know_nothing(lock, lock->wait->pause_until_ns);
  else if (begin(lock, now) != 0)
    return RLK_TURN_NONE; /* without memory it finds them free or not, as it comes */
  return rlk_several_step(lock, now);
}

/* It is first where a resource is free: what it knows of the others may be old, as a queue may lose its places. */
static void doubt_others(redlock_lock *lock)
{
  for (int i = 0; i < lock->key->count; i++) {
    struct rlk_part_wait *at = &lock->wait->parts[i];
    if (!at->is_free || at->rank.before)
      at->ask_ns = rlk_smaller(at->ask_ns, at->asked_ns + RLK_WOKEN_NS);
  }
}

enum rlk_turn rlk_several_placed(redlock_lock *lock, int part, int node, int64_t rank, int64_t until_ns, int64_t now)
{
  struct rlk_part_wait *at = lock->wait->parts ? &lock->wait->parts[part] : NULL;
  if (!at || !rlk_has_place(lock) || at->home != node)
    return RLK_TURN_NONE;
  rlk_rank_note(&at->rank, rank, now);
  at->is_free = until_ns == 0;
  if (rank || until_ns) { /* a home node that answers is no outage */
    lock->op.outage_until_ns = RLK_NEVER;
    lock->attempt.verdict = REDLOCK_BUSY;
  }
  at->ask_ns = now + rlk_rank_pause_ns(lock, &at->rank, node, now);
  if (until_ns && until_ns + MS < at->ask_ns)
    at->ask_ns = until_ns + MS;
  if (rank == 0 && until_ns == 0)
    doubt_others(lock);
  return lock->op.phase == RLK_SLEEPING ? rlk_several_step(lock, now) : RLK_TURN_NONE;
}

void rlk_several_lost(redlock_lock *lock, int part)
{
  if (lock->wait->parts)
    lock->wait->parts[part].ask_ns = 0;
}

/* However often it is woken, it asks once in a round trip. Its own question may have woken it. */
enum rlk_turn rlk_several_woken(redlock_lock *lock, int node, int is_release, int64_t now)
{
  int64_t gap_ns = is_release ? rlk_backoff_round_trip_ns(lock->engine) : RLK_ASK_MIN_NS;
  for (int i = 0; lock->wait->parts && i < lock->key->count; i++) {
    struct rlk_part_wait *at = &lock->wait->parts[i];
    if (at->home == node && at->asked_ns + gap_ns < at->ask_ns)
      at->ask_ns = at->asked_ns + gap_ns;
  }
  return lock->op.phase == RLK_SLEEPING ? rlk_several_step(lock, now) : RLK_TURN_NONE;
}

void rlk_several_leave(redlock_lock *lock)
{
  for (int i = 0; lock->wait->parts && i < lock->key->count; i++)
    leave(lock, i);
}

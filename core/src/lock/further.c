/* further.c - the places of a lock of several resources beside that of its own queue: one for each that was in use. */
#include "further.h"

#include <stdlib.h>

#include "../base/mutant.h"
#include "../node/listener.h"
#include "place.h"
#include "room.h"

/* A part of the lock in which a node has refused it, or others wait; -1: none. */
static int refused_part(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_BUSY)
      return lock->node_answers[i].part;
  return lock->others.are_waiting ? lock->others.part : -1;
}

void rlk_further_choose(redlock_lock *lock)
{
  int part = refused_part(lock);
  struct rlk_key *key = part >= 0 ? rlk_key_alone(lock->key, part) : NULL;
  if (!key || lock->wait.room)
    return;
  lock->wait.part = part;
  lock->wait.key = key;
}

static struct rlk_further *further_of(const redlock_lock *lock, int part)
{
  for (int i = 0; i < lock->wait.further_count; i++)
    if (lock->wait.further[i].part == part)
      return &lock->wait.further[i];
  return NULL;
}

/* Without memory it finds the resource free or not, as it comes. */
static void note(redlock_lock *lock, int part)
{
  if (part == lock->wait.part || further_of(lock, part))
    return;
  if (!lock->wait.further && !(lock->wait.further = calloc((size_t)lock->key->count, sizeof *lock->wait.further)))
    return;
  lock->wait.further[lock->wait.further_count++] = (struct rlk_further){.part = part};
}

void rlk_further_note(redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_BUSY)
      note(lock, lock->node_answers[i].part);
  if (lock->others.are_waiting)
    note(lock, lock->others.part);
}

static void leave(redlock_lock *lock, struct rlk_further *at)
{
  struct rlk_node *home = &lock->engine->net.nodes[at->home];
  if (at->place && home->state == RLK_NODE_READY)
    rlk_ask_leave_part(home, lock, at->part, at->place);
  at->place = 0;
}

static void ask(redlock_lock *lock, struct rlk_further *at, int64_t now)
{
  struct rlk_key *key = rlk_key_alone(lock->key, at->part);
  int index = key ? rlk_room_home(lock, key, now) : -1;
  struct rlk_node *home = index >= 0 ? &lock->engine->net.nodes[index] : NULL;
  uint64_t place = (lock->wait.place & ~UINT64_C(1)) | (uint64_t)(home && rlk_listener_is_ready(home));
  if (at->place && (at->home != index || at->place != place))
    leave(lock, at);
  at->ask_ns = now + RLK_STEP_NS;
  if (!home)
    return;
  at->home = index;
  if (rlk_ask_join_part(home, lock, at->part, place, now) != 0)
    return;
  at->place = place;
  rlk_listener_want(home, now);
}

void rlk_further_ask(redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->wait.further_count; i++) {
    struct rlk_further *at = &lock->wait.further[i];
    if (now >= at->ask_ns || at->place >> 1 != lock->wait.place >> 1)
      ask(lock, at, now);
  }
}

int rlk_further_placed(redlock_lock *lock, int part, int node, int64_t rank, int64_t now)
{
  struct rlk_further *at = further_of(lock, part);
  int64_t pause_ns = RLK_STEP_NS * (rank + 1);
  int64_t most_ns = RLK_POLL_MAX_NS;
  if (!at || !at->place || at->home != node)
    return 0;
  if (at->place & 1 && rlk_listener_is_ready(&lock->engine->net.nodes[node]))
    most_ns = RLK_STEP_MAX_NS;
  if (rank < 0) {
    at->place = 0;
    return 0;
  }
  at->ask_ns = now + (rank <= 1 ? RLK_ASK_NS : pause_ns < most_ns ? pause_ns : most_ns);
  return 1;
}

void rlk_further_question(redlock_lock *lock, int node)
{
  for (int i = 0; i < lock->wait.further_count; i++)
    if (lock->wait.further[i].home == node)
      lock->wait.further[i].ask_ns = 0;
}

int64_t rlk_further_due_ns(const redlock_lock *lock)
{
  int64_t due_ns = RLK_NEVER;
  for (int i = 0; i < lock->wait.further_count; i++)
    if (lock->wait.further[i].ask_ns < due_ns)
      due_ns = lock->wait.further[i].ask_ns;
  return due_ns;
}

void rlk_further_leave(redlock_lock *lock)
{
  for (int i = 0; i < lock->wait.further_count; i++)
    leave(lock, &lock->wait.further[i]);
  lock->wait.further_count = 0;
}

void rlk_further_free(redlock_lock *lock)
{
  free(lock->wait.further);
  lock->wait.further = NULL;
  lock->wait.further_count = 0;
}

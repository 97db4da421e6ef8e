#include "others.h"

#include "../base/mutant.h"
#include "backoff.h"
#include "kind.h"
#include "place.h"
#include "queue.h"
#include "room.h"

#define MS RLK_NS_PER_MS
#define CONTENDED_NS (2000 * MS)
#define KNOWS_WITHIN_NS (20 * MS) /* one node says whether others wait; it need not be among the fastest */
#define ALONE_NS (20 * MS)        /* nobody is asked for so long after the last answer that nobody waits */

/* Whoever re-acquires without contention skips the queue, with the same handle or another one. */
static struct rlk_alone *alone_at(struct rlk_engine *e, struct rlk_key *key)
{
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; !key->hash && i < key->all_size; i++)
    hash = (hash ^ (unsigned char)key->all[i]) * 0x100000001b3;
  key->hash = key->hash ? key->hash : hash;
  return &e->alone[(key->hash ^ key->hash >> 32) % RLK_ALONE_KEPT];
}

static void note_alone(struct rlk_engine *e, struct rlk_key *key, int is_alone, int64_t now)
{
  struct rlk_alone *at = alone_at(e, key);
  if (is_alone)
    *at = (struct rlk_alone){key->hash, now};
  else if (at->key_hash == key->hash)
    at->key_hash = 0;
}

static int is_alone(const redlock_lock *lock, int64_t now)
{
  const struct rlk_alone *at = alone_at(lock->engine, lock->key);
  return at->key_hash == lock->key->hash && now - at->at_ns < ALONE_NS;
}

/* A node that was never connected may be the one that is home to others. */
static int is_connecting(const struct rlk_engine *e)
{
  for (int i = 0; i < e->net.node_count; i++) {
    const struct rlk_node *n = &e->net.nodes[i];
    if (!n->run_id[0] && n->failures == 0 && n->state != RLK_NODE_REFUSED)
      return 1;
  }
  return 0;
}

/* Notes the homes of several resources in their keys. */
static int homes(const redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->key->count; i++) {
    struct rlk_key *key = rlk_key_alone(lock->key, i);
    if (key)
      key->queue_home = rlk_room_home(lock, key, now);
  }
  return RLK_QUEUE_EACH;
}

static int home_or_anywhere(const redlock_lock *lock, int64_t now)
{
  if (is_connecting(lock->engine))
    return RLK_QUEUE_ANYWHERE;
  return lock->key->count > 1 ? homes(lock, now) : rlk_room_home(lock, lock->key, now);
}

int rlk_others_home(const redlock_lock *lock, int64_t now)
{
  return rlk_has_place(lock) || is_alone(lock, now) || !rlk_queue_is_used(lock) ? -1 : home_or_anywhere(lock, now);
}

int rlk_others_are_ahead(const redlock_lock *lock)
{
  return !RLK_MUTANT(QUEUE_JUMPER) && lock->others.are_waiting && !rlk_has_place(lock) && rlk_queue_is_used(lock);
}

static int64_t smaller(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* A lock that others may share is not won without that word: readers that come would pass a writer for ever. It waits
 * for the connection, too, unless the node is known to be away. */
static int must_know(const redlock_lock *lock)
{
  return lock->kind->shares && lock->others.home != -1 && (lock->others.asked || is_connecting(lock->engine));
}

int rlk_others_are_awaited(redlock_lock *lock, int64_t now)
{
  int64_t lease_ns = lock->op.asked.lease_ns;
  if (lock->others.are_waiting || (!lock->others.asked && !must_know(lock)))
    return 0;
  if (!lock->others.until_ns)
    lock->others.until_ns =
        now + (must_know(lock) ? smaller(RLK_LATE_NS, lease_ns / 4) : smaller(KNOWS_WITHIN_NS, lease_ns / 20));
  return now < lock->others.until_ns;
}

void rlk_others_hand_over(redlock_lock *lock, int64_t now)
{
  if (!RLK_INT(&lock->options, QUEUE) || lock->claim->given_up || lock->claim->holders == 0)
    return;
  if (!rlk_has_place(lock) && !lock->engine->room_count && is_alone(lock, now))
    return;
  note_alone(lock->engine, lock->key, 0, now); /* until home answers */
  lock->claim->hands_over = rlk_has_place(lock) ? lock->wait.home : home_or_anywhere(lock, now);
  lock->claim->queues_empty = 0;
  lock->claim->place = lock->wait.place;
}

void rlk_others_pass_on(redlock_lock *lock, int64_t now)
{
  lock->claim->hands_over = home_or_anywhere(lock, now);
}

void rlk_others_let_in(redlock_lock *lock, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  if (!RLK_INT(&lock->options, QUEUE))
    return;
  lock->claim->place = lock->wait.place;
  if (lock->key->count > 1)
    homes(lock, now);
  for (int i = 0; i < e->net.node_count; i++)
    if (e->net.nodes[i].state == RLK_NODE_READY)
      rlk_ask_let_in(&e->net.nodes[i], lock->claim, now); /* without memory they find out by asking */
  lock->wait.place.number = 0;
}

static void wake(redlock_lock *lock, int64_t now)
{
  if (lock && lock->op.phase == RLK_SLEEPING)
    rlk_timer_set(&lock->engine->net.timers, &lock->op.timer, now);
}

void rlk_others_handed_over(struct rlk_engine *e, struct rlk_claim *claim, int others_wait, int64_t now)
{
  const struct rlk_key *key = claim->key;
  struct rlk_room *room = NULL;
  redlock_lock *first, *ours;
  if (others_wait)
    claim->queues_empty = -1; /* another node may not know */
  else if (claim->queues_empty < 0)
    return;
  if (others_wait)
    room = rlk_room_make(e, claim->key, now); /* without memory it comes back too early once */
  else if (e->room_count)
    room = rlk_room_find(e, rlk_key_resource(key), key->resource_size, now);
  note_alone(e, claim->key, !others_wait, now);
  if (!room)
    return;
  for (first = room->first;
       first && !rlk_has_place(first);) /* without one it waits beside the queue, or behind others */
    first = first->wait.next;
  if (!others_wait || !first) /* else it may be that one of whom the node has heard */
    room->contended_until_ns = others_wait ? now + CONTENDED_NS : 0;
  ours = room->ours_until_ns ? room->first : NULL;
  if (ours && ours != first)
    ours->wait.is_told = !others_wait;
  room->ours_until_ns = 0;
  wake(ours, now);
  wake(first, now); /* of this client: the node need not report it */
}

void rlk_others_handed_over_part(struct rlk_engine *e, struct rlk_claim *claim, int others_wait, int64_t now)
{
  if (claim->hands_over != RLK_QUEUE_EACH)
    return;
  if (others_wait || ++claim->queues_empty == claim->key->count)
    note_alone(e, claim->key, !others_wait, now);
}

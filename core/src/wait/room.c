#include "room.h"

#include <stdlib.h>
#include <string.h>

#include "../base/hash.h"
#include "../base/list.h"
#include "../base/mutant.h"
#include "home.h"

#define REFUSED_NS (10000 * RLK_NS_PER_MS) /* how long an unusable queue is left alone */

static struct rlk_room **bucket_of(struct rlk_engine *e, const struct rlk_key *key)
{
  uint64_t hash = rlk_hash(RLK_HASH_OF_NOTHING, rlk_key_resource(key), key->resource_size);
  return &e->waits->rooms[(hash ^ hash >> 32) % RLK_ROOM_BUCKETS];
}

static void free_room(struct rlk_waits *waits, struct rlk_room *room)
{
  rlk_key_drop(room->key);
  free(room);
  waits->room_count--;
}

static int has_resource(const struct rlk_room *room, const struct rlk_key *key)
{
  return room->key->resource_size == key->resource_size &&
         memcmp(rlk_key_resource(room->key), rlk_key_resource(key), key->resource_size) == 0;
}

struct rlk_room *rlk_room_find(struct rlk_engine *e, const struct rlk_key *key, int64_t now)
{
  struct rlk_room **at = bucket_of(e, key), *found = NULL, *room;
  while ((room = *at) != NULL) {
    if (has_resource(room, key)) {
      found = room;
    } else if (!room->first && now >= room->queue_again_ns) {
      *at = room->next;
      free_room(e->waits, room);
      continue;
    }
    at = &room->next;
  }
  return found;
}

int rlk_room_home(const redlock_lock *lock, struct rlk_key *key, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  int home = rlk_home_node(lock, key, RLK_LATE_NS, now);
  const struct rlk_room *room = e->waits->room_count ? rlk_room_find(e, key, now) : NULL;
  return home < 0 || now < e->peers[home].queue_again_ns || (room && now < room->queue_again_ns) ? -1 : home;
}

static void tell_refused(struct rlk_node *n)
{
  if (!rlk_peer_of(n)->queue_refused)
    rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index,
                  "the wait queue cannot be used on this node; waiters retry at random");
  rlk_peer_of(n)->queue_refused = 1;
}

void rlk_room_denied(struct rlk_node *n, int64_t now)
{
  tell_refused(n);
  rlk_peer_of(n)->queue_works = 0;
  rlk_peer_of(n)->queue_again_ns = now + REFUSED_NS;
}

/* A denied command concerns all resources; any other error may come from the keys of this one. A node that is loading,
 * busy, cannot write or is no master any more is not home until that is over. */
void rlk_room_refused(const redlock_lock *lock, struct rlk_node *n, enum rlk_fault fault, int64_t now)
{
  if (fault == RLK_FAULT_ROLE || fault == RLK_FAULT_LOADING || fault == RLK_FAULT_PAUSE ||
      fault == RLK_FAULT_UNWRITABLE)
    return;
  if (fault == RLK_FAULT_PERMISSION || fault == RLK_FAULT_UNKNOWN || !lock->wait->room) {
    rlk_room_denied(n, now);
  } else {
    tell_refused(n);
    lock->wait->room->queue_again_ns = now + REFUSED_NS;
  }
}

struct rlk_room *rlk_room_make(struct rlk_engine *e, struct rlk_key *key, int64_t now)
{
  struct rlk_room **bucket = bucket_of(e, key), *room = rlk_room_find(e, key, now);
  if (room)
    return room;
  room = calloc(1, sizeof *room);
  if (!room)
    return NULL;
  e->waits->room_count++;
  room->key = key;
  room->key->users++;
  room->next = *bucket;
  *bucket = room;
  return room;
}

void rlk_room_enter(struct rlk_room *room, redlock_lock *lock)
{
  redlock_lock *before = room->last;
  while (before && before->wait->arrival > lock->wait->arrival && !rlk_room_is_trying(before))
    before = before->wait->previous;
  room->length++;
  lock->wait->room = room;
  lock->wait->previous = before;
  lock->wait->next = before ? before->wait->next : room->first;
  if (before)
    before->wait->next = lock;
  else
    room->first = lock;
  if (lock->wait->next)
    lock->wait->next->wait->previous = lock;
  else
    room->last = lock;
}

int rlk_room_are_alike(const redlock_lock *one, const redlock_lock *other)
{
  const struct rlk_terms *a = &one->op.asked, *b = &other->op.asked;
  if (RLK_MUTANT(ALL_ALIKE))
    return 1;
  return a->ttl_ms == b->ttl_ms && a->lease_ns == b->lease_ns && a->node_timeout_ns == b->node_timeout_ns &&
         a->patience_min_ns == b->patience_min_ns && a->min_validity_ns == b->min_validity_ns &&
         one->kind == other->kind && RLK_INT(&one->options, PERMITS) == RLK_INT(&other->options, PERMITS) &&
         RLK_INT(&one->options, SLOT) == RLK_INT(&other->options, SLOT) && rlk_key_is_same(one->key, other->key);
}

redlock_lock *rlk_room_alike(redlock_lock *from, const redlock_lock *lock)
{
  while (from && !rlk_room_are_alike(from, lock))
    from = from->wait->next;
  return from;
}

redlock_lock *rlk_room_leader(const redlock_lock *lock)
{
  return rlk_room_alike(lock->wait->room->first, lock);
}

int rlk_room_leads(const redlock_lock *lock)
{
  return rlk_room_leader(lock) == lock;
}

int rlk_room_behind(const redlock_lock *lock, int most)
{
  int count = 0;
  for (redlock_lock *next = lock->wait->room ? lock->wait->next : NULL; count < most; count++, next = next->wait->next)
    if ((next = rlk_room_alike(next, lock)) == NULL)
      break;
  return count;
}

void rlk_room_leave(redlock_lock *lock)
{
  struct rlk_room *room = lock->wait->room;
  room->length--;
  RLK_LIST_REMOVE(room->first, room->last, lock, wait->);
  lock->wait->room = NULL;
}

/* ---- what releases and waits have heard ---- */

static struct rlk_heard *heard_at(struct rlk_engine *e, struct rlk_key *key)
{
  if (!key->hash) /* slots have the queue of their resource */
    key->hash = key->count > 1 ? rlk_hash(RLK_HASH_OF_NOTHING, key->bulk, key->all_size)
                               : rlk_hash(RLK_HASH_OF_NOTHING, rlk_key_resource(key), key->resource_size);
  return &e->waits->heard[(key->hash ^ key->hash >> 32) % RLK_HEARD_KEPT];
}

void rlk_heard_note(struct rlk_engine *e, struct rlk_key *key, int others_wait, int64_t now)
{
  struct rlk_heard *at = heard_at(e, key); /* makes the hash */
  *at = (struct rlk_heard){key->hash, now, others_wait != 0};
}

void rlk_heard_forget_alone(struct rlk_engine *e, struct rlk_key *key)
{
  struct rlk_heard *at = heard_at(e, key);
  if (at->key_hash == key->hash && !at->others_wait)
    at->key_hash = 0;
}

int rlk_heard(const redlock_lock *lock, int others_wait, int64_t within_ns, int64_t now)
{
  const struct rlk_heard *at = heard_at(lock->engine, lock->key);
  return at->key_hash == lock->key->hash && at->others_wait == others_wait && now - at->at_ns < within_ns;
}

struct rlk_waits *rlk_waits_new(void)
{
  return calloc(1, sizeof(struct rlk_waits));
}

void rlk_waits_free(struct rlk_waits *waits)
{
  for (int i = 0; waits && i < RLK_ROOM_BUCKETS; i++)
    while (waits->rooms[i]) {
      struct rlk_room *room = waits->rooms[i];
      waits->rooms[i] = room->next;
      free_room(waits, room);
    }
  for (int i = 0; waits && i < RLK_LEFT_KEPT; i++)
    rlk_key_drop(waits->left[i].key);
  free(waits);
}

/* ---- figures ---- */

int rlk_rooms_count(const struct rlk_engine *e, int *longest)
{
  int waiting = 0;
  *longest = 0;
  for (int i = 0; i < RLK_ROOM_BUCKETS; i++) {
    for (const struct rlk_room *room = e->waits->rooms[i]; room; room = room->next) {
      waiting += room->length;
      *longest = room->length > *longest ? room->length : *longest;
    }
  }
  for (const redlock_lock *lock = e->flights; lock; lock = lock->flight.next) /* and those outside of queues */
    waiting += lock->op.kind == REDLOCK_ACQUIRE && lock->op.phase == RLK_SLEEPING && !lock->wait->room;
  return waiting;
}

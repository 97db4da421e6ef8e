/* standing.c - the place of a lock, by which it is found when it is woken. */
#include "standing.h"

#include <stdlib.h>
#include <string.h>

#include "../node/listener.h"
#include "kind.h"

static redlock_lock **placed_bucket(struct rlk_engine *e, uint64_t number)
{
  return &e->placed[number % RLK_ROOM_BUCKETS];
}

void rlk_place_hide(redlock_lock *lock)
{
  redlock_lock **at = placed_bucket(lock->engine, lock->wait.place.number);
  while (*at && *at != lock)
    at = &(*at)->wait.next_placed;
  if (*at)
    *at = lock->wait.next_placed;
}

void rlk_place_show(redlock_lock *lock, struct rlk_place place)
{
  redlock_lock **bucket = placed_bucket(lock->engine, place.number);
  rlk_place_hide(lock);
  lock->wait.place = place;
  lock->wait.next_placed = *bucket;
  *bucket = lock;
}

void rlk_place_take(redlock_lock *lock)
{
  int slot = rlk_lock_slots(lock) ? (int)RLK_INT(&lock->options, SLOT) : -1;
  rlk_place_show(lock, (struct rlk_place){.number = ++lock->engine->places,
                                          .slot = slot,
                                          .shares = (uint8_t)lock->kind->shares,
                                          .is_of_several = lock->key->count > 1});
}

int rlk_place_ask_at(redlock_lock *lock, int node, const struct rlk_place_wish *wish, int64_t now)
{
  struct rlk_node *n = &lock->engine->net.nodes[node];
  uint64_t bit = UINT64_C(1) << node, listens = rlk_listener_is_ready(n) ? bit : 0;
  lock->wait.place.at |= bit;
  lock->wait.place.listens = (lock->wait.place.listens & ~bit) | listens;
  rlk_listener_want(n, now);
  return rlk_ask_place(n, lock, wish, now);
}

redlock_lock *rlk_place_named(struct rlk_engine *e, const char *text, uint64_t *number)
{
  size_t name_size = strlen(e->queue_name);
  const char *at = text + name_size, *comma = strchr(text, ',');
  redlock_lock *lock;
  *number = 0;
  if (strncmp(text, e->queue_name, name_size) != 0 || (*at != ':' && *at != '/'))
    return NULL;
  at = comma ? comma + 1 : at + 1;
  *number = strtoull(*at == 's' ? at + 1 : at, NULL, 10) >> 1;
  lock = *placed_bucket(e, *number);
  while (lock && lock->wait.place.number != *number)
    lock = lock->wait.next_placed;
  return lock;
}

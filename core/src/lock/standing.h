/* The place of a lock in queues: by it a lock is found when it is woken (rule F.3). */
#ifndef RLK_STANDING_H
#define RLK_STANDING_H

#include "../node/node.h"
#include "place.h"

enum rlk_turn {
  RLK_TURN_NONE,   /* the queue has no say: it does not wait in order, or it waits for something else */
  RLK_TURN_WAIT,   /* it sleeps, or has asked for its place */
  RLK_TURN_ATTEMPT /* it is to make an attempt now */
};

/* A place of its own for the lock, on no node yet. */
void rlk_place_take(redlock_lock *lock);
/* It has that place. */
void rlk_place_show(redlock_lock *lock, struct rlk_place place);
/* No wake-up concerns it from now on. */
void rlk_place_hide(redlock_lock *lock);
/* The lock whose place has that name; NULL: it is of another client, or was given back. number: that in the name, or 0.
 */
redlock_lock *rlk_place_named(struct rlk_engine *engine, const char *text, uint64_t *number);
/* Asks for it there: 0, or -1 when memory is out. */
int rlk_place_ask_at(redlock_lock *lock, int node, const struct rlk_place_wish *wish, int64_t now_ns);

#endif

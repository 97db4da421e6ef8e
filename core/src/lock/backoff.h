/* Backing off for a busy resource. */
#ifndef RLK_BACKOFF_H
#define RLK_BACKOFF_H

#include "lock.h"

int64_t rlk_backoff_round_trip_ns(const struct rlk_engine *engine); /* of the fastest node; 1 ms if that is not known */
int64_t rlk_backoff_pause_ns(redlock_lock *lock);

#endif

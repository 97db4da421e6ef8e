/* Backing off for a busy resource. */
#ifndef RLK_BACKOFF_H
#define RLK_BACKOFF_H

#include "lock.h"

int rlk_backoff_home(redlock_lock *lock, int64_t now_ns);
int64_t rlk_backoff_pause_ns(redlock_lock *lock);
int64_t rlk_backoff_hint_ns(redlock_lock *lock, int64_t now_ns);

#endif

/* Acquiring. These return REDLOCK_PENDING, or how it ends. */
#ifndef RLK_ACQUIRE_H
#define RLK_ACQUIRE_H

#include "lock.h"

extern const struct rlk_verb rlk_acquire;
int rlk_acquire_attempt(redlock_lock *lock, int64_t now_ns);
void rlk_acquire_sleep(redlock_lock *lock, int64_t now_ns); /* until the next attempt: a hint has come */
int rlk_acquire_retry(redlock_lock *lock, int64_t now_ns);

#endif

/* Acquiring: advance looks at the answers, timer at what is due. All return REDLOCK_PENDING, or how it ends. */
#ifndef RLK_ACQUIRE_H
#define RLK_ACQUIRE_H

#include "lock.h"

int rlk_acquire_begin(redlock_lock *lock, const struct rlk_terms *terms, int64_t wait_ms, int64_t now_ns);
int rlk_acquire_attempt(redlock_lock *lock, int64_t now_ns);
int rlk_acquire_advance(redlock_lock *lock, int64_t now_ns);
int rlk_acquire_timer(redlock_lock *lock, int64_t now_ns);
void rlk_acquire_sleep(redlock_lock *lock, int64_t now_ns); /* until the next attempt: a hint has come */
int rlk_acquire_retry(redlock_lock *lock, int64_t now_ns);

#endif

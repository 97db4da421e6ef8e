/* Acquiring: begin returns a status, advance looks at the answers, timer at what is due. */
#ifndef RL_ACQUIRE_H
#define RL_ACQUIRE_H

#include "lock.h"

int rl_acquire_begin(redlock_lock *lock, int64_t wait_ms, int64_t now_ns);
void rl_acquire_advance(redlock_lock *lock, int64_t now_ns);
void rl_acquire_timer(redlock_lock *lock, int64_t now_ns);
void rl_acquire_sleep(redlock_lock *lock, int64_t now_ns); /* until the next attempt: a hint has come */
void rl_acquire_retry(redlock_lock *lock, int64_t now_ns);

#endif

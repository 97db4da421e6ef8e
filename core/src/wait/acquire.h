/* Acquiring: attempts, with waits between them. */
#ifndef RLK_ACQUIRE_H
#define RLK_ACQUIRE_H

#include "wait.h"

extern const struct rlk_verb rlk_acquire;
void rlk_acquire_attempt(redlock_lock *lock, int64_t now_ns); /* it is its turn */
/* The winner came back to its lock too late to use it: that attempt has failed. */
void rlk_acquire_retry(redlock_lock *lock, int64_t now_ns);

#endif

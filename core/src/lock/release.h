/* Releasing, inspecting and removing. */
#ifndef RL_RELEASE_H
#define RL_RELEASE_H

#include "lock.h"

int rl_release_begin(redlock_lock *lock, int64_t now_ns);
void rl_release_advance(redlock_lock *lock);
void rl_release_answered(redlock_lock *lock, int node, int answer, int64_t now_ns);
int rl_inspect_begin(redlock_lock *lock, int64_t now_ns);
void rl_inspect_advance(redlock_lock *lock);
int rl_remove_begin(redlock_lock *lock, int64_t now_ns);
void rl_remove_advance(redlock_lock *lock);

#endif

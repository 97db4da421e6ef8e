/* Releasing, inspecting and removing. */
#ifndef RLK_RELEASE_H
#define RLK_RELEASE_H

#include "lock.h"

int rlk_release_begin(redlock_lock *lock, int64_t now_ns);
void rlk_release_advance(redlock_lock *lock);
void rlk_release_answered(redlock_lock *lock, int node, int vote, int64_t now_ns);
int rlk_inspect_begin(redlock_lock *lock, int64_t now_ns);
void rlk_inspect_advance(redlock_lock *lock);
int rlk_remove_begin(redlock_lock *lock, int64_t now_ns);
void rlk_remove_advance(redlock_lock *lock);

#endif

/* Releasing, inspecting and removing. begin and advance return REDLOCK_PENDING, or how the operation ends; begin may
 * refuse it, too, before it is in flight. */
#ifndef RLK_RELEASE_H
#define RLK_RELEASE_H

#include "lock.h"

void rlk_lock_drop_claim(redlock_lock *lock, int64_t now_ns);
int rlk_release_begin(redlock_lock *lock, int64_t now_ns);
int rlk_release_advance(redlock_lock *lock);
void rlk_release_answered(redlock_lock *lock, int node, int vote, int64_t now_ns);
int rlk_inspect_begin(redlock_lock *lock, int64_t now_ns);
int rlk_inspect_advance(redlock_lock *lock);
int rlk_remove_begin(redlock_lock *lock, int64_t now_ns);
int rlk_remove_advance(redlock_lock *lock);

#endif

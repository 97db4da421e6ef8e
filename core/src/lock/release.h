/* Releasing, inspecting and removing. */
#ifndef RLK_RELEASE_H
#define RLK_RELEASE_H

#include "lock.h"

extern const struct rlk_verb rlk_release, rlk_inspect, rlk_remove;

void rlk_lock_drop_claim(redlock_lock *lock, int64_t now_ns);
void rlk_release_answered(redlock_lock *lock, int node, int vote, int64_t now_ns);

#endif

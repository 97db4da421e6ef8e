/* Releasing, inspecting and removing. */
#ifndef RLK_RELEASE_H
#define RLK_RELEASE_H

#include "lock.h"

extern const struct rlk_verb rlk_release, rlk_inspect, rlk_who, rlk_remove;

/* A claim that is no attempt, prepared as the pin of its kind says; the caller lets it go. Unless REDLOCK_OK: NULL, and
 * the lock knows the reason. */
int rlk_claim_pin(redlock_lock *lock, int of_all, struct rlk_claim **claim);
void rlk_lock_drop_claim(redlock_lock *lock, int64_t now_ns);
void rlk_release_answered(redlock_lock *lock, int node, int vote, int64_t now_ns);

#endif

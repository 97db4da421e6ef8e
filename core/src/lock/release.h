/* Releasing, inspecting and removing. */
#ifndef RLK_RELEASE_H
#define RLK_RELEASE_H

#include "lock.h"

extern const struct rlk_verb rlk_inspect, rlk_who, rlk_remove;

/* The parts of the verb that releases (wait/others.c). */
int rlk_release_begin(redlock_lock *lock, const struct rlk_call *call, int64_t now_ns);
int rlk_release_ask(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
int rlk_release_advance(redlock_lock *lock, int64_t now_ns);
int rlk_release_timer(redlock_lock *lock, int64_t now_ns);

/* Of several resources the one that a node has reported to be busy. */
struct rlk_key *rlk_lock_refused_key(const redlock_lock *lock);
void rlk_lock_drop_claim(redlock_lock *lock, int64_t now_ns);
void rlk_release_answered(redlock_lock *lock, int node, int vote, int64_t now_ns);

#endif

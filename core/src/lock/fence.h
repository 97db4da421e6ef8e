/* Fencing numbers (rules D.1 to D.3). */
#ifndef RLK_FENCE_H
#define RLK_FENCE_H

#include "../node/node.h"
#include "lock.h"

/* All nodes are to store the same number: from our clock, a little ahead, since those that store a larger one need
 * another round trip (rule D.1). */
void rlk_fence_propose(redlock_lock *lock);
/* Votes that come while numbers are raised must not fill in for leases that have ended: somebody else may have held the
 * lock in between, with a larger number (rule D.2). */
int rlk_fence_is_too_late(const redlock_lock *lock, int64_t now_ns);
/* Counts the votes. One whose number is more than a day ahead of the clocks is open until a majority has one as large,
 * and an error if nobody is left who could (rule D.3). */
struct rlk_tally rlk_fence_count(redlock_lock *lock, int64_t now_ns);
/* Whether a majority stores the number: then whoever wins later draws a larger one. Where it is smaller it is raised
 * (rule D.1). */
int rlk_fence_settle(redlock_lock *lock, int granted, int64_t until_ns, int64_t now_ns);
/* A node that granted is told the number if its own is far behind, although the lock needs it not: its clock may never
 * get there, and one day it may be needed for a majority. */
void rlk_fence_catch_up(redlock_lock *lock, int node, int64_t now_ns);

#endif

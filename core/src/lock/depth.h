/* A handle that holds its lock and is acquired again: counted in the handle, nothing is sent (rule G.5). */
#ifndef RLK_DEPTH_H
#define RLK_DEPTH_H

#include "lock.h"

/* Whether it is an acquire or a release that is not the outermost one: the handle holds its lock already, or still. */
int rlk_depth_counts(const redlock_lock *lock, int operation);
void rlk_depth_count(redlock_lock *lock, enum redlock_operation operation, int64_t now_ns);
/* Whether a lost hold must be released before the handle takes another. */
int rlk_depth_is_owed(const redlock_lock *lock);

#endif

/* A handle that holds its lock and is acquired again: counted in the handle, nothing is sent (rule G.5). */
#ifndef RLK_DEPTH_H
#define RLK_DEPTH_H

#include "lock.h"

/* How an acquire or release is done that is not the outermost one; NULL: it is, or the operation is another. */
const struct rlk_verb *rlk_depth_verb(const redlock_lock *lock, int operation);
/* Whether a lost hold must be released before the handle takes another. */
int rlk_depth_is_owed(const redlock_lock *lock);

#endif

/* The third answer about a token that was adopted: it is not where its kind has it, but it is there as that of a lock
 * of another kind. Otherwise its user would believe the lock to be free. */
#ifndef RLK_FORM_H
#define RLK_FORM_H

#include "../node/node.h"
#include "lock.h"

/* Notes what a node has answered. 1: an operation waits for it; lock may be NULL. */
int rlk_form_told(redlock_lock *lock, const struct rlk_node *node, const struct rlk_outcome *outcome);

/* How an operation ends that has found the token gone: REDLOCK_PENDING as long as nodes are asked for it, then BUSY,
 * with words, if a majority has it in another form, else LOST. */
int rlk_form_judge(redlock_lock *lock, int64_t now_ns);

#endif

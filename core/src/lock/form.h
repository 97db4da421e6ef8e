/* In which form a token that was adopted is looked for, and the third answer about it: it is not where its kind has it,
 * but it is there as that of a lock of another kind. Otherwise its user would believe the lock to be free. */
#ifndef RLK_FORM_H
#define RLK_FORM_H

#include "../node/node.h"
#include "lock.h"

/* A claim that is no attempt, prepared as the pin of its kind says; the caller lets it go. Unless REDLOCK_OK: NULL, and
 * the lock knows the reason. */
int rlk_claim_pin(redlock_lock *lock, int of_all, struct rlk_claim **claim);

/* A claim on that token, which may be on every node, in the form that the options name. As rlk_claim_pin. */
int rlk_form_adopt(redlock_lock *lock, const void *token, size_t size, struct rlk_claim **claim, int64_t now_ns);
/* Before an operation on an adopted token: its options may have been set since. */
int rlk_form_follow(redlock_lock *lock, int64_t now_ns);

/* Notes what a node has answered. 1: an operation waits for it; lock may be NULL. */
int rlk_form_told(redlock_lock *lock, const struct rlk_node *node, const struct rlk_outcome *outcome);

/* How an operation ends that has found the token gone: REDLOCK_PENDING as long as nodes are asked for it, then BUSY,
 * with words, if a majority has it in another form, else LOST. */
int rlk_form_judge(redlock_lock *lock, int64_t now_ns);

#endif

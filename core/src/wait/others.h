/* Whether others wait for the resource of a lock that does not wait itself: a node is asked behind its SET, and
 * reports at its release. */
#ifndef RLK_OTHERS_H
#define RLK_OTHERS_H

#include "wait.h"

/* An attempt begins: which node is asked, behind its SET, whether others wait. */
void rlk_others_look(redlock_lock *lock, int64_t now_ns);
/* Asks the node if it is that one. */
void rlk_others_ask(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* The answer: 1 if a lock that is won waits for it. */
int rlk_others_told(redlock_lock *lock, int node, int are_waiting);
/* A majority has granted, but the reply about waiters is still outstanding. */
int rlk_others_are_awaited(redlock_lock *lock, int64_t now_ns);
/* A lock won by a newcomer although others wait for it: it goes behind them. */
int rlk_others_are_ahead(const redlock_lock *lock);
/* The lock is about to be released: the home node should report the first waiter. */
void rlk_others_hand_over(redlock_lock *lock, int64_t now_ns);
/* An attempt that had a majority is about to be given back: who was woken meanwhile has found the lock taken. */
void rlk_others_pass_on(redlock_lock *lock, int64_t now_ns);
extern const struct rlk_verb rlk_release;
/* The lock takes a new token or ends: the old one is deleted wherever it may be left. */
void rlk_others_drop_claim(redlock_lock *lock, int64_t now_ns);
/* A holder begins to share: it leaves the queue, and the home node wakes the first waiter if that one shares. */
void rlk_others_let_in(redlock_lock *lock, int64_t now_ns);
/* It was released, and a node has told whether others wait: nobody does if the homes of all its resources say so. */
void rlk_others_handed_over(struct rlk_engine *engine, struct rlk_claim *claim, int is_home, int others_wait,
                            int64_t now_ns);

#endif

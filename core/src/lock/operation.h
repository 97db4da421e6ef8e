/* What all operations share. */
#ifndef RL_OPERATION_H
#define RL_OPERATION_H

#include "../node/node.h"
#include "lock.h"

void rl_operation_start(redlock_lock *lock, int kind);
void rl_operation_advance(redlock_lock *lock, int64_t now_ns);
int rl_operation_begin(redlock_lock *lock, int kind, int64_t arg, int64_t now_ns);
void rl_operation_cancel(redlock_lock *lock, int64_t now_ns);
void rl_operation_end(redlock_lock *lock, int status);
void rl_operation_timer(redlock_lock *lock, int64_t now_ns);
void rl_operation_node_ready(struct rl_node *node, int64_t now_ns); /* connections that rounds wait for */
void rl_operation_node_down(struct rl_node *node, int64_t now_ns);
/* answer is an enum rl_answer for what owed asked; the claim belongs to the lock's current round if it counts. */
void rl_operation_answer(struct rl_node *node, const struct rl_owed *owed, int answer, int64_t now_ns);
void rl_operation_hint(struct rl_node *node, const struct rl_owed *owed, int64_t pttl_ms, int64_t now_ns);
void rl_operation_value(struct rl_node *node, const struct rl_owed *owed, const struct rl_reply *reply);
int rl_in_flight(const redlock_lock *lock);
int rl_is_awaited(const redlock_lock *lock); /* a thread has to go on waiting for it */
int rl_in_use(const redlock_lock *lock); /* by an operation, or by a thread that has not taken its result yet */

#endif

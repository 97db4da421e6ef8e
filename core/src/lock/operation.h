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
int rl_in_flight(const redlock_lock *lock);
int rl_is_awaited(const redlock_lock *lock); /* a thread has to go on waiting for it */
int rl_in_use(const redlock_lock *lock); /* by an operation, or by a thread that has not taken its result yet */

#endif

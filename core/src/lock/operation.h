/* What all operations share. */
#ifndef RLK_OPERATION_H
#define RLK_OPERATION_H

#include "../node/node.h"
#include "lock.h"

void rlk_operation_start(redlock_lock *lock, int kind);
void rlk_operation_advance(redlock_lock *lock, int64_t now_ns);
int rlk_operation_begin(redlock_lock *lock, int kind, int64_t arg, int64_t now_ns);
void rlk_operation_cancel(redlock_lock *lock, int64_t now_ns);
void rlk_operation_end(redlock_lock *lock, int status);
void rlk_operation_timer(redlock_lock *lock, int64_t now_ns);
int rlk_in_flight(const redlock_lock *lock);
int rlk_is_awaited(const redlock_lock *lock); /* a thread has to go on waiting for it */
int rlk_in_use(const redlock_lock *lock);     /* by an operation, or by a thread that has not taken its result yet */

#endif

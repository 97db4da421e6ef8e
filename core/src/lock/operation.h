/* What all operations share: only these functions end one. */
#ifndef RLK_OPERATION_H
#define RLK_OPERATION_H

#include "../node/node.h"
#include "lock.h"

/* extend.c, examine.c */
extern const struct rlk_verb rlk_extend, rlk_expire, rlk_examine;

/* It is under way, behind those that began before: a node that comes up late is asked in that order, too. */
void rlk_flight_begin(redlock_lock *lock, const struct rlk_verb *verb);
void rlk_operation_advance(redlock_lock *lock, int64_t now_ns);
/* verb NULL: what a caller took for an operation, which is refused */
int rlk_operation_begin(redlock_lock *lock, const struct rlk_verb *verb, int64_t arg, int64_t now_ns);
void rlk_operation_cancel(redlock_lock *lock, int64_t now_ns);
void rlk_operation_timer(redlock_lock *lock, int64_t now_ns);
void rlk_operation_end(redlock_lock *lock, int status);       /* unless that is REDLOCK_PENDING */
void rlk_operation_lapse(redlock_lock *lock, int64_t now_ns); /* the lease's timer */
void rlk_operation_forked(redlock_lock *lock);                /* in a child: the parent's lock is not ours */
int rlk_is_awaited(const redlock_lock *lock);                 /* a thread has to go on waiting for it */

#endif

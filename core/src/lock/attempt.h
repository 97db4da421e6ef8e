/* One attempt at a lock: a round of takes with one token, and its verdict. */
#ifndef RLK_ATTEMPT_H
#define RLK_ATTEMPT_H

#include "lock.h"

/* Asks the nodes, or first the one that the kind has chosen: REDLOCK_PENDING, or REDLOCK_NO_MEMORY. */
int rlk_attempt_begin(redlock_lock *lock, int64_t now_ns);
/* REDLOCK_PENDING; REDLOCK_OK: so many have granted in time, until then; else it has failed, and attempt.verdict says
 * why. */
int rlk_attempt_advance(redlock_lock *lock, struct rlk_tally *tally, int64_t *until_ns, int64_t now_ns);
/* The time of its round is over: the nodes that have not answered count as late. */
void rlk_attempt_close(redlock_lock *lock, int64_t now_ns);

#endif

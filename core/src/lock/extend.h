/* Extending a lease, or setting what is left of it. */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include "lock.h"

int rl_extend_begin(redlock_lock *lock, int kind, int64_t now_ns); /* REDLOCK_EXTEND or _EXPIRE */
void rl_extend_advance(redlock_lock *lock, int64_t now_ns);
void rl_extend_timer(redlock_lock *lock, int64_t now_ns);

#endif

/* Extending a lease, or setting what is left of it. */
#ifndef RLK_EXTEND_H
#define RLK_EXTEND_H

#include "lock.h"

int rlk_extend_begin(redlock_lock *lock, int kind, const struct rlk_terms *terms,
                     int64_t now_ns); /* REDLOCK_EXTEND or _EXPIRE */
int rlk_extend_advance(redlock_lock *lock, int64_t now_ns);
int rlk_extend_timer(redlock_lock *lock, int64_t now_ns);

#endif

/* The operations that are under way. */
#ifndef RLK_FLIGHT_H
#define RLK_FLIGHT_H

#include "lock.h"

/* In the order in which they began: a node that comes up late is asked in that order, too. */
void rlk_flight_begin(redlock_lock *lock, const struct rlk_verb *verb);

#endif

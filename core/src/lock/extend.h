/* Extending a lease, or setting its remaining time. */
#ifndef RLK_EXTEND_H
#define RLK_EXTEND_H

#include "lock.h"

extern const struct rlk_verb rlk_extend, rlk_expire;

#endif

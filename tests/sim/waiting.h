/* waiting.h - the part of the oracle that watches those who wait. */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include <stdint.h>

struct slot;
struct world;

void oracle_waits(struct slot *slot);
void oracle_moves_up(struct world *world); /* a place is about to be given back */
void oracle_stands_still(struct slot *slot);
void oracle_order(struct slot *winner);

static inline int64_t later(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

#endif

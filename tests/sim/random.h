/* random.h - random numbers of a world, all from its seed. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Uniform in [low, high]. */
static inline int64_t random_in(uint64_t *state, int64_t low, int64_t high)
{
  return low + (int64_t)(random_next(state) % (uint64_t)(high - low + 1));
}

static inline int random_hits(uint64_t *state, uint32_t per_million)
{
  return per_million && random_next(state) % 1000000 < per_million;
}

#endif

/* The client's clock, and random bits that need not be secret. */
#include "core.h"

int64_t rl_now(redlock_client *c)
{
  return c->env.platform->now_ns(c->env.context);
}

/* For jitter and the tail of tokens; seeded from the platform. */
uint64_t rl_random(redlock_client *c)
{
  uint64_t x = c->random_state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  c->random_state = x;
  return x * UINT64_C(0x2545f4914f6cdd1d);
}

void rl_seed(redlock_client *c)
{
  c->token_seed = c->env.platform->random(c->env.context);
  c->random_state = c->env.platform->random(c->env.context) | 1;
  c->token_count = 0;
}

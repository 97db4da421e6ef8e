#include "net.h"

int64_t rlk_now(const struct rlk_net *net)
{
  return net->env.platform->now_ns(net->env.context);
}

/* For jitter and the tail of tokens; seeded from the platform. */
uint64_t rlk_random(struct rlk_net *net)
{
  uint64_t x = net->random_state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  net->random_state = x;
  return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t rlk_net_seed(struct rlk_net *net)
{
  uint64_t seed = net->env.platform->random(net->env.context);
  net->random_state = net->env.platform->random(net->env.context) | 1;
  return seed;
}

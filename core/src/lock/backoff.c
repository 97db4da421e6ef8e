/* Backing off for a busy resource: how long to sleep (rule F). */
#include "backoff.h"

#include "../base/mutant.h"

#define PAUSE_MIN_NS 100000

int64_t rlk_backoff_round_trip_ns(const struct rlk_engine *e)
{
  int64_t least = 0;
  for (int i = 0; i < e->net.node_count; i++)
    if (e->net.nodes[i].rtt_ns && (!least || e->net.nodes[i].rtt_ns < least))
      least = e->net.nodes[i].rtt_ns;
  return least ? least : RLK_NS_PER_MS;
}

/* Full jitter over 3 round trips, doubled per attempt up to retry_delay_ms. */
int64_t rlk_backoff_pause_ns(redlock_lock *lock)
{
  int64_t top = RLK_INT(&lock->options, RETRY_DELAY_MS) * RLK_NS_PER_MS;
  double jitter = RLK_FLOAT(&lock->options, RETRY_JITTER);
  int64_t pause = 3 * rlk_backoff_round_trip_ns(lock->engine);
  double share;
  if (pause < PAUSE_MIN_NS)
    pause = PAUSE_MIN_NS;
  for (int64_t i = 1; i < lock->attempt.count && pause < top; i++)
    pause *= 2;
  if (pause > top)
    pause = top;
  share = (double)(rlk_random(&lock->engine->net) >> 11) / (double)(UINT64_C(1) << 53);
  return RLK_MUTANT(NO_BACKOFF) ? 1000 : (int64_t)((double)pause * (1 - jitter + jitter * share));
}

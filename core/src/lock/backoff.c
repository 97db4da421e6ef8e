/* Backing off for a busy resource: how long to sleep (rule F). */
#include "backoff.h"

#include "../base/mutant.h"

#define PAUSE_MIN_NS 100000

/* When a majority will be free unless the holder extends: the Q-th smallest remaining life plus 1 ms. RLK_NEVER if
 * that is not known, or in a split vote, where a hint would wake all contenders together again and again. */
static int64_t majority_free_ns(const redlock_lock *lock)
{
  const struct rlk_engine *e = lock->engine;
  int64_t ends[RLK_NODES_MAX], free_ns;
  int busy = 0, blocking = e->net.node_count - e->quorum + 1; /* so many meet each majority */
  for (int i = 0; i < e->net.node_count; i++) {
    int is_busy = lock->votes[i] == RLK_BUSY;
    int64_t end_ns = is_busy ? lock->node_answers[i].until_ns : 0;
    busy += is_busy;
    ends[i] = lock->votes[i] == RLK_GRANTED ? 0 : end_ns ? end_ns : RLK_NEVER; /* no other node can help */
  }
  free_ns = rlk_valid_until(ends, e->net.node_count, blocking);
  return busy < blocking || free_ns == RLK_NEVER ? RLK_NEVER : free_ns + RLK_NS_PER_MS;
}

/* A hint in the past is ignored: the lease was extended, or another client was faster. */
int64_t rlk_backoff_hint_ns(redlock_lock *lock, int64_t now)
{
  int64_t free_ns = majority_free_ns(lock);
  return free_ns > now ? free_ns : RLK_NEVER;
}

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

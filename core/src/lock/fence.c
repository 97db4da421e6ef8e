/* Fencing numbers (rules D.1 to D.3): which number a lock has, and whether a majority stores it. */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "asking.h"
#include "fence.h"
#include "round.h"

#define AHEAD_US 10000
#define TRUSTED_US INT64_C(86400000000) /* no clock that is right is so far ahead */
#define LARGEST INT64_C(9007199254740990)
#define NEAR 1000 /* attempts that failed draw numbers, too: those of two nodes differ by some */

static int64_t wall_us(const redlock_lock *lock)
{
  const struct rlk_env *env = &lock->engine->net.env;
  return env->platform->wall_ns(env->context) / 1000;
}

void rlk_fence_propose(redlock_lock *lock)
{
  lock->attempt.fence_proposal = wall_us(lock) + AHEAD_US;
}

int rlk_fence_is_too_late(const redlock_lock *lock, int64_t now)
{
  return lock->claim->fence && now >= lock->claim->fence_until_ns;
}

/* ---- numbers that are too large ---- */

/* What the clocks of a majority have reached, as far as they are known. */
static int64_t majority_clock_us(const redlock_lock *lock, int64_t now)
{
  const struct rlk_engine *e = lock->engine;
  int64_t clocks_us[RLK_NODES_MAX];
  for (int i = 0; i < e->net.node_count; i++) {
    const struct rlk_clock *clock = &e->net.nodes[i].clock;
    clocks_us[i] = clock->at_ns ? (now + clock->low_ns) / 1000 : 0;
  }
  return rlk_valid_until(clocks_us, e->net.node_count, e->quorum);
}

/* Our clock may be the one that is wrong. */
static int64_t trusted_us(const redlock_lock *lock, int64_t now)
{
  int64_t own_us = wall_us(lock), theirs_us = majority_clock_us(lock, now);
  int64_t trusted_us = (own_us > theirs_us ? own_us : theirs_us) + TRUSTED_US;
  return trusted_us < LARGEST ? trusted_us : LARGEST;
}

/* A node whose vote does not count may be the same server under another address. */
static int is_shared(const redlock_lock *lock, int64_t number)
{
  int nodes = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    nodes += lock->votes[i] == RLK_GRANTED && lock->claim->node[i].fence >= number - NEAR;
  return nodes >= lock->engine->quorum;
}

static int is_doubted(const redlock_lock *lock, int node, int64_t trusted_us)
{
  int64_t number = lock->claim->node[node].fence;
  return lock->votes[node] == RLK_GRANTED && number > trusted_us && !is_shared(lock, number) && !RLK_MUTANT(ANY_NUMBER);
}

static void refuse(redlock_lock *lock, int node)
{
  struct rlk_node_answer *answer = &lock->node_answers[node];
  char words[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  rlk_text_format(&text,
                  "its fencing number %lld is more than a day ahead of the clocks, and a majority has no such number",
                  (long long)lock->claim->node[node].fence);
  free(answer->error);
  answer->error = strdup(words); /* without memory it is not shown */
  lock->votes[node] = RLK_ERROR;
  lock->claim->node[node].counts_until_ns = 0;
}

struct rlk_tally rlk_fence_count(redlock_lock *lock, int64_t now)
{
  int nodes = lock->engine->net.node_count, doubted = 0;
  struct rlk_tally tally = rlk_count(lock->votes, nodes);
  int64_t trusted = tally.granted > 0 ? trusted_us(lock, now) : 0;
  for (int i = 0; i < nodes; i++)
    doubted += is_doubted(lock, i, trusted);
  if (!doubted)
    return tally;
  if (tally.granted - doubted < tally.quorum && tally.asked + tally.waiting > 0) { /* others may have one as large */
    tally.granted -= doubted;
    tally.answered -= doubted;
    tally.asked += doubted;
    return tally;
  }
  for (int i = 0; i < nodes; i++)
    if (is_doubted(lock, i, trusted))
      refuse(lock, i);
  return rlk_count(lock->votes, nodes);
}

/* ---- the number of the lock ---- */

/* Of nodes that had no number, and whose clocks are ahead of the proposal: what most have reached. */
static int64_t first_number(const redlock_lock *lock)
{
  int64_t reached[RLK_NODES_MAX] = {0};
  int is_first = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int64_t number = lock->votes[i] == RLK_GRANTED ? lock->claim->node[i].fence : 0;
    reached[i] = number < 0 ? -number : number;
    is_first |= number < 0;
  }
  return is_first ? rlk_valid_until(reached, lock->engine->net.node_count,
                                    RLK_MUTANT(FIRST_NUMBER_OF_ONE) ? 1 : lock->engine->quorum)
                  : 0;
}

/* The number of the lock is the largest that any of its nodes has drawn, including one that grants while others are
 * raised: if locks were removed by force meanwhile, another holder may have had the smaller number. */
static void draw(redlock_lock *lock, int64_t until_ns)
{
  struct rlk_claim *claim = lock->claim;
  if (!claim->fence) {
    claim->fence_until_ns = until_ns;
    claim->fence = first_number(lock);
  }
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_GRANTED && claim->node[i].fence > claim->fence)
      claim->fence = claim->node[i].fence;
}

static int is_behind(const redlock_lock *lock, int node)
{
  return lock->votes[node] == RLK_GRANTED && lock->claim->node[node].fence < lock->claim->fence;
}

void rlk_fence_catch_up(redlock_lock *lock, int node, int64_t now)
{
  struct rlk_node *n = &lock->engine->net.nodes[node];
  int is_far = lock->claim->node[node].fence < lock->claim->fence - NEAR;
  if (is_far && n->state == RLK_NODE_READY && !RLK_MUTANT(FENCE_NOT_RAISED))
    rlk_ask_raise(n, lock, now); /* without memory it stays behind */
}

int rlk_fence_settle(redlock_lock *lock, int granted, int64_t until_ns, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  draw(lock, until_ns);
  for (int i = 0; i < e->net.node_count; i++)
    granted -= is_behind(lock, i);
  if (granted >= e->quorum || RLK_MUTANT(FENCE_NOT_RAISED)) {
    for (int i = 0; i < e->net.node_count; i++)
      if (is_behind(lock, i))
        rlk_fence_catch_up(lock, i, now);
    return 1;
  }
  for (int i = 0; i < e->net.node_count; i++)
    if (is_behind(lock, i))
      lock->votes[i] = rlk_round_raise(lock, i, now);
  rlk_round_time_answers(lock, now);
  return 0;
}

/* Backing off for a busy resource: how long to sleep, and which node has its queue (rule F). */
#include <string.h>

#include "../base/mutant.h"
#include "../vote/guard.h"
#include "backoff.h"

#define PAUSE_MIN_NS 100000
#define SLOW_FACTOR 4 /* a home node is several times slower than a majority, and by more than this */
#define SLOW_MIN_NS (20 * RLK_NS_PER_MS) /* a busy machine makes single answers of a quick node late, too */

static uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
  const unsigned char *s = bytes;
  for (size_t i = 0; i < size; i++)
    h = (h ^ s[i]) * UINT64_C(0x100000001b3);
  return h;
}

static uint64_t mix(uint64_t h)
{
  h ^= h >> 33;
  h *= UINT64_C(0xff51afd7ed558ccd);
  h ^= h >> 33;
  h *= UINT64_C(0xc4ceb9fe1a85ec53);
  return h ^ (h >> 33);
}

/* When a majority will be free unless the holder extends: the Q-th smallest remaining life plus 1 ms. RLK_NEVER if
 * that is not known, or in a split vote, where a hint would wake all contenders together again and again. */
static int64_t majority_free_ns(const redlock_lock *lock)
{
  const struct rlk_engine *e = lock->engine;
  int64_t ends[RLK_NODES_MAX];
  int busy = 0, at;
  for (int i = 0; i < e->net.node_count; i++) {
    int64_t end = 0;
    if (lock->votes[i] == RLK_BUSY) {
      busy++;
      end = lock->node_answers[i].until_ns ? lock->node_answers[i].until_ns : RLK_NEVER;
    } else if (lock->votes[i] != RLK_GRANTED) {
      end = RLK_NEVER; /* it cannot help */
    }
    for (at = i; at > 0 && ends[at - 1] > end; at--)
      ends[at] = ends[at - 1];
    ends[at] = end;
  }
  if (busy < e->net.node_count - e->quorum + 1 || ends[e->quorum - 1] == RLK_NEVER)
    return RLK_NEVER;
  return ends[e->quorum - 1] + RLK_NS_PER_MS;
}

/* A hint in the past is ignored: the lease was extended, or another client was faster. */
int64_t rlk_backoff_hint_ns(redlock_lock *lock, int64_t now)
{
  int64_t free_ns = majority_free_ns(lock);
  return free_ns > now ? free_ns : RLK_NEVER;
}

static int can_ask(const redlock_lock *lock, const struct rlk_node *n, int64_t now)
{
  return rlk_node_can_ask(n, rlk_node_patience_ns(n, &lock->op.asked), now) == RLK_ASKED;
}

static int is_able(const redlock_lock *lock, const struct rlk_node *n, int64_t late_ns, int64_t now)
{
  int64_t patience_ns = rlk_node_patience_ns(n, &lock->op.asked);
  late_ns = late_ns > patience_ns ? late_ns : patience_ns;
  return can_ask(lock, n, now) && !rlk_node_is_late(n, late_ns, now) && !rlk_guard_waits(n, now);
}

/* How quick the slowest of the quickest majority is; 0: not known. */
static int64_t majority_rtt_ns(const struct rlk_engine *e)
{
  int64_t rtts[RLK_NODES_MAX];
  int known = 0, at;
  for (int i = 0; i < e->net.node_count; i++) {
    int64_t rtt_ns = e->net.nodes[i].quick_rtt_ns;
    if (e->net.nodes[i].state != RLK_NODE_READY || !rtt_ns)
      continue;
    for (at = known++; at > 0 && rtts[at - 1] > rtt_ns; at--)
      rtts[at] = rtts[at - 1];
    rtts[at] = rtt_ns;
  }
  return known >= e->quorum ? rtts[e->quorum - 1] : 0;
}

/* As home it would set the pace of the lock. Clients may disagree about it: that costs order. */
static int is_slow(const struct rlk_engine *e, const struct rlk_node *n)
{
  int64_t rtt_ns;
  if (n->quick_rtt_ns <= SLOW_MIN_NS)
    return 0;
  rtt_ns = majority_rtt_ns(e);
  return rtt_ns && n->quick_rtt_ns > SLOW_FACTOR * rtt_ns + SLOW_MIN_NS;
}

static int may_be_home(const redlock_lock *lock, const struct rlk_node *n, int64_t late_ns, int64_t now)
{
  return is_able(lock, n, late_ns, now) && !is_slow(lock->engine, n);
}

int rlk_backoff_has_majority(const redlock_lock *lock, int64_t late_ns, int64_t now)
{
  int able = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    able += is_able(lock, &lock->engine->net.nodes[i], late_ns, now);
  return able >= lock->engine->quorum;
}

/* By the rendezvous hash. */
static uint64_t rank_of(const struct rlk_node *n, const struct rlk_key *key)
{
  const char *name = n->run_id[0] ? n->run_id : n->url.name; /* clients may know a server under different names */
  uint64_t resource = hash(UINT64_C(0xcbf29ce484222325), rlk_key_resource(key), key->resource_size);
  return mix(hash(resource, name, strlen(name)));
}

/* The highest of those nodes, which are bits; -1: there is none. */
static int highest(const redlock_lock *lock, const struct rlk_key *key, uint64_t of)
{
  const struct rlk_engine *e = lock->engine;
  uint64_t best = 0;
  int home = -1;
  for (int i = 0; i < e->net.node_count; i++) {
    uint64_t rank = of >> i & 1 ? rank_of(&e->net.nodes[i], key) : 0;
    if ((of >> i & 1) && (home < 0 || rank > best)) {
      home = i;
      best = rank;
    }
  }
  return home;
}

int rlk_backoff_node(const redlock_lock *lock, struct rlk_key *key, int64_t late_ns, int64_t now)
{
  const struct rlk_net *net = &lock->engine->net;
  uint64_t able = 0;
  if (key->home < 0 || key->home_servers != net->servers) {
    key->home = highest(lock, key, UINT64_MAX);
    key->home_servers = net->servers;
  }
  if (may_be_home(lock, &net->nodes[key->home], late_ns, now))
    return key->home;
  for (int i = 0; i < net->node_count; i++)
    able |= (uint64_t)may_be_home(lock, &net->nodes[i], late_ns, now) << i;
  return highest(lock, key, able);
}

int rlk_backoff_second(const redlock_lock *lock, const struct rlk_key *key, int home, int64_t now)
{
  const struct rlk_net *net = &lock->engine->net;
  uint64_t others = 0;
  for (int i = 0; i < net->node_count; i++)
    others |= (uint64_t)(i != home && can_ask(lock, &net->nodes[i], now)) << i;
  return highest(lock, key, others);
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

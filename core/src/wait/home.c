/* Which node has the queue of a resource (rule F). */
#include "home.h"

#include <string.h>

#include "../base/hash.h"

#define SLOW_FACTOR 4 /* a home node is several times slower than a majority, and by more than this */
#define SLOW_MIN_NS (20 * RLK_NS_PER_MS)     /* a busy machine makes single answers of a quick node late, too */
#define UNWRITABLE_NS (1000 * RLK_NS_PER_MS) /* so long a node that has refused a write is not home */

static uint64_t mix(uint64_t h)
{
  h ^= h >> 33;
  h *= UINT64_C(0xff51afd7ed558ccd);
  h ^= h >> 33;
  h *= UINT64_C(0xc4ceb9fe1a85ec53);
  return h ^ (h >> 33);
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

/* It takes no places either, unlike one whose memory is full. Clients find that this is over at the same time: those
 * whose scripts write nothing, as others hold the lock, hear nothing of it. */
static int refuses_writes(const struct rlk_node *n, int64_t now)
{
  return n->refused_set_ns && now - n->refused_set_ns < UNWRITABLE_NS &&
         (n->refused_set_why.why == RLK_WHY_MISCONF || n->refused_set_why.why == RLK_WHY_NOREPLICAS);
}

static int may_be_home(const redlock_lock *lock, const struct rlk_node *n, int64_t late_ns, int64_t now)
{
  return is_able(lock, n, late_ns, now) && !is_slow(lock->engine, n) && !refuses_writes(n, now);
}

int rlk_home_has_majority(const redlock_lock *lock, int64_t now)
{
  int able = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    able += is_able(lock, &lock->engine->net.nodes[i], RLK_LATE_NS, now);
  return able >= lock->engine->quorum;
}

/* By the rendezvous hash. */
static uint64_t rank_of(const struct rlk_node *n, const struct rlk_key *key)
{
  const char *name = n->run_id[0] ? n->run_id : n->url.name; /* clients may know a server under different names */
  uint64_t resource = rlk_hash(RLK_HASH_OF_NOTHING, rlk_key_resource(key), key->resource_size);
  return mix(rlk_hash(resource, name, strlen(name)));
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

int rlk_home_node(const redlock_lock *lock, struct rlk_key *key, int64_t late_ns, int64_t now)
{
  const struct rlk_net *net = &lock->engine->net;
  uint64_t able = 0;
  if (key->home < 0 || key->home_servers != net->servers) {
    key->home = highest(lock, key, UINT64_MAX);
    key->second = highest(lock, key, ~(UINT64_C(1) << key->home));
    key->home_servers = net->servers;
  }
  if (may_be_home(lock, &net->nodes[key->home], late_ns, now))
    return key->home;
  for (int i = 0; i < net->node_count; i++)
    able |= (uint64_t)may_be_home(lock, &net->nodes[i], late_ns, now) << i;
  return highest(lock, key, able);
}

int rlk_home_is_above(const redlock_lock *lock, int node, int home)
{
  return highest(lock, lock->key, UINT64_C(1) << node | UINT64_C(1) << home) == node;
}

int rlk_home_second(const redlock_lock *lock, const struct rlk_key *key, int home, int64_t now)
{
  const struct rlk_net *net = &lock->engine->net;
  uint64_t others = 0;
  if (home == key->home && key->second >= 0 && can_ask(lock, &net->nodes[key->second], now))
    return key->second;
  for (int i = 0; i < net->node_count; i++)
    others |= (uint64_t)(i != home && can_ask(lock, &net->nodes[i], now)) << i;
  return highest(lock, key, others);
}

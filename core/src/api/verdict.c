/* Who holds a resource, by the replies of all nodes to the last inspect. */
#include "../lock/holder.h"
#include "api.h"
#include "held_by.h"

int rlk_verdict_node(const redlock_lock *lock)
{
  int is_known = lock->op.kind == REDLOCK_INSPECT && !rlk_in_flight(lock);
  for (int i = 0; is_known && i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_BUSY && rlk_holder_count_like(lock, i, NULL) >= lock->engine->quorum)
      return i;
  return -1;
}

static int verdict(const redlock_lock *lock)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int node = rlk_verdict_node(lock);
  if (lock->op.kind != REDLOCK_INSPECT || rlk_in_flight(lock))
    return REDLOCK_VERDICT_UNKNOWN;
  if (node >= 0)
    return lock->node_answers[node].readers ? REDLOCK_VERDICT_SHARED : REDLOCK_VERDICT_HELD;
  if (tally.free >= tally.quorum)
    return REDLOCK_VERDICT_FREE;
  return tally.free + tally.busy >= tally.quorum ? REDLOCK_VERDICT_SPLIT : REDLOCK_VERDICT_UNKNOWN;
}

/* As many as a majority knows of at least. */
int64_t rlk_verdict_readers(const redlock_lock *lock)
{
  int64_t readers[RLK_NODES_MAX];
  for (int i = 0; i < lock->engine->net.node_count; i++)
    readers[i] = lock->votes[i] == RLK_BUSY ? lock->node_answers[i].readers : 0;
  return rlk_valid_until(readers, lock->engine->net.node_count, lock->engine->quorum);
}

RLK_GETTER(int, redlock_lock_verdict, REDLOCK_VERDICT_UNKNOWN, verdict(lock))

int64_t redlock_lock_holder(redlock_lock *lock, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  int node = c ? rlk_verdict_node(lock) : -1;
  if (node >= 0 && lock->node_answers[node].value)
    rlk_text_add(&out, lock->node_answers[node].value);
  return rlk_leave_text(c, &out);
}

int64_t rlk_holder_left_ms(const redlock_lock *lock, const int64_t *ends_ns, int64_t now)
{
  int64_t end_ns = rlk_valid_until(ends_ns, lock->engine->net.node_count, lock->engine->quorum);
  if (end_ns == RLK_NEVER)
    return REDLOCK_TTL_ENDLESS;
  return end_ns > now ? (end_ns - now) / RLK_NS_PER_MS : 0;
}

static int64_t holder_ttl_ms(const redlock_lock *lock, int64_t now)
{
  int64_t ends_ns[RLK_NODES_MAX];
  int node = rlk_verdict_node(lock);
  if (node < 0)
    return 0;
  rlk_holder_count_like(lock, node, ends_ns);
  return rlk_holder_left_ms(lock, ends_ns, now);
}

RLK_GETTER(int64_t, redlock_lock_holder_ttl_ms, -REDLOCK_INVALID, holder_ttl_ms(lock, rlk_client_now(c)))

#include "quorum.h"

#include "../../include/redlock.h"
#include "../base/mutant.h"

int rlk_quorum(int nodes)
{
  if (RLK_MUTANT(QUORUM_OF_ONE))
    return 1;
  return nodes / 2 + 1;
}

int64_t rlk_drift_ns(int64_t ttl_ms, double drift_factor)
{
  double drift_ms = (double)ttl_ms * drift_factor;
  int64_t whole_ms = (int64_t)drift_ms;
  if (RLK_MUTANT(NO_DRIFT))
    return 0;
  if ((double)whole_ms < drift_ms)
    whole_ms++;
  return (whole_ms + 2) * 1000000;
}

int64_t rlk_valid_until(const int64_t *counts_until_ns, int n, int q)
{
  int64_t largest[RLK_NODES_MAX]; /* the q largest so far, descending */
  for (int i = 0; i < n; i++) {
    int at = i < q ? i : q - 1;
    if (i >= q && counts_until_ns[i] <= largest[at])
      continue;
    for (; at > 0 && largest[at - 1] < counts_until_ns[i]; at--)
      largest[at] = largest[at - 1];
    largest[at] = counts_until_ns[i];
  }
  return largest[q - 1];
}

struct rlk_tally rlk_count(const uint8_t *votes, int nodes)
{
  uint8_t count[RLK_VOTES] = {0};
  struct rlk_tally t = {.nodes = nodes, .quorum = rlk_quorum(nodes)};
  for (int i = 0; i < nodes; i++)
    count[votes[i]]++;
  t.waiting = count[RLK_WAITING];
  t.retrying = count[RLK_RETRYING];
  t.asked = count[RLK_ASKED];
  t.granted = count[RLK_GRANTED];
  t.busy = count[RLK_BUSY];
  t.gone = count[RLK_GONE];
  t.free = count[RLK_FREE];
  t.quarantined = count[RLK_QUARANTINED];
  t.refused = count[RLK_REFUSED];
  t.answered = t.granted + t.busy + t.gone + t.free;
  t.reached = t.asked + t.granted + t.busy + t.gone + count[RLK_ERROR] + count[RLK_LATE];
  return t;
}

/* Nodes that may still answer. Once a quorum could be asked, a node that failed before is not awaited (rule A.3.0);
 * one that is being connected for the first time may decide what the others left open. */
static int open_nodes(const struct rlk_tally *t)
{
  return t->asked + t->waiting + (t->reached < t->quorum ? t->retrying : 0);
}

/* Too few answers to know more: because of configuration, or for want of nodes. */
static int no_verdict(const struct rlk_tally *t)
{
  return t->nodes - t->refused < t->quorum ? REDLOCK_REFUSED_CONFIG : REDLOCK_NO_QUORUM;
}

int rlk_judge_acquire(const struct rlk_tally *t, int valid)
{
  int open = open_nodes(t);
  int answered = t->granted + t->busy;
  if (RLK_WAIT_ALL && open > 0)
    return REDLOCK_PENDING;
  if (t->granted >= t->quorum && valid)
    return REDLOCK_OK;
  if (t->nodes - t->refused < t->quorum)
    return REDLOCK_REFUSED_CONFIG;
  if (t->granted + open >= t->quorum)
    return open > 0 ? REDLOCK_PENDING : REDLOCK_NO_QUORUM; /* granted, but too late for use */
  if (answered >= t->quorum)
    return REDLOCK_BUSY;
  return answered + open >= t->quorum ? REDLOCK_PENDING : REDLOCK_NO_QUORUM;
}

int rlk_judge_extend(const struct rlk_tally *t)
{
  int open = open_nodes(t);
  if (RLK_WAIT_ALL && open > 0)
    return REDLOCK_PENDING;
  if (t->granted >= t->quorum)
    return REDLOCK_OK;
  if (t->gone > t->nodes - t->quorum)
    return REDLOCK_LOST;
  return t->granted + open >= t->quorum || t->gone + open > t->nodes - t->quorum ? REDLOCK_PENDING : no_verdict(t);
}

int rlk_judge_release(const struct rlk_tally *t, int adopted)
{
  int open = open_nodes(t);
  int confirmed = t->granted + t->gone;
  if (RLK_WAIT_ALL && open > 0)
    return REDLOCK_PENDING;
  if (confirmed < t->quorum)
    return open > 0 ? REDLOCK_PENDING : no_verdict(t);
  if (t->granted > 0)
    return REDLOCK_OK;
  return open > 0 && adopted ? REDLOCK_PENDING : REDLOCK_LOST;
}

int rlk_judge_remove(const struct rlk_tally *t)
{
  if (t->waiting + t->retrying + t->asked > 0)
    return REDLOCK_PENDING;
  return t->granted + t->gone >= t->quorum ? REDLOCK_OK : no_verdict(t);
}

int rlk_judge_promise(const uint8_t *votes, uint64_t counted, int nodes)
{
  int quorum = rlk_quorum(nodes), had = 0, may_have_had = 0, contradicted = 0, open = 0;
  for (int i = 0; i < nodes; i++) {
    int is_counted = (int)(counted >> i & 1);
    had += votes[i] == RLK_GRANTED;
    may_have_had += votes[i] == RLK_GRANTED || (is_counted && votes[i] != RLK_GONE);
    contradicted |= is_counted && votes[i] == RLK_GONE;
    open += !is_counted && votes[i] == RLK_ASKED; /* it may say yet that it had the token */
  }
  if (may_have_had + open < quorum)
    return REDLOCK_LOST;
  return contradicted && had < quorum ? REDLOCK_PENDING : REDLOCK_OK;
}

int rlk_judge_inspect(const struct rlk_tally *t)
{
  int answered = t->granted + t->busy + t->free;
  if (t->waiting + t->retrying + t->asked > 0)
    return REDLOCK_PENDING;
  if (answered < t->quorum)
    return no_verdict(t);
  return t->free >= t->quorum ? REDLOCK_OK : REDLOCK_BUSY;
}

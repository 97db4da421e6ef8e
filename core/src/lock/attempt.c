#include "attempt.h"

#include "../base/mutant.h"
#include "../vote/clocks.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "release.h"
#include "round.h"

static void ask_home(redlock_lock *lock, int64_t now)
{
  lock->op.phase = RLK_ASKING_HOME;
  rlk_timer_clear(&lock->engine->net.timers, &lock->op.timer);
  lock->node_answers[lock->attempt.home].until_ns = 0;
  rlk_round_ask(lock, &lock->engine->net.nodes[lock->attempt.home], now);
  rlk_round_time_answers(lock, now);
}

int rlk_attempt_begin(redlock_lock *lock, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  rlk_lock_drop_claim(lock, now);
  lock->claim = rlk_claim_new(lock); /* a fresh token per attempt (rule A.6) */
  if (!lock->claim)
    return REDLOCK_NO_MEMORY;
  lock->round.number++;
  lock->attempt.count++;
  lock->attempt.tried_ns = now;
  e->attempts++;
  lock->attempt.home = -1;
  if (lock->kind->propose && (lock->attempt.proposal = lock->kind->propose(lock, now)) < 0)
    return REDLOCK_NO_MEMORY;
  rlk_round_clear(lock);
  if (lock->attempt.home >= 0)
    ask_home(lock, now);
  else
    rlk_round_ask_all(lock, -1, now);
  return REDLOCK_PENDING;
}

/* A node whose refusal has been lifted meanwhile was not asked: that is an outage. One that was asked, and has answered
 * that it refuses, is a refusal. */
static void note_lifted(redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int is_lifted = lock->votes[i] == RLK_REFUSED && !rlk_round_refusal(lock, i);
    if (is_lifted && lock->attempt.verdict == REDLOCK_REFUSED_CONFIG)
      lock->attempt.verdict = REDLOCK_NO_QUORUM;
  }
}

static int failed(redlock_lock *lock, int verdict)
{
  lock->attempt.verdict = verdict;
  if (lock->kind->judge)
    lock->attempt.verdict = lock->kind->judge(lock);
  note_lifted(lock);
  return lock->attempt.verdict;
}

/* It is refused, but a node that answers may still show whose key it has. */
static int may_show(const redlock_lock *lock, const struct rlk_tally *tally)
{
  return rlk_is_single(lock) && (tally->asked > 0 || lock->op.looking) && !rlk_holder_is_seen(lock);
}

/* The readings of the clocks in this attempt, compared: votes of nodes that turn out to be ahead do not count. A client
 * that was idle has nothing else to tell a stepped clock by (rule C.3.2). */
static int drops_those_ahead(redlock_lock *lock, int64_t now)
{
  struct rlk_net *net = &lock->engine->net;
  int dropped = 0;
  if (RLK_MUTANT(CLOCKS_AT_SET_UP))
    return 0;
  rlk_clocks_compare(net, lock->attempt.tried_ns, now);
  for (int i = 0; i < net->node_count; i++)
    if (lock->votes[i] == RLK_GRANTED && now < net->nodes[i].voter->ahead_until_ns) {
      lock->votes[i] = RLK_QUARANTINED;
      rlk_lock_cut(lock, i, 0, REDLOCK_LOSS_REFUSED, now);
      dropped = 1;
    }
  return dropped;
}

/* The round on all nodes. */
static int advance_all(redlock_lock *lock, struct rlk_tally *tally, int64_t *until_ns, int64_t now)
{
  int status;
  *tally = lock->kind->count ? lock->kind->count(lock, now) : rlk_count(lock->votes, lock->engine->net.node_count);
  *until_ns = tally->granted >= tally->quorum ? rlk_lock_counts_until(lock) : 0;
  status = rlk_judge_acquire(tally, *until_ns - now >= lock->op.asked.min_validity_ns);
  if (now >= lock->claim->settle_by_ns)
    status = REDLOCK_NO_QUORUM;
  if (status == REDLOCK_OK)
    return drops_those_ahead(lock, now) ? advance_all(lock, tally, until_ns, now) : REDLOCK_OK;
  if (status != REDLOCK_PENDING && !(status == REDLOCK_BUSY && may_show(lock, tally)))
    return failed(lock, status);
  rlk_round_hurry(lock, tally, now);
  return REDLOCK_PENDING;
}

int rlk_attempt_advance(redlock_lock *lock, struct rlk_tally *tally, int64_t *until_ns, int64_t now)
{
  if (lock->op.phase == RLK_ASKING_HOME) {
    int vote = lock->votes[lock->attempt.home];
    if (vote == RLK_ASKED)
      return REDLOCK_PENDING;
    if (vote != RLK_GRANTED)
      return failed(lock, lock->attempt.verdict);
    rlk_round_ask_all(lock, lock->attempt.home, now);
  }
  return advance_all(lock, tally, until_ns, now);
}

void rlk_attempt_close(redlock_lock *lock, int64_t now)
{
  if (lock->op.phase == RLK_ASKING_HOME)
    lock->votes[lock->attempt.home] = RLK_LATE;
  else if (!rlk_round_hope(lock, now))
    rlk_round_close(lock);
  lock->op.looking = 0;
}

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../node/silence.h"
#include "round.h"

#define MS RLK_NS_PER_MS
#define ASK_ALL_EVERY_NS (750 * MS)

void rlk_round_clear(redlock_lock *lock)
{
  lock->round.took_ns = 0;
  lock->op.looking = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    struct rlk_node_answer *answer = &lock->node_answers[i];
    lock->votes[i] = RLK_NOT_ASKED;
    free(answer->value);
    answer->value = NULL;
    answer->until_ns = answer->readers = 0;
    answer->part = answer->form = 0;
    free(answer->error);
    answer->error = NULL;
  }
}

/* Queues the round's request to a node that can be asked. */
void rlk_round_ask(redlock_lock *lock, struct rlk_node *n, int64_t now)
{
  lock->votes[n->index] = lock->op.verb->ask(n, lock, now) == 0 ? RLK_ASKED : RLK_DOWN;
}

/* Its marker allowed only shorter leases when it was read. An operator may have raised that since, so it is read again
 * before the node is taken for refused. */
static int refuse_ttl(const redlock_lock *lock, struct rlk_node *n, int64_t now)
{
  if (n->voter->marker_read_ns >= lock->round.asked_all_ns || RLK_MUTANT(RAISE_UNNOTICED))
    return RLK_REFUSED;
  n->look_again_ns = now;
  rlk_node_mark_dirty(n);
  return RLK_WAITING;
}

/* A lease that counts there goes on to; all others begin as a vote does (rule C.3.1). */
static int begins(const redlock_lock *lock, const struct rlk_node *n, int64_t now)
{
  return lock->op.verb->takes_a_lease &&
         (lock->op.kind == REDLOCK_ACQUIRE || !rlk_claim_counts(lock->claim, n->index, now));
}

int rlk_round_guard(const redlock_lock *lock, struct rlk_node *n, int64_t now)
{
  if (begins(lock, n, now) && lock->op.asked.ttl_ms > n->voter->ttl_limit_ms)
    return refuse_ttl(lock, n, now);
  if (lock->op.kind != REDLOCK_ACQUIRE || !rlk_guard_waits(n, now))
    return RLK_ASKED;
  if (now >= n->look_again_ns)
    rlk_node_mark_dirty(n); /* its marker is read again */
  return RLK_QUARANTINED;
}

void rlk_round_ask_or_note(redlock_lock *lock, int node, int64_t now)
{
  struct rlk_node *n = &lock->engine->net.nodes[node];
  int vote = rlk_node_can_ask(n, rlk_node_patience_ns(n, &lock->op.asked), now);
  if (vote == RLK_ASKED)
    vote = rlk_round_guard(lock, n, now);
  if (vote == RLK_ASKED)
    rlk_round_ask(lock, n, now);
  else
    lock->votes[node] = (uint8_t)vote;
}

void rlk_round_set_timer(redlock_lock *lock, int64_t at_ns)
{
  int64_t last_ns = lock->op.deadline_ns < lock->op.outage_until_ns ? lock->op.deadline_ns : lock->op.outage_until_ns;
  rlk_timer_set(&lock->engine->net.timers, &lock->op.timer, at_ns < last_ns ? at_ns : last_ns);
}

/* ---- the time of a round ---- */

/* How long the answers that are open may take: a stall of all nodes is outlasted, but where a majority has answered the
 * others have a few of their round trips (rule A.2). A single attempt has less patience, since its votes keep others
 * from winning, and it tries again (rule F.4). */
static int64_t patience_ns(const redlock_lock *lock, const struct rlk_tally *tally)
{
  int all = lock->op.phase == RLK_ASKING_ALL && tally->answered < tally->quorum;
  int64_t longest = all ? lock->op.asked.node_timeout_ns : 0, twice_ns = 2 * lock->round.took_ns;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    const struct rlk_node *n = &lock->engine->net.nodes[i];
    int64_t patience = rlk_node_patience_ns(n, &lock->op.asked);
    if (lock->votes[i] != RLK_ASKED && !(rlk_is_single(lock) && lock->op.looking >> i & 1))
      continue;
    longest = patience > longest ? patience : longest;
    twice_ns = 2 * n->rtt_ns > twice_ns ? 2 * n->rtt_ns : twice_ns;
  }
  return rlk_is_single(lock) && lock->round.took_ns && !all && twice_ns < longest ? twice_ns : longest;
}

/* The answer time-out starts when the requests are written. Extra time for slow nodes is decided when it fires. */
void rlk_round_written(redlock_lock *lock, int64_t now)
{
  if (!rlk_in_flight(lock) || !lock->round.is_tight || lock->op.asking_again || lock->op.phase == RLK_SLEEPING)
    return;
  lock->round.written_ns = now;
  if (lock->op.phase == RLK_ASKING_HOME)
    rlk_round_set_timer(lock,
                        now + rlk_node_patience_ns(&lock->engine->net.nodes[lock->attempt.home], &lock->op.asked));
  else
    rlk_round_set_timer(lock, now + lock->op.asked.node_timeout_ns);
}

int rlk_round_has_time(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int64_t until_ns =
      lock->round.is_tight && lock->round.written_ns ? lock->round.written_ns + patience_ns(lock, &tally) : 0;
  if (lock->round.is_unwritten)
    return 1; /* the time of its answers has not begun */
  if (now >= until_ns)
    return 0;
  rlk_round_set_timer(lock, until_ns);
  return 1;
}

static void wait_for_write(redlock_lock *lock)
{
  struct rlk_engine *e = lock->engine;
  lock->round.written_ns = 0;
  if (lock->round.is_unwritten)
    return;
  lock->round.is_unwritten = 1;
  lock->round.next_unwritten = e->unwritten;
  e->unwritten = lock;
}

/* The answer time-out begins when the client writes, or now if nothing is left to write. */
void rlk_round_time_answers(redlock_lock *lock, int64_t now)
{
  lock->round.is_tight = 1;
  if (lock->engine->net.dirty_nodes)
    wait_for_write(lock);
  else
    rlk_round_written(lock, now);
}

/* Waits for connections up to their time-out; once a quorum could be asked, only for answers. */
void rlk_round_time(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int connecting = tally.waiting + tally.retrying;
  int tight = connecting == 0 || (!lock->op.verb->asks_everybody && tally.reached >= tally.quorum);
  if (tight && !lock->round.is_tight)
    rlk_round_time_answers(lock, now);
  else if (!lock->op.timer.place)
    rlk_round_set_timer(lock, now + RLK_INT(&lock->engine->net.options, CONNECT_TIMEOUT_MS) * MS);
}

/* A majority has answered without a verdict: the others have less time from here on. */
void rlk_round_hurry(redlock_lock *lock, const struct rlk_tally *tally, int64_t now)
{
  if (!lock->round.is_tight || !lock->round.written_ns || tally->answered != tally->quorum)
    return;
  if (!lock->round.took_ns)
    lock->round.took_ns = now - lock->round.written_ns;
  rlk_round_set_timer(lock, lock->round.written_ns + patience_ns(lock, tally));
}

void rlk_round_ask_all(redlock_lock *lock, int but, int64_t now)
{
  lock->op.phase = RLK_ASKING_ALL;
  lock->round.is_tight = 0;
  lock->round.asked_all_ns = now;
  rlk_timer_clear(&lock->engine->net.timers, &lock->op.timer);
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (i != but)
      rlk_round_ask_or_note(lock, i, now);
  rlk_round_time(lock, now);
}

int rlk_round_is_overdue(const redlock_lock *lock, int64_t now)
{
  return now - lock->round.asked_all_ns >= ASK_ALL_EVERY_NS && !RLK_MUTANT(HOME_ONLY);
}

/* Does the round hope for a connection to the node? */
int rlk_round_awaits(const redlock_lock *lock, int node)
{
  return lock->votes[node] == RLK_WAITING || lock->votes[node] == RLK_RETRYING;
}

/* The time of the round is over: open nodes count as failed. */
void rlk_round_close(redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    if (lock->votes[i] == RLK_ASKED)
      lock->votes[i] = RLK_LATE;
    else if (rlk_round_awaits(lock, i))
      lock->votes[i] = lock->engine->net.nodes[i].refused ? RLK_REFUSED : RLK_DOWN;
  }
}

void rlk_round_learn(redlock_lock *lock, const redlock_lock *other)
{
  rlk_round_clear(lock);
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    const char *error = other->node_answers[i].error;
    lock->votes[i] = other->votes[i];
    lock->node_answers[i].error = error ? strdup(error) : NULL; /* without memory it is not shown */
  }
  rlk_round_close(lock);
}

/* Too few nodes have answered in time. Connections may have died unnoticed: the round waits for new ones as it does for
 * any that are being made. */
int rlk_round_hope(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int64_t until_ns = lock->round.asked_all_ns + RLK_INT(&lock->engine->net.options, CONNECT_TIMEOUT_MS) * MS;
  int is_patient = RLK_INT(&lock->options, NODE_TIMEOUT_MS) == RLK_AUTO;
  int hoped = 0;
  if (tally.answered >= tally.quorum || now >= until_ns)
    return 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_ASKED && rlk_silence_hope(&lock->engine->net.nodes[i], is_patient)) {
      lock->votes[i] = RLK_WAITING;
      hoped = 1;
    }
  if (!hoped)
    return 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_ASKED)
      lock->votes[i] = RLK_LATE;
  lock->round.is_tight = 0;
  lock->attempt.verdict = REDLOCK_NO_QUORUM; /* unless more will come of it */
  rlk_round_set_timer(lock, until_ns);
  return 1;
}

/* Whether answers or connections that the last operation concerns are still to come. */
int rlk_round_is_open(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    const struct rlk_node *n = &lock->engine->net.nodes[i];
    int may_come = n->state != RLK_NODE_OFF && (n->state != RLK_NODE_READY || n->second); /* when ready it is asked */
    if (lock->votes[i] == RLK_ASKED || (rlk_round_awaits(lock, i) && may_come))
      return 1;
  }
  return lock->claim && lock->claim->in_flight > 0;
}

void rlk_note_outage(redlock_lock *lock, int is_outage, int64_t now)
{
  int64_t outage_wait_ms = RLK_INT(&lock->options, OUTAGE_WAIT_MS);
  if (!is_outage)
    lock->op.outage_until_ns = RLK_NEVER;
  else if (lock->op.outage_until_ns == RLK_NEVER && outage_wait_ms >= 0)
    lock->op.outage_until_ns = now + outage_wait_ms * MS;
}

/* ---- refusals ---- */

enum rlk_why rlk_round_refusal(const redlock_lock *lock, int node)
{
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  const char *error = lock->node_answers[node].error;
  if (n->refused)
    return n->why.why;
  if (error)
    return rlk_why_of(error);
  return lock->op.asked.ttl_ms > n->voter->ttl_limit_ms ? RLK_WHY_ALLOWS_LESS : RLK_WHY_NONE;
}

/* What a person may take away is a mistake where the node never voted, and else a change that is under way. */
static int is_for_good(const redlock_lock *lock, int node)
{
  switch (rlk_why_passes(rlk_round_refusal(lock, node))) {
  case RLK_PASSES_BY_ITSELF: return 0;
  case RLK_PASSES_BY_A_PERSON: return !lock->engine->net.nodes[node].was_ever_ready;
  default: return 1;
  }
}

int rlk_round_is_final(const redlock_lock *lock)
{
  int left = lock->engine->net.node_count;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    left -= lock->votes[i] == RLK_REFUSED && is_for_good(lock, i);
  return left < lock->engine->quorum || lock->claim->slots.rivals;
}

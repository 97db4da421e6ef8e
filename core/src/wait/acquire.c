/* Acquiring: attempts, with waits between them, until one has won. */
#include "acquire.h"

#include "../base/mutant.h"
#include "../lock/asking.h"
#include "../lock/attempt.h"
#include "../lock/backoff.h"
#include "../lock/cleanup.h"
#include "../lock/holder.h"
#include "../lock/kind.h"
#include "../lock/lease.h"
#include "../lock/operation.h"
#include "../lock/renewal.h"
#include "../lock/round.h"
#include "others.h"
#include "queue.h"

#define MS RLK_NS_PER_MS
#define SINGLE_NS (200 * MS) /* a single attempt whose votes were split tries again for so long */
#define SINGLE_TRIES 5       /* ... and as often, if a node that hangs uses up that time */

static int advance(redlock_lock *lock, int64_t now);

static int attempt(redlock_lock *lock, int64_t now)
{
  int status;
  lock->wait->is_told = lock->wait->is_released = 0;
  rlk_others_look(lock, now);
  status = rlk_attempt_begin(lock, now);
  return status == REDLOCK_PENDING ? advance(lock, now) : status;
}

/* For people, who read how long a key lives: without memory they do not. */
static void ask_end(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  if (!lock->kind->tells_end)
    rlk_ask_ttl(n, lock->key, rlk_request_of(lock, lock->claim, &rlk_row_hint, now));
}

static void ask_for_ends(redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    struct rlk_node *n = &lock->engine->net.nodes[i];
    int asked = lock->votes[i] == RLK_BUSY || lock->votes[i] == RLK_ASKED; /* its nil may still be under way */
    if (asked && n->state == RLK_NODE_READY)
      ask_end(n, lock, now);
  }
}

/* Quarantine is not an outage: wait_ms applies, not outage_wait_ms. A node whose answer was not awaited may vote. */
static int waits_for_the_guard(const redlock_lock *lock)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  return tally.quarantined > 0 && tally.answered + tally.asked + tally.quarantined >= tally.quorum;
}

/* When a majority may vote; RLK_NEVER if that is not known. */
static int64_t may_vote_ns(const redlock_lock *lock, int64_t now)
{
  const struct rlk_net *net = &lock->engine->net;
  int64_t until_ns[RLK_NODES_MAX];
  for (int i = 0; i < net->node_count; i++) {
    const struct rlk_node *n = &net->nodes[i];
    int waits = rlk_guard_waits(n, now);
    until_ns[i] = n->state != RLK_NODE_READY ? RLK_NEVER : waits ? rlk_guard_until_ns(n) : now;
  }
  return rlk_valid_until(until_ns, net->node_count, net->node_count - lock->engine->quorum + 1);
}

/* Whether a node is quarantined for its clock, which no operator ends. */
static int is_clock_at_fault(const redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    enum rlk_why why = rlk_guard_why(&lock->engine->net.nodes[i], now);
    if (lock->votes[i] == RLK_QUARANTINED && (why == RLK_WHY_CLOCK_STEPPED || why == RLK_WHY_CLOCK_AHEAD))
      return 1;
  }
  return 0;
}

/* A wait that meets a quarantine says so at once, and when that ends. */
static void tell_quarantine(redlock_lock *lock, int64_t now)
{
  int is_clock = is_clock_at_fault(lock, now);
  const char *what = is_clock ? "quarantined because of clocks" : "new or may have lost keys";
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  int64_t until_ns = may_vote_ns(lock, now), tenths = (until_ns - now + 99 * MS) / (100 * MS);
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  if (lock->attempt.quarantine_is_told || !waits_for_the_guard(lock) || until_ns == RLK_NEVER || until_ns <= now)
    return;
  lock->attempt.quarantine_is_told = 1;
  if (tally.nodes == 1)
    rlk_text_format(&text, "waits: the node is %s, and does not vote", what);
  else
    rlk_text_format(&text, "waits: %d of %d nodes are %s, and do not vote", tally.quarantined, tally.nodes, what);
  rlk_text_format(&text, " for another %lld.%lld s%s", (long long)(tenths / 10), (long long)(tenths % 10),
                  is_clock ? "" : "; redlock bootstrap ends that if no lock is live");
  rlk_lock_tell(lock, RLK_EVENT_WARNING, words);
}

/* Of a node whose refusal may pass. */
static const char *refusal_words(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    const struct rlk_node *n = &lock->engine->net.nodes[i];
    if (lock->votes[i] == RLK_REFUSED && rlk_why_passes(rlk_round_refusal(lock, i)) != RLK_PASSES_NEVER)
      return n->refused ? n->why.words : lock->node_answers[i].error;
  }
  return NULL;
}

/* A wait that meets refusals goes on, as they may pass, and says so at once. */
static void tell_refusal(redlock_lock *lock)
{
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  const char *why = refusal_words(lock);
  if (lock->attempt.refusal_is_told || lock->attempt.verdict != REDLOCK_REFUSED_CONFIG || !why)
    return;
  lock->attempt.refusal_is_told = 1;
  rlk_text_format(&text, "waits: %d of %d nodes are ineligible to vote: ", tally.refused, tally.nodes);
  rlk_text_add(&text, why);
  rlk_lock_tell(lock, RLK_EVENT_WARNING, words);
}

static int take_turn(redlock_lock *lock, enum rlk_turn turn, int64_t now)
{
  return turn == RLK_TURN_ATTEMPT ? attempt(lock, now) : REDLOCK_PENDING;
}

/* ---- a single attempt ---- */

/* Others hold the lock if one token was seen on a majority of all nodes: of those who try at the same moment all may
 * have failed (rule F.4). The silence of home says nothing of the others. */
static int is_undecided(const redlock_lock *lock)
{
  if (!rlk_is_single(lock) || RLK_MUTANT(SPLIT_IS_BUSY))
    return 0;
  if (lock->attempt.verdict != REDLOCK_BUSY)
    return lock->attempt.verdict == REDLOCK_NO_QUORUM && lock->op.phase == RLK_ASKING_HOME;
  return lock->kind->is_taken ? !lock->kind->is_taken(lock) : !rlk_holder_is_seen(lock);
}

/* Tries again at once if only home was asked, else after a random pause of 3 round trips, doubled each time. */
static int single_failed(redlock_lock *lock, int64_t now)
{
  int64_t rtt_ns = lock->round.took_ns ? lock->round.took_ns : MS, long_ns, top_ns;
  rtt_ns = rtt_ns < SINGLE_NS ? rtt_ns : SINGLE_NS;
  long_ns = 30 * rtt_ns > SINGLE_NS ? 30 * rtt_ns : SINGLE_NS;
  if (!is_undecided(lock) || (now - lock->attempt.began_ns >= long_ns && lock->attempt.count >= SINGLE_TRIES))
    return lock->attempt.verdict;
  if (lock->op.phase == RLK_ASKING_HOME)
    return attempt(lock, now);
  top_ns = 3 * rtt_ns;
  for (int64_t i = 1; i < lock->attempt.count && top_ns < long_ns; i++)
    top_ns *= 2;
  top_ns = rlk_smaller(top_ns, long_ns);
  rlk_sleep_until(lock, now + (int64_t)(rlk_random(&lock->engine->net) % (uint64_t)top_ns));
  return REDLOCK_PENDING;
}

/* The attempt has failed: clean up, then sleep and try again, or end with the verdict of the last full round. */
static int attempt_failed(redlock_lock *lock, int64_t now)
{
  enum rlk_turn turn;
  int again;
  rlk_note_outage(lock, rlk_is_outage(lock->attempt.verdict) && !waits_for_the_guard(lock), now);
  again = !(lock->attempt.verdict == REDLOCK_REFUSED_CONFIG && rlk_round_is_final(lock)) &&
          lock->attempt.count < lock->attempt.max && now < lock->op.deadline_ns && now < lock->op.outage_until_ns;
  rlk_claim_give_up(lock->engine, lock->claim, 0, now);
  rlk_queue_tell(lock, now);
  if (!again)
    return single_failed(lock, now);
  tell_quarantine(lock, now);
  tell_refusal(lock);
  if (lock->attempt.count == 1)
    ask_for_ends(lock, now);
  turn = rlk_queue_wait(lock, now);
  if (turn == RLK_TURN_NONE)
    turn = rlk_sleep_until(lock, now + rlk_backoff_pause_ns(lock));
  return take_turn(lock, turn, now);
}

static void count_won(redlock_lock *lock, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  e->acquired++;
  rlk_histogram_add(&e->figures.wait_us, rlk_time_bounds_us, (now - lock->attempt.began_ns) / 1000);
  rlk_histogram_add(&e->figures.attempts, rlk_attempt_bounds, lock->attempt.count);
}

static int won(redlock_lock *lock, int64_t until_ns, int64_t now)
{
  lock->hold.number = lock->claim->number;
  count_won(lock, now);
  rlk_lock_hold(lock, until_ns, now);
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_GRANTED)
      rlk_holder_show(&lock->engine->net.nodes[i], lock->op.asked.ttl_ms, now);
  rlk_holder_drop(lock);
  rlk_renewal_begin(lock);
  if (lock->kind->many || lock->key->count > 1)
    rlk_queue_forget(lock); /* waiters behind it that may hold beside it enter, too */
  return REDLOCK_OK;
}

/* It is won, unless others are before it or its kind asks nodes for more. */
static int advance(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally;
  int64_t until_ns;
  do { /* the nodes that could not be asked for more may decide */
    int status = rlk_attempt_advance(lock, &tally, &until_ns, now);
    if (status != REDLOCK_OK)
      return status == REDLOCK_PENDING ? status : attempt_failed(lock, now);
    if (rlk_others_are_awaited(lock, now)) {
      rlk_round_set_timer(lock, lock->wait->others.until_ns);
      return REDLOCK_PENDING;
    }
    if (rlk_others_are_ahead(lock)) {
      lock->attempt.verdict = REDLOCK_BUSY;
      rlk_others_pass_on(lock, now);
      return attempt_failed(lock, now);
    }
  } while (lock->kind->settle && !lock->kind->settle(lock, tally.granted, until_ns, now));
  return won(lock, until_ns, now);
}

static void begin_flight(redlock_lock *lock)
{
  rlk_flight_begin(lock, &rlk_acquire);
  rlk_lock_end_hold(lock, REDLOCK_STATE_FREE);
  lock->hold.loss = REDLOCK_LOSS_NONE;
  lock->hold.number = 0;
}

static int begin(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  int64_t wait_ms = call->arg == -2 ? RLK_INT(&lock->options, WAIT_MS) : call->arg;
  if (lock->state == REDLOCK_STATE_LOST)
    rlk_others_hand_over(lock, now); /* its keys may outlast it, and others wait for them */
  lock->op.asked = call->terms;
  begin_flight(lock);
  lock->attempt.count = 0;
  lock->attempt.quarantine_is_told = lock->attempt.refusal_is_told = 0;
  lock->attempt.home = -1;
  lock->attempt.max = INT64_MAX;
  if (wait_ms == 0)
    lock->attempt.max = 1;
  else if (RLK_INT(&lock->options, RETRY_COUNT) >= 0)
    lock->attempt.max = 1 + RLK_INT(&lock->options, RETRY_COUNT);
  if (wait_ms > 0)
    lock->op.deadline_ns = now + wait_ms * MS;
  if (lock->attempt.max > 1 && RLK_INT(&lock->options, OUTAGE_WAIT_MS) != 0)
    rlk_note_outage(lock, 1, now); /* until a majority has answered; without a wait that ends with the attempt */
  lock->attempt.verdict = REDLOCK_TIMED_OUT;
  rlk_number_set(&lock->attempt.ttl_text, lock->op.asked.ttl_ms);
  rlk_lock_give_up(lock, now); /* that was lost: an attempt may be far off */
  return rlk_queue_begin(lock, now) == RLK_TURN_WAIT ? REDLOCK_PENDING : attempt(lock, now);
}

/* Of a wait that ends within its first round: nodes that have gone silent are known not to answer. */
static int last_verdict(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count && lock->attempt.verdict == REDLOCK_TIMED_OUT; i++)
    if (lock->engine->net.nodes[i].silent_ns && rlk_round_awaits(lock, i))
      return REDLOCK_NO_QUORUM;
  return lock->attempt.verdict;
}

/* The home node has had its time to report whether others wait. */
static int go_on_without_home(redlock_lock *lock, int64_t now)
{
  if (!lock->wait->others.until_ns || now < lock->wait->others.until_ns || lock->op.phase != RLK_ASKING_ALL)
    return REDLOCK_PENDING;
  lock->wait->others.asked = 0;
  return advance(lock, now);
}

static int timer(redlock_lock *lock, int64_t now)
{
  int status = go_on_without_home(lock, now);
  if (status != REDLOCK_PENDING)
    return status;
  if (now >= lock->op.deadline_ns || now >= lock->op.outage_until_ns) {
    rlk_lock_give_up(lock, now); /* the last round may still show that others hold the lock */
    return now >= lock->op.deadline_ns            ? last_verdict(lock)
           : rlk_is_outage(lock->attempt.verdict) ? lock->attempt.verdict
                                                  : REDLOCK_NO_QUORUM;
  }
  if (lock->op.phase == RLK_ASKING_QUEUE ||
      (lock->op.phase == RLK_SLEEPING && (lock->wait->room || rlk_has_place(lock))))
    return take_turn(lock, rlk_queue_timer(lock, now), now);
  if (lock->op.phase == RLK_SLEEPING)
    return attempt(lock, now);
  if (rlk_round_has_time(lock, now))
    return REDLOCK_PENDING;
  rlk_attempt_close(lock, now);
  return advance(lock, now);
}

void rlk_acquire_attempt(redlock_lock *lock, int64_t now)
{
  rlk_operation_end(lock, attempt(lock, now));
}

/* The winner came back to its lock too late to use it: that attempt has failed (rule A.2, min_validity). */
void rlk_acquire_retry(redlock_lock *lock, int64_t now)
{
  int64_t deadline_ns = lock->op.deadline_ns;
  int started = lock->op.is_started;
  begin_flight(lock);
  lock->op.is_started = started;
  lock->op.deadline_ns = deadline_ns;
  lock->attempt.verdict = REDLOCK_NO_QUORUM;
  rlk_operation_end(lock, attempt_failed(lock, now));
}

/* Behind the take go questions, as far as there is memory: whether others wait, and if no later request will ask, when
 * the key ends and whose it is (rule F). */
static int ask(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  if (rlk_ask_set(n, lock, now) != 0)
    return -1;
  rlk_others_ask(n, lock, now);
  if ((lock->attempt.count > 1 && !rlk_has_place(lock)) || lock->attempt.max == 1)
    ask_end(n, lock, now);
  if (rlk_is_single(lock) && lock->op.phase == RLK_ASKING_ALL && lock->key->count == 1)
    rlk_holder_ask_behind(lock, n, now);
  return 0;
}

const struct rlk_verb rlk_acquire = {.kind = REDLOCK_ACQUIRE,
                                     .name = "acquire",
                                     .takes_a_lease = 1,
                                     .begin = begin,
                                     .ask = ask,
                                     .advance = advance,
                                     .timer = timer,
                                     .ended = rlk_queue_leave};

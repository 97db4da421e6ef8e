/* Releasing, inspecting and removing: one round each. */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "asking.h"
#include "cleanup.h"
#include "form.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "release.h"
#include "operation.h"
#include "round.h"

#define MS RLK_NS_PER_MS

/* Notes which nodes count towards the lease at now. */
static void note_counted(redlock_lock *lock, int64_t now)
{
  lock->op.counted = lock->op.unproven = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    lock->node_answers[i].counted_until_ns = lock->claim->node[i].counts_until_ns;
    if (lock->claim->node[i].counts_until_ns > now)
      lock->op.counted |= UINT64_C(1) << i;
  }
}

/* A delete that is executed late finds an expired key, and a repeated one finds the result of the first: neither
 * breaks a promise. */
void rlk_release_answered(redlock_lock *lock, int node, int vote, int64_t now)
{
  int again = lock->claim->node[node].flags & RLK_DELETE_LOST;
  if (vote == RLK_GONE && (again || now >= lock->node_answers[node].counted_until_ns))
    lock->op.unproven |= UINT64_C(1) << node;
}

static int promise(const redlock_lock *lock)
{
  uint8_t votes[RLK_NODES_MAX];
  for (int i = 0; i < lock->engine->net.node_count; i++)
    votes[i] = lock->op.unproven >> i & 1 ? RLK_LATE : lock->votes[i];
  return rlk_judge_promise(votes, lock->op.counted, lock->engine->net.node_count);
}

/* The lock was held at the call. The deletes may show that it was not: another holder may have been let in. */
static int advance_held(redlock_lock *lock, const struct rlk_tally *tally, int status)
{
  int is_open = tally->asked + tally->waiting > 0;
  int verdict = tally->gone > 0 ? promise(lock) : REDLOCK_OK;
  if (verdict == REDLOCK_LOST) {
    for (int i = 0; i < lock->engine->net.node_count; i++)
      if ((lock->op.counted >> i & 1) && lock->votes[i] == RLK_GONE)
        lock->claim->node[i].cut = REDLOCK_LOSS_GONE;
    rlk_lock_note_loss(lock, REDLOCK_LOSS_GONE);
    return REDLOCK_LOST;
  }
  return status != REDLOCK_PENDING && (verdict == REDLOCK_OK || !is_open) ? REDLOCK_OK : REDLOCK_PENDING;
}

int rlk_release_advance(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int adopted = lock->op.state_before == REDLOCK_STATE_ADOPTED;
  int status = rlk_judge_release(&tally, adopted);
  if (lock->op.scripts_missing && tally.asked > 0)
    return REDLOCK_PENDING; /* the replies of the others may need a repair too, and later no thread may read them */
  if (lock->op.state_before == REDLOCK_STATE_HELD)
    return advance_held(lock, &tally, status);
  if (adopted)
    return status == REDLOCK_LOST ? rlk_form_judge(lock, now) : status;
  return status == REDLOCK_PENDING ? status : REDLOCK_LOST;
}

/* The lock takes a new token or ends: the old one is deleted wherever it may be left. */
void rlk_lock_drop_claim(redlock_lock *lock, int64_t now)
{
  rlk_lock_give_up(lock, now);
  rlk_claim_let_go(lock->engine, &lock->claim);
}

/* The effect on the count of the deletes that give_up queued, or could not queue. */
static void note_deletes(redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int flags = lock->claim->node[i].flags;
    if (flags & RLK_DELETE_IN_FLIGHT)
      lock->votes[i] = RLK_ASKED;
    else if (!(flags & RLK_MAY_HOLD))
      lock->votes[i] = RLK_GONE; /* it never had the token, or does not any more */
    else
      rlk_round_ask_or_note(lock, i, now);
  }
}

int rlk_release_begin(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  lock->op.state_before = lock->state;
  if (lock->state == REDLOCK_STATE_HELD)
    rlk_lock_count_hold(lock, now);
  lock->op.scripts_missing = 0;
  note_counted(lock, now);
  if (!RLK_MUTANT(RELEASE_HESITATES)) /* no thread may believe in the lock once the first delete is out (rule A.4) */
    rlk_lock_end_hold(lock, REDLOCK_STATE_FREE);
  rlk_flight_begin(lock, call->verb);
  rlk_round_clear(lock);
  rlk_claim_give_up(lock->engine, lock->claim, lock->round.number, now);
  note_deletes(lock, now);
  rlk_round_time(lock, now);
  return lock->op.verb->advance(lock, now);
}

int rlk_release_ask(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  return rlk_ask_delete(n, lock->claim, lock->round.number, now);
}

int rlk_release_timer(redlock_lock *lock, int64_t now)
{
  if (now < lock->op.deadline_ns && rlk_round_has_time(lock, now))
    return REDLOCK_PENDING;
  rlk_round_close(lock);
  rlk_holder_stop_waiting(lock);
  return lock->op.verb->advance(lock, now);
}

/* ---- inspect, remove ---- */

static int advance_inspect(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  (void)now;
  return rlk_holder_is_awaited(lock) ? REDLOCK_PENDING : rlk_judge_inspect(&tally);
}

static int advance_remove(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  (void)now;
  return rlk_judge_remove(&tally);
}

/* Of permits, the next one. 0: there is none. */
static int asks_for_next_slot(redlock_lock *lock, int64_t now)
{
  struct rlk_slots *slots = &lock->op.probe->slots;
  int next = slots->chosen ? slots->chosen : 1;
  if (RLK_INT(&lock->options, SLOT) >= 0 || next >= slots->count ||
      rlk_claim_choose(lock->op.probe, RLK_STRING(&lock->engine->net, KEY_PREFIX), next) != 0)
    return 0;
  lock->round.number++;
  rlk_round_clear(lock);
  rlk_round_ask_all(lock, -1, now);
  return 1;
}

/* It has heard enough when a majority shows the same holder, and that one's name has come. */
static int advance_who(redlock_lock *lock, int64_t now)
{
  int is_named = !lock->holder || !lock->holder->awaited, status;
  if (is_named && rlk_holder_is_seen(lock))
    return REDLOCK_BUSY;
  status = advance_inspect(lock, now);
  return status == REDLOCK_OK && asks_for_next_slot(lock, now) ? advance_who(lock, now) : status;
}

/* ---- who holds the lock that was refused ---- */

static int put_refusal_aside(redlock_lock *lock)
{
  size_t nodes = (size_t)lock->engine->net.node_count;
  struct rlk_node_answer *answers = calloc(nodes, sizeof *answers);
  struct rlk_refused *refused = malloc(sizeof *refused + nodes);
  if (!answers || !refused) {
    free(answers);
    free(refused);
    return REDLOCK_NO_MEMORY;
  }
  refused->verb = lock->op.verb;
  refused->state_before = lock->op.state_before;
  refused->node_answers = lock->node_answers;
  memcpy(refused->votes, lock->votes, nodes);
  lock->refused = refused;
  lock->node_answers = answers;
  return REDLOCK_OK;
}

/* It names the holder now. */
static void put_refusal_back(redlock_lock *lock)
{
  struct rlk_refused *refused = lock->refused;
  if (!refused)
    return;
  if (lock->op.status != REDLOCK_BUSY)
    rlk_holder_drop(lock);
  else if (lock->holder)
    lock->holder->is_found = 1;
  rlk_round_clear(lock);
  free(lock->node_answers);
  lock->node_answers = refused->node_answers;
  lock->op.verb = refused->verb;
  lock->op.kind = refused->verb->kind;
  lock->op.state_before = refused->state_before;
  memcpy(lock->votes, refused->votes, (size_t)lock->engine->net.node_count);
  free(refused);
  lock->refused = NULL;
  lock->op.status = REDLOCK_BUSY;
}

struct rlk_key *rlk_lock_refused_key(const redlock_lock *lock)
{
  for (int i = 0; lock->key->count > 1 && i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_BUSY)
      return rlk_key_part(lock->key, lock->node_answers[i].part);
  return lock->key;
}

static int ask_for_refused_key(redlock_lock *lock)
{
  struct rlk_key *key = rlk_lock_refused_key(lock);
  if (key != lock->key) {
    key->users++;
    rlk_key_drop(lock->op.probe->key);
    lock->op.probe->key = key;
  }
  return lock->op.status == REDLOCK_BUSY && lock->op.kind != REDLOCK_INSPECT ? put_refusal_aside(lock) : REDLOCK_OK;
}

/* The claim carries the answers; its token is never sent. */
static int begin_probe(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  int status;
  if (call->verb == &rlk_inspect && lock->key->count > 1)
    return rlk_lock_refuse(lock, "inspect: this handle has several resources; look at each of them by itself");
  if (call->verb == &rlk_who && call->arg < -1)
    return rlk_lock_refuse(lock, "who: the limit is 0 ms or more, or -1 for none");
  status = rlk_claim_pin(lock, call->verb != &rlk_inspect, &lock->op.probe);
  if (status == REDLOCK_OK && call->verb == &rlk_who)
    status = ask_for_refused_key(lock);
  if (status != REDLOCK_OK) {
    rlk_claim_let_go(lock->engine, &lock->op.probe);
    return status;
  }
  rlk_flight_begin(lock, call->verb);
  if (call->verb == &rlk_who)
    lock->op.deadline_ns = rlk_limit_ends(call->arg, now);
  rlk_round_clear(lock);
  rlk_round_ask_all(lock, -1, now);
  return call->verb->advance(lock, now);
}

#define PROBES .asks_everybody = 1, .begin = begin_probe, .timer = rlk_release_timer
const struct rlk_verb rlk_inspect = {
    .kind = REDLOCK_INSPECT, .name = "inspect", .ask = rlk_ask_inspect, .advance = advance_inspect, PROBES};
const struct rlk_verb rlk_who = {.kind = REDLOCK_INSPECT,
                                 .name = "who",
                                 .leaves_refusals = 1,
                                 .ask = rlk_ask_inspect,
                                 .advance = advance_who,
                                 .ended = put_refusal_back,
                                 PROBES};
const struct rlk_verb rlk_remove = {
    .kind = REDLOCK_REMOVE, .name = "remove", .ask = rlk_ask_remove, .advance = advance_remove, PROBES};

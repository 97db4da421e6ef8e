#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "acquire.h"
#include "asking.h"
#include "cleanup.h"
#include "fence.h"
#include "holder.h"
#include "lease.h"
#include "news.h"
#include "operation.h"
#include "queue.h"
#include "release.h"
#include "round.h"

#define MS RLK_NS_PER_MS
#define PERMISSION_PAUSE_NS (1000 * MS)

/* ---- votes ---- */

/* Notes a vote in the lock's last operation; that moves it on if it is in flight still. */
static void note(redlock_lock *lock, int node, const struct rlk_request *r, int kind, int vote, int64_t now)
{
  if (lock->kind != kind || lock->round != r->round)
    return;
  lock->votes[node] = (uint8_t)vote;
  rlk_operation_advance(lock, now);
}

/* A shortening that may still be executed limits what a confirmation is worth. */
static int64_t capped(const struct rlk_claim_node *at, int64_t counts_until_ns)
{
  return at->shortenings && at->cap_ns < counts_until_ns && !RLK_MUTANT(SHORTENING_FORGOTTEN) ? at->cap_ns
                                                                                              : counts_until_ns;
}

/* With a fencing number a grant may mean that the token is there already: then it keeps the longer life that was
 * confirmed. */
static int64_t granted_until_ns(const struct rlk_claim *claim, int node, const struct rlk_request *r)
{
  const struct rlk_claim_node *at = &claim->node[node];
  int64_t counts_until_ns = capped(at, r->sent_ns + r->lease_ns);
  return claim->fence && at->counts_until_ns > counts_until_ns ? at->counts_until_ns : counts_until_ns;
}

/* Where the token is put back an extension that did not find it is asked again. */
static void ask_extension_again(redlock_lock *lock, int node, int64_t now)
{
  int extends = lock->kind == REDLOCK_EXTEND || lock->kind == REDLOCK_EXPIRE;
  if (!rlk_in_flight(lock) || !extends || lock->votes[node] != RLK_GONE)
    return;
  lock->votes[node] = RLK_DROPPED;
  rlk_operation_advance(lock, now);
}

static void set_vote(redlock_lock *lock, int node, const struct rlk_request *r, int vote, int64_t now)
{
  struct rlk_claim *claim = r->claim;
  if (claim->given_up) { /* of a finished attempt (rule A.3.3): no vote, but it tells who holds, or why there is none */
    if (lock->round == r->round && (vote == RLK_BUSY || vote == RLK_ERROR || vote == RLK_REFUSED))
      lock->votes[node] = (uint8_t)vote;
    return;
  }
  if (vote == RLK_GRANTED) {
    claim->node[node].counts_until_ns = granted_until_ns(claim, node, r);
    claim->node[node].cut = REDLOCK_LOSS_NONE;
  }
  if (vote == RLK_GRANTED && rlk_lock_is_held(lock, now)) {
    rlk_lock_recount(lock, now); /* a vote after the win makes the lock outlive more failures */
    rlk_holder_show(&lock->engine->net.nodes[node], lock->terms.ttl_ms, now);
    if (claim->fence)
      rlk_fence_catch_up(lock, node, now);
    ask_extension_again(lock, node, now);
  }
  note(lock, node, r, REDLOCK_ACQUIRE, vote, now);
}

/* What is sent late, again or after a pause, must not carry the lock beyond max_hold_ms. */
static int64_t within_hold(const redlock_lock *lock, int64_t lease_ns, int64_t counts_until_ns)
{
  int64_t end_ns = rlk_hold_end_ns(lock, lease_ns / MS);
  return lock->state == REDLOCK_STATE_HELD && end_ns < counts_until_ns ? end_ns : counts_until_ns;
}

/* A confirmation counts only while the lock is held: a late one never revives it (sticky, rules 0 and B.2). */
static void extend_vote(redlock_lock *lock, int node, const struct rlk_request *r, int vote, int64_t now)
{
  struct rlk_claim *claim = r->claim;
  struct rlk_claim_node *at = &claim->node[node];
  int64_t counts_until_ns = capped(at, (RLK_MUTANT(EXTENSION_AT_REPLY) ? now : r->sent_ns) + r->lease_ns);
  int usable;
  rlk_lock_is_held(lock, now);
  counts_until_ns = within_hold(lock, r->lease_ns, counts_until_ns);
  usable = !claim->given_up && (lock->state == REDLOCK_STATE_ADOPTED || lock->state == REDLOCK_STATE_HELD);
  if (usable && vote == RLK_GRANTED && counts_until_ns > at->counts_until_ns) {
    at->counts_until_ns = counts_until_ns;
    at->cut = REDLOCK_LOSS_NONE;
  }
  if (usable && vote == RLK_GONE && !RLK_MUTANT(GONE_IGNORED))
    rlk_lock_cut(lock, node, 0, REDLOCK_LOSS_GONE, now);
  else if (usable && lock->state == REDLOCK_STATE_HELD)
    rlk_lock_recount(lock, now);
  if (r->kind == RLK_REQUEST_RENEW)
    rlk_renewal_confirmed(lock);
  else
    note(lock, node, r, r->kind == RLK_REQUEST_EXPIRE ? REDLOCK_EXPIRE : REDLOCK_EXTEND, vote, now);
}

/* The lock is won when a majority stores its fencing number. */
static void raise_vote(redlock_lock *lock, int node, const struct rlk_request *r, int vote, int64_t now)
{
  struct rlk_claim *claim = r->claim;
  if (claim->given_up)
    return;
  if (vote == RLK_GRANTED)
    claim->node[node].fence = r->lease_ns;
  else if (vote == RLK_GONE)
    rlk_lock_cut(lock, node, 0, REDLOCK_LOSS_GONE, now);
  note(lock, node, r, REDLOCK_ACQUIRE, vote, now);
}

/* The claim is the lock's as long as neither has gone on without the other. */
static redlock_lock *lock_of(const struct rlk_request *r)
{
  redlock_lock *lock = r->claim->lock;
  return lock && (lock->claim == r->claim || lock->probe == r->claim) ? lock : NULL;
}

static void count_vote(struct rlk_node *n, const struct rlk_request *r, int vote)
{
  if (r->claim->given_up)
    n->votes_late++;
  else if (vote == RLK_GRANTED)
    n->votes_granted++;
  else if (vote == RLK_BUSY)
    n->votes_busy++;
  else
    n->votes_other++;
}

static void count_set(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = lock_of(r);
  count_vote(n, r, vote);
  if (lock)
    set_vote(lock, n->index, r, vote, now);
}

static void count_delete(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = lock_of(r);
  if (!lock)
    return;
  if (r->round == lock->round)
    rlk_release_answered(lock, n->index, vote, now);
  note(lock, n->index, r, REDLOCK_RELEASE, vote, now);
}

/* A node that did not count for the lock begins to only when it may vote (rule C.3.1). */
static int begins_too_early(const struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  int is_counted = r->claim->node[n->index].counts_until_ns != 0;
  return rlk_claim_is_unproved(r->claim, n) || (!is_counted && rlk_guard_waits(n, now));
}

/* Of a lease that the user has named. */
static int sets_the_end(enum rlk_request_kind kind)
{
  return kind == RLK_REQUEST_EXTEND || kind == RLK_REQUEST_EXPIRE;
}

static void count(struct rlk_node *n, const struct rlk_request *r, int vote, int64_t now)
{
  redlock_lock *lock = lock_of(r);
  if (!lock)
    return;
  if (vote == RLK_GRANTED && sets_the_end(r->kind) && rlk_claim_is_unproved(r->claim, n)) {
    r->claim->node[n->index].flags |= RLK_UNCHECKED; /* the marker follows */
    return;
  }
  if (vote == RLK_GRANTED && r->kind != RLK_REQUEST_REMOVE && begins_too_early(n, r, now))
    vote = RLK_QUARANTINED;
  switch (r->kind) {
  case RLK_REQUEST_CONFIRM: set_vote(lock, n->index, r, vote, now); break;
  case RLK_REQUEST_RAISE: raise_vote(lock, n->index, r, vote, now); break;
  case RLK_REQUEST_EXTEND:
  case RLK_REQUEST_EXPIRE:
  case RLK_REQUEST_RENEW: extend_vote(lock, n->index, r, vote, now); break;
  case RLK_REQUEST_REMOVE: note(lock, n->index, r, REDLOCK_REMOVE, vote, now); break;
  case RLK_REQUEST_VALUE:
  case RLK_REQUEST_TTL:
    if (lock->votes[n->index] == RLK_ASKED)
      note(lock, n->index, r, REDLOCK_INSPECT, vote, now);
    break;
  default: break;
  }
}

/* ---- what is known of the token ---- */

RLK_COLD static void write_error(struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim->lock;
  char error[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(error, sizeof error);
  if (!lock)
    return;
  rlk_text_clean(&text, out->error);
  rlk_text_mark_cut(&text);
  free(lock->node_answers[n->index].error);
  lock->node_answers[n->index].error = strdup(error); /* without memory it is not shown */
}

static void note_error(struct rlk_node *n, const struct rlk_outcome *out)
{
  if (out->error)
    write_error(n, out);
}

/* A nil to a second SET of the token, after a first one whose answer was lost: the key may be its own. The script of a
 * fencing number has looked, and to confirm the token would bring no number. */
static int may_be_its_own(const struct rlk_claim_node *at, const struct rlk_request *r)
{
  return (at->flags & RLK_SET_LOST) && !r->count;
}

static int ask_whose_key(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = r->claim->lock;
  if (!may_be_its_own(&r->claim->node[n->index], r) || n->state != RLK_NODE_READY)
    return 0;
  return lock && lock->claim == r->claim && !r->claim->given_up && lock->round == r->round &&
         rlk_ask_confirm(n, lock, 0, now) == 0;
}

/* A vote that joined the set-up, of a server that is not known yet: it is asked again when it is. */
static int early_vote(const struct rlk_node *n)
{
  if (n->state != RLK_NODE_SETUP)
    return RLK_REFUSED;
  return n->line->is_registered ? RLK_QUARANTINED : RLK_REFUSED;
}

static void granted(struct rlk_node *n, struct rlk_request *r, int64_t now)
{
  struct rlk_engine *e = rlk_engine_of(n->net);
  struct rlk_claim_node *at = &r->claim->node[n->index];
  r->claim->until_ns += now - r->sent_ns; /* it may have been executed only now */
  if (rlk_guard_checks_votes(n) && n->state == RLK_NODE_READY) {
    at->flags |= RLK_UNCHECKED;
    return;
  }
  if (n->state == RLK_NODE_READY || RLK_MUTANT(REFUSED_VOTES)) {
    if (RLK_MUTANT(CLOCK_AT_REPLY))
      r->sent_ns = now;
    count_set(n, r, rlk_guard_waits(n, now) ? RLK_QUARANTINED : RLK_GRANTED, now); /* if it joined the set-up */
    return;
  }
  /* Its vote does not count. The key is taken back once the token is given up, not before: the same server may hold it
   * for another node, and it may have been handed over (rule C.3). */
  count_set(n, r, early_vote(n), now);
  if (n->line->shared && !r->claim->given_up) {
    rlk_claim_may_be_at(r->claim, n->line->shared->index, r->claim->until_ns);
    rlk_claim_cleared(e, r->claim, n->index);
    at->flags |= RLK_SET_LOST; /* asked again when the other one is gone, it meets its own key */
  }
  if (r->claim->given_up && (at->flags & RLK_MAY_HOLD) && !(at->flags & RLK_DELETE_IN_FLIGHT))
    rlk_ask_delete(n, r->claim, 0, 0, now);
}

static void not_granted(struct rlk_node *n, struct rlk_request *r, int64_t now)
{
  struct rlk_claim_node *at = &r->claim->node[n->index];
  if (!(at->flags & RLK_SET_LOST))
    rlk_claim_cleared(rlk_engine_of(n->net), r->claim, n->index);
  at->flags |= at->flags & RLK_MAY_HOLD ? 0 : RLK_ANSWERED_BUSY;
  if (n->state != RLK_NODE_READY)
    count_set(n, r, early_vote(n), now); /* what it met may be its own, under the other name of the server */
  else if (!ask_whose_key(n, r, now))
    count_set(n, r, may_be_its_own(at, r) ? RLK_DROPPED : RLK_BUSY, now);
}

/* An error says that nothing was executed; of one that is not the server's own, as a proxy has them, nobody knows. */
RLK_COLD static void set_failed(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim *claim = out->request.claim;
  struct rlk_claim_node *at = &claim->node[n->index];
  if (out->fault == RLK_FAULT_OTHER || out->fault == RLK_FAULT_MISFIT || out->fault == RLK_FAULT_LOST)
    at->flags |= RLK_SET_LOST;
  else if (!(at->flags & RLK_SET_LOST))
    rlk_claim_cleared(rlk_engine_of(n->net), claim, n->index);
  if (out->fault == RLK_FAULT_CONFIG && n->state == RLK_NODE_SETUP) { /* it came before a login that is sent again */
    count_set(n, &out->request, RLK_WAITING, out->now_ns);
    return;
  }
  note_error(n, out);
  count_set(n, &out->request, out->vote, out->now_ns);
}

/* What follows a vote: the server has lost no keys since it was found eligible, so the vote counts (rule C.3.1). */
static void marker_outcome(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  struct rlk_claim_node *at = &r->claim->node[n->index];
  if (!(at->flags & RLK_UNCHECKED))
    return;
  at->flags &= (uint8_t)~RLK_UNCHECKED;
  r->kind = (enum rlk_request_kind)r->count;
  note_error(n, out);
  if (sets_the_end(r->kind) && lock_of(r)) {
    extend_vote(lock_of(r), n->index, r, out->vote, out->now_ns);
  } else if (r->kind == RLK_REQUEST_SET) {
    if (out->fault == RLK_FAULT_LOST)
      at->flags |= RLK_SET_LOST; /* if it is asked again, it may meet its own key */
    count_set(n, r, out->vote, out->now_ns);
  }
}

/* NOSCRIPT: the same with the full script. */
static int fence_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = lock_of(r);
  n->line->knows_fence = 0;
  if (!lock || r->claim->given_up || lock->round != r->round || !rlk_in_flight(lock) || n->state != RLK_NODE_READY)
    return -1;
  return rlk_ask_set(n, lock, now);
}

static void set_outcome(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim_node *at = &out->request.claim->node[n->index];
  at->flags &= (uint8_t)~RLK_SET_IN_FLIGHT;
  if (out->fault == RLK_FAULT_NO_SCRIPT && fence_again(n, &out->request, out->now_ns) == 0)
    return;
  if (out->fault == RLK_FAULT_NONE && out->vote == RLK_GRANTED && out->request.count)
    at->fence = out->reply->integers[0] == 1 ? out->reply->integers[1] : -out->reply->integers[1];
  if (out->fault != RLK_FAULT_NONE)
    set_failed(n, out);
  else if (out->vote == RLK_GRANTED)
    granted(n, &out->request, out->now_ns);
  else
    not_granted(n, &out->request, out->now_ns);
}

/* NOSCRIPT: the same with the full script. */
static int delete_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = lock_of(r);
  if (lock && lock->round == r->round)
    lock->scripts_missing = 1;
  return rlk_ask_delete(n, r->claim, 1, r->round, now);
}

/* The ACL denies the keys of the queue, so the server has not even looked at the lock's own key. */
static int release_alone(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  if (!r->count)
    return -1;
  rlk_queue_denied(n, now);
  r->claim->hands_over = -1;
  return rlk_ask_delete(n, r->claim, 0, r->round, now);
}

static int knows_the_queue(const struct rlk_claim *claim, const struct rlk_node *n, const struct rlk_reply *reply)
{
  return claim->hands_over == n->index || (claim->hands_over == RLK_QUEUE_ANYWHERE && (reply->integer & 2));
}

static void delete_outcome(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  uint8_t *flags = &r->claim->node[n->index].flags;
  *flags &= (uint8_t)~RLK_DELETE_IN_FLIGHT;
  if (out->fault == RLK_FAULT_NONE && r->count)
    n->queue_works = 1;
  if (out->fault == RLK_FAULT_NONE && knows_the_queue(r->claim, n, out->reply)) {
    r->claim->hands_over = -1;
    rlk_queue_handed_over(rlk_engine_of(n->net), r->claim, out->reply->integer & 2, out->now_ns);
  }
  if (out->fault == RLK_FAULT_LOST)
    *flags |= RLK_DELETE_LOST;
  else if (out->fault == RLK_FAULT_NONE)
    rlk_claim_cleared(rlk_engine_of(n->net), r->claim, n->index);
  else if (out->fault == RLK_FAULT_NO_SCRIPT && delete_again(n, r, out->now_ns) == 0)
    return;
  else if (out->fault == RLK_FAULT_PERMISSION && release_alone(n, r, out->now_ns) == 0)
    return;
  note_error(n, out);
  count_delete(n, r, out->vote, out->now_ns);
  if (out->fault == RLK_FAULT_PAUSE || out->fault == RLK_FAULT_UNWRITABLE)
    rlk_node_retry_deletes(n, RLK_PAUSE_NS, out->now_ns);
  else if (out->fault == RLK_FAULT_PERMISSION) /* it may be given back */
    rlk_node_retry_deletes(n, PERMISSION_PAUSE_NS, out->now_ns);
}

/* NOSCRIPT: the same with the full script, if anybody still wants to know. */
static int extend_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = r->claim->lock;
  if (!lock || lock->claim != r->claim || r->claim->given_up || lock->round != r->round)
    return -1;
  if (r->kind == RLK_REQUEST_CONFIRM)
    return rlk_ask_confirm(n, lock, 1, now);
  return rlk_in_flight(lock) ? rlk_ask_extend(n, lock, 1, now) : -1;
}

static void vote_outcome(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  switch (r->kind) {
  case RLK_REQUEST_SET: set_outcome(n, out); return;
  case RLK_REQUEST_CLOCK: return;
  case RLK_REQUEST_MARKER: marker_outcome(n, out); return;
  case RLK_REQUEST_DELETE: delete_outcome(n, out); return;
  case RLK_REQUEST_EXPIRE:
    if (out->fault == RLK_FAULT_LOST)
      r->claim->node[n->index].shortenings |= RLK_SHORTENING_LOST;
    else /* executed or refused: it limits nothing any more */
      r->claim->node[n->index].shortenings--;
    break;
  case RLK_REQUEST_CONFIRM:
  case RLK_REQUEST_EXTEND:
    if (out->fault == RLK_FAULT_NO_SCRIPT && extend_again(n, r, out->now_ns) == 0)
      return;
    break;
  default: break;
  }
  note_error(n, out);
  count(n, r, out->vote, out->now_ns);
}

/* ---- batches, values, times ---- */

/* NOSCRIPT: the same with the full script, for the locks that are still held: others were released, handed over or
 * lost meanwhile. */
static void renew_again(struct rlk_engine *e, struct rlk_node *n, struct rlk_batch *batch, int64_t now)
{
  struct rlk_batch *again = rlk_batch_again(e, batch, now);
  if (!again)
    return;
  if (again->count > 0)
    rlk_ask_renewal(n, again, 1, now); /* without memory the node misses this round */
  rlk_batch_drop(e, again);
}

static void batch_outcome(struct rlk_engine *e, struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  if (out->fault == RLK_FAULT_NO_SCRIPT)
    renew_again(e, n, r->batch, out->now_ns);
  for (int i = 0; out->fault == RLK_FAULT_NONE && i < r->batch->count; i++) {
    r->claim = r->batch->claim[i];
    count(n, r, out->reply->integers[i] == 1 ? RLK_GRANTED : RLK_GONE, out->now_ns);
  }
  r->claim = NULL;
}

static void value_outcome(struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim->lock;
  struct rlk_text text;
  char value[300];
  if (!lock || lock->probe != out->request.claim || out->reply->type != RLK_REPLY_STRING)
    return;
  text = rlk_text_in(value, sizeof value);
  rlk_text_escaped(&text, out->reply->text.data, out->reply->text.end);
  free(lock->node_answers[n->index].value);
  lock->node_answers[n->index].value = strdup(value); /* without memory the value is not shown */
  rlk_holder_seen(lock, n, out->reply->text.data, out->reply->text.end, out->now_ns);
}

static void pttl_outcome(struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim->lock;
  if (lock && out->request.round == lock->round) {
    int64_t end_ns = rlk_pttl_end_ns(out->reply->integer, out->now_ns);
    lock->node_answers[n->index].until_ns = end_ns ? end_ns : out->now_ns;
    if (rlk_in_flight(lock) && lock->phase == RLK_SLEEPING && !lock->room)
      rlk_acquire_sleep(lock, out->now_ns);
  }
  if (out->vote)
    count(n, &out->request, out->vote, out->now_ns);
}

/* ---- the queue ---- */

static void queued_outcome(const struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = lock_of(&out->request);
  if (!lock || lock->round != out->request.round)
    return;
  lock->others_wait |= out->reply->integer > 0;
  lock->queue_asked &= ~(UINT64_C(1) << n->index);
  if (lock->queue_until_ns)
    rlk_operation_advance(lock, out->now_ns);
}

static void place_outcome(struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = lock_of(&out->request);
  enum rlk_turn turn;
  if (!lock || lock->round != out->request.round || !rlk_in_flight(lock))
    return;
  if (out->fault == RLK_FAULT_NONE)
    turn = rlk_queue_placed(lock, out->reply->integers[0], rlk_pttl_end_ns(out->reply->integers[1], out->now_ns),
                            out->now_ns);
  else if (out->fault == RLK_FAULT_NO_SCRIPT)
    turn = rlk_queue_missing(lock, out->now_ns);
  else
    turn = rlk_queue_refused(lock, n->index, out->fault, out->now_ns);
  if (turn == RLK_TURN_ATTEMPT)
    rlk_operation_attempt(lock, out->now_ns);
}

static void woken_outcome(struct rlk_engine *e, const struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_queue_woken(e, out->reply->text.data, n->index, out->now_ns);
  if (lock)
    rlk_operation_attempt(lock, out->now_ns);
}

static void holder_outcome(struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim ? lock_of(&out->request) : NULL;
  if (rlk_holder_outcome(lock, n, out))
    rlk_operation_advance(lock, out->now_ns);
}

/* ---- all of them ---- */

static void finish(struct rlk_engine *e, struct rlk_request *r)
{
  if (r->claim) {
    r->claim->in_flight--;
    rlk_claim_note_debt(e, r->claim);
    rlk_claim_settle(e, r->claim);
  }
  if (r->batch)
    rlk_batch_drop(e, r->batch);
}

void rlk_dispatch(struct rlk_engine *e, struct rlk_node *n, struct rlk_outcome *out)
{
  switch (out->kind) {
  case RLK_OUTCOME_VOTE:
    if (out->request.claim)
      vote_outcome(n, out);
    break;
  case RLK_OUTCOME_BATCH: batch_outcome(e, n, out); break;
  case RLK_OUTCOME_VALUE: value_outcome(n, out); break;
  case RLK_OUTCOME_PTTL: pttl_outcome(n, out); break;
  case RLK_OUTCOME_QUEUED: queued_outcome(n, out); break;
  case RLK_OUTCOME_PLACE: place_outcome(n, out); break;
  case RLK_OUTCOME_HOLDER:
  case RLK_OUTCOME_ENTRY:
  case RLK_OUTCOME_NO_ENTRY: holder_outcome(n, out); break;
  case RLK_OUTCOME_WOKEN: woken_outcome(e, n, out); return;
  case RLK_OUTCOME_NOTHING: break;
  default: rlk_news(e, n, out); return;
  }
  finish(e, &out->request);
}

void rlk_dispatch_abandoned(struct rlk_engine *e, struct rlk_node *n)
{
  struct rlk_request r;
  int again;
  while (rlk_node_take_lost(n, &r, &again)) {
    if (r.claim)
      r.claim->in_flight--;
    if (r.batch)
      rlk_batch_drop(e, r.batch);
  }
}

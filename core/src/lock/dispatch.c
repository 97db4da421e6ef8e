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
#include "vote.h"

#define MS RLK_NS_PER_MS
#define PERMISSION_PAUSE_NS (1000 * MS)

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
    rlk_vote_set(n, r, rlk_guard_waits(n, now) ? RLK_QUARANTINED : RLK_GRANTED, now); /* if it joined the set-up */
    return;
  }
  /* Its vote does not count. The key is taken back once the token is given up, not before: the same server may hold it
   * for another node, and it may have been handed over (rule C.3). */
  rlk_vote_set(n, r, early_vote(n), now);
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
    rlk_vote_set(n, r, early_vote(n), now); /* what it met may be its own, under the other name of the server */
  else if (!ask_whose_key(n, r, now))
    rlk_vote_set(n, r, may_be_its_own(at, r) ? RLK_DROPPED : RLK_BUSY, now);
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
    rlk_vote_set(n, &out->request, RLK_WAITING, out->now_ns);
    return;
  }
  note_error(n, out);
  rlk_vote_set(n, &out->request, out->vote, out->now_ns);
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
  if (rlk_vote_sets_the_end(r->kind) && rlk_vote_lock(r)) {
    rlk_vote_extend(rlk_vote_lock(r), n->index, r, out->vote, out->now_ns);
  } else if (r->kind == RLK_REQUEST_SET) {
    if (out->fault == RLK_FAULT_LOST)
      at->flags |= RLK_SET_LOST; /* if it is asked again, it may meet its own key */
    rlk_vote_set(n, r, out->vote, out->now_ns);
  }
}

/* NOSCRIPT: the same with the full script. */
static int fence_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
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
  redlock_lock *lock = rlk_vote_lock(r);
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
  rlk_vote_delete(n, r, out->vote, out->now_ns);
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
  rlk_vote(n, r, out->vote, out->now_ns);
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
    rlk_vote(n, r, out->reply->integers[i] == 1 ? RLK_GRANTED : RLK_GONE, out->now_ns);
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
    rlk_vote(n, &out->request, out->vote, out->now_ns);
}

/* ---- the queue ---- */

static void queued_outcome(const struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  if (!lock || lock->round != out->request.round)
    return;
  lock->others_wait |= out->reply->integer > 0;
  lock->queue_asked &= ~(UINT64_C(1) << n->index);
  if (lock->queue_until_ns)
    rlk_operation_advance(lock, out->now_ns);
}

static void place_outcome(struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
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
  redlock_lock *lock = out->request.claim ? rlk_vote_lock(&out->request) : NULL;
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

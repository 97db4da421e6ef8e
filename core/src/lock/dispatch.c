#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "acquire.h"
#include "asking.h"
#include "cleanup.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "news.h"
#include "operation.h"
#include "others.h"
#include "queue.h"
#include "several.h"
#include "room.h"
#include "release.h"
#include "round.h"
#include "vote.h"

#define MS RLK_NS_PER_MS
#define PERMISSION_PAUSE_NS (1000 * MS)
#define RANK_MAX 1000000 /* of a waiter: there are not that many */

/* ---- what is known of the token ---- */

/* A nil to a second SET of the token, after a first one whose answer was lost: the key may be its own. */
static int may_be_its_own(const struct rlk_claim_node *at, const struct rlk_request *r)
{
  return (at->flags & RLK_SET_LOST) && !r->claim->kind->finds_own;
}

static int ask_whose_key(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = r->claim->lock;
  if (!may_be_its_own(&r->claim->node[n->index], r) || n->state != RLK_NODE_READY)
    return 0;
  return lock && lock->claim == r->claim && !r->claim->given_up && lock->round.number == r->round &&
         rlk_ask_confirm(n, lock, now) == 0;
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
    rlk_vote_set(n, r, rlk_guard_vote(n, r->ttl_ms, now), now); /* if it joined the set-up */
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
    rlk_ask_delete(n, r->claim, 0, now);
}

static void not_granted(struct rlk_node *n, struct rlk_request *r, int64_t now)
{
  struct rlk_claim_node *at = &r->claim->node[n->index];
  if (!(at->flags & RLK_SET_LOST))
    rlk_claim_cleared(rlk_engine_of(n->net), r->claim, n->index);
  at->flags |= at->flags & RLK_MAY_HOLD ? 0 : RLK_ANSWERED_BUSY;
  if (n->state != RLK_NODE_READY)
    rlk_vote_set(n, r, early_vote(n), now); /* it may have met its own, under the other name of the server */
  else if (!ask_whose_key(n, r, now)) {
    if (r->claim->kind->finds_own)
      rlk_vote_denied(n, r, now);
    rlk_vote_set(n, r, may_be_its_own(at, r) ? RLK_DROPPED : RLK_BUSY, now);
  }
}

/* A server's error means that the SET did not run. An unknown error may come from a proxy and proves nothing. */
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
  rlk_vote_note_error(n, out);
  rlk_vote_set(n, &out->request, out->vote, out->now_ns);
}

void rlk_take_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  out->request.claim->node[n->index].flags &= (uint8_t)~(RLK_SET_IN_FLIGHT | RLK_UNCHECKED);
  if (out->fault != RLK_FAULT_NONE)
    set_failed(n, out);
  else if (out->vote == RLK_GRANTED)
    granted(n, &out->request, out->now_ns);
  else
    not_granted(n, &out->request, out->now_ns);
}

/* ---- the guard's proofs behind a vote ---- */

static uint8_t time_fits(const struct rlk_request *r, const struct rlk_reply *reply)
{
  (void)r;
  return rlk_reply_is_time(reply, &(int64_t){0}) ? RLK_FITS : RLK_MISFIT;
}

/* The proof behind a vote or an extension: the server has lost no keys since it was found eligible (rule C.3.1). */
static void marker_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  struct rlk_claim_node *at = &r->claim->node[n->index];
  if (!out->fault && !out->vote) /* it had joined the set-up */
    return;
  if (!(at->flags & RLK_UNCHECKED))
    return;
  at->flags &= (uint8_t)~RLK_UNCHECKED;
  rlk_vote_note_error(n, out);
  if (r->of.vote->role != RLK_ASK_TAKE && r->of.vote != &rlk_row_confirm) {
    rlk_vote_proved(n, r, out->vote, out->now_ns);
    return;
  }
  if (out->fault == RLK_FAULT_LOST)
    at->flags |= RLK_SET_LOST; /* if it is asked again, it may meet its own key */
  rlk_vote_set(n, r, out->vote == RLK_GRANTED ? rlk_guard_vote(n, r->ttl_ms, out->now_ns) : out->vote, out->now_ns);
}

/* ---- deletes ---- */

static int delete_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (lock && lock->round.number == r->round)
    lock->op.scripts_missing = 1;
  return rlk_ask_delete(n, r->claim, r->round, now);
}

/* The ACL denies the keys of the queue, so the server has not even looked at the lock's own key. */
static int release_alone(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  if (!r->of.hands_over)
    return -1;
  rlk_room_denied(n, now);
  return rlk_ask_delete(n, r->claim, r->round, now);
}

/* Any node may say that others wait; that nobody does, home alone. */
RLK_HOT static inline void hear_of_the_queue(struct rlk_node *n, const struct rlk_outcome *out)
{
  struct rlk_claim *claim = out->request.claim;
  if (claim->hands_over == n->index || (out->reply->integer & 2))
    rlk_others_handed_over(rlk_engine_of(n->net), claim, out->reply->integer & 2, out->now_ns);
}

static void part_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim *claim = out->request.claim;
  if (out->fault != RLK_FAULT_NONE || out->reply->type != RLK_REPLY_INTEGER)
    return;
  if (claim->key->count > 1)
    rlk_others_handed_over_part(rlk_engine_of(n->net), claim, out->reply->integer & 2, out->now_ns);
  else
    hear_of_the_queue(n, out);
}

static void delete_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  uint8_t *flags = &r->claim->node[n->index].flags;
  *flags &= (uint8_t)~RLK_DELETE_IN_FLIGHT;
  if (out->fault == RLK_FAULT_NONE && !r->claim->kind->apart) {
    rlk_peer_of(n)->queue_works |= r->of.hands_over;
    hear_of_the_queue(n, out);
  }
  if (out->fault == RLK_FAULT_LOST)
    *flags |= RLK_DELETE_LOST;
  else if (out->fault == RLK_FAULT_NONE)
    rlk_claim_cleared(rlk_engine_of(n->net), r->claim, n->index);
  else if (out->fault == RLK_FAULT_PERMISSION && release_alone(n, r, out->now_ns) == 0)
    return;
  rlk_vote_note_error(n, out);
  rlk_vote_delete(n, r, out->vote, out->now_ns);
  if (out->fault == RLK_FAULT_PAUSE || out->fault == RLK_FAULT_UNWRITABLE)
    rlk_node_retry_deletes(n, RLK_PAUSE_NS, out->now_ns);
  else if (out->fault == RLK_FAULT_PERMISSION) /* it may be given back */
    rlk_node_retry_deletes(n, PERMISSION_PAUSE_NS, out->now_ns);
}

/* ---- extensions ---- */

static int confirm_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_wanted(r);
  return lock ? rlk_ask_confirm(n, lock, now) : -1;
}

static void confirm_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  rlk_vote_note_error(n, out);
  rlk_vote_confirm(n, &out->request, out->vote, out->now_ns);
}

int rlk_extend_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_wanted(r);
  return lock && rlk_in_flight(lock) ? rlk_ask_extend(n, lock, now) : -1;
}

void rlk_extend_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  rlk_vote_note_error(n, out);
  rlk_vote_extend(n, &out->request, out->vote, out->now_ns);
}

/* For the locks that are still held: others were released, handed over or lost meanwhile. */
int rlk_renew_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  struct rlk_engine *e = rlk_engine_of(n->net);
  struct rlk_batch *again = rlk_batch_again(e, r->of.batch, now);
  if (again && again->count > 0)
    rlk_ask_renewal(n, again, now); /* without memory the node misses this round */
  if (again)
    rlk_batch_drop(e, again);
  rlk_batch_drop(e, r->of.batch);
  return 0;
}

void rlk_renew_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_engine *e = rlk_engine_of(n->net);
  struct rlk_batch *batch = out->request.of.batch;
  struct rlk_request r = out->request;
  for (int i = 0; out->fault == RLK_FAULT_NONE && i < batch->count; i++) {
    r.claim = batch->claim[i];
    rlk_vote_renew(n, &r, out->reply->integers[i] == 1 ? RLK_GRANTED : RLK_GONE, out->now_ns);
  }
  rlk_batch_drop(e, batch);
}

static void renewed_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_batch *batch = out->request.of.batch;
  struct rlk_request r = out->request;
  for (int i = 0; i < batch->count; i++) {
    r.claim = batch->claim[i];
    rlk_vote_renewed(n, &r, out->vote, out->now_ns);
  }
  rlk_batch_drop(rlk_engine_of(n->net), batch);
}

static uint8_t batch_fits(const struct rlk_request *r, const struct rlk_reply *reply)
{
  return rlk_reply_is_answers(reply, r->of.batch->count) ? RLK_FITS : RLK_MISFIT;
}

/* ---- values and times ---- */

/* The vote follows with the TTL, unless there is an error. */
static void value_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim->lock;
  if (out->vote)
    rlk_vote_seen(n, out);
  if (out->fault || !lock || lock->op.probe != out->request.claim)
    return;
  if (out->reply->type != RLK_REPLY_STRING) {
    if (out->reply->type == RLK_REPLY_ERROR)
      rlk_holder_look(lock, n, out->now_ns);
    return;
  }
  rlk_holder_value(lock, n, out->reply->text.data, out->reply->text.end, out->now_ns);
}

static void hint_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim->lock;
  int64_t end_ns;
  if (out->fault || out->reply->type != RLK_REPLY_INTEGER || !lock || out->request.round != lock->round.number)
    return;
  end_ns = rlk_pttl_end_ns(out->reply->integer, out->now_ns);
  lock->node_answers[n->index].until_ns = end_ns ? end_ns : out->now_ns;
  if (!rlk_in_flight(lock) || lock->op.phase != RLK_SLEEPING)
    return;
  if (!rlk_has_place(lock) && !lock->wait.room)
    rlk_acquire_sleep(lock, out->now_ns);
}

static void ttl_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  if (out->fault != RLK_FAULT_LOST)
    n->looked_rtt_ns = n->line->read_ns - out->request.sent_ns;
  hint_arrived(n, out);
  if (out->vote)
    rlk_vote_seen(n, out);
}

static uint8_t ttl_vote(const struct rlk_request *r, const struct rlk_reply *reply)
{
  (void)r;
  return reply->type != RLK_REPLY_INTEGER ? RLK_FITS : reply->integer == -2 ? RLK_FREE : RLK_BUSY;
}

/* How many keys were there. */
static uint8_t removal_vote(const struct rlk_request *r, const struct rlk_reply *reply)
{
  (void)r;
  return reply->type != RLK_REPLY_INTEGER ? RLK_MISFIT : reply->integer > 0 ? RLK_GRANTED : RLK_GONE;
}

/* ---- the queue ---- */

static void queued_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  rlk_vote_note_error(n, out);
  if (out->fault || out->reply->type != RLK_REPLY_INTEGER || !lock || lock->round.number != out->request.round)
    return;
  if (out->reply->integer > 0)
    lock->others.part = out->request.of.part.number;
  lock->others.are_waiting |= out->reply->integer > 0;
  if (!out->request.of.part.is_last)
    return;
  lock->others.asked &= ~(UINT64_C(1) << n->index);
  if (lock->others.until_ns)
    rlk_operation_advance(lock, out->now_ns);
}

static int place_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  (void)n;
  if (lock && lock->round.number == r->round && rlk_in_flight(lock) && rlk_queue_missing(lock, now) == RLK_TURN_ATTEMPT)
    rlk_operation_attempt(lock, now);
  return 0;
}

static void place_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  enum rlk_turn turn;
  if (out->fault == RLK_FAULT_MISFIT)
    rlk_vote_note_error(n, out);
  if (out->fault == RLK_FAULT_LOST || out->fault == RLK_FAULT_MISFIT || !lock ||
      lock->round.number != out->request.round || !rlk_in_flight(lock))
    return;
  if (out->fault == RLK_FAULT_NONE)
    turn = rlk_queue_placed(lock, out->reply->integers[0], rlk_pttl_end_ns(out->reply->integers[1], out->now_ns),
                            out->now_ns);
  else
    turn = rlk_queue_refused(lock, n->index, out->fault, out->now_ns);
  if (turn == RLK_TURN_ATTEMPT)
    rlk_operation_attempt(lock, out->now_ns);
}

static int place_of_several_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (lock && rlk_in_flight(lock) && lock->wait.parts)
    lock->wait.parts[r->of.part.number].ask_ns = now; /* it is asked for again */
  (void)n;
  return 0;
}

static void place_of_several_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  const struct rlk_reply *reply = out->reply;
  int part = out->request.of.part.number, is_answer = out->fault == RLK_FAULT_NONE;
  int64_t until_ns = is_answer ? rlk_pttl_end_ns(reply->integers[1], out->now_ns) : 0;
  if (out->fault == RLK_FAULT_LOST || !lock || !rlk_in_flight(lock) || lock->op.kind != REDLOCK_ACQUIRE)
    return;
  if (!is_answer)
    rlk_room_refused(lock, n, out->fault, out->now_ns);
  if (rlk_several_placed(lock, part, n->index, is_answer ? reply->integers[0] : 0, until_ns == 0, until_ns,
                         out->now_ns) == RLK_TURN_ATTEMPT)
    rlk_operation_attempt(lock, out->now_ns);
}

static int spare_place_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (lock && rlk_in_flight(lock) && rlk_has_place(lock) && lock->wait.second == n->index)
    rlk_place_ask_at(lock, n->index, &(struct rlk_place_wish){.row = &rlk_row_spare_place}, now);
  return 0;
}

static void spare_place_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  if (out->fault == RLK_FAULT_PERMISSION || out->fault == RLK_FAULT_UNKNOWN)
    rlk_room_denied(n, out->now_ns);
}

/* A rank and a PTTL: sums of them with times do not overflow. */
static uint8_t place_fits(const struct rlk_request *r, const struct rlk_reply *reply)
{
  (void)r;
  return rlk_reply_is_pair(reply) && reply->integers[0] >= 0 && reply->integers[0] <= RANK_MAX &&
                 reply->integers[1] >= -2
             ? RLK_FITS
             : RLK_MISFIT;
}

static void woken_outcome(struct rlk_engine *e, const struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_queue_woken(e, out->reply->text.data, n->index, out->now_ns);
  if (lock)
    rlk_operation_attempt(lock, out->now_ns);
}

static void holder_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim ? rlk_vote_lock(&out->request) : NULL;
  if (rlk_holder_outcome(lock, n, out))
    rlk_operation_advance(lock, out->now_ns);
}

/* clang-format off */
const struct rlk_ask
  rlk_row_clock = {"TIME", .role = RLK_ASK_CLOCK, .read = time_fits}, /* the node has read it */
  rlk_row_marker = {"GET", .role = RLK_ASK_MARKER, .is_vote = 1, .rest = RLK_FITS, .arrived = marker_arrived},
  rlk_row_delete = {"the release script", .is_vote = 1, .odd = RLK_GRANTED, .even = RLK_GONE,
                    .again = delete_again, .arrived = delete_arrived},
  rlk_row_confirm = {"the extend script", .is_vote = 1, .one = RLK_GRANTED, .zero = RLK_BUSY,
                     .again = confirm_again, .arrived = confirm_arrived},
  rlk_row_extend = {"the extend script", .is_vote = 1, .one = RLK_GRANTED, .zero = RLK_GONE,
                    .again = rlk_extend_again, .arrived = rlk_extend_arrived},
  rlk_row_expire = {"the expire script", .is_vote = 1, .odd = RLK_GRANTED, .even = RLK_GONE,
                    .arrived = rlk_vote_expired},
  rlk_row_renew = {"the extend script", .is_vote = 1, .read = batch_fits,
                   .again = rlk_renew_again, .arrived = rlk_renew_arrived},
  rlk_row_renewed = {"GET", .role = RLK_ASK_MARKER, .is_vote = 1, .rest = RLK_FITS, .arrived = renewed_arrived},
  rlk_row_value = {"GETRANGE", .is_vote = 1, .rest = RLK_FITS, .wrong_type = RLK_FITS, .arrived = value_arrived},
  rlk_row_ttl = {"PTTL", .is_vote = 1, .read = ttl_vote, .arrived = ttl_arrived},
  rlk_row_hint = {"PTTL", .role = RLK_ASK_HINT, .rest = RLK_FITS, .error = RLK_FITS, .arrived = hint_arrived},
  rlk_row_remove = {"DEL", .is_vote = 1, .read = removal_vote, .arrived = rlk_vote_removed},
  rlk_row_queued = {"EXISTS", .odd = RLK_FITS, .even = RLK_FITS, .error = RLK_FITS, .arrived = queued_arrived},
  rlk_row_place = {"the script of the queue", .role = RLK_ASK_QUICK, .read = place_fits,
                   .again = place_again, .arrived = place_arrived},
  rlk_row_spare_place = {"the script of the queue", .read = place_fits,
                         .again = spare_place_again, .arrived = spare_place_arrived},
  rlk_row_place_of_several = {"the script of the queue", .role = RLK_ASK_QUICK, .read = place_fits,
                              .again = place_of_several_again, .arrived = place_of_several_arrived},
  rlk_row_part = {"the script of the queue", .odd = RLK_FITS, .even = RLK_FITS, .error = RLK_FITS,
                  .arrived = part_arrived},
  rlk_row_behind = {"GETRANGE", .role = RLK_ASK_HINT, .rest = RLK_FITS, .error = RLK_FITS,
                    .arrived = holder_arrived},
  rlk_row_type = {"the look script", .rest = RLK_FITS, .error = RLK_FITS, .arrived = holder_arrived},
  rlk_row_entry = {"GETRANGE", .rest = RLK_FITS, .error = RLK_FITS, .arrived = holder_arrived},
  rlk_row_show = {"SET", .rest = RLK_FITS, .error = RLK_FITS, .arrived = holder_arrived};
/* clang-format on */

/* ---- all of them ---- */

/* NOSCRIPT: the server has lost all scripts and has executed nothing. Repeats the request with the text of the
 * script. A flush of one server usually means a flush of all, and the NOSCRIPT of another may come when no thread is
 * left to read it. */
static int is_asked_again(struct rlk_node *n, const struct rlk_outcome *out)
{
  const struct rlk_ask *ask = out->request.ask;
  if (out->fault != RLK_FAULT_NO_SCRIPT || !ask->again)
    return 0;
  for (int i = 0; i < n->net->node_count; i++)
    n->net->nodes[i].line->scripts_known = 0;
  return ask->again(n, &out->request, out->now_ns) == 0;
}

void rlk_dispatch(struct rlk_engine *e, struct rlk_node *n, struct rlk_outcome *out)
{
  const struct rlk_ask *ask = out->request.ask;
  struct rlk_claim *claim = out->request.claim;
  if (out->kind != RLK_OUTCOME_ANSWER) {
    if (out->kind == RLK_OUTCOME_WOKEN)
      woken_outcome(e, n, out);
    else
      rlk_news(e, n, out);
    return;
  }
  if (!is_asked_again(n, out) && ask->arrived)
    ask->arrived(n, out);
  if (!claim)
    return;
  claim->in_flight--;
  rlk_claim_note_debt(e, claim);
  rlk_claim_settle(e, claim);
}

void rlk_dispatch_abandoned(struct rlk_engine *e, struct rlk_node *n)
{
  struct rlk_request r;
  int again;
  while (rlk_node_take_lost(n, &r, &again)) {
    if (r.claim)
      r.claim->in_flight--;
    if (r.ask->arrived == rlk_renew_arrived || r.ask == &rlk_row_renewed)
      rlk_batch_drop(e, r.of.batch);
  }
}

#include "dispatch.h"

#include "../base/mutant.h"
#include "../node/meaning.h"
#include "asking.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "news.h"
#include "operation.h"
#include "vote.h"

#define MS RLK_NS_PER_MS
#define PERMISSION_PAUSE_NS (1000 * MS)

/* ---- what is known of the token ---- */

/* A nil to a second SET of the token, after a first one whose answer was lost: the key may be its own. */
static int may_be_its_own(const struct rlk_claim_node *at, const struct rlk_request *r)
{
  return (at->flags & RLK_SET_LOST) && !r->ask->finds_own;
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
  if (rlk_net_has_markers(n->net) && n->state == RLK_NODE_READY) {
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
    if (r->ask->finds_own)
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

int rlk_take_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_wanted(r);
  int is_wanted = lock && (rlk_in_flight(lock) || rlk_lock_is_held(lock, now));
  return is_wanted && n->state == RLK_NODE_READY ? rlk_ask_set(n, lock, now) : -1;
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

/* It has granted, and the marker behind that has come. */
static int was_unchecked(const struct rlk_node *n, const struct rlk_request *r)
{
  uint8_t *flags = &r->claim->node[n->index].flags, was = *flags & RLK_UNCHECKED;
  *flags &= (uint8_t)~RLK_UNCHECKED;
  return was;
}

/* The proof behind a vote or an extension: the server has lost no keys since it was found eligible (rule C.3.1). */
static void marker_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  struct rlk_claim_node *at = &r->claim->node[n->index];
  if (!out->fault && !out->vote) /* it had joined the set-up */
    return;
  if (!was_unchecked(n, r))
    return;
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

int rlk_delete_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (lock && lock->round.number == r->round)
    lock->op.scripts_missing = 1;
  return rlk_ask_delete(n, r->claim, r->round, now);
}

void rlk_delete_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  uint8_t *flags = &r->claim->node[n->index].flags;
  *flags &= (uint8_t)~RLK_DELETE_IN_FLIGHT;
  if (out->fault == RLK_FAULT_LOST)
    *flags |= RLK_DELETE_LOST;
  else if (out->fault == RLK_FAULT_NONE)
    rlk_claim_cleared(rlk_engine_of(n->net), r->claim, n->index);
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
  for (int i = 0; i < batch->count; i++) {
    r.claim = batch->claim[i];
    if (!out->fault)
      rlk_vote_extend(n, &r, out->reply->integers[i] == 1 ? RLK_GRANTED : RLK_GONE, out->now_ns);
    else if (out->error)
      rlk_vote_error(rlk_vote_lock(&r), n->index, out->error);
  }
  rlk_batch_drop(e, batch);
}

static void renewed_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_batch *batch = out->request.of.batch;
  struct rlk_request r = out->request;
  for (int i = 0; i < batch->count; i++) {
    r.claim = batch->claim[i];
    if (was_unchecked(n, &r))
      rlk_vote_proved(n, &r, out->vote, out->now_ns);
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

void rlk_end_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = out->request.claim->lock;
  int64_t end_ns;
  if (out->fault || out->reply->type != RLK_REPLY_INTEGER || !lock || out->request.round != lock->round.number)
    return;
  end_ns = rlk_pttl_end_ns(out->reply->integer, out->now_ns);
  lock->node_answers[n->index].until_ns = end_ns ? end_ns : out->now_ns;
}

static void ttl_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  if (out->fault != RLK_FAULT_LOST)
    n->looked_rtt_ns = n->line->read_ns - out->request.sent_ns;
  rlk_end_arrived(n, out);
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
                    .again = rlk_delete_again, .arrived = rlk_delete_arrived},
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
  rlk_row_remove = {"DEL", .is_vote = 1, .read = removal_vote, .arrived = rlk_vote_removed},
  rlk_row_behind = {"GETRANGE", .role = RLK_ASK_HINT, .rest = RLK_FITS, .error = RLK_FITS,
                    .arrived = holder_arrived},
  rlk_row_type = {"the look script", .rest = RLK_FITS, .error = RLK_FITS, .arrived = holder_arrived},
  rlk_row_form = {"the form script", .odd = RLK_FITS, .even = RLK_FITS, .error = RLK_FITS, .arrived = holder_arrived},
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
  if (out->fault != RLK_FAULT_NO_SCRIPT)
    return 0;
  for (int i = 0; i < n->net->node_count; i++)
    n->net->nodes[i].line->scripts_known = 0;
  return ask->again && ask->again(n, &out->request, out->now_ns) == 0;
}

void rlk_dispatch(struct rlk_engine *e, struct rlk_node *n, struct rlk_outcome *out)
{
  const struct rlk_ask *ask = out->request.ask;
  struct rlk_claim *claim = out->request.claim;
  if (out->kind != RLK_OUTCOME_ANSWER) {
    rlk_news(e, n, out);
    return;
  }
  if (!is_asked_again(n, out) && ask->arrived)
    ask->arrived(n, out);
  if (!claim)
    return;
  claim->in_flight--;
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

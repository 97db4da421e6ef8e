#include "news.h"

#include "asking.h"
#include "cleanup.h"
#include "lease.h"
#include "operation.h"
#include "round.h"

#define MS RLK_NS_PER_MS

/* A lock that was won or extended before the node's connection was up asks that node, too, as long as the round
 * could have waited for it: a lock on a bare majority survives no failure. */
static void ask_after_the_end(struct rlk_engine *e, struct rlk_node *n, int64_t now)
{
  int64_t connect_ns = RLK_INT(&n->net->options, CONNECT_TIMEOUT_MS) * MS;
  for (redlock_lock *lock = e->locks; lock; lock = lock->next) {
    int may_join = lock->op.kind == REDLOCK_ACQUIRE || (lock->op.kind == REDLOCK_EXTEND && n->state == RLK_NODE_READY);
    if (may_join && lock->state == REDLOCK_STATE_HELD && !rlk_in_flight(lock) && rlk_round_awaits(lock, n->index) &&
        now - lock->round.asked_all_ns < connect_ns && rlk_round_guard(lock, n, now) == RLK_ASKED)
      rlk_round_ask(lock, n, now);
  }
}

/* It waits for the node, or has counted it as refused without a request: then the reason has passed. */
static int may_ask_now(const redlock_lock *lock, const struct rlk_node *n)
{
  if (rlk_round_awaits(lock, n->index))
    return 1;
  return n->state == RLK_NODE_READY && lock->op.kind == REDLOCK_ACQUIRE && lock->votes[n->index] == RLK_REFUSED &&
         !(lock->claim->node[n->index].flags & RLK_MAY_HOLD);
}

static void ask_those_that_wait(struct rlk_engine *e, struct rlk_node *n, int64_t now)
{
  redlock_lock *next;
  int vote;
  ask_after_the_end(e, n, now);
  for (redlock_lock *lock = e->flights; lock; lock = next) {
    next = lock->flight.next;
    if (lock->op.phase != RLK_ASKING_ALL || !may_ask_now(lock, n))
      continue;
    if (n->state == RLK_NODE_SETUP && lock->op.kind != REDLOCK_ACQUIRE)
      continue; /* only a SET may join the set-up */
    vote = rlk_round_guard(lock, n, now);
    if (vote == RLK_WAITING)
      continue;
    if (vote != RLK_ASKED) {
      lock->votes[n->index] = (uint8_t)vote;
      rlk_operation_advance(lock, now);
      continue;
    }
    rlk_round_ask(lock, n, now);
    rlk_round_time(lock, now);
  }
}

/* They may stand in the queue of a node to which a connection has broken: it does not wake them any more. */
static void wake_sleepers(struct rlk_engine *e, int64_t now)
{
  for (redlock_lock *lock = e->flights; lock; lock = lock->flight.next)
    if (lock->op.phase == RLK_SLEEPING)
      rlk_timer_set(&e->net.timers, &lock->op.timer, now);
}

static void give_up_waiting(struct rlk_engine *e, struct rlk_node *n, int64_t now)
{
  redlock_lock *next;
  for (redlock_lock *lock = e->flights; lock; lock = next) {
    uint8_t *vote = &lock->votes[n->index];
    next = lock->flight.next;
    if (lock->op.kind == REDLOCK_RELEASE && n->state == RLK_NODE_REFUSED && *vote == RLK_ASKED)
      continue; /* its deletes are answered before it is closed */
    if (lock->op.phase == RLK_SLEEPING || (!rlk_round_awaits(lock, n->index) && (*vote != RLK_ASKED || !n->refused)))
      continue;
    *vote = n->refused ? RLK_REFUSED : RLK_DOWN;
    if (lock->op.phase == RLK_ASKING_ALL)
      rlk_round_time(lock, now);
    rlk_operation_advance(lock, now);
  }
}

/* SETs that joined the set-up have gone to a server that votes under another address: the SET there meets, or will
 * meet, the key of its own token. */
static void share_sets(const struct rlk_line *l, int64_t now)
{
  struct rlk_node *other = l->shared;
  for (uint32_t i = 0; i < l->requests.count; i++) {
    const struct rlk_request *r = rlk_request_at(&l->requests, i);
    redlock_lock *lock = r->claim ? r->claim->lock : NULL;
    if (r->ask->role != RLK_ASK_TAKE || !lock || lock->claim != r->claim || r->claim->given_up ||
        lock->round.number != r->round)
      continue;
    r->claim->node[other->index].flags |= RLK_SET_LOST;
    if (lock->votes[other->index] == RLK_BUSY && other->state == RLK_NODE_READY &&
        rlk_ask_confirm(other, lock, now) == 0)
      lock->votes[other->index] = RLK_ASKED;
  }
}

/* Rounds that hoped for the second connection: their requests on the first one are answered there. */
static void take_back_hope(const struct rlk_node *n)
{
  const struct rlk_requests *requests = &n->line->requests;
  for (uint32_t i = 0; i < requests->count; i++) {
    const struct rlk_request *r = rlk_request_at(requests, i);
    redlock_lock *lock = r->claim ? r->claim->lock : NULL;
    if (lock && r->ask->is_vote && lock->round.number == r->round && rlk_round_awaits(lock, n->index))
      lock->votes[n->index] = RLK_ASKED;
  }
}

void rlk_news(struct rlk_engine *e, struct rlk_node *n, const struct rlk_outcome *out)
{
  switch (out->kind) {
  case RLK_OUTCOME_FORGOTTEN: rlk_leases_cut(e, n, RLK_NEVER, out->reason, out->now_ns); break;
  case RLK_OUTCOME_STEPPED: rlk_leases_cut(e, n, out->step_ns, REDLOCK_LOSS_CLOCK, out->now_ns); break;
  case RLK_OUTCOME_SHARED: share_sets(n->line, out->now_ns); break;
  case RLK_OUTCOME_SPOKE:
    take_back_hope(n);
    ask_those_that_wait(e, n, out->now_ns);
    break;
  case RLK_OUTCOME_DEAF: wake_sleepers(e, out->now_ns); break;
  case RLK_OUTCOME_JOINABLE: ask_those_that_wait(e, n, out->now_ns); break;
  case RLK_OUTCOME_READY:
    wake_sleepers(e, out->now_ns);
    ask_those_that_wait(e, n, out->now_ns);
    rlk_claims_pay(e, n, out->now_ns);
    break;
  case RLK_OUTCOME_PAYABLE: rlk_claims_pay(e, n, out->now_ns); break;
  default:
    if (n->failures <= 2) /* not again after each failed attempt to connect */
      wake_sleepers(e, out->now_ns);
    give_up_waiting(e, n, out->now_ns);
    break;
  }
}

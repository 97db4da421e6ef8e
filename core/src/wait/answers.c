/* What nodes say of queues: the rows of these requests, and wake-ups. */
#include "answers.h"

#include "../lock/asking.h"
#include "../lock/dispatch.h"
#include "../lock/kind.h"
#include "../lock/operation.h"
#include "../lock/vote.h"
#include "acquire.h"
#include "others.h"
#include "queue.h"
#include "room.h"
#include "several.h"

#define RANK_MAX 1000000 /* of a waiter: there are not that many */

static void take_turn(redlock_lock *lock, enum rlk_turn turn, int64_t now)
{
  if (turn == RLK_TURN_ATTEMPT)
    rlk_acquire_attempt(lock, now);
}

/* ---- a release that hands over ---- */

/* Any node may say that others wait; that nobody does, home alone. */
RLK_HOT static inline void hear_of_the_queue(struct rlk_node *n, const struct rlk_outcome *out)
{
  struct rlk_claim *claim = out->request.claim;
  int is_home = claim->hands_over == n->index || claim->hands_over == RLK_QUEUE_EACH;
  if (is_home || (out->reply->integer & 2))
    rlk_others_handed_over(rlk_engine_of(n->net), claim, is_home, out->reply->integer & 2, out->now_ns);
}

/* If the ACL denies the keys of the queue, the server has not even looked at the lock's own key: that is deleted alone.
 */
static void hand_over_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  const struct rlk_request *r = &out->request;
  if (out->fault == RLK_FAULT_NONE) {
    rlk_peer_of(n)->queue_works = 1;
    hear_of_the_queue(n, out);
  } else if (out->fault == RLK_FAULT_PERMISSION) {
    rlk_room_denied(n, out->now_ns);
    if (rlk_ask_delete(n, r->claim, r->round, out->now_ns) == 0)
      return;
  }
  rlk_delete_arrived(n, out);
}

static void part_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  if (out->fault == RLK_FAULT_NONE && out->reply->type == RLK_REPLY_INTEGER)
    hear_of_the_queue(n, out);
}

/* ---- a place ---- */

/* The lock whose last round the answer is to. */
static redlock_lock *lock_of(const struct rlk_request *r)
{
  redlock_lock *lock = rlk_vote_lock(r);
  return lock && lock->round.number == r->round ? lock : NULL;
}

static void queued_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = lock_of(&out->request);
  rlk_vote_note_error(n, out);
  if (out->fault || out->reply->type != RLK_REPLY_INTEGER || !lock)
    return;
  if (rlk_others_told(lock, n->index, out->reply->integer > 0))
    rlk_operation_advance(lock, out->now_ns);
}

static int is_wanted(const redlock_lock *lock, int node, int part)
{
  if (lock->op.kind != REDLOCK_ACQUIRE || !rlk_in_flight(lock) || !rlk_has_place(lock))
    return 0;
  return lock->wait->place.is_of_several ? lock->wait->parts[part].home == node : lock->wait->place.at >> node & 1;
}

static int place_again(struct rlk_node *n, const struct rlk_request *r, int64_t now)
{
  redlock_lock *lock = rlk_vote_lock(r);
  if (lock && is_wanted(lock, n->index, r->of.part)) /* without memory the waiter's timer asks */
    rlk_place_ask_at(lock, n->index, r->ask, r->of.part, now);
  return 0;
}

static void place_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = lock_of(&out->request);
  int64_t now = out->now_ns;
  if (out->fault == RLK_FAULT_MISFIT)
    rlk_vote_note_error(n, out);
  if (out->fault == RLK_FAULT_MISFIT || !lock || !rlk_in_flight(lock))
    return;
  if (out->fault != RLK_FAULT_NONE)
    take_turn(lock, rlk_queue_refused(lock, n->index, out->fault, now), now);
  else
    take_turn(lock, rlk_queue_placed(lock, out->reply->integers[0], rlk_pttl_end_ns(out->reply->integers[1], now), now),
              now);
}

static void place_of_several_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  const struct rlk_reply *reply = out->reply;
  int part = out->request.of.part, is_answer = out->fault == RLK_FAULT_NONE;
  int64_t until_ns = is_answer ? rlk_pttl_end_ns(reply->integers[1], out->now_ns) : 0;
  if (!lock || !rlk_in_flight(lock) || lock->op.kind != REDLOCK_ACQUIRE)
    return;
  if (out->fault == RLK_FAULT_LOST) {
    rlk_several_lost(lock, part);
    return;
  }
  if (!is_answer)
    rlk_room_refused(lock, n, out->fault, out->now_ns);
  take_turn(lock, rlk_several_placed(lock, part, n->index, is_answer ? reply->integers[0] : 0, until_ns, out->now_ns),
            out->now_ns);
}

static void spare_place_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  if (out->fault == RLK_FAULT_PERMISSION || out->fault == RLK_FAULT_UNKNOWN)
    rlk_room_denied(n, out->now_ns);
  else if (out->fault == RLK_FAULT_NONE && lock && rlk_in_flight(lock) && rlk_has_place(lock))
    rlk_place_mark(&lock->wait->place.first, n->index, out->reply->integers[0] <= 0);
}

/* A rank and a PTTL: sums of them with times do not overflow. */
static uint8_t place_fits(const struct rlk_request *r, const struct rlk_reply *reply)
{
  (void)r;
  return rlk_reply_is_pair(reply) && reply->integers[0] >= -RANK_MAX && reply->integers[0] <= RANK_MAX &&
                 reply->integers[1] >= -2
             ? RLK_FITS
             : RLK_MISFIT;
}

void rlk_wait_woken(struct rlk_engine *e, const struct rlk_node *n, const struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_queue_woken(e, out->reply->text.data, n->index, out->now_ns);
  if (lock)
    rlk_acquire_attempt(lock, out->now_ns);
}

/* clang-format off */
const struct rlk_ask
  rlk_row_hint = {"PTTL", .role = RLK_ASK_HINT, .rest = RLK_FITS, .error = RLK_FITS, .arrived = rlk_end_arrived},
  rlk_row_queued = {"EXISTS", .odd = RLK_FITS, .even = RLK_FITS, .error = RLK_FITS, .arrived = queued_arrived},
  rlk_row_place = {"the script of the queue", .role = RLK_ASK_QUICK, .read = place_fits,
                   .again = place_again, .arrived = place_arrived},
  rlk_row_spare_place = {"the script of the queue", .read = place_fits,
                         .again = place_again, .arrived = spare_place_arrived},
  rlk_row_place_of_several = {"the script of the queue", .role = RLK_ASK_QUICK, .read = place_fits,
                              .again = place_again, .arrived = place_of_several_arrived},
  rlk_row_part = {"the script of the queue", .odd = RLK_FITS, .even = RLK_FITS, .error = RLK_FITS,
                  .arrived = part_arrived},
  rlk_row_hand_over = {"the release script", .is_vote = 1, .odd = RLK_GRANTED, .even = RLK_GONE,
                       .again = rlk_delete_again, .arrived = hand_over_arrived};
/* clang-format on */

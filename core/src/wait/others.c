#include "others.h"

#include "../base/macros.h"
#include "../base/mutant.h"
#include "../lock/kind.h"
#include "../lock/release.h"
#include "home.h"
#include "place.h"
#include "queue.h"
#include "room.h"

#define MS RLK_NS_PER_MS
#define KNOWS_WITHIN_NS (20 * MS) /* one node says whether others wait; it need not be among the fastest */
#define ALONE_NS (20 * MS)        /* nobody is asked for so long after the last answer that nobody waits */

/* A node that was never connected may be the one that is home to others. */
static int is_connecting(const struct rlk_engine *e)
{
  for (int i = 0; i < e->net.node_count; i++) {
    const struct rlk_node *n = &e->net.nodes[i];
    if (!n->run_id[0] && n->failures == 0 && n->state != RLK_NODE_REFUSED)
      return 1;
  }
  return 0;
}

/* Notes the homes of several resources in their keys. */
static int homes(const redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->key->count; i++) {
    struct rlk_key *key = rlk_key_part(lock->key, i);
    key->queue_home = rlk_room_home(lock, key, now);
  }
  return RLK_QUEUE_EACH;
}

static int home_or_anywhere(const redlock_lock *lock, int64_t now)
{
  if (is_connecting(lock->engine))
    return RLK_QUEUE_ANYWHERE;
  return lock->key->count > 1 ? homes(lock, now) : rlk_room_home(lock, lock->key, now);
}

/* Its deletes wake who waits at the two nodes where others stand (queue.c), and where it has stood itself; on all nodes
 * while it does not know home. */
static void hand_over(redlock_lock *lock, int home, int64_t now)
{
  struct rlk_claim *claim = lock->claim;
  int second = home >= 0 ? rlk_home_second(lock, lock->key, home, now) : -1;
  claim->hands_over = home;
  claim->queues = home == -1 ? 0 : home < 0 ? UINT64_MAX : UINT64_C(1) << home | lock->wait->place.at;
  if (second >= 0)
    claim->queues |= UINT64_C(1) << second;
}

void rlk_others_look(redlock_lock *lock, int64_t now)
{
  int is_needed = !rlk_has_place(lock) && !rlk_heard(lock, 0, ALONE_NS, now) && rlk_queue_is_used(lock);
  lock->wait->others = (struct rlk_others){.home = is_needed ? home_or_anywhere(lock, now) : -1};
}

void rlk_others_ask(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_others *others = &lock->wait->others;
  if ((n->index == others->home || others->home <= RLK_QUEUE_ANYWHERE) && rlk_ask_is_queued(n, lock, now) == 0)
    others->asked |= UINT64_C(1) << n->index;
}

int rlk_others_told(redlock_lock *lock, int node, int are_waiting)
{
  struct rlk_others *others = &lock->wait->others;
  others->are_waiting |= are_waiting;
  others->asked &= ~(UINT64_C(1) << node);
  return others->until_ns != 0;
}

int rlk_others_are_ahead(const redlock_lock *lock)
{
  return !RLK_MUTANT(QUEUE_JUMPER) && lock->wait->others.are_waiting && !rlk_has_place(lock) && rlk_queue_is_used(lock);
}

/* A lock that others may share is not won without that word: readers that come would pass a writer for ever. It waits
 * for the connection, too, unless the node is known to be away. */
static int must_know(const redlock_lock *lock)
{
  return lock->kind->shares && lock->wait->others.home != -1 &&
         (lock->wait->others.asked || is_connecting(lock->engine));
}

int rlk_others_are_awaited(redlock_lock *lock, int64_t now)
{
  int64_t lease_ns = lock->op.asked.lease_ns;
  if (lock->wait->others.are_waiting || (!lock->wait->others.asked && !must_know(lock)))
    return 0;
  if (!lock->wait->others.until_ns)
    lock->wait->others.until_ns =
        now + (must_know(lock) ? rlk_smaller(RLK_LATE_NS, lease_ns / 4) : rlk_smaller(KNOWS_WITHIN_NS, lease_ns / 20));
  return now < lock->wait->others.until_ns;
}

/* Whether waiters of this client may be told of the release. */
static int may_have_room(const redlock_lock *lock, int64_t now)
{
  return lock->engine->waits->room_count && (lock->key->count > 1 || rlk_room_find(lock->engine, lock->key, now));
}

void rlk_others_hand_over(redlock_lock *lock, int64_t now)
{
  if (!RLK_INT(&lock->options, QUEUE) || lock->claim->given_up || lock->claim->holders == 0)
    return;
  if (rlk_has_place(lock) || may_have_room(lock, now))
    rlk_heard_forget_alone(lock->engine, lock->key); /* until home answers */
  else if (rlk_heard(lock, 0, ALONE_NS / 2, now))    /* home may answer later than the next acquire begins */
    return;
  hand_over(lock, rlk_has_place(lock) ? lock->wait->home : home_or_anywhere(lock, now), now);
  lock->claim->queues_empty = 0;
  lock->claim->place = lock->wait->place;
  if (rlk_has_place(lock))
    rlk_place_note_left(lock, 0);
}

void rlk_others_pass_on(redlock_lock *lock, int64_t now)
{
  hand_over(lock, home_or_anywhere(lock, now), now);
}

void rlk_others_let_in(redlock_lock *lock, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  if (!RLK_INT(&lock->options, QUEUE))
    return;
  lock->claim->place = lock->wait->place;
  if (lock->key->count > 1)
    homes(lock, now);
  for (int i = 0; i < e->net.node_count; i++)
    if (e->net.nodes[i].state == RLK_NODE_READY)
      rlk_ask_let_in(&e->net.nodes[i], lock->claim, now); /* without memory they find out by asking */
  lock->wait->place.number = 0;
}

static void wake(redlock_lock *lock, int64_t now)
{
  if (lock && lock->op.phase == RLK_SLEEPING)
    rlk_timer_set(&lock->engine->net.timers, &lock->op.timer, now);
}

void rlk_others_handed_over(struct rlk_engine *e, struct rlk_claim *claim, int is_home, int others_wait, int64_t now)
{
  struct rlk_room *room = NULL;
  redlock_lock *first = NULL, *ours;
  if (others_wait)
    claim->queues_empty = -1; /* another node may not know */
  else if (!is_home || claim->queues_empty < 0 || ++claim->queues_empty < claim->key->count)
    return;
  if (e->waits->room_count && claim->key->count == 1)
    room = rlk_room_find(e, claim->key, now);
  if (room && room->first && rlk_has_place(room->first)) /* without one it waits beside the queue */
    first = room->first;
  if (others_wait && first) /* it may be that one of whom the node has heard */
    rlk_heard_forget_alone(e, claim->key);
  else
    rlk_heard_note(e, claim->key, others_wait, now);
  if (!room)
    return;
  ours = room->ours_until_ns ? room->first : NULL;
  if (ours && ours != first)
    ours->wait->is_told = !others_wait;
  room->ours_until_ns = 0;
  wake(ours, now);
  wake(first, now); /* of this client: the node need not report it */
}

/* ---- the release ---- */

static int begin_release(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  rlk_others_hand_over(lock, now);
  return rlk_release_begin(lock, call, now);
}

/* The ACL may deny a first hand-over, and later no thread may be there to read that. */
static int may_be_denied(const redlock_lock *lock)
{
  uint64_t queues = lock->claim->kind->leave ? 0 : lock->claim->queues;
  for (int i = 0; queues && i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_ASKED && (queues >> i & 1) && !lock->engine->peers[i].queue_works)
      return 1;
  return 0;
}

static int advance_release(redlock_lock *lock, int64_t now)
{
  return may_be_denied(lock) ? REDLOCK_PENDING : rlk_release_advance(lock, now);
}

const struct rlk_verb rlk_release = {.kind = REDLOCK_RELEASE,
                                     .name = "release",
                                     .begin = begin_release,
                                     .ask = rlk_release_ask,
                                     .advance = advance_release,
                                     .timer = rlk_release_timer,
                                     .ended = rlk_queue_leave};

void rlk_others_drop_claim(redlock_lock *lock, int64_t now)
{
  if (lock->claim && (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_LOST))
    rlk_others_hand_over(lock, now);
  rlk_lock_drop_claim(lock, now);
}

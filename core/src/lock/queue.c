#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../node/listener.h"
#include "asking.h"
#include "place.h"
#include "backoff.h"
#include "further.h"
#include "holder.h"
#include "kind.h"
#include "room.h"
#include "round.h"

#define MS RLK_NS_PER_MS
#define TURN_MAX_NS (300 * MS) /* how long a free lock is left to the waiters before, however many */
#define SPREAD_NS (10 * MS)    /* between waiters that would ask at the same moment */
#define SPREAD_MAX_NS (100 * MS)
#define RESOURCE_MAX 65536 /* longer ones are waited for without the queue */
#define ASK_MIN_NS (5 * MS)
#define PAUSE_MIN_NS (MS / 2)
#define OVERSLEPT_NS (50 * MS) /* a free lock that is not taken by then is taken by the next */
#define IN_VAIN_MAX 8
#define HOLDER_NS (1000 * MS) /* a longer wait asks who holds the lock */

/* ---- the waiters behind a leader ---- */

/* The leader's findings hold for the waiters behind it: an outage begins for them, too, or is over. */
static void learn(redlock_lock *lock, int verdict, int64_t now)
{
  int64_t outage_wait_ms = RLK_INT(&lock->options, OUTAGE_WAIT_MS);
  if (!rlk_is_outage(verdict))
    lock->op.outage_until_ns = RLK_NEVER;
  else if (lock->op.outage_until_ns == RLK_NEVER && outage_wait_ms >= 0)
    lock->op.outage_until_ns = now + outage_wait_ms * MS;
  if (verdict != REDLOCK_TIMED_OUT)
    lock->attempt.verdict = verdict;
  rlk_round_set_timer(lock, RLK_NEVER);
}

/* Waits for the locks before it; only its deadline ends that. */
static enum rlk_turn stand_behind(redlock_lock *lock, int64_t now)
{
  lock->op.phase = RLK_SLEEPING;
  lock->attempt.wake_ns = RLK_NEVER;
  learn(lock, rlk_room_leader(lock)->attempt.verdict, now);
  return RLK_TURN_WAIT;
}

static redlock_lock **placed_bucket(struct rlk_engine *e, uint64_t place)
{
  return &e->placed[(place >> 1) % RLK_ROOM_BUCKETS];
}

static void leave_place(redlock_lock *lock)
{
  redlock_lock **at = placed_bucket(lock->engine, lock->wait.place);
  while (*at && *at != lock)
    at = &(*at)->wait.next_placed;
  if (*at)
    *at = lock->wait.next_placed;
}

static void be_at(redlock_lock *lock, uint64_t place)
{
  redlock_lock **bucket = placed_bucket(lock->engine, place);
  leave_place(lock);
  lock->wait.place = place;
  lock->wait.shares = lock->kind->shares;
  lock->wait.next_placed = *bucket;
  *bucket = lock;
}

static void take_place(redlock_lock *lock, const struct rlk_node *home)
{
  be_at(lock, ++lock->engine->places << 1 | (uint64_t)rlk_listener_is_ready(home)); /* odd: it listens */
}

/* It began earlier than the one that has stood for the room until now. */
static void take_over(redlock_lock *lock, redlock_lock *from, int64_t now)
{
  uint64_t place = from->wait.place;
  rlk_further_leave(from);
  leave_place(from);
  from->wait.place = 0;
  be_at(lock, place);
  lock->wait.home = from->wait.home;
  lock->wait.rank = from->wait.rank;
  lock->wait.rank_changed_ns = from->wait.rank_changed_ns;
  lock->wait.is_ranked = from->wait.is_ranked;
  lock->wait.step_ns = from->wait.step_ns;
  lock->wait.free_ns = from->wait.free_ns;
  lock->wait.in_vain = from->wait.in_vain;
  stand_behind(from, now);
}

/* Only a hint: a promise that is not kept gives the place back, too. */
static void give_place_back(redlock_lock *lock)
{
  struct rlk_node *home = &lock->engine->net.nodes[lock->wait.home];
  if (lock->wait.place && home->state == RLK_NODE_READY)
    rlk_ask_leave(home, lock);
}

void rlk_queue_tell(const redlock_lock *leader, int64_t now)
{
  for (redlock_lock *lock = leader->wait.room ? leader->wait.next : NULL; lock; lock = lock->wait.next)
    if (lock->op.phase == RLK_SLEEPING && rlk_room_are_alike(lock, leader))
      learn(lock, leader->attempt.verdict, now);
}

void rlk_queue_init(struct rlk_engine *e)
{
  struct rlk_text name = rlk_text_in(e->queue_name, sizeof e->queue_name);
  struct rlk_text channel = rlk_text_in(e->net.channel, sizeof e->net.channel);
  rlk_text_format(&name, "%016llx", (unsigned long long)rlk_net_seed(&e->net));
  rlk_text_add(&channel, RLK_STRING(&e->net, KEY_PREFIX));
  rlk_text_add(&channel, "libredlock:w:");
  rlk_text_add(&channel, e->queue_name);
}

/* ---- the place on the home node ---- */

int rlk_queue_home(const redlock_lock *lock, int64_t now)
{
  return rlk_room_home(lock, lock->wait.key, now);
}

/* The home node, if its queue can be used and a majority can be asked; else -1. */
static int home_of(const redlock_lock *lock, int64_t now)
{
  return rlk_backoff_has_majority(lock, RLK_LATE_NS, now) ? rlk_queue_home(lock, now) : -1;
}

/* The one before it may be the holder itself, whose place goes with its release. */
static int is_next(const redlock_lock *lock)
{
  return lock->wait.rank <= 1;
}

static int64_t within(int64_t value, int64_t least, int64_t top)
{
  return value < least ? least : value > top ? top : value;
}

/* Keeps waiters that aim at the same moment apart. */
static int64_t spread_ns(const redlock_lock *lock)
{
  return is_next(lock) ? 0 : within(lock->wait.rank * SPREAD_NS, 0, SPREAD_MAX_NS);
}

/* With push, asking only covers a push that is lost. */
static int64_t pushed_pause_ns(const redlock_lock *lock, int64_t now)
{
  int64_t pause_ns = RLK_STEP_NS * (lock->wait.rank + 1);
  if (lock->wait.rank == 0) /* the holder has no place, and may not wake the next */
    return within(now - lock->wait.rank_changed_ns, ASK_MIN_NS, RLK_ASK_NS);
  if (is_next(lock))
    return RLK_ASK_NS;
  return pause_ns < RLK_STEP_MAX_NS ? pause_ns : RLK_STEP_MAX_NS;
}

/* When it asks again if no push wakes it: soon if it is next, and the later the longer nothing has changed; but not
 * later than it should be next at the rate at which the queue has moved. */
static int64_t polled_pause_ns(const redlock_lock *lock, int64_t now)
{
  int64_t delay_ns = RLK_INT(&lock->options, RETRY_DELAY_MS) * MS;
  int64_t top_ns = delay_ns < 2 * RLK_ASK_NS ? delay_ns : 2 * RLK_ASK_NS;
  int64_t same_ns = within((now - lock->wait.rank_changed_ns) / 4, PAUSE_MIN_NS, top_ns);
  int64_t before = lock->wait.rank - 1;
  if (is_next(lock))
    return same_ns;
  if (lock->wait.step_ns)
    same_ns = within(lock->wait.step_ns / 3, PAUSE_MIN_NS, top_ns);
  return within(same_ns * before, PAUSE_MIN_NS, RLK_POLL_MAX_NS);
}

static int64_t pause_ns(const redlock_lock *lock, int64_t now)
{
  const struct rlk_node *home = &lock->engine->net.nodes[lock->wait.home];
  int is_pushed = lock->wait.relies_on_push && rlk_listener_is_ready(home);
  return is_pushed ? pushed_pause_ns(lock, now) : polled_pause_ns(lock, now);
}

static enum rlk_turn ask(redlock_lock *lock, int64_t now)
{
  struct rlk_node *home = &lock->engine->net.nodes[lock->wait.home];
  int64_t patience_ns = rlk_node_patience_ns(home, &lock->op.asked);
  if (rlk_ask_join(home, lock, now) != 0)
    return RLK_TURN_ATTEMPT;
  lock->wait.relies_on_push = rlk_listener_is_ready(home);
  if (now - lock->attempt.began_ns >= HOLDER_NS)
    rlk_holder_ask_at(lock, home, now);
  lock->op.phase = RLK_ASKING_QUEUE;
  lock->round.is_tight = 0;
  rlk_round_set_timer(lock, now + (patience_ns > RLK_LATE_NS ? patience_ns : RLK_LATE_NS));
  return RLK_TURN_WAIT;
}

static int has_place_at(const redlock_lock *lock, int home)
{
  int listens = rlk_listener_is_ready(&lock->engine->net.nodes[home]);
  return lock->wait.place && lock->wait.home == home && (lock->wait.place & 1) == (uint64_t)listens;
}

/* The first of the room asks for its place, or, where there is no queue, for the lock. */
static enum rlk_turn ask_for_place(redlock_lock *lock, int64_t now)
{
  int home = home_of(lock, now);
  if (home >= 0 && !lock->claim)
    lock->claim = rlk_claim_new(lock); /* carries the answer; its token is never sent */
  if (home < 0 || !lock->claim)
    return RLK_TURN_ATTEMPT;
  if (!lock->wait.place || home != lock->wait.home) {
    lock->wait.rank_changed_ns = now;
    lock->wait.rank = 1;
    lock->wait.step_ns = lock->wait.is_ranked = lock->wait.in_vain = 0;
    lock->wait.free_ns = RLK_NEVER;
  }
  if (!has_place_at(lock, home)) {
    give_place_back(lock);
    take_place(lock, &lock->engine->net.nodes[home]);
  }
  lock->wait.home = home;
  lock->round.number++;
  rlk_further_ask(lock, now);
  return ask(lock, now);
}

static enum rlk_turn sleep_until(redlock_lock *lock, int64_t at_ns)
{
  int64_t due_ns = rlk_further_due_ns(lock);
  at_ns = due_ns < at_ns ? due_ns : at_ns;
  lock->op.phase = RLK_SLEEPING;
  lock->attempt.wake_ns = at_ns;
  rlk_round_set_timer(lock, at_ns);
  return RLK_TURN_WAIT;
}

/* A home node that answers is no outage; otherwise the last attempt decides. */
static void note_busy(redlock_lock *lock, int64_t now)
{
  if (lock->attempt.verdict == REDLOCK_BUSY && lock->op.outage_until_ns == RLK_NEVER)
    return;
  lock->op.outage_until_ns = RLK_NEVER;
  lock->attempt.verdict = REDLOCK_BUSY;
  rlk_queue_tell(lock, now);
}

/* How long a lock must be free until it is this waiter's turn: none for the first, longer for those behind, in case
 * the waiters before them have died. Other nodes than home may still have it held: then they try ever more rarely. */
static int64_t turn_ns(const redlock_lock *lock)
{
  int64_t most_ns = RLK_MUTANT(WAITS_FOR_THE_DEAD) ? INT64_MAX : TURN_MAX_NS;
  int64_t turn_ns =
      lock->wait.rank > 1 ? within(lock->wait.rank * RLK_STEP_NS, 0, most_ns) : lock->wait.rank * OVERSLEPT_NS;
  return (turn_ns + spread_ns(lock)) << (lock->wait.in_vain < IN_VAIN_MAX ? lock->wait.in_vain : IN_VAIN_MAX);
}

static void note_rank(redlock_lock *lock, int64_t rank, int64_t now)
{
  if (rank == lock->wait.rank)
    return;
  if (rank < lock->wait.rank && lock->wait.is_ranked)
    lock->wait.step_ns = (now - lock->wait.rank_changed_ns) / (lock->wait.rank - rank);
  lock->wait.rank_changed_ns = now;
  lock->wait.rank = rank;
  lock->wait.is_ranked = 1;
}

/* The key of a holder that has died has ended when it was to end, not when that is noticed. */
static void note_free(redlock_lock *lock, int64_t now)
{
  struct rlk_node_answer *answer = &lock->node_answers[lock->wait.home];
  if (lock->wait.free_ns == RLK_NEVER)
    lock->wait.free_ns = answer->until_ns && answer->until_ns < now ? answer->until_ns : now;
  answer->until_ns = 0;
  lock->votes[lock->wait.home] = RLK_FREE;
}

static void note_held(redlock_lock *lock, int64_t until_ns)
{
  lock->wait.free_ns = RLK_NEVER;
  lock->wait.in_vain = 0;
  lock->votes[lock->wait.home] = RLK_BUSY;
  lock->node_answers[lock->wait.home].part = lock->wait.part;
  lock->node_answers[lock->wait.home].until_ns = until_ns;
}

/* When it asks again: after a pause, at its turn, or when the key ends that is there now. */
static int64_t next_question_ns(const redlock_lock *lock, int64_t until_ns, int64_t now)
{
  int64_t at_ns = now + pause_ns(lock, now), other_ns = RLK_NEVER;
  if (lock->wait.free_ns != RLK_NEVER)
    other_ns = lock->wait.free_ns + turn_ns(lock) + OVERSLEPT_NS;
  else if (until_ns != RLK_NEVER && !RLK_MUTANT(END_IGNORED))
    other_ns = until_ns + MS + spread_ns(lock);
  return other_ns < at_ns ? other_ns : at_ns;
}

enum rlk_turn rlk_queue_placed(redlock_lock *lock, int64_t rank, int64_t until_ns, int64_t now)
{
  if (lock->op.phase != RLK_ASKING_QUEUE)
    return RLK_TURN_NONE;
  note_rank(lock, rank, now);
  if (until_ns == 0)
    note_free(lock, now);
  else
    note_held(lock, until_ns);
  if (lock->wait.free_ns != RLK_NEVER && now - lock->wait.free_ns >= turn_ns(lock))
    return RLK_TURN_ATTEMPT;
  note_busy(lock, now);
  if (is_next(lock) && rlk_round_is_overdue(lock, now))
    return RLK_TURN_ATTEMPT;
  rlk_listener_want(&lock->engine->net.nodes[lock->wait.home], now);
  return sleep_until(lock, next_question_ns(lock, until_ns, now));
}

enum rlk_turn rlk_queue_placed_part(redlock_lock *lock, int part, int node, int64_t rank, int64_t until_ns, int64_t now)
{
  if (!rlk_further_placed(lock, part, node, rank, now) || lock->op.phase != RLK_SLEEPING)
    return RLK_TURN_NONE;
  return rank == 0 && until_ns == 0 ? RLK_TURN_ATTEMPT : sleep_until(lock, lock->attempt.wake_ns);
}

enum rlk_turn rlk_queue_refused(redlock_lock *lock, int node, enum rlk_fault fault, int64_t now)
{
  rlk_room_refused(lock, &lock->engine->net.nodes[node], fault, now);
  return lock->op.phase == RLK_ASKING_QUEUE ? RLK_TURN_ATTEMPT : RLK_TURN_NONE;
}

enum rlk_turn rlk_queue_missing(redlock_lock *lock, int64_t now)
{
  return lock->op.phase == RLK_ASKING_QUEUE ? ask(lock, now) : RLK_TURN_NONE;
}

/* ---- waiting ---- */

int rlk_queue_is_used(const redlock_lock *lock)
{
  return RLK_INT(&lock->options, QUEUE) && lock->attempt.max == INT64_MAX && lock->key->resource_size <= RESOURCE_MAX;
}

void rlk_queue_forget(redlock_lock *lock)
{
  rlk_further_leave(lock);
  give_place_back(lock);
  leave_place(lock);
  lock->wait.place = 0;
}

enum rlk_turn rlk_queue_begin(redlock_lock *lock, int64_t now)
{
  struct rlk_room *room;
  lock->wait.place = 0;
  lock->wait.part = lock->wait.further_count = 0;
  lock->wait.key = lock->key;
  lock->others.are_waiting = 0;
  lock->attempt.began_ns = lock->attempt.arrived_ns = lock->round.asked_all_ns = now;
  lock->attempt.arrival = ++lock->engine->arrivals;
  if (!lock->engine->room_count || !rlk_queue_is_used(lock) || (room = rlk_room_of(lock, now)) == NULL)
    return RLK_TURN_NONE;
  rlk_round_clear(lock);
  if (rlk_room_alike(room->first, lock)) {
    rlk_room_enter(room, lock);
    return stand_behind(lock, now);
  }
  if (now >= room->contended_until_ns || home_of(lock, now) < 0 || RLK_MUTANT(QUEUE_JUMPER))
    return RLK_TURN_NONE;
  rlk_room_enter(room, lock);
  return ask_for_place(lock, now);
}

static void note_vain(redlock_lock *lock, int64_t now)
{
  if (lock->wait.free_ns == RLK_NEVER)
    return;
  lock->wait.in_vain++;
  lock->wait.free_ns = now;
}

/* Only attempts that failed because others hold the lock stand in the queue. One that fails for another reason may
 * fail again and again: it makes way, tries beside the queue, and joins again at the end. */
static int is_in_the_way(const redlock_lock *lock)
{
  return rlk_is_outage(lock->attempt.verdict) && !RLK_MUTANT(BLOCKS_THE_QUEUE);
}

static void make_way(redlock_lock *lock, int64_t now)
{
  if (lock->wait.place)
    rlk_queue_forget(lock);
  lock->attempt.arrived_ns = now;
}

enum rlk_turn rlk_queue_wait(redlock_lock *lock, int64_t now)
{
  struct rlk_room *room;
  redlock_lock *next;
  int has_home;
  if (lock->key->count > 1 && !RLK_MUTANT(WAITS_AT_THE_FIRST))
    rlk_further_choose(lock);
  has_home = rlk_queue_is_used(lock) && home_of(lock, now) >= 0;
  if (has_home && !lock->wait.room && (room = rlk_room_make(lock->engine, lock->wait.key, now)) != NULL)
    rlk_room_enter(room, lock);
  if (lock->wait.room && has_home && !rlk_room_leads(lock))
    return stand_behind(lock, now);
  next = lock->wait.room ? rlk_room_alike(lock->wait.next, lock) : NULL;
  if (has_home && !lock->wait.place && next && next->wait.place)
    take_over(lock, next, now);
  else if (lock->wait.place)
    note_vain(lock, now);
  if (is_in_the_way(lock))
    make_way(lock, now);
  if (!has_home || !lock->wait.room || is_in_the_way(lock))
    return RLK_TURN_NONE;
  if (lock->key->count > 1 && !RLK_MUTANT(WAITS_AT_THE_FIRST))
    rlk_further_note(lock);
  if (!lock->wait.place || lock->wait.is_told)
    return ask_for_place(lock, now);
  rlk_further_ask(lock, now);
  rlk_listener_want(&lock->engine->net.nodes[lock->wait.home], now);
  return sleep_until(lock, now + rlk_backoff_pause_ns(lock));
}

void rlk_queue_hinted(redlock_lock *lock, int64_t now)
{
  int64_t free_ns = rlk_backoff_hint_ns(lock, now);
  if (!lock->wait.place || !rlk_room_leads(lock) || free_ns == RLK_NEVER || RLK_MUTANT(END_IGNORED))
    return;
  if (free_ns + turn_ns(lock) < lock->attempt.wake_ns)
    sleep_until(lock, free_ns + turn_ns(lock));
}

enum rlk_turn rlk_queue_timer(redlock_lock *lock, int64_t now)
{
  if (!rlk_room_leads(lock))
    return stand_behind(lock, now);
  if (lock->op.phase == RLK_ASKING_QUEUE || is_in_the_way(lock))
    return RLK_TURN_ATTEMPT; /* the home node is silent, or it waits beside the queue */
  return ask_for_place(lock, now);
}

void rlk_queue_leave(redlock_lock *lock)
{
  struct rlk_room *room = lock->wait.room;
  redlock_lock *heir;
  if (!room)
    return;
  rlk_holder_share(lock, room->first);
  heir = rlk_room_leads(lock) ? rlk_room_alike(lock->wait.next, lock) : NULL;
  rlk_room_leave(lock);
  rlk_further_leave(lock);
  leave_place(lock);
  if (lock->op.status != REDLOCK_OK)
    give_place_back(lock);
  if (heir && rlk_in_flight(heir))
    rlk_timer_set(&lock->engine->net.timers, &heir->op.timer, 0); /* its turn */
}

redlock_lock *rlk_queue_woken(struct rlk_engine *e, const char *text, int node, int64_t now)
{
  size_t name_size = strlen(e->queue_name);
  int is_question = strchr(text, '?') != NULL; /* the first may not have heard */
  uint64_t place = 0;
  redlock_lock *lock;
  enum rlk_turn turn = RLK_TURN_NONE;
  if (RLK_MUTANT(NOBODY_IS_WOKEN))
    return NULL;
  if (strncmp(text, e->queue_name, name_size) == 0 && (text[name_size] == ':' || text[name_size] == '/'))
    place = strtoull(text + name_size + 1, NULL, 10);
  lock = *placed_bucket(e, place);
  while (lock && lock->wait.place >> 1 != place >> 1) /* that of a further place may listen, or not */
    lock = lock->wait.next_placed;
  if (lock && is_question)
    rlk_further_question(lock, node);
  if (lock && rlk_room_is_trying(lock))
    lock->wait.is_told = 1; /* its finding may be older */
  else if (lock && lock->op.phase == RLK_SLEEPING && is_question)
    turn = ask_for_place(lock, now);
  else if (lock && !is_question && (lock->op.phase == RLK_SLEEPING || lock->op.phase == RLK_ASKING_QUEUE))
    turn = RLK_TURN_ATTEMPT;
  else if (!lock && (place == 0 || place >> 1 > e->places) && e->strays++ == 0)
    rlk_event_add(&e->net.events, RLK_EVENT_WARNING, node,
                  "wake-up for an unknown waiter; further ones are not reported");
  return turn == RLK_TURN_ATTEMPT ? lock : NULL;
}

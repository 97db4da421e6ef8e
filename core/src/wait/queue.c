#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "../base/macros.h"
#include "../base/mutant.h"
#include "../lock/backoff.h"
#include "../lock/kind.h"
#include "../lock/round.h"
#include "home.h"
#include "place.h"
#include "room.h"
#include "several.h"

#define MS RLK_NS_PER_MS
#define SPREAD_NS (10 * MS)       /* between waiters that would ask at the same moment, */
#define SPREAD_MAX_NS (1000 * MS) /* ... at most */
#define READER_NS (190 * MS)   /* so much later for each reader before it one asks all nodes if home has a leftover */
#define TRIPS 4                /* a wait of fewer round trips does without the queue */
#define RESOURCE_MAX 65536     /* longer ones are waited for without the queue */
#define VAIN_MAX_NS (100 * MS) /* an attempt in vain is followed by a pause of 1 ms, which doubles up to this */
#define VAIN_MAX 5             /* after so many, one that is pinned to a slot joins the queue again at the end */
#define CLEARED_MAX 1000       /* so many places one script clears away at most (node/scripts.c): more may be left */

/* ---- the waiters behind a leader ---- */

/* The leader's findings hold for the waiters behind it: an outage begins for them, too, or is over. */
static void learn(redlock_lock *lock, int verdict, int64_t now)
{
  rlk_note_outage(lock, rlk_is_outage(verdict), now);
  if (verdict != REDLOCK_TIMED_OUT)
    lock->attempt.verdict = verdict;
  rlk_round_set_timer(lock, RLK_NEVER);
}

/* Waits for the locks before it; only its deadline ends that. */
static enum rlk_turn stand_behind(redlock_lock *lock, int64_t now)
{
  learn(lock, rlk_room_leader(lock)->attempt.verdict, now);
  return rlk_sleep_until(lock, RLK_NEVER);
}

/* It began earlier than the one that has stood for the room until now. */
static void take_over(redlock_lock *lock, redlock_lock *from, int64_t now)
{
  struct rlk_place place = from->wait->place;
  rlk_place_hide(from);
  from->wait->place.number = 0;
  rlk_place_show(lock, place);
  lock->wait->home = from->wait->home;
  lock->wait->second = from->wait->second;
  lock->wait->spare_due_ns = from->wait->spare_due_ns;
  lock->wait->rank = from->wait->rank;
  lock->wait->in_vain = from->wait->in_vain;
  lock->wait->pause_until_ns = from->wait->pause_until_ns;
  lock->wait->told_ns = from->wait->told_ns;
  stand_behind(from, now);
}

/* Only a hint: a promise that is not kept gives the place back, too. */
static void leave_node(redlock_lock *lock, int node)
{
  if (node < 0 || !(lock->wait->place.at >> node & 1))
    return;
  rlk_place_leave(lock, node, 0);
  lock->wait->place.at &= ~(UINT64_C(1) << node);
}

static void give_place_back(redlock_lock *lock)
{
  if (!rlk_has_place(lock))
    return;
  if (lock->key->count > 1) {
    rlk_several_leave(lock);
    return;
  }
  leave_node(lock, lock->wait->home);
  leave_node(lock, lock->wait->second);
}

void rlk_queue_tell(const redlock_lock *leader, int64_t now)
{
  for (redlock_lock *lock = leader->wait->room ? leader->wait->next : NULL; lock; lock = lock->wait->next)
    if (lock->op.phase == RLK_SLEEPING && rlk_room_are_alike(lock, leader))
      learn(lock, leader->attempt.verdict, now);
}

void rlk_queue_init(struct rlk_engine *e)
{
  struct rlk_text name = rlk_text_in(e->waits->queue_name, sizeof e->waits->queue_name);
  struct rlk_text channel = rlk_text_in(e->net.channel, sizeof e->net.channel);
  rlk_claims_client(e, e->waits->queue_name); /* as its tokens begin: so its entry tells who waits */
  name.length = RLK_TOKEN_CLIENT_DIGITS;
  rlk_text_format(&name, "%04x", (unsigned)(rlk_net_seed(&e->net) & 0xffff));
  rlk_text_add(&channel, RLK_STRING(&e->net, KEY_PREFIX));
  rlk_text_add(&channel, "libredlock:w:");
  rlk_text_add(&channel, e->waits->queue_name);
}

/* ---- what a lock has of this ---- */

struct rlk_wait *rlk_wait_new(void)
{
  struct rlk_wait *wait = malloc(sizeof *wait); /* glibc's calloc takes nothing from the cache of the thread */
  if (wait)
    *wait = (struct rlk_wait){0};
  return wait;
}

void rlk_wait_forget_parts(struct rlk_wait *wait)
{
  free(wait->parts);
  wait->parts = NULL;
}

void rlk_wait_free(struct rlk_wait *wait)
{
  if (wait)
    free(wait->parts);
  free(wait);
}

/* ---- the place on two nodes ---- */

/* The home node, of several resources that of the first whose queue can be used, if a majority can be asked; else -1.
 */
static int home_of(const redlock_lock *lock, int64_t now)
{
  int home = -1;
  for (int i = 0; home < 0 && i < lock->key->count && rlk_home_has_majority(lock, now); i++)
    home = rlk_room_home(lock, rlk_key_part(lock->key, i), now);
  return home;
}

static enum rlk_turn ask(redlock_lock *lock, int64_t now)
{
  struct rlk_node *home = &lock->engine->net.nodes[lock->wait->home];
  int64_t patience_ns = rlk_node_patience_ns(home, &lock->op.asked);
  if (rlk_place_ask_at(lock, lock->wait->home, &rlk_row_place, 0, now) != 0)
    return RLK_TURN_ATTEMPT;
  if (lock->wait->second >= 0 && now >= lock->wait->spare_due_ns) {
    lock->wait->spare_due_ns = now + RLK_ASK_NS;
    rlk_place_ask_at(lock, lock->wait->second, &rlk_row_spare_place, 0, now);
  }
  lock->wait->told_ns = RLK_NEVER;
  lock->op.phase = RLK_ASKING_QUEUE;
  lock->round.is_tight = 0;
  rlk_round_set_timer(lock, now + (patience_ns > RLK_LATE_NS ? patience_ns : RLK_LATE_NS));
  return RLK_TURN_WAIT;
}

/* A client that finds the first node of the order late has the second for its home, and the first for its second place,
 * which it takes at once: it meets the others there. Those take theirs only if they wait for long; most do not, and it
 * would cost the nodes time. */
static void choose_second(redlock_lock *lock, int home, int64_t now)
{
  int second = rlk_home_second(lock, lock->key, home, now);
  if (second >= 0 && now < lock->engine->peers[second].queue_again_ns)
    second = -1;
  if (lock->wait->home != home && lock->wait->home != second)
    leave_node(lock, lock->wait->home);
  if (lock->wait->second != home && lock->wait->second != second)
    leave_node(lock, lock->wait->second);
  if (lock->wait->second != second)
    lock->wait->spare_due_ns =
        second >= 0 && rlk_home_is_above(lock, second, home) ? now : lock->wait->arrived_ns + RLK_ASK_NS;
  lock->wait->home = home;
  lock->wait->second = second;
}

/* It is the turn of this client, which will hear of the release by itself: the nodes need not know who is next. That
 * is one lock: those on other terms have places, lest one that the nodes refuse hold them up. */
static int is_behind_ours(const redlock_lock *lock, int64_t now)
{
  const struct rlk_room *room = lock->wait->room;
  return room && room->first == lock && !rlk_has_place(lock) && now < room->ours_until_ns &&
         !rlk_heard(lock, 1, RLK_CONTENDED_NS, now);
}

/* The first of the room asks for its place, or, where there is no queue, for the lock. */
static enum rlk_turn ask_for_place(redlock_lock *lock, int64_t now)
{
  int home = home_of(lock, now);
  if (home >= 0 && is_behind_ours(lock, now))
    return rlk_sleep_until(lock, lock->wait->room->ours_until_ns);
  if (home >= 0 && !lock->claim)
    lock->claim = rlk_claim_new(lock); /* carries the answer; its token is never sent */
  if (home < 0 || !lock->claim)
    return RLK_TURN_ATTEMPT;
  if (!rlk_has_place(lock)) {
    rlk_place_take(lock);
    lock->wait->home = lock->wait->second = -1;
  }
  if (home != lock->wait->home)
    lock->wait->rank = (struct rlk_rank){.before = 1, .changed_ns = now};
  choose_second(lock, home, now);
  lock->round.number++;
  return ask(lock, now);
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

static void note_key(redlock_lock *lock, int64_t until_ns)
{
  lock->votes[lock->wait->home] = until_ns ? RLK_BUSY : RLK_FREE;
  lock->node_answers[lock->wait->home].until_ns = until_ns;
  if (until_ns)
    lock->wait->in_vain = 0;
}

/* When it asks again: after a pause, when the key ends that is there now, or when the time of one is over that has been
 * woken and has not taken what is free. Those behind leave a moment to those before them. */
static int64_t next_question_ns(const redlock_lock *lock, int64_t until_ns, int64_t now)
{
  int64_t at_ns =
      rlk_smaller(now + rlk_rank_pause_ns(lock, &lock->wait->rank, lock->wait->home, now), lock->wait->told_ns);
  int64_t end_ns = until_ns ? until_ns : now + RLK_WOKEN_NS;
  if (until_ns == RLK_NEVER || RLK_MUTANT(END_IGNORED))
    return at_ns;
  end_ns += MS + (lock->wait->rank.before <= 1 ? 0 : rlk_smaller(lock->wait->rank.before * SPREAD_NS, SPREAD_MAX_NS));
  return rlk_smaller(end_ns, at_ns);
}

/* Two that arrive together may each stand behind the other at home. Both have a place on the first of their nodes, and
 * whoever is first there goes ahead. */
static int is_first_above(const redlock_lock *lock)
{
  const struct rlk_place *place = &lock->wait->place;
  int second = lock->wait->second;
  return second >= 0 && ((place->at & place->first) >> second & 1) && rlk_home_is_above(lock, second, lock->wait->home);
}

/* The lock has been free for longer than the first of the queue takes to ask: it must be asleep. That says nothing
 * about how fast the queue moves once it wakes up, and a waiter that sleeps for as long would hold up others in turn:
 * the pace is learnt anew. */
static int is_stalled(const redlock_lock *lock, int64_t rank, int64_t until_ns, int64_t now)
{
  int64_t least_ns = SPREAD_NS + TRIPS * rlk_backoff_round_trip_ns(lock->engine);
  return rank > 1 && until_ns == 0 && now - lock->wait->rank.changed_ns > least_ns;
}

enum rlk_turn rlk_queue_placed(redlock_lock *lock, int64_t rank, int64_t until_ns, int64_t now)
{
  int is_first = rank <= 0 || is_first_above(lock) || RLK_MUTANT(QUEUE_JUMPER);
  int is_cleared = lock->wait->rank.before - rank >= CLEARED_MAX;
  if (lock->op.phase != RLK_ASKING_QUEUE)
    return RLK_TURN_NONE;
  if (is_stalled(lock, rank, until_ns, now))
    lock->wait->rank = (struct rlk_rank){.before = rank, .changed_ns = now};
  else
    rlk_rank_note(&lock->wait->rank, rlk_larger(rank, 0), now);
  note_key(lock, until_ns);
  if (is_first && until_ns == 0 && (now >= lock->wait->pause_until_ns || lock->wait->is_told))
    return RLK_TURN_ATTEMPT;
  note_busy(lock, now);
  if (rank <= 0 && (lock->wait->is_released || rlk_round_is_overdue(lock, now + rank * READER_NS)))
    return RLK_TURN_ATTEMPT;
  if (is_first && until_ns == 0)
    return rlk_sleep_until(lock, lock->wait->pause_until_ns);
  if (is_cleared && until_ns == 0)
    return rlk_sleep_until(lock, now + RLK_ASK_MIN_NS);
  return rlk_sleep_until(lock, next_question_ns(lock, until_ns, now));
}

enum rlk_turn rlk_queue_refused(redlock_lock *lock, int node, enum rlk_fault fault, int64_t now)
{
  int is_awaited = lock->op.phase == RLK_ASKING_QUEUE && node == lock->wait->home;
  if (fault == RLK_FAULT_LOST) /* it asks again, there if the connection is made again at once */
    return is_awaited ? rlk_sleep_until(lock, now + RLK_ASK_MIN_NS) : RLK_TURN_NONE;
  rlk_room_refused(lock, &lock->engine->net.nodes[node], fault, now);
  return is_awaited ? RLK_TURN_ATTEMPT : RLK_TURN_NONE;
}

/* ---- waiting ---- */

int rlk_queue_is_used(const redlock_lock *lock)
{
  return RLK_INT(&lock->options, QUEUE) && lock->attempt.max == INT64_MAX && !lock->wait->is_short &&
         lock->key->resource_size <= RESOURCE_MAX;
}

void rlk_queue_forget(redlock_lock *lock)
{
  give_place_back(lock);
  rlk_place_hide(lock);
  lock->wait->place.number = 0;
}

/* It would end while the lock is handed on, and disturb those who wait for longer. Several resources take longer, as
 * each of their queues is asked anew. */
static int is_short(const redlock_lock *lock, int64_t now)
{
  int64_t least_ns = TRIPS * rlk_backoff_round_trip_ns(lock->engine) + (lock->key->count > 1 ? 2 * RLK_ASK_MIN_NS : 0);
  return lock->op.deadline_ns - now < least_ns;
}

enum rlk_turn rlk_queue_begin(redlock_lock *lock, int64_t now)
{
  struct rlk_room *room = NULL;
  int is_known = rlk_heard(lock, 1, RLK_CONTENDED_NS, now) && !RLK_MUTANT(QUEUE_JUMPER);
  lock->wait->place.number = 0;
  lock->wait->in_vain = lock->wait->is_told = lock->wait->is_released = 0;
  lock->wait->pause_until_ns = 0;
  lock->wait->others.are_waiting = 0;
  lock->attempt.began_ns = lock->wait->arrived_ns = lock->round.asked_all_ns = now;
  lock->wait->arrival = ++lock->engine->waits->arrivals;
  lock->wait->is_short = is_short(lock, now);
  if ((!lock->engine->waits->room_count && !is_known) || !rlk_queue_is_used(lock))
    return RLK_TURN_NONE;
  rlk_round_clear(lock);
  if (lock->key->count == 1 && (room = rlk_room_find(lock->engine, lock->key, now)) != NULL &&
      rlk_room_alike(room->first, lock)) {
    rlk_room_enter(room, lock);
    return stand_behind(lock, now);
  }
  if (!is_known || home_of(lock, now) < 0)
    return RLK_TURN_NONE;
  if (lock->key->count > 1)
    return rlk_several_wait(lock, now);
  if ((room = rlk_room_make(lock->engine, lock->key, now)) == NULL)
    return RLK_TURN_NONE;
  rlk_room_enter(room, lock);
  return ask_for_place(lock, now);
}

/* Only attempts that failed because others hold the lock stand in the queue. One that fails for another reason may
 * fail again and again: it makes way, tries beside the queue, and joins again at the end. */
static int is_in_the_way(const redlock_lock *lock)
{
  return rlk_is_outage(lock->attempt.verdict) && !RLK_MUTANT(BLOCKS_THE_QUEUE);
}

/* Home says that its slot is free, while other nodes have a key left there: those behind it may want other slots. */
static int holds_others_up(const redlock_lock *lock)
{
  return RLK_INT(&lock->options, SLOT) >= 0 && lock->wait->in_vain >= VAIN_MAX;
}

static void make_way(redlock_lock *lock, int64_t now)
{
  if (rlk_has_place(lock))
    rlk_queue_forget(lock);
  lock->wait->arrived_ns = now;
}

/* Its turn had come, but others hold the lock, or votes were split. */
static void note_vain(redlock_lock *lock, int64_t now)
{
  int64_t pause = lock->wait->in_vain < 10 ? MS << lock->wait->in_vain : VAIN_MAX_NS;
  int64_t spread = (int64_t)(rlk_random(&lock->engine->net) % MS);
  lock->wait->in_vain++;
  lock->wait->pause_until_ns = now + rlk_smaller(pause, VAIN_MAX_NS) + spread;
}

enum rlk_turn rlk_queue_wait(redlock_lock *lock, int64_t now)
{
  int is_of_several = lock->key->count > 1, has_home = rlk_queue_is_used(lock) && home_of(lock, now) >= 0;
  struct rlk_room *room;
  redlock_lock *next;
  if (has_home && !is_of_several && !lock->wait->room && (room = rlk_room_make(lock->engine, lock->key, now)) != NULL)
    rlk_room_enter(room, lock);
  if (lock->wait->room && has_home && !rlk_room_leads(lock))
    return stand_behind(lock, now);
  next = lock->wait->room ? rlk_room_alike(lock->wait->next, lock) : NULL;
  if (has_home && !rlk_has_place(lock) && next && rlk_has_place(next))
    take_over(lock, next, now);
  else if (rlk_has_place(lock))
    note_vain(lock, now);
  if (is_in_the_way(lock) || holds_others_up(lock))
    make_way(lock, now);
  if (!has_home || is_in_the_way(lock))
    return RLK_TURN_NONE;
  if (is_of_several)
    return rlk_several_wait(lock, now);
  if (!lock->wait->room)
    return RLK_TURN_NONE;
  if (!rlk_has_place(lock))
    return ask_for_place(lock, now);
  return rlk_sleep_until(lock, rlk_smaller(lock->wait->pause_until_ns, lock->wait->told_ns));
}

enum rlk_turn rlk_queue_timer(redlock_lock *lock, int64_t now)
{
  if (is_in_the_way(lock))
    return RLK_TURN_ATTEMPT; /* it waits beside the queue */
  if (lock->key->count > 1)
    return rlk_several_step(lock, now);
  if (lock->wait->is_told)
    return RLK_TURN_ATTEMPT;
  return rlk_room_leads(lock) ? ask_for_place(lock, now) : stand_behind(lock, now);
}

static void wake_at(redlock_lock *lock, int64_t at_ns)
{
  rlk_timer_set(&lock->engine->net.timers, &lock->op.timer, at_ns);
}

/* The next one leads now. All that may hold beside it try at once. */
static void let_follow(redlock_lock *lock, redlock_lock *heir)
{
  int joins = lock->op.status == REDLOCK_OK && lock->kind->shares;
  if (heir && rlk_in_flight(heir))
    wake_at(heir, 0);
  for (; joins && heir; heir = rlk_room_alike(heir->wait->next, heir))
    if (rlk_in_flight(heir) && heir->op.phase == RLK_SLEEPING) {
      heir->wait->is_told = 1;
      wake_at(heir, 0);
    }
}

static int others_wait(const redlock_lock *lock)
{
  return lock->wait->others.are_waiting || (rlk_has_place(lock) && lock->wait->rank.before > 0);
}

/* Only the leader has asked the nodes: why it fails is why all fail that wait behind it. */
static void share_answers(redlock_lock *lock, redlock_lock *heir)
{
  if (!rlk_is_outage(lock->op.status) || !lock->wait->room)
    return;
  if (!rlk_room_leads(lock))
    rlk_round_learn(lock, rlk_room_leader(lock));
  else if (heir && heir->op.phase == RLK_SLEEPING)
    rlk_round_learn(heir, lock);
}

void rlk_queue_leave(redlock_lock *lock)
{
  struct rlk_room *room = lock->wait->room;
  redlock_lock *heir = room && rlk_room_leads(lock) ? rlk_room_alike(lock->wait->next, lock) : NULL;
  share_answers(lock, heir);
  if (room)
    rlk_room_leave(lock);
  if (room && lock->op.status == REDLOCK_OK && !lock->kind->shares && !lock->kind->many)
    room->ours_until_ns = lock->hold.acquired_ns + RLK_ASK_NS;
  if (lock->op.kind == REDLOCK_ACQUIRE && lock->op.status != REDLOCK_OK && others_wait(lock))
    rlk_heard_note(lock->engine, lock->key, 1, rlk_now(&lock->engine->net)); /* the next one asks the queue first */
  if (!rlk_has_place(lock) && !room)
    return;
  rlk_place_hide(lock);
  if (lock->op.status != REDLOCK_OK)
    give_place_back(lock);
  let_follow(lock, heir);
}

/* ---- wake-ups ---- */

/* Another node than home has woken it. Home does, too, unless somebody stands before it there, or the release did not
 * reach it. */
static void ask_soon(redlock_lock *lock, int is_release, int64_t now)
{
  lock->wait->is_released |= is_release && !rlk_room_is_trying(lock);
  if (lock->op.phase == RLK_SLEEPING && now + RLK_ASK_MIN_NS < lock->attempt.wake_ns)
    rlk_sleep_until(lock, now + RLK_ASK_MIN_NS);
}

/* A hint: its key may have been released, there or elsewhere. After an attempt in vain it makes the next one no sooner
 * than 5 ms behind that. */
static enum rlk_turn hear(redlock_lock *lock, int is_release, int64_t now)
{
  int64_t soon_ns = lock->round.asked_all_ns + RLK_ASK_MIN_NS;
  int is_pausing = now < lock->wait->pause_until_ns;
  lock->wait->told_ns = rlk_smaller(lock->wait->told_ns, now + RLK_ASK_NS); /* or the node takes its place away */
  if (rlk_room_is_trying(lock) || (is_release && is_pausing && now < soon_ns)) {
    lock->wait->is_told = 1; /* its finding may be older */
    if (lock->op.phase == RLK_SLEEPING)
      rlk_sleep_until(lock, soon_ns);
    return RLK_TURN_NONE;
  }
  return (is_pausing && !is_release) || lock->op.phase == RLK_IDLE ? RLK_TURN_NONE : RLK_TURN_ATTEMPT;
}

/* One before it has been woken, and should have taken the lock by then. */
static void ask_later(redlock_lock *lock, int64_t now)
{
  lock->wait->told_ns = rlk_smaller(lock->wait->told_ns, now + RLK_WOKEN_NS + SPREAD_NS);
  if (lock->op.phase == RLK_SLEEPING && lock->wait->told_ns < lock->attempt.wake_ns)
    rlk_sleep_until(lock, lock->wait->told_ns);
}

redlock_lock *rlk_queue_woken(struct rlk_engine *e, const char *text, int node, int64_t now)
{
  uint64_t number = rlk_place_number(e, text);
  redlock_lock *lock = rlk_place_named(e, number);
  enum rlk_turn turn = RLK_TURN_NONE;
  if (RLK_MUTANT(NOBODY_IS_WOKEN))
    return NULL;
  if (!lock && (number < 2 || number >> 1 > e->waits->places) && e->waits->strays++ == 0)
    rlk_event_add(&e->net.events, RLK_EVENT_WARNING, node,
                  "wake-up for an unknown waiter; further ones are not reported");
  if (!lock) {
    rlk_place_leave_again(e, node, number, now);
    return NULL;
  }
  if (lock->key->count > 1)
    turn = strchr(text, '?') ? RLK_TURN_NONE : rlk_several_woken(lock, node, !strchr(text, '!'), now);
  else if (strchr(text, '?'))
    ask_later(lock, now);
  else if (node != lock->wait->home)
    ask_soon(lock, !strchr(text, '!'), now);
  else
    turn = hear(lock, !strchr(text, '!'), now);
  return turn == RLK_TURN_ATTEMPT ? lock : NULL;
}

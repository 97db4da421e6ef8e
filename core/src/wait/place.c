#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../lock/asking.h"
#include "../lock/backoff.h"
#include "../lock/holder.h"
#include "../lock/kind.h"
#include "../lock/round.h"
#include "../node/listener.h"
#include "room.h"

#define QUEUE_PREFIX "libredlock:q:"
#define PROMISES_PREFIX "libredlock:p:"
#define CHANNEL_PREFIX "libredlock:w:"
#define BEHIND_MAX 999 /* its digits in a promise */
#define PAUSE_MIN_NS (RLK_NS_PER_MS / 2)
#define AGAIN_NS (50 * RLK_NS_PER_MS)  /* a node that cannot remove a place wakes it again at once */
#define GRACE_NS (100 * RLK_NS_PER_MS) /* a promise is kept by then, or the next in the queue goes ahead */

/* NULL when memory is out. */
static const struct rlk_queue_keys *keys_of(const struct rlk_net *net, struct rlk_key *key)
{
  const char *prefix = RLK_STRING(net, KEY_PREFIX), *resource = rlk_key_resource(key);
  struct rlk_queue_keys *keys = &key->queue;
  struct rlk_buffer out = {0};
  if (keys->text)
    return keys;
  if (rlk_buffer_reserve(&out, 4 * strlen(prefix) + 3 * key->resource_size + 256) != 0)
    return NULL;
  rlk_bulk_name(&out, prefix, "", resource, key->resource_size);
  keys->queue = out.end;
  rlk_bulk_name(&out, prefix, QUEUE_PREFIX, resource, key->resource_size);
  keys->promises = out.end;
  rlk_bulk_name(&out, prefix, PROMISES_PREFIX, resource, key->resource_size);
  keys->channels = out.end;
  rlk_bulk_name(&out, prefix, CHANNEL_PREFIX, "", 0);
  keys->size = out.end;
  keys->text = out.data;
  return keys;
}

/* The client's name, a slash if it shares, else a colon, what else it wants, and a number of its own, which is odd if
 * it listens there; empty for none (node/scripts.c). */
static void put_place(struct rlk_out *out, const struct rlk_place *place, int node)
{
  char name[64];
  struct rlk_text text = rlk_text_in(name, sizeof name);
  if (!place->number) {
    RLK_OUT_TEXT(out, "$0\r\n\r\n");
    return;
  }
  rlk_text_format(&text, "%s%c", rlk_engine_of(out->line->node->net)->waits->queue_name, place->shares ? '/' : ':');
  if (place->is_of_several)
    rlk_text_add(&text, "s");
  if (place->slot >= 0)
    rlk_text_format(&text, "p%d,", place->slot);
  rlk_text_format(&text, "%llu", (unsigned long long)(place->number << 1 | (place->listens >> node & 1)));
  rlk_out_bulk(out, name, text.length);
}

static void put_channels(struct rlk_out *out, const struct rlk_queue_keys *keys)
{
  rlk_out_bytes(out, keys->text + keys->channels, keys->size - keys->channels);
}

/* A script on the key of the lock, the two of its queue, and those of the other slots. */
static int begin(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script, int arguments,
                 struct rlk_key *key, int slots)
{
  const struct rlk_queue_keys *keys = keys_of(l->node->net, key);
  int more = slots > 1 ? slots - 1 : 0;
  size_t room = RLK_TOKEN_SIZE_MAX + 320 + (more ? rlk_slots_room(l->node->net, key, more) : 0);
  if (!keys || rlk_out_script(out, l, script, 3 + more, arguments, keys->size + room) != 0)
    return -1;
  rlk_out_bytes(out, keys->text, keys->channels);
  if (more)
    rlk_put_slots(out, key, slots);
  return 0;
}

/* What whoever is woken has: a second wake-up gives no more. */
static void put_woken(struct rlk_out *out)
{
  struct rlk_engine *e = rlk_engine_of(out->line->node->net);
  int64_t trips_ns = 3 * rlk_backoff_round_trip_ns(e);
  rlk_number_set(&e->waits->woken_text, (trips_ns > RLK_WOKEN_NS ? trips_ns : RLK_WOKEN_NS) / 1000);
  rlk_out_bytes(out, e->waits->woken_text.bulk, e->waits->woken_text.size);
}

/* Of several resources each has a home of its own. */
static int is_home(const struct rlk_node *n, struct rlk_key *key, int part, int home)
{
  return home != RLK_QUEUE_EACH || rlk_key_part(key, part)->queue_home == n->index;
}

/* When a waiter will ask again: later the more waiters stand before it. */
static void put_promise(struct rlk_out *out, const redlock_lock *lock, const struct rlk_node *n, int is_spare)
{
  int64_t first_ns = RLK_ASK_NS + rlk_node_patience_ns(n, &lock->op.asked) + GRACE_NS;
  rlk_out_number(out, (is_spare ? first_ns + RLK_ASK_NS : first_ns) / 1000); /* that is asked for less often */
  rlk_out_number(out, RLK_STEP_NS / 1000);
  rlk_out_number(out, (rlk_listener_is_ready(n) ? RLK_STEP_MAX_NS : RLK_POLL_MAX_NS) / 1000);
}

static void put_optional(struct rlk_out *out, int64_t value, int is_there)
{
  if (is_there)
    rlk_out_number(out, value);
  else
    RLK_OUT_TEXT(out, "$0\r\n\r\n");
}

/* For as long as a lock of several lets others pass, but not for long: it says so again in time. */
static int64_t open_ns(const redlock_lock *lock, int64_t now)
{
  int64_t left_ns = lock->wait->keeps_until_ns - now, most_ns = 2 * RLK_POLL_MAX_NS;
  if (lock->wait->keeps)
    return 0;
  return left_ns > 0 ? rlk_smaller(left_ns, most_ns) : most_ns;
}

static int ask_place(struct rlk_node *n, redlock_lock *lock, const struct rlk_ask *row, int part, int64_t now)
{
  struct rlk_key *key = rlk_key_part(lock->key, part);
  int64_t waited_us = RLK_MUTANT(PLACE_FORGOTTEN) ? 0 : (now - lock->wait->arrived_ns) / 1000;
  int is_of_several = lock->wait->place.is_of_several;
  struct rlk_request request = rlk_request_of(lock, lock->claim, row, now);
  struct rlk_out out;
  if (begin(&out, n->line, &rlk_script_ask, 10, key, rlk_lock_slots(lock)) != 0)
    return -1;
  put_place(&out, &lock->wait->place, n->index);
  rlk_out_number(&out, waited_us);
  put_promise(&out, lock, n, row == &rlk_row_spare_place);
  put_woken(&out);
  put_channels(&out, &key->queue);
  put_optional(&out, lock->wait->arrival_us, is_of_several);
  put_optional(&out, open_ns(lock, now) / 1000, is_of_several);
  rlk_out_number(&out, rlk_room_behind(lock, BEHIND_MAX));
  request.of.part = part;
  rlk_ask_end(&out, request);
  rlk_holder_show(n, lock->op.asked.ttl_ms, now);
  return 0;
}

int rlk_ask_is_queued(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  const struct rlk_queue_keys *keys[RLK_RESOURCES_MAX];
  struct rlk_request request = rlk_request_of(lock, lock->claim, &rlk_row_queued, now);
  struct rlk_out out;
  size_t room = 64;
  int count = 0;
  for (int i = 0; i < lock->key->count; i++)
    if (is_home(n, lock->key, i, lock->wait->others.home)) {
      if ((keys[count] = keys_of(n->net, rlk_key_part(lock->key, i))) == NULL)
        return -1;
      room += keys[count++]->size;
    }
  if (!count || rlk_out_begin(&out, n->line, room) != 0)
    return -1;
  rlk_out_array(&out, 1 + count);
  RLK_OUT_TEXT(&out, "$6\r\nEXISTS\r\n");
  for (int i = 0; i < count; i++)
    rlk_out_bytes(&out, keys[i]->text + keys[i]->queue, keys[i]->promises - keys[i]->queue);
  rlk_ask_end(&out, request);
  return 0;
}

static int put_leave(struct rlk_out *out, struct rlk_node *n, const struct rlk_place *place, struct rlk_key *key,
                     int slots, int releases)
{
  if (begin(out, n->line, &rlk_script_leave, 4, key, slots) != 0)
    return -1;
  put_place(out, place, n->index);
  put_channels(out, &key->queue);
  put_woken(out);
  rlk_out_bulk(out, "1", (size_t)releases);
  return 0;
}

static int ask_let_in(struct rlk_node *n, struct rlk_claim *claim, int part, int64_t now)
{
  struct rlk_out out;
  if (put_leave(&out, n, &claim->place, rlk_key_part(claim->key, part), claim->slots.count, 1) != 0)
    return -1;
  rlk_ask_end(&out, (struct rlk_request){.ask = &rlk_row_part, .claim = claim, .sent_ns = now, .of.part = part});
  return 0;
}

int rlk_ask_let_in(struct rlk_node *n, struct rlk_claim *claim, int64_t now)
{
  int home = claim->key->count > 1 ? RLK_QUEUE_EACH : RLK_QUEUE_ANYWHERE;
  for (int i = 0; i < claim->key->count; i++)
    if (is_home(n, claim->key, i, home) && ask_let_in(n, claim, i, now) != 0)
      return -1;
  return 0;
}

void rlk_leave_behind(struct rlk_node *n, struct rlk_claim *claim, int64_t now)
{
  if (rlk_hands_over(claim, n, now))
    rlk_ask_let_in(n, claim, now); /* without memory waiters find out by asking */
}

int rlk_put_hand_over(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim)
{
  if (begin(out, l, &rlk_script_hand_over, 4, claim->key, 0) != 0)
    return -1;
  rlk_put_token(out, claim);
  put_place(out, &claim->place, l->node->index);
  put_channels(out, &claim->key->queue);
  put_woken(out);
  return 0;
}

/* ---- its rank ---- */

void rlk_rank_note(struct rlk_rank *rank, int64_t before, int64_t now)
{
  if (before == rank->before)
    return;
  if (before < rank->before && rank->is_known)
    rank->step_ns = (now - rank->changed_ns) / (rank->before - before);
  rank->changed_ns = now;
  rank->before = before;
  rank->is_known = 1;
}

static int64_t within(int64_t value, int64_t least, int64_t top)
{
  return value < least ? least : value > top ? top : value;
}

/* With push, asking only covers a push that is lost. */
static int64_t pushed_pause_ns(const struct rlk_rank *rank, int64_t now)
{
  if (rank->before == 0) /* the holder may not wake the next */
    return within((now - rank->changed_ns) / 4, RLK_ASK_MIN_NS, RLK_ASK_NS);
  return within(RLK_STEP_NS * (rank->before - 1), RLK_ASK_NS, RLK_STEP_MAX_NS);
}

/* Soon if it is next, and the later the longer nothing has changed; but not later than it should be next at the rate at
 * which the queue has moved. */
static int64_t polled_pause_ns(const redlock_lock *lock, const struct rlk_rank *rank, int64_t now)
{
  int64_t top_ns = rlk_smaller(RLK_INT(&lock->options, RETRY_DELAY_MS) * RLK_NS_PER_MS, 2 * RLK_ASK_NS);
  int64_t same_ns = within((now - rank->changed_ns) / 4, PAUSE_MIN_NS, top_ns);
  if (rank->before <= 1) /* that one may be the holder, whose place goes with its release */
    return rlk_smaller(same_ns, RLK_ASK_NS);
  if (rank->step_ns)
    same_ns = within(rank->step_ns / 3, PAUSE_MIN_NS, top_ns);
  return within(same_ns * (rank->before - 1), PAUSE_MIN_NS, RLK_POLL_MAX_NS);
}

int64_t rlk_rank_pause_ns(const redlock_lock *lock, const struct rlk_rank *rank, int node, int64_t now)
{
  int is_pushed = node >= 0 && (lock->wait->place.listens >> node & 1) && /* it promised to ask as one that is woken */
                  rlk_listener_is_ready(&lock->engine->net.nodes[node]);
  return is_pushed ? pushed_pause_ns(rank, now) : polled_pause_ns(lock, rank, now);
}

/* ---- the place that a lock has ---- */

static redlock_lock **placed_bucket(struct rlk_engine *e, uint64_t number)
{
  return &e->waits->placed[number % RLK_ROOM_BUCKETS];
}

void rlk_place_hide(redlock_lock *lock)
{
  redlock_lock **at = placed_bucket(lock->engine, lock->wait->place.number);
  while (*at && *at != lock)
    at = &(*at)->wait->next_placed;
  if (*at)
    *at = lock->wait->next_placed;
}

void rlk_place_show(redlock_lock *lock, struct rlk_place place)
{
  redlock_lock **bucket = placed_bucket(lock->engine, place.number);
  rlk_place_hide(lock);
  lock->wait->place = place;
  lock->wait->next_placed = *bucket;
  *bucket = lock;
}

void rlk_place_take(redlock_lock *lock)
{
  int slot = rlk_lock_slots(lock) ? (int)RLK_INT(&lock->options, SLOT) : -1;
  rlk_place_show(lock, (struct rlk_place){.number = ++lock->engine->waits->places,
                                          .slot = slot,
                                          .shares = (uint8_t)lock->kind->shares,
                                          .is_of_several = lock->key->count > 1});
}

void rlk_place_mark(uint64_t *nodes, int node, int is_one)
{
  *nodes = (*nodes & ~(UINT64_C(1) << node)) | (uint64_t)is_one << node;
}

int rlk_place_ask_at(redlock_lock *lock, int node, const struct rlk_ask *row, int part, int64_t now)
{
  struct rlk_node *n = &lock->engine->net.nodes[node];
  lock->wait->place.at |= UINT64_C(1) << node;
  rlk_place_mark(&lock->wait->place.listens, node, rlk_listener_is_ready(n));
  if (lock->wait->place.is_of_several)
    lock->wait->parts[part].listens = rlk_listener_is_ready(n);
  rlk_listener_want(n, now);
  return ask_place(n, lock, row, part, now);
}

/* Without memory it is removed when its promise is broken. */
static void leave(struct rlk_node *n, const struct rlk_left *left)
{
  struct rlk_out out;
  if (n->state == RLK_NODE_READY && put_leave(&out, n, &left->place, left->key, left->slots, 0) == 0)
    rlk_out_end(&out, (struct rlk_request){.ask = &rlk_row_nothing, .sent_ns = rlk_now(n->net)});
}

const struct rlk_left *rlk_place_note_left(const redlock_lock *lock, int part)
{
  struct rlk_waits *waits = lock->engine->waits;
  struct rlk_left *left = &waits->left[waits->lefts++ % RLK_LEFT_KEPT];
  struct rlk_key *key = rlk_key_part(lock->key, part);
  key->users++;
  rlk_key_drop(left->key);
  *left = (struct rlk_left){.key = key, .place = lock->wait->place, .slots = rlk_lock_slots(lock)};
  return left;
}

void rlk_place_leave(const redlock_lock *lock, int node, int part)
{
  leave(&lock->engine->net.nodes[node], rlk_place_note_left(lock, part));
}

void rlk_place_leave_again(struct rlk_engine *e, int node, uint64_t number, int64_t now)
{
  for (int i = 0; i < RLK_LEFT_KEPT; i++) {
    struct rlk_left *left = &e->waits->left[i];
    if (!left->key || left->place.number != number >> 1 || now < left->again_ns)
      continue;
    left->again_ns = now + AGAIN_NS;
    rlk_place_mark(&left->place.listens, node, number & 1);
    leave(&e->net.nodes[node], left);
  }
}

enum rlk_turn rlk_sleep_until(redlock_lock *lock, int64_t at_ns)
{
  lock->op.phase = RLK_SLEEPING;
  lock->attempt.wake_ns = at_ns;
  rlk_round_set_timer(lock, at_ns);
  return RLK_TURN_WAIT;
}

uint64_t rlk_place_number(const struct rlk_engine *e, const char *text)
{
  size_t name_size = strlen(e->waits->queue_name);
  const char *at = text + name_size, *comma = strchr(text, ',');
  if (strncmp(text, e->waits->queue_name, name_size) != 0 || (*at != ':' && *at != '/'))
    return 0;
  at = comma ? comma + 1 : at + 1;
  return strtoull(*at == 's' ? at + 1 : at, NULL, 10);
}

redlock_lock *rlk_place_named(struct rlk_engine *e, uint64_t number)
{
  redlock_lock *lock = *placed_bucket(e, number >> 1);
  while (lock && lock->wait->place.number != number >> 1)
    lock = lock->wait->next_placed;
  return lock;
}

#include "place.h"

#include <string.h>

#include "../base/mutant.h"
#include "../node/listener.h"
#include "asking.h"
#include "kind.h"

#define QUEUE_PREFIX "libredlock:q:"
#define PROMISES_PREFIX "libredlock:p:"
#define CHANNEL_PREFIX "libredlock:w:"
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

/* The client's name and a number of its own, with a slash between them for one that shares; empty for none. */
static void put_place(struct rlk_out *out, uint64_t place, int shares)
{
  char name[48];
  struct rlk_text text = rlk_text_in(name, sizeof name);
  if (!place) {
    RLK_OUT_TEXT(out, "$0\r\n\r\n");
    return;
  }
  rlk_text_format(&text, "%s%c%llu", rlk_engine_of(out->line->node->net)->queue_name, shares ? '/' : ':',
                  (unsigned long long)place);
  rlk_out_bulk(out, name, text.length);
}

static void put_channels(struct rlk_out *out, const struct rlk_queue_keys *keys)
{
  rlk_out_bytes(out, keys->text + keys->channels, keys->size - keys->channels);
}

size_t rlk_slots_room(const struct rlk_net *net, const struct rlk_key *key, int count)
{
  return (size_t)count * (strlen(RLK_STRING(net, KEY_PREFIX)) + RLK_SLOT_NAME_SIZE + key->resource_size + 32);
}

void rlk_put_slots(struct rlk_out *out, const struct rlk_key *key, int count)
{
  const char *prefix = RLK_STRING(out->line->node->net, KEY_PREFIX);
  for (int i = 1; i < count; i++) {
    char name[RLK_SLOT_NAME_SIZE];
    rlk_slot_name(name, i);
    rlk_bulk_name(&out->line->out, prefix, name, rlk_key_resource(key), key->resource_size);
  }
}

/* A script on the key of the lock and the two of its queue. */
static int begin(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script, int arguments,
                 const struct rlk_queue_keys *keys)
{
  if (!keys || rlk_out_script(out, l, script, 3, arguments, keys->size + RLK_TOKEN_SIZE_MAX + 256) != 0)
    return -1;
  rlk_out_bytes(out, keys->text, keys->channels);
  return 0;
}

/* The same, and on the keys of all slots, if there are any. */
static int begin_open(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script, int arguments,
                      struct rlk_key *key, int slots)
{
  const struct rlk_queue_keys *keys = keys_of(l->node->net, key);
  int more = slots > 1 ? slots - 1 : 0;
  size_t room = RLK_TOKEN_SIZE_MAX + 256 + rlk_slots_room(l->node->net, key, more);
  if (!keys || rlk_out_script(out, l, script, 3 + more, arguments, keys->size + room) != 0)
    return -1;
  rlk_out_bytes(out, keys->text, keys->channels);
  rlk_put_slots(out, key, slots);
  return 0;
}

/* Of one of several resources, as far as that is known. */
static int is_home(const struct rlk_node *n, struct rlk_key *key, int part, int home)
{
  const struct rlk_key *alone = rlk_key_alone(key, part);
  return alone && (home == RLK_QUEUE_ANYWHERE || alone->queue_home == n->index);
}

struct rlk_promise rlk_promise_of(const redlock_lock *lock, const struct rlk_node *home)
{
  int64_t most_ns = rlk_listener_is_ready(home) ? RLK_STEP_MAX_NS : RLK_POLL_MAX_NS;
  return (struct rlk_promise){(RLK_STEP_NS + rlk_node_patience_ns(home, &lock->op.asked) + GRACE_NS) / 1000,
                              RLK_STEP_NS / 1000, most_ns / 1000};
}

static int ask_join(struct rlk_node *n, redlock_lock *lock, struct rlk_key *key, uint64_t place,
                    struct rlk_request request)
{
  const struct rlk_queue_keys *keys = keys_of(n->net, key);
  struct rlk_promise promise = rlk_promise_of(lock, n);
  int64_t waited_us = RLK_MUTANT(PLACE_FORGOTTEN) ? 0 : (request.sent_ns - lock->attempt.arrived_ns) / 1000;
  struct rlk_out out;
  if (lock->kind->many ? begin_open(&out, n->line, &rlk_script_stand, 6, key, rlk_lock_slots(lock)) != 0
                       : begin(&out, n->line, &rlk_script_join, 6, keys) != 0)
    return -1;
  put_place(&out, place, lock->kind->shares);
  rlk_out_number(&out, waited_us);
  rlk_out_number(&out, promise.first_us);
  rlk_out_number(&out, promise.step_us);
  rlk_out_number(&out, promise.steps_max_us);
  put_channels(&out, keys);
  rlk_ask_end(&out, request);
  return 0;
}

int rlk_ask_join(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  return ask_join(
      n, lock, lock->wait.key, lock->wait.place,
      (struct rlk_request){.ask = &rlk_row_join, .claim = lock->claim, .round = lock->round.number, .sent_ns = now});
}

int rlk_ask_join_part(struct rlk_node *n, redlock_lock *lock, int part, uint64_t place, int64_t now)
{
  struct rlk_key *key = rlk_key_alone(lock->key, part);
  return key ? ask_join(n, lock, key, place,
                        (struct rlk_request){
                            .ask = &rlk_row_join_part, .claim = lock->claim, .sent_ns = now, .of.part.number = part})
             : -1;
}

static int ask_is_queued(struct rlk_node *n, redlock_lock *lock, int part, int is_last, int64_t now)
{
  struct rlk_key *key = rlk_key_alone(lock->key, part);
  const struct rlk_queue_keys *keys = key ? keys_of(n->net, key) : NULL;
  struct rlk_out out;
  if (!keys || rlk_out_begin(&out, n->line, keys->size + 64) != 0)
    return -1;
  RLK_OUT_TEXT(&out, "*2\r\n$6\r\nEXISTS\r\n");
  rlk_out_bytes(&out, keys->text + keys->queue, keys->promises - keys->queue);
  rlk_ask_end(&out, (struct rlk_request){.ask = &rlk_row_queued,
                                         .claim = lock->claim,
                                         .round = lock->round.number,
                                         .sent_ns = now,
                                         .of.part = {part, is_last}});
  return 0;
}

/* Of several resources those whose home the node is, or may be. */
int rlk_ask_is_queued(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  int last = -1;
  if (lock->others.home != RLK_QUEUE_EACH && lock->key->count == 1)
    return ask_is_queued(n, lock, 0, 1, now);
  for (int i = 0; i < lock->key->count; i++)
    if (is_home(n, lock->key, i, lock->others.home))
      last = i;
  for (int i = 0; i <= last; i++)
    if (is_home(n, lock->key, i, lock->others.home) && ask_is_queued(n, lock, i, i == last, now) != 0)
      return -1;
  return last < 0 ? -1 : 0;
}

static int ask_leave(struct rlk_node *n, const redlock_lock *lock, struct rlk_key *key, uint64_t place)
{
  const struct rlk_queue_keys *keys = keys_of(n->net, key);
  struct rlk_out out;
  if (lock->kind->form ? begin_open(&out, n->line, &rlk_script_part, 2, key, rlk_lock_slots(lock)) != 0
                       : begin(&out, n->line, &rlk_script_leave, 2, keys) != 0)
    return -1;
  put_place(&out, place, lock->wait.shares);
  put_channels(&out, keys);
  rlk_out_end(&out, (struct rlk_request){.ask = &rlk_row_nothing, .sent_ns = rlk_now(n->net)});
  return 0;
}

int rlk_ask_leave(struct rlk_node *n, redlock_lock *lock)
{
  return ask_leave(n, lock, lock->wait.key, lock->wait.place);
}

int rlk_ask_leave_part(struct rlk_node *n, redlock_lock *lock, int part, uint64_t place)
{
  struct rlk_key *key = rlk_key_alone(lock->key, part);
  return key ? ask_leave(n, lock, key, place) : -1;
}

static int ask_part(struct rlk_node *n, struct rlk_claim *claim, struct rlk_key *key, int part, int64_t now)
{
  const struct rlk_queue_keys *keys = keys_of(n->net, key);
  struct rlk_out out;
  if (begin_open(&out, n->line, &rlk_script_part, 2, key, claim->slots.count) != 0)
    return -1;
  put_place(&out, claim->place, claim->place_shares);
  put_channels(&out, keys);
  rlk_ask_end(&out, (struct rlk_request){.ask = &rlk_row_part, .claim = claim, .sent_ns = now, .of.part.number = part});
  return 0;
}

int rlk_ask_part(struct rlk_node *n, struct rlk_claim *claim, int64_t now)
{
  if (claim->key->count == 1)
    return ask_part(n, claim, claim->key, 0, now);
  for (int i = 0; i < claim->key->count; i++)
    if (is_home(n, claim->key, i, RLK_QUEUE_EACH) && ask_part(n, claim, rlk_key_alone(claim->key, i), i, now) != 0)
      return -1;
  return 0;
}

int rlk_put_hand_over(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim)
{
  const struct rlk_queue_keys *keys = keys_of(l->node->net, claim->key);
  if (begin(out, l, &rlk_script_hand_over, 3, keys) != 0)
    return -1;
  rlk_put_token(out, claim);
  put_place(out, claim->place, 0);
  put_channels(out, keys);
  return 0;
}

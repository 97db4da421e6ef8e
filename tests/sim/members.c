/* redis.call on hashes and sorted sets. */
#include "calls.h"

#include <math.h>
#include <stdlib.h>

static const char no_float[] = "ERR value is not a valid float";

static int read_score(struct call *call, int index, int excludes, double *value)
{
  const char *at = call->arguments[index].bytes + excludes;
  char *end;
  *value = strtod(at, &end);
  if (end == call->arguments[index].bytes + call->arguments[index].size && end != at && !isnan(*value))
    return 0;
  call->error = no_float;
  return -1;
}

/* ---- hashes ---- */

static int add(struct call *call, struct object *object, double score, int index)
{
  const struct argument *argument = &call->arguments[index];
  if (argument->size > MEMBER_MAX)
    call_unknown(call);
  return object_add(object, score, argument->bytes, argument->size);
}

/* The fields of tests and scripts have numbers for values. */
void call_hset(struct call *call)
{
  struct object *object;
  int64_t value;
  int count = 0;
  if (call_live_as(call, 1, TYPE_HASH, &object) < 0)
    return;
  if (call->count % 2)
    call_unknown(call);
  object = call_make(call, 1, TYPE_HASH);
  for (int i = 2; i < call->count; i += 2)
    count += add(call, object, call_integer(call, i + 1, &value) == 0 ? (double)value : (double)NAN, i);
  call->error = NULL; /* what is no number only lies there */
  call_push_integer(call, count);
}

static int member_of(const struct call *call, const struct object *object, int index)
{
  return object ? object_index(object, call->arguments[index].bytes, call->arguments[index].size) : -1;
}

static double number_at(const struct call *call, const struct object *object, int index)
{
  if (isnan(object->members[index].score))
    call_unknown(call);
  return object->members[index].score;
}

void call_hexists(struct call *call)
{
  struct object *object;
  if (call_live_as(call, 1, TYPE_HASH, &object) >= 0)
    call_push_integer(call, member_of(call, object, 2) >= 0);
}

void call_hget(struct call *call)
{
  struct object *object;
  if (call_live_as(call, 1, TYPE_HASH, &object) < 0)
    return;
  int index = member_of(call, object, 2);
  if (index >= 0)
    call_push_score(call, number_at(call, object, index));
  else
    call_push_nil(call);
}

void call_hgetall(struct call *call)
{
  struct object *object;
  if (call_live_as(call, 1, TYPE_HASH, &object) < 0)
    return;
  lua_newtable(call->lua);
  for (int i = 0; object && i < object->count; i++) {
    call_push(call, object->members[i].text, (size_t)object->members[i].size);
    lua_rawseti(call->lua, -2, 2 * i + 1);
    call_push_score(call, number_at(call, object, i));
    lua_rawseti(call->lua, -2, 2 * i + 2);
  }
}

void call_hincrby(struct call *call)
{
  struct object *object;
  int64_t value;
  if (call_live_as(call, 1, TYPE_HASH, &object) < 0 || call_integer(call, 3, &value) != 0)
    return;
  int index = member_of(call, object, 2);
  if (index >= 0)
    value += (int64_t)number_at(call, object, index);
  add(call, call_make(call, 1, TYPE_HASH), (double)value, 2);
  call_push_integer(call, value);
}

static void remove_members(struct call *call, enum type type)
{
  struct object *object;
  int count = 0;
  if (call_live_as(call, 1, type, &object) < 0)
    return;
  for (int i = 2; object && i < call->count; i++) {
    int index = member_of(call, object, i);
    if (index < 0)
      continue;
    if (object->is_queue)
      oracle_moves_up(call->request->world);
    object_remove(object, index);
    count++;
  }
  if (count)
    call_touch(call, object);
  call_push_integer(call, count);
}

void call_hdel(struct call *call)
{
  remove_members(call, TYPE_HASH);
}

void call_hrandfield(struct call *call)
{
  struct object *object;
  int64_t most;
  if (call_live_as(call, 1, TYPE_HASH, &object) < 0 || call_integer(call, 2, &most) != 0)
    return;
  lua_newtable(call->lua);
  for (int i = 0; object && i < object->count && i < most; i++) {
    call_push(call, object->members[i].text, (size_t)object->members[i].size);
    lua_rawseti(call->lua, -2, i + 1);
  }
}

/* ---- what no script of the core has a command for ---- */

static void add_to(struct call *call, enum type type, int index)
{
  struct object *object;
  if (call_live_as(call, 1, type, &object) < 0)
    return;
  object = call_make(call, 1, type);
  add(call, object, object->count, index);
  call_push_integer(call, object->count);
}

void call_add_to_list(struct call *call)
{
  add_to(call, TYPE_LIST, 2);
}

void call_add_to_set(struct call *call)
{
  add_to(call, TYPE_SET, 2);
}

void call_add_to_stream(struct call *call)
{
  add_to(call, TYPE_STREAM, 4);
}

/* ---- sorted sets ---- */

/* ZADD key XX score member, or ZADD key score member ... */
void call_zadd(struct call *call)
{
  struct object *object;
  double score;
  int only_there = call_says(call, 2, "XX"), count = 0;
  if (call->count % 2 != only_there || (only_there && call->count != 5))
    call_unknown(call);
  for (int i = 2 + only_there; i < call->count; i += 2)
    if (read_score(call, i, 0, &score) != 0 || call_live_as(call, 1, TYPE_ZSET, &object) < 0)
      return;
  for (int i = 2 + only_there; i < call->count && !(only_there && member_of(call, object, 4) < 0); i += 2) {
    read_score(call, i, 0, &score);
    count += add(call, call_make(call, 1, TYPE_ZSET), score, i + 1);
  }
  call_push_integer(call, count);
}

void call_zcard(struct call *call)
{
  struct object *object;
  if (call_live_as(call, 1, TYPE_ZSET, &object) >= 0)
    call_push_integer(call, object ? object->count : 0);
}

void call_zrem(struct call *call)
{
  remove_members(call, TYPE_ZSET);
}

void call_zscore(struct call *call)
{
  struct object *object;
  if (call_live_as(call, 1, TYPE_ZSET, &object) < 0)
    return;
  int index = member_of(call, object, 2);
  if (index >= 0)
    call_push_score(call, object->members[index].score);
  else
    call_push_nil(call);
}

void call_zrank(struct call *call)
{
  struct object *object;
  if (call_live_as(call, 1, TYPE_ZSET, &object) < 0)
    return;
  int index = member_of(call, object, 2);
  if (index >= 0)
    call_push_integer(call, index);
  else
    call_push_nil(call);
}

/* ZRANGE key first last [WITHSCORES] */
void call_zrange(struct call *call)
{
  struct object *object;
  int64_t first, last, at = 0;
  int scores = call_says(call, 4, "WITHSCORES");
  if (call->count == 5 && !scores)
    call_unknown(call);
  if (call_integer(call, 2, &first) != 0 || call_integer(call, 3, &last) != 0 ||
      call_live_as(call, 1, TYPE_ZSET, &object) < 0)
    return;
  int64_t count = object ? object->count : 0;
  first = first < 0 ? first + count : first;
  last = last < 0 ? last + count : last;
  lua_newtable(call->lua);
  for (int64_t i = first < 0 ? 0 : first; i <= last && i < count; i++) {
    call_push(call, object->members[i].text, (size_t)object->members[i].size);
    lua_rawseti(call->lua, -2, (int)++at);
    if (!scores)
      continue;
    call_push_score(call, object->members[i].score);
    lua_rawseti(call->lua, -2, (int)++at);
  }
}

struct span {
  double low, high;
  int without_low, without_high;
};

static int read_span(struct call *call, struct span *span)
{
  span->without_low = call->arguments[2].bytes[0] == '(';
  span->without_high = call->arguments[3].bytes[0] == '(';
  if (read_score(call, 2, span->without_low, &span->low) == 0 &&
      read_score(call, 3, span->without_high, &span->high) == 0)
    return 0;
  call->error = "ERR min or max is not a float";
  return -1;
}

static int is_within(const struct span *span, double score)
{
  return (span->without_low ? score > span->low : score >= span->low) &&
         (span->without_high ? score < span->high : score <= span->high);
}

void call_zcount(struct call *call)
{
  struct object *object;
  struct span span;
  int count = 0;
  if (read_span(call, &span) != 0 || call_live_as(call, 1, TYPE_ZSET, &object) < 0)
    return;
  for (int i = 0; object && i < object->count; i++)
    count += is_within(&span, object->members[i].score);
  call_push_integer(call, count);
}

void call_zremrangebyscore(struct call *call)
{
  struct object *object;
  struct span span;
  int count = 0;
  if (read_span(call, &span) != 0 || call_live_as(call, 1, TYPE_ZSET, &object) < 0)
    return;
  for (int i = object ? object->count : 0; i-- > 0;)
    if (is_within(&span, object->members[i].score)) {
      object_remove(object, i);
      count++;
    }
  if (count)
    call_touch(call, object);
  call_push_integer(call, count);
}

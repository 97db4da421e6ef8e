/* Parsing: hiredis calls these functions for every reply. Nothing is allocated but the room of the longest text. */
#include <string.h>

#include "reply.h"

#define NESTING_MAX 7 /* the servers nest arrays three deep at most; the parser's stack may grow */

/* The function that returns this stops the parser. */
static void *fail(struct rlk_reply *reply, enum rlk_why why, const char *words)
{
  reply->why = why;
  reply->fault = words;
  return NULL;
}

static int is_inner(const redisReadTask *task)
{
  return task->parent != NULL;
}

/* An element of the array that is the reply. */
static void element(struct rlk_reply *reply, const redisReadTask *task, int is_id)
{
  if (task->parent->parent)
    return;
  reply->elements++;
  reply->is_id = is_id;
}

static void *keep_text(struct rlk_reply *reply, const char *bytes, size_t size)
{
  reply->text.start = reply->text.end = 0;
  if (size > RLK_REPLY_SIZE_MAX)
    return fail(reply, RLK_WHY_MISFIT, "a reply too large");
  if (rlk_buffer_reserve(&reply->text, size + 1) != 0)
    return fail(reply, RLK_WHY_MEMORY, "out of memory");
  rlk_buffer_append(&reply->text, bytes, size);
  reply->text.data[size] = 0;
  return reply;
}

/* The unit of TIME's reply: seconds until the year 2286, or microseconds. */
static void note_decimal(struct rlk_reply *reply, const char *bytes, size_t size)
{
  int64_t value = 0;
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] < '0' || bytes[i] > '9')
      return;
    value = value * 10 + (bytes[i] - '0');
  }
  if (reply->decimals < 2)
    reply->decimal[reply->decimals] = value;
  reply->decimals++;
}

static void *parse_string(const redisReadTask *task, char *bytes, size_t size)
{
  struct rlk_reply *reply = task->privdata;
  if (is_inner(task)) {
    element(reply, task, !reply->is_id && size == 2 && memcmp(bytes, "id", 2) == 0);
    if (size >= 1 && size <= 10 && !task->parent->parent)
      note_decimal(reply, bytes, size);
    if (!task->parent->parent && reply->elements == 1)
      reply->is_message = size == 7 && memcmp(bytes, "message", 7) == 0;
    return reply->is_message ? keep_text(reply, bytes, size) : reply;
  }
  reply->type = task->type == REDIS_REPLY_ERROR    ? RLK_REPLY_ERROR
                : task->type == REDIS_REPLY_STATUS ? RLK_REPLY_STATUS
                                                   : RLK_REPLY_STRING;
  return keep_text(reply, bytes, size);
}

static void *array_of(const redisReadTask *task)
{
  struct rlk_reply *reply = task->privdata;
  int depth = 1;
  for (const redisReadTask *outer = task->parent; outer; outer = outer->parent)
    depth++;
  if (depth > NESTING_MAX)
    return fail(reply, RLK_WHY_MISFIT, "a reply nested too deeply");
  if (is_inner(task)) {
    element(reply, task, 0);
    return reply;
  }
  reply->type = RLK_REPLY_ARRAY;
  reply->count = reply->elements = reply->decimals = reply->is_id = reply->is_message = 0;
  reply->id = 0;
  return reply;
}

static void *parse_integer(const redisReadTask *task, long long value)
{
  struct rlk_reply *reply = task->privdata;
  if (!is_inner(task)) {
    reply->type = RLK_REPLY_INTEGER;
    reply->integer = value;
  } else if (!task->parent->parent) {
    if (reply->is_id)
      reply->id = value;
    if (reply->count < RLK_INTEGERS_MAX)
      reply->integers[reply->count++] = value;
    element(reply, task, 0);
  }
  return reply;
}

static void *parse_nil(const redisReadTask *task)
{
  struct rlk_reply *reply = task->privdata;
  if (is_inner(task))
    element(reply, task, 0);
  else
    reply->type = RLK_REPLY_NIL;
  return reply;
}

static void parse_free(void *object)
{
  (void)object;
}

#if HIREDIS_MAJOR >= 1
static void *parse_array(const redisReadTask *task, size_t count)
{
  (void)count;
  return array_of(task);
}

static void *parse_double(const redisReadTask *task, double value, char *text, size_t size)
{
  (void)value;
  return parse_string(task, text, size);
}

/* Only in replies to commands that are never sent. */
static void *parse_bool(const redisReadTask *task, int value)
{
  (void)value;
  return parse_nil(task);
}

static redisReplyObjectFunctions parse_functions = {parse_string, parse_array, parse_integer, parse_double,
                                                    parse_nil,    parse_bool,  parse_free};
#else
static void *parse_array(const redisReadTask *task, int count)
{
  (void)count;
  return array_of(task);
}

static redisReplyObjectFunctions parse_functions = {parse_string, parse_array, parse_integer, parse_nil, parse_free};
#endif

redisReader *rlk_reply_reader(struct rlk_reply *reply)
{
  redisReader *reader = redisReaderCreateWithFunctions(&parse_functions);
  reply->fault = NULL;
  if (reader)
    reader->privdata = reply;
  return reader;
}

int rlk_reply_is_answers(const struct rlk_reply *reply, int count)
{
  if (reply->type != RLK_REPLY_ARRAY || reply->elements != count || reply->count != count)
    return 0;
  for (int i = 0; i < count; i++)
    if (reply->integers[i] != 0 && reply->integers[i] != 1)
      return 0;
  return 1;
}

int rlk_reply_is_time(const struct rlk_reply *reply, int64_t *us)
{
  if (reply->type != RLK_REPLY_ARRAY || reply->elements != 2 || reply->decimals != 2 || reply->decimal[1] >= 1000000)
    return 0;
  *us = reply->decimal[0] * 1000000 + reply->decimal[1];
  return *us / 1000000 < 9000000000; /* in ns it fits, too */
}

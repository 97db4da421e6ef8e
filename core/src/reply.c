/* Parsing: hiredis calls these functions for every reply. Nothing is allocated but the room of the longest text. */
#include "core.h"

static void *parse_string(const redisReadTask *task, char *bytes, size_t size)
{
  struct rl_reply *reply = task->privdata;
  if (task->parent)
    return reply;
  reply->type = task->type == REDIS_REPLY_ERROR    ? RL_REPLY_ERROR
                : task->type == REDIS_REPLY_STATUS ? RL_REPLY_STATUS
                                                   : RL_REPLY_STRING;
  reply->text.start = reply->text.end = 0;
  if (size > RL_REPLY_SIZE_MAX || rl_buffer_reserve(&reply->text, size + 1) != 0)
    return NULL;
  rl_buffer_append(&reply->text, bytes, size);
  reply->text.data[size] = 0;
  return reply;
}

static void *array_of(const redisReadTask *task)
{
  struct rl_reply *reply = task->privdata;
  if (task->parent)
    return reply;
  reply->type = RL_REPLY_ARRAY;
  reply->count = 0;
  return reply;
}

static void *parse_integer(const redisReadTask *task, long long value)
{
  struct rl_reply *reply = task->privdata;
  if (!task->parent) {
    reply->type = RL_REPLY_INTEGER;
    reply->integer = value;
  } else if (!task->parent->parent && reply->count < RL_BATCH_MAX) {
    reply->integers[reply->count++] = value;
  }
  return reply;
}

static void *parse_nil(const redisReadTask *task)
{
  struct rl_reply *reply = task->privdata;
  if (!task->parent)
    reply->type = RL_REPLY_NIL;
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

static void *parse_bool(const redisReadTask *task, int value)
{
  return parse_integer(task, value);
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

redisReader *rl_reply_reader(struct rl_reply *reply)
{
  redisReader *reader = redisReaderCreateWithFunctions(&parse_functions);
  if (reader)
    reader->privdata = reply;
  return reader;
}

/* redis.call on a model server: the commands that the scripts of the core use, with the replies of Redis. Another one,
 * or another form of one, ends the simulator, so that nothing is tested by accident of an error reply. */
#include "calls.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRITES = 1, TAKES_MEMORY = 2 };

struct command {
  const char *name;
  int arguments_min, arguments_max, flags;
  void (*run)(struct call *call);
};

static struct request *running;
static int raised_line;
static char refused[256]; /* an error that holds the line */

const char call_wrong_type[] = "WRONGTYPE Operation against a key holding the wrong kind of value";
static const char no_integer[] = "ERR value is not an integer or out of range";
static const char out_of_memory[] = "OOM command not allowed when used memory > 'maxmemory'.";

/* ---- arguments and replies ---- */

int call_says(const struct call *call, int index, const char *word)
{
  const struct argument *argument = &call->arguments[index];
  size_t size = strlen(word);
  return index < call->count && argument->size == size && !strncasecmp(argument->bytes, word, size);
}

void call_unknown(const struct call *call)
{
  char text[256];
  size_t at = 0;
  for (int i = 0; i < call->count && at < sizeof text - 40; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", i ? " " : "",
                           call->arguments[i].size > 32 ? 32 : (int)call->arguments[i].size, call->arguments[i].bytes);
  world_fail(call->request->world, "a redis.call that the model server does not know: %s", text);
}

int call_integer(struct call *call, int index, int64_t *value)
{
  const struct argument *argument = &call->arguments[index];
  char text[24], *end;
  if (argument->size > 0 && argument->size < sizeof text) {
    memcpy(text, argument->bytes, argument->size);
    text[argument->size] = 0;
    *value = strtoll(text, &end, 10);
    if (!*end && text[0] != ' ' && text[0] != '+')
      return 0;
  }
  call->error = no_integer;
  return -1;
}

void call_push(struct call *call, const char *bytes, size_t size)
{
  lua_pushlstring(call->lua, bytes, size);
}

void call_push_integer(struct call *call, int64_t value)
{
  lua_pushnumber(call->lua, (lua_Number)value);
}

void call_push_nil(struct call *call)
{
  lua_pushboolean(call->lua, 0);
}

static void push_status(struct call *call, const char *text)
{
  lua_createtable(call->lua, 0, 1);
  lua_pushstring(call->lua, text);
  lua_setfield(call->lua, -2, "ok");
}

/* As Redis writes numbers that it is given or asked for: Lua's own digits would cut a score in microseconds. */
static size_t number_text(char text[40], double value)
{
  return (size_t)snprintf(text, 40, "%.17g", value);
}

static size_t digits(char text[40], double value)
{
  int64_t whole = (int64_t)value;
  size_t at = 40, size;
  uint64_t rest = whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole;
  if (!(fabs(value) < 9e15) || (double)whole != value || (!whole && signbit(value)))
    return number_text(text, value);
  do
    text[--at] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (whole < 0)
    text[--at] = '-';
  size = 40 - at;
  memmove(text, text + at, size);
  return size;
}

void call_push_score(struct call *call, double score)
{
  char text[40];
  call_push(call, text, digits(text, score));
}

/* ---- keys ---- */

static struct object *live(const struct call *call, int index)
{
  return keys_live(call->request, call->arguments[index].bytes, call->arguments[index].size);
}

int call_live_as(struct call *call, int index, enum type type, struct object **object)
{
  *object = live(call, index);
  if (*object && (*object)->type != type) {
    call->error = call_wrong_type;
    return -1;
  }
  return *object != NULL;
}

struct object *call_make(const struct call *call, int index, enum type type)
{
  struct object *object =
      keys_make(call->request->world, call->request->store, call->arguments[index].bytes, call->arguments[index].size);
  object->type = type;
  store_touch(call->request->store, object);
  return object;
}

void call_touch(const struct call *call, struct object *object)
{
  store_touch(call->request->store, object);
  if (object->type != TYPE_STRING && !object->count)
    store_delete(call->request->store, object);
}

static void set(const struct call *call, int index, const struct argument *value, int64_t expire_ms)
{
  struct object *object = call_make(call, index, TYPE_STRING);
  object_set_string(object, value->bytes, value->size);
  object->expire_ms = expire_ms;
}

static void call_exists(struct call *call)
{
  int count = 0;
  for (int i = 1; i < call->count; i++)
    count += live(call, i) != NULL;
  call_push_integer(call, count);
}

static void call_del(struct call *call)
{
  int count = 0;
  for (int i = 1; i < call->count; i++) {
    struct object *object = live(call, i);
    if (object)
      store_delete(call->request->store, object);
    count += object != NULL;
  }
  call_push_integer(call, count);
}

static void call_type(struct call *call)
{
  static const char *const names[] = {"none", "string", "hash", "zset", "list", "set", "stream"};
  const struct object *object = live(call, 1);
  push_status(call, names[object ? object->type : TYPE_NONE]);
}

static void call_pttl(struct call *call)
{
  const struct object *object = live(call, 1);
  call_push_integer(call, !object ? -2 : !object->expire_ms ? -1 : object->expire_ms - call->request->clock_ms);
}

static void expire_at(struct call *call, int64_t from_ms)
{
  int64_t value;
  struct object *object;
  if (call_integer(call, 2, &value) != 0)
    return;
  object = live(call, 1);
  if (object && from_ms + value <= call->request->clock_ms) {
    store_delete(call->request->store, object);
  } else if (object) {
    object->expire_ms = from_ms + value;
    call_touch(call, object);
  }
  call_push_integer(call, object != NULL);
}

static void call_pexpire(struct call *call)
{
  expire_at(call, call->request->clock_ms);
}

static void call_expire(struct call *call)
{
  int64_t value, clock_ms = call->request->clock_ms;
  struct object *object = live(call, 1);
  if (call_integer(call, 2, &value) != 0)
    return;
  if (value <= 0)
    call_unknown(call);
  if (object) {
    object->expire_ms = clock_ms + value * 1000;
    call_touch(call, object);
  }
  call_push_integer(call, object != NULL);
}

static void call_pexpireat(struct call *call)
{
  expire_at(call, 0);
}

/* ---- strings ---- */

static void call_get(struct call *call)
{
  struct object *object;
  int is_there = call_live_as(call, 1, TYPE_STRING, &object);
  if (is_there > 0)
    call_push(call, object->bytes, object->size);
  else if (!is_there)
    call_push_nil(call);
}

static void call_mget(struct call *call)
{
  lua_createtable(call->lua, call->count, 0);
  for (int i = 1; i < call->count; i++) {
    const struct object *object = live(call, i);
    if (object && object->type == TYPE_STRING)
      call_push(call, object->bytes, object->size);
    else
      call_push_nil(call);
    lua_rawseti(call->lua, -2, i);
  }
}

/* SET key value [NX | XX] [PX ms] [GET] */
static void call_set(struct call *call)
{
  int if_none = 0, if_there = 0, gets = 0;
  int64_t ttl_ms = 0;
  const struct object *object;
  for (int i = 3; i < call->count; i++) {
    if_none |= call_says(call, i, "NX");
    if_there |= call_says(call, i, "XX");
    gets |= call_says(call, i, "GET");
    if (call_says(call, i, "PX") && i + 1 < call->count) {
      if (call_integer(call, ++i, &ttl_ms) != 0)
        return;
      if (ttl_ms <= 0)
        call->error = "ERR invalid expire time in 'set' command";
    } else if (!call_says(call, i, "NX") && !call_says(call, i, "XX") && !call_says(call, i, "GET")) {
      call_unknown(call);
    }
  }
  object = live(call, 1);
  if (gets && object && object->type != TYPE_STRING)
    call->error = call_wrong_type;
  if (call->error)
    return;
  int is_set = !(if_none && object) && !(if_there && !object);
  if (gets && object)
    call_push(call, object->bytes, object->size);
  else if (gets || !is_set)
    call_push_nil(call);
  else
    push_status(call, "OK");
  if (is_set)
    set(call, 1, &call->arguments[2], ttl_ms ? call->request->clock_ms + ttl_ms : 0);
}

static void call_msetnx(struct call *call)
{
  int is_free = 1;
  if (call->count % 2 == 0)
    call_unknown(call);
  for (int i = 1; i < call->count; i += 2)
    is_free &= !live(call, i);
  for (int i = 1; is_free && i < call->count; i += 2)
    set(call, i, &call->arguments[i + 1], 0);
  call_push_integer(call, is_free);
}

static void call_getrange(struct call *call)
{
  struct object *object;
  int64_t first, last;
  if (call_integer(call, 2, &first) != 0 || call_integer(call, 3, &last) != 0 ||
      call_live_as(call, 1, TYPE_STRING, &object) < 0)
    return;
  if (first < 0 || last < first)
    call_unknown(call);
  int64_t end = object ? (int64_t)object->size : 0;
  end = end < last + 1 ? end : last + 1;
  call_push(call, object && first < end ? object->bytes + first : "", first < end ? (size_t)(end - first) : 0);
}

/* Of the first byte. */
static void call_setbit(struct call *call)
{
  struct object *object;
  int64_t at;
  char byte;
  if (call_integer(call, 2, &at) != 0 || call_live_as(call, 1, TYPE_STRING, &object) < 0)
    return;
  if (object || at < 0 || at > 7 || !call_says(call, 3, "1"))
    call_unknown(call);
  byte = (char)(1 << (7 - at));
  set(call, 1, &(struct argument){&byte, 1}, 0);
  call_push_integer(call, 0);
}

/* ---- the rest ---- */

static void call_time(struct call *call)
{
  lua_createtable(call->lua, 2, 0);
  call_push_score(call, (double)(call->request->clock_us / 1000000)); /* as text, too */
  lua_rawseti(call->lua, -2, 1);
  call_push_score(call, (double)(call->request->clock_us % 1000000));
  lua_rawseti(call->lua, -2, 2);
}

static void call_publish(struct call *call)
{
  const struct request *request = call->request;
  call_push_integer(call, network_publish(request->world, request->node->index, call->arguments[1].bytes,
                                          call->arguments[2].bytes, call->arguments[2].size));
}

static const struct command commands[] = {
    {"DEL", 1, ARGUMENTS_MAX, WRITES, call_del},
    {"EXISTS", 1, ARGUMENTS_MAX, 0, call_exists},
    {"EXPIRE", 2, 2, WRITES, call_expire},
    {"GET", 1, 1, 0, call_get},
    {"GETRANGE", 3, 3, 0, call_getrange},
    {"HDEL", 2, ARGUMENTS_MAX, WRITES, call_hdel},
    {"HEXISTS", 2, 2, 0, call_hexists},
    {"HGET", 2, 2, 0, call_hget},
    {"HGETALL", 1, 1, 0, call_hgetall},
    {"HINCRBY", 3, 3, WRITES | TAKES_MEMORY, call_hincrby},
    {"HRANDFIELD", 2, 2, 0, call_hrandfield},
    {"HSET", 3, ARGUMENTS_MAX, WRITES | TAKES_MEMORY, call_hset},
    {"LPUSH", 2, 2, WRITES | TAKES_MEMORY, call_add_to_list},
    {"MGET", 1, ARGUMENTS_MAX, 0, call_mget},
    {"MSETNX", 2, ARGUMENTS_MAX, WRITES | TAKES_MEMORY, call_msetnx},
    {"PEXPIRE", 2, 2, WRITES, call_pexpire},
    {"PEXPIREAT", 2, 2, WRITES, call_pexpireat},
    {"PTTL", 1, 1, 0, call_pttl},
    {"PUBLISH", 2, 2, 0, call_publish},
    {"RPUSH", 2, 2, WRITES | TAKES_MEMORY, call_add_to_list},
    {"SADD", 2, 2, WRITES | TAKES_MEMORY, call_add_to_set},
    {"SET", 2, 6, WRITES | TAKES_MEMORY, call_set},
    {"SETBIT", 3, 3, WRITES | TAKES_MEMORY, call_setbit},
    {"TIME", 0, 0, 0, call_time},
    {"TYPE", 1, 1, 0, call_type},
    {"XADD", 4, 4, WRITES | TAKES_MEMORY, call_add_to_stream},
    {"ZADD", 3, ARGUMENTS_MAX, WRITES | TAKES_MEMORY, call_zadd},
    {"ZCARD", 1, 1, 0, call_zcard},
    {"ZCOUNT", 3, 3, 0, call_zcount},
    {"ZRANGE", 3, 4, 0, call_zrange},
    {"ZRANK", 2, 2, 0, call_zrank},
    {"ZREM", 2, ARGUMENTS_MAX, WRITES, call_zrem},
    {"ZREMRANGEBYSCORE", 3, 3, WRITES, call_zremrangebyscore},
    {"ZSCORE", 2, 2, 0, call_zscore},
};

/* ---- calls ---- */

void commands_register(lua_State *lua)
{
  lua_newtable(lua);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    lua_pushlightuserdata(lua, (void *)&commands[i]);
    lua_setfield(lua, -2, commands[i].name);
  }
}

void commands_begin(struct request *request)
{
  running = request;
  request->has_written = 0;
}

void commands_push_error(lua_State *lua, const char *text)
{
  lua_createtable(lua, 0, 1);
  lua_pushstring(lua, text);
  lua_setfield(lua, -2, "err");
}

/* A number becomes text here. */
static void read_arguments(struct call *call, char texts[][40])
{
  int numbers = 0;
  for (int i = 0; i < call->count; i++) {
    struct argument *argument = &call->arguments[i];
    if (lua_type(call->lua, i + 1) == LUA_TNUMBER && numbers < 8) {
      argument->bytes = texts[numbers];
      argument->size = digits(texts[numbers], lua_tonumber(call->lua, i + 1));
      texts[numbers++][argument->size] = 0;
    } else if (lua_type(call->lua, i + 1) == LUA_TSTRING) {
      argument->bytes = lua_tolstring(call->lua, i + 1, &argument->size);
    } else {
      world_fail(running->world, "argument %d of a redis.call is no text, or more numbers than the model server takes",
                 i + 1);
    }
  }
}

static const struct command *command_of(const struct call *call)
{
  lua_pushvalue(call->lua, 1);
  lua_rawget(call->lua, lua_upvalueindex(1));
  const struct command *command = lua_touserdata(call->lua, -1);
  lua_pop(call->lua, 1);
  if (!command || call->count - 1 < command->arguments_min || call->count - 1 > command->arguments_max)
    call_unknown(call);
  return command;
}

/* What a server says that can not write. One that is out of memory lets a script go on that has begun to write. */
static const char *refusal(const struct request *request, const struct command *command)
{
  if (command->flags & WRITES && request->refuses_writes)
    return request->refuses_writes;
  return command->flags & TAKES_MEMORY && request->is_full && !request->has_written ? out_of_memory : NULL;
}

static int line_of(lua_State *lua)
{
  lua_Debug at;
  return lua_getstack(lua, 1, &at) && lua_getinfo(lua, "l", &at) ? at.currentline : 0;
}

static const char *run(lua_State *lua)
{
  static struct call call;
  char texts[8][40];
  const struct command *command;
  call.request = running;
  call.lua = lua;
  call.error = NULL;
  call.count = lua_gettop(lua);
  if (call.count < 1 || call.count > ARGUMENTS_MAX)
    world_fail(running->world, "a redis.call of %d arguments", call.count);
  read_arguments(&call, texts);
  command = command_of(&call);
  if ((call.error = refusal(running, command))) {
    if (!running->node->old)
      return call.error;
    snprintf(refused, sizeof refused, "@user_script: %d: -%s", line_of(lua), call.error);
    return refused; /* what Redis says of it before 7.0 */
  }
  if (running->world->tester)
    running->world->tester->count(running, command->name);
  running->has_written |= command->flags & WRITES;
  command->run(&call);
  return call.error;
}

int commands_raised_line(void)
{
  return raised_line;
}

int commands_pcall(lua_State *lua)
{
  const char *error = run(lua);
  if (error)
    commands_push_error(lua, error);
  return 1;
}

int commands_call(lua_State *lua)
{
  const char *error = run(lua);
  if (!error)
    return 1;
  raised_line = line_of(lua);
  commands_push_error(lua, error);
  return lua_error(lua);
}

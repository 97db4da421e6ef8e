/* Lua as servers run it: one state for all, in which a script finds its keys and arguments, redis.call and the plain
 * libraries, and can leave nothing behind. Its memory is the system's: a process that forks has no part in it. */
#include "script.h"

#include <ctype.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

enum { INSTRUCTIONS_MAX = 1000000 };

static lua_State *lua;
static const struct request *running;

static struct texts { /* KEYS or ARGV */
  int table, count;   /* where Lua keeps it; how many it has */
} keys_of_script, arguments_of_script;

/* ---- numbers ---- */

double __real_strtod(const char *text, char **end);
double __wrap_strtod(const char *text, char **end);

/* Whole numbers, of which scripts read many, at a tenth of the price. */
double __wrap_strtod(const char *text, char **end)
{
  uint64_t value = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9' && at < text + 16; at++)
    value = value * 10 + (uint64_t)(*at - '0');
  if (at == text || value > UINT64_C(1) << 53 || isalnum((unsigned char)*at) || *at == '.')
    return __real_strtod(text, end);
  if (end)
    *end = (char *)(uintptr_t)at;
  return (double)value;
}

/* ---- the state ---- */

static void *allocate(void *context, void *memory, size_t before, size_t size)
{
  (void)context;
  (void)before;
  if (size)
    return heap_realloc(memory, size);
  heap_free(memory);
  return NULL;
}

static void end_it(lua_State *state, lua_Debug *at)
{
  (void)state;
  (void)at;
  world_fail(running->world, "a script does not end: %d instructions", INSTRUCTIONS_MAX);
}

static int refuse_global(lua_State *state)
{
  return luaL_error(state, "Script attempted to access nonexistent global variable '%s'", luaL_checkstring(state, 2));
}

static int return_field(lua_State *state, const char *field)
{
  lua_createtable(state, 0, 1);
  lua_pushstring(state, luaL_checkstring(state, 1));
  lua_setfield(state, -2, field);
  return 1;
}

static int error_reply(lua_State *state)
{
  return return_field(state, "err");
}

static int status_reply(lua_State *state)
{
  return return_field(state, "ok");
}

static void add_redis(lua_State *state)
{
  lua_newtable(state);
  commands_register(state);
  lua_pushvalue(state, -1);
  lua_pushcclosure(state, commands_call, 1);
  lua_setfield(state, -3, "call");
  lua_pushcclosure(state, commands_pcall, 1);
  lua_setfield(state, -2, "pcall");
  lua_pushcfunction(state, error_reply);
  lua_setfield(state, -2, "error_reply");
  lua_pushcfunction(state, status_reply);
  lua_setfield(state, -2, "status_reply");
  lua_setglobal(state, "redis");
}

static void add_libraries(lua_State *state)
{
  static const struct {
    const char *name;
    lua_CFunction open;
  } libraries[] = {{"", luaopen_base},
                   {LUA_TABLIBNAME, luaopen_table},
                   {LUA_STRLIBNAME, luaopen_string},
                   {LUA_MATHLIBNAME, luaopen_math}};
  static const char *const absent[] = {"dofile", "loadfile", "print", "newproxy", "require", "module"};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    lua_pushcfunction(state, libraries[i].open);
    lua_pushstring(state, libraries[i].name);
    lua_call(state, 1, 0);
  }
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    lua_pushnil(state);
    lua_setglobal(state, absent[i]);
  }
}

static void add_texts(lua_State *state, const char *name, struct texts *texts)
{
  lua_newtable(state);
  lua_pushvalue(state, -1);
  lua_setglobal(state, name);
  *texts = (struct texts){luaL_ref(state, LUA_REGISTRYINDEX), 0};
}

static void guard_globals(lua_State *state)
{
  lua_pushvalue(state, LUA_GLOBALSINDEX);
  lua_newtable(state);
  lua_pushcfunction(state, refuse_global);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, refuse_global);
  lua_setfield(state, -2, "__newindex");
  lua_setmetatable(state, -2);
  lua_pop(state, 1);
}

static void open_state(void)
{
  lua = lua_newstate(allocate, NULL);
  if (!lua)
    abort();
  add_libraries(lua);
  add_redis(lua);
  add_texts(lua, "KEYS", &keys_of_script);
  add_texts(lua, "ARGV", &arguments_of_script);
  guard_globals(lua);
}

/* ---- replies ---- */

static void reply_line(struct request *request, char type, const char *text)
{
  server_reply(request, type == '-' ? "-" : "+");
  server_reply(request, text);
  server_reply(request, "\r\n");
}

static void reply(struct request *request, int depth);

/* An array ends at the first nil. */
static void reply_array(struct request *request, int depth)
{
  int count = 0;
  for (;; lua_pop(lua, 1)) {
    lua_rawgeti(lua, -1, count + 1);
    if (lua_isnil(lua, -1))
      break;
    count++;
  }
  lua_pop(lua, 1);
  server_reply_number(request, '*', count);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(lua, -1, i);
    reply(request, depth + 1);
  }
}

static const char *field(const char *name)
{
  const char *text;
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
  lua_pop(lua, 1);
  return text;
}

static void reply_table(struct request *request, int depth)
{
  const char *error = field("err"), *status = field("ok");
  if (depth > 8)
    world_fail(request->world, "a script returns tables within tables");
  if (error)
    reply_line(request, '-', error);
  else if (status)
    reply_line(request, '+', status);
  else
    reply_array(request, depth);
}

/* Takes what is on the stack. */
static void reply(struct request *request, int depth)
{
  size_t size;
  const char *text;
  switch (lua_type(lua, -1)) {
  case LUA_TSTRING:
    text = lua_tolstring(lua, -1, &size);
    server_reply_bulk(request, text, size);
    break;
  case LUA_TNUMBER: server_reply_number(request, ':', (int64_t)lua_tonumber(lua, -1)); break;
  case LUA_TTABLE: reply_table(request, depth); break;
  case LUA_TBOOLEAN:
    if (lua_toboolean(lua, -1)) {
      server_reply_number(request, ':', 1);
      break;
    } /* fall through */
  default: server_reply(request, "$-1\r\n");
  }
  lua_pop(lua, 1);
}

/* What redis.call has raised is the reply; anything else is a fault of the script. */
static void reply_error(struct request *request, const struct script *script)
{
  const char *error = lua_istable(lua, -1) ? field("err") : NULL;
  char text[512];
  if (!error && !request->is_served)
    world_fail(request->world, "a script failed: %s", lua_tostring(lua, -1));
  if (!error)
    snprintf(text, sizeof text,
             request->node->old ? "ERR Error running script (call to f_%2$s): %1$s" : "ERR %1$s script: %2$s",
             lua_tostring(lua, -1), script->sha);
  else if (request->node->old)
    snprintf(text, sizeof text, "ERR Error running script (call to f_%s): @user_script:%d: %s", script->sha,
             commands_raised_line(), error);
  else
    snprintf(text, sizeof text, "%s script: %s, on @user_script:%d.", error, script->sha, commands_raised_line());
  reply_line(request, '-', text);
  lua_pop(lua, 1);
}

/* ---- scripts ---- */

static int compile(struct request *request, struct script *script)
{
  size_t size;
  const char *text = mutate(request->world, script->text, script->size, &size);
  if (luaL_loadbuffer(lua, text, size, "@user_script") == 0) {
    script->compiled = luaL_ref(lua, LUA_REGISTRYINDEX);
    return 0;
  }
  if (!request->is_served)
    world_fail(request->world, "a script can not be compiled: %s", lua_tostring(lua, -1));
  reply_line(request, '-', "ERR Error compiling script");
  lua_pop(lua, 1);
  return -1;
}

/* No script can keep the tables of the one before: the same two serve all, with what a longer one has left taken out.
 */
static void set_texts(const struct request *request, struct texts *texts, int first, int count)
{
  lua_rawgeti(lua, LUA_REGISTRYINDEX, texts->table);
  for (int i = 0; i < count; i++) {
    const struct argument *argument = &request->arguments[first + i];
    lua_pushlstring(lua, argument->bytes, argument->size);
    lua_rawseti(lua, -2, i + 1);
  }
  for (int i = count; i < texts->count; i++) {
    lua_pushnil(lua);
    lua_rawseti(lua, -2, i + 1);
  }
  texts->count = count;
  lua_pop(lua, 1);
}

/* What redis.call would return, as the reply. */
void lua_command(struct request *request)
{
  if (!lua)
    open_state();
  running = request;
  commands_begin(request);
  lua_getglobal(lua, "redis");
  lua_getfield(lua, -1, "call");
  lua_remove(lua, -2);
  if (!lua_checkstack(lua, request->count))
    world_fail(request->world, "a command of %d arguments", request->count);
  for (int i = 0; i < request->count; i++)
    lua_pushlstring(lua, request->arguments[i].bytes, request->arguments[i].size);
  if (lua_pcall(lua, request->count, 1, 0) == 0) {
    reply(request, 0);
    return;
  }
  reply_line(request, '-', field("err"));
  lua_pop(lua, 1);
}

/* A command has ended in the midst of it: the next one finds another state. */
void lua_forget(void)
{
  lua = NULL;
  script_forget();
}

int lua_run(struct request *request, struct script *script)
{
  int64_t keys = server_number(request, 2);
  int failed;
  if (keys < 0 || keys > request->count - 3)
    world_fail(request->world, "a script with %d keys in %d arguments", (int)keys, request->count);
  if (!lua)
    open_state();
  running = request;
  if (!script->compiled && compile(request, script) != 0)
    return -1;
  commands_begin(request);
  set_texts(request, &keys_of_script, 3, (int)keys);
  set_texts(request, &arguments_of_script, 3 + (int)keys, request->count - 3 - (int)keys);
  lua_sethook(lua, end_it, LUA_MASKCOUNT, INSTRUCTIONS_MAX);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, script->compiled);
  failed = lua_pcall(lua, 0, 1, 0) != 0;
  if (failed)
    reply_error(request, script);
  else
    reply(request, 0);
  return failed ? -1 : 0;
}

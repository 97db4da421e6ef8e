/* script.h - what the files share that run scripts: Lua 5.1, as servers do. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include <lua.h>

#include "server.h"

/* ---- lua.c ---- */

struct script {
  char *text; /* as the client has sent it */
  size_t size;
  char sha[41];
  const struct role *role; /* what the oracle knows of it */
  int compiled;            /* where Lua keeps what it has made of it; 0: nothing yet */
};

/* Runs it with the keys and arguments of the request, from argument 2 on, and replies: 0; -1: by an error. */
int lua_run(struct request *request, struct script *script);

/* ---- commands.c ---- */

/* redis.call and redis.pcall; the second returns errors as tables, the first raises them. Their upvalue is the table
 * that commands_register leaves on the stack. */
int commands_call(lua_State *lua);
int commands_pcall(lua_State *lua);
int commands_raised_line(void); /* in which redis.call raised an error last */
void commands_register(lua_State *lua);
void commands_begin(struct request *request);
void commands_push_error(lua_State *lua, const char *text);

#endif

/* The scripts of the core on a model server, which runs them as they are sent. What the oracle has to know of each:
 * whose token it speaks for, and what its reply tells the client. */
#include "script.h"
#include "sha1.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPTS_MAX = 24 };

enum acts { ASKS, TAKES, KEEPS, GIVES }; /* with its token */

enum tells { /* its reply, of whether the token is there */
             NOTHING,
             FOR_ONE,   /* 1, or another number */
             FOR_EACH,  /* an array of these */
             FOR_ALL,   /* 1; -1 or 0, and the first key without it */
             OF_NUMBER, /* 1 or 2, and a number; 0 */
             OF_SLOT,   /* 1, and the number of the key; 0; 2, and the number of permits for which others took it */
             OF_MARKER
};

struct role {
  const char *name;
  const char *mark; /* what only its text has */
  enum acts acts;
  enum tells tells;
  int keys_min, keys_max;
  int beside;                /* of its keys so many, from the second on, are no locks */
  int arguments, token, ttl; /* how many, and the places of these, from 0; -1: it has none */
};

static const struct role roles[] = {
    {"release", "if v==ARGV[1] then return redis.call('DEL'", GIVES, NOTHING, 1, 1, 0, 1, 0, -1},
    {"extend", "r[i]=1", KEEPS, FOR_EACH, 1, ARGUMENTS_MAX, 0, -1, 1, 0},
    {"expire", "return redis.call('PEXPIRE',KEYS[1],ARGV[2])", KEEPS, FOR_ONE, 1, 1, 0, 2, 0, 1},
    {"proof", "ipairs({'GET','PTTL'", ASKS, NOTHING, 1, 1, 0, 0, -1, -1},
    {"place", "return {rank,ttl}", ASKS, NOTHING, 3, 2 + PERMITS, 2, 10, -1, -1},
    {"hand over", "and r+2 or r", GIVES, NOTHING, 3, 3, 2, 4, 0, -1},
    {"leave", "wake(ARGV[4]~='' and 0) and 2 or 0", ASKS, NOTHING, 3, 2 + PERMITS, 2, 4, -1, -1},
    {"register", "ARGV[2]..s..ARGV[4]", ASKS, OF_MARKER, 1, 1, 0, 4, -1, -1},
    {"claim", "'MSETNX'", TAKES, FOR_ALL, 1, KEYS_MAX, 0, 4, 0, 1},
    {"drop", ",dropped=", GIVES, NOTHING, 1, KEYS_MAX, 0, 2, 0, -1},
    {"look", "'ZCOUNT'", ASKS, NOTHING, 1, 1, 0, 0, -1, -1},
    {"form", "return 2+i", ASKS, NOTHING, 1, PERMITS, 0, 1, 0, -1},
    {"fence", "return {2,now}", TAKES, OF_NUMBER, 2, 2, 1, 4, 0, 1},
    {"raise", "n<tonumber(ARGV[2])", KEEPS, NOTHING, 2, 2, 1, 2, 0, -1},
    {"pick", "return {1,i}", TAKES, OF_SLOT, PERMITS, PERMITS, 0, 4, 0, 1},
};

static struct script scripts[SCRIPTS_MAX];
static int script_count;

/* ---- which there are ---- */

static int has_text(const struct argument *argument, const char *word)
{
  return memmem(argument->bytes, argument->size, word, strlen(word)) != NULL;
}

static const struct role *role_of(const struct argument *text)
{
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (has_text(text, roles[i].mark))
      return &roles[i];
  return NULL;
}

static int script_by_text(struct request *request, const struct argument *text)
{
  struct script *script;
  for (int i = 0; i < script_count; i++)
    if (server_is_text(text, scripts[i].text, scripts[i].size))
      return i;
  if (script_count == SCRIPTS_MAX && request->is_served) /* the first ones are never asked for again */
    script_count = 0;
  if (script_count == SCRIPTS_MAX)
    world_fail(request->world, "more scripts than the model server can hold");
  script = &scripts[script_count];
  free(script->text);
  *script = (struct script){.text = heap_realloc(NULL, text->size + 1), .size = text->size, .role = role_of(text)};
  memcpy(script->text, text->bytes, text->size);
  script->text[text->size] = 0;
  rlk_sha1_hex(text->bytes, text->size, script->sha);
  if (!script->role && !request->is_served)
    world_fail(request->world, "a script that the model server does not know: %.200s", script->text);
  return script_count++;
}

static int script_by_sha(const struct request *request, const struct argument *sha)
{
  for (int i = 0; i < script_count; i++)
    if (server_is_text(sha, scripts[i].sha, 40))
      return request->node->scripts >> i & 1 ? i : -1;
  return -1;
}

/* ---- whose token it is ---- */

struct run { /* of a script */
  struct request *request;
  const struct role *role;
  enum acts acts;
  int keys;     /* how many, from argument 3 on */
  int is_on;    /* a claim that goes on */
  size_t reply; /* where the reply begins */
};

static const struct argument *argument_of(const struct run *run, int index)
{
  return &run->request->arguments[3 + run->keys + index];
}

static const struct argument *token_of(const struct run *run, int key)
{
  return argument_of(run, run->role->token + (run->role->tells == FOR_EACH ? key : 0));
}

/* Of a key: of the lock whose it is. */
static int resource_of(const struct run *run, int key)
{
  const struct argument *name = &run->request->arguments[3 + key];
  return keys_resource(run->request->world, name->bytes, name->size);
}

static int are_keys_known(const struct run *run)
{
  const struct world *world = run->request->world;
  for (int i = 0; i < run->keys; i++) {
    const struct argument *name = &run->request->arguments[3 + i];
    int is_lock = i < 1 || i > run->role->beside;
    const char kind = run->role->beside == 1 ? 'f' : i == 1 ? 'q' : 'p';
    if (run->role->tells == OF_MARKER ? !marker_is_key(run->request, 3)
        : is_lock                     ? resource_of(run, i) < 0
                                      : keys_beside(world, kind, name->bytes, name->size) < 0)
      return 0;
  }
  return 1;
}

static int is_as_expected(const struct run *run)
{
  const struct role *role = run->role;
  int arguments = role->arguments < 0 ? 1 + run->keys : role->arguments;
  if (run->keys < role->keys_min || run->keys > role->keys_max || !are_keys_known(run) ||
      run->request->count != 3 + run->keys + arguments)
    return 0;
  if (role->ttl >= 0 && server_number(run->request, 3 + run->keys + role->ttl) <= 0)
    return 0;
  return role->token < 0 || token_of(run, 0)->size == TOKEN_SIZE;
}

static void speak(const struct run *run)
{
  struct request *request = run->request;
  const struct argument *token = run->role->token < 0 ? NULL : token_of(run, 0);
  char text[TOKEN_SIZE + 1] = "";
  switch (run->acts) {
  case TAKES:
    memcpy(text, token->bytes, TOKEN_SIZE);
    oracle_token(request->world, text, request->connection->life);
    network_note_set(request->connection, text);
    request->is_full |= world_refuses(request->world, server_number(request, 3 + run->keys + run->role->ttl));
    return;
  case GIVES:
    network_check_release(request->connection, token->bytes, request->size);
    server_check_speaker(request, token);
    return;
  case KEEPS:
    for (int i = 0; i < (run->role->tells == FOR_EACH ? run->keys : 1); i++)
      server_check_speaker(request, token_of(run, i));
    return;
  case ASKS: return;
  }
}

void server_check_speaker(const struct request *request, const struct argument *token)
{
  if (token->size == TOKEN_SIZE)
    oracle_speaks(request->world, token->bytes, request->connection->life);
}

/* A place moves up in the queue: whoever asks again stands anew. */
static void note_queue(const struct run *run)
{
  if (run->role->arguments == 10)
    oracle_moves_up(run->request->world);
}

/* ---- what the client is told ---- */

/* The number in a line of the reply. */
static int64_t number_in(const struct run *run, int line)
{
  const char *at = run->request->reply->bytes + run->reply,
             *end = run->request->reply->bytes + run->request->reply->end;
  for (; line > 0 && at; line--)
    if ((at = memchr(at, '\n', (size_t)(end - at))))
      at++;
  return at && at < end ? strtoll(at + 1, NULL, 10) : 0;
}

static void is_there(const struct run *run, int index)
{
  int resource = resource_of(run, index);
  const struct argument *token = token_of(run, index);
  struct key *key = &run->request->node->keys[resource];
  struct reader *reader = token->size == TOKEN_SIZE ? keys_reader(key, token->bytes) : NULL;
  if (reader)
    server_note_told(run->request, reader->links);
  else if (key->live && server_is_text(token, key->token, strlen(key->token)))
    server_note_told(run->request, key->links);
}

/* The client knows once it has read all of the reply. */
static void is_gone(const struct run *run, int index)
{
  const struct request *request = run->request;
  const struct argument *token = token_of(run, index);
  if (token->size == TOKEN_SIZE)
    backing_gone(request->connection, resource_of(run, index), token->bytes,
                 request->connection->replies_total + request->reply->end);
}

static void note_all(const struct run *run)
{
  int64_t first = number_in(run, 1);
  for (int i = 0; i < run->keys && first == 1; i++)
    is_there(run, i);
  if (first < 0 && number_in(run, 2) >= 1 && number_in(run, 2) <= run->keys)
    is_gone(run, (int)number_in(run, 2) - 1);
}

static void note_slot(const struct run *run)
{
  if (number_in(run, 1) == 2)
    world_violation(run->request->world, "permits: others have taken one of %d", (int)number_in(run, 2));
  else if (number_in(run, 1) == 1)
    is_there(run, (int)number_in(run, 2));
}

static void note_told(const struct run *run)
{
  switch (run->role->tells) {
  case FOR_ONE: number_in(run, 0) == 1 ? is_there(run, 0) : is_gone(run, 0); return;
  case FOR_EACH:
    for (int i = 0; i < run->keys; i++)
      number_in(run, 1 + i) == 1 ? is_there(run, i) : is_gone(run, i);
    return;
  case FOR_ALL: note_all(run); return;
  case OF_NUMBER:
    if (number_in(run, 1) > 0)
      is_there(run, 0);
    return;
  case OF_SLOT: note_slot(run); return;
  default: return;
  }
}

/* ---- running ---- */

int script_is_proof(const struct request *request)
{
  return request->count > 3 && has_text(&request->arguments[3], "libredlock:proof:");
}

static void run_role(struct request *request, struct script *script)
{
  struct run run = {request, script->role, script->role->acts, (int)server_number(request, 2), 0, request->reply->end};
  if (!is_as_expected(&run)) {
    world_violation(request->world, "a script with keys or arguments that the model does not know: %s", run.role->name);
    return;
  }
  if (run.role->tells == FOR_ALL && !server_is_text(argument_of(&run, 3), "1", 1))
    run.acts = KEEPS; /* a claim that goes on */
  if (run.role->ttl >= 0)
    marker_check_ttl(request, server_number(request, 3 + run.keys + run.role->ttl));
  speak(&run);
  note_queue(&run);
  if (lua_run(request, script) != 0)
    return;
  if (run.role->tells == OF_MARKER)
    marker_told(request);
  keys_look(request);
  if (!request->is_stray && request->reply->bytes[run.reply] != '-')
    note_told(&run);
}

void script_eval(struct request *request)
{
  int by_sha = is(request, 0, "EVALSHA");
  const struct argument *name = &request->arguments[1];
  if (holder_is_programs(request)) {
    holder_programs(request);
    return;
  }
  int index = by_sha ? script_by_sha(request, name) : script_by_text(request, name);
  if (index < 0) {
    server_reply(request, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return;
  }
  request->node->scripts |= UINT32_C(1) << index;
  if (script_is_proof(request) || request->is_served)
    lua_run(request, &scripts[index]);
  else
    run_role(request, &scripts[index]);
}

void script_print_all(void)
{
  for (int i = 0; i < script_count; i++)
    printf("%s, %zu bytes\n%s\n", scripts[i].role->name, scripts[i].size, scripts[i].text);
}

void script_forget(void)
{
  script_count = 0;
}

void script_flush(struct node *node)
{
  node->scripts = 0;
}

void script_command(struct request *request)
{
  int index = is(request, 1, "LOAD") && request->count == 3 ? script_by_text(request, &request->arguments[2]) : -1;
  if (index < 0) {
    world_violation(request->world, "a SCRIPT command that the model does not know");
    return;
  }
  request->node->scripts |= UINT32_C(1) << index;
  server_reply_bulk(request, scripts[index].sha, 40);
}

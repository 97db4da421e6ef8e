/* The scripts of the core on a model server: known by their text, run by their meaning. */
#include "server.h"
#include "sha1.h"

#include <stdio.h>
#include <string.h>

enum { SCRIPTS_MAX = 24 };

struct script {
  char *text;
  size_t size;
  char sha[41];
  int deletes, compares, extends, guards; /* what its text shows: DEL, GET, PEXPIRE, PTTL */
  int is_exact;                           /* it sets the end of one key: a PEXPIRE without a loop */
  int is_proof;                           /* it does all of this, on a key that nobody has */
  int joins, hands_over, leaves;          /* of those who wait */
  int registers, fences, raises;          /* of the restart guard; of fencing numbers */
  int claims, drops, looks, shares;       /* of sets and readers; a queue in which those who share stand, too */
  int picks;                              /* of permits */
};

static struct script scripts[SCRIPTS_MAX];
static int script_count;

static int find_text(const char *text, size_t size, const char *word)
{
  return memmem(text, size, word, strlen(word)) != NULL;
}

static int script_by_text(struct request *request, const struct argument *text)
{
  for (int i = 0; i < script_count; i++)
    if (server_is_text(text, scripts[i].text, scripts[i].size))
      return i;
  struct script *script = &scripts[script_count];
  if (script_count == SCRIPTS_MAX || !(script->text = heap_realloc(NULL, text->size + 1))) {
    world_violation(request->world, "more scripts than the model can hold");
    return -1;
  }
  memcpy(script->text, text->bytes, script->size = text->size);
  rlk_sha1_hex(text->bytes, text->size, script->sha);
  script->claims = find_text(text->bytes, text->size, "'MSETNX'");
  script->picks = find_text(text->bytes, text->size, "return {1,i}");
  script->drops = !script->picks && find_text(text->bytes, text->size, "'MGET'");
  script->looks = find_text(text->bytes, text->size, "'ZCOUNT'");
  script->shares = find_text(text->bytes, text->size, "open(h)");
  if (script->claims || script->drops || script->looks || script->picks)
    return script_count++;
  script->deletes = find_text(text->bytes, text->size, "'DEL'");
  script->extends = find_text(text->bytes, text->size, "'PEXPIRE'");
  script->compares = find_text(text->bytes, text->size, "'GET'");
  script->guards = find_text(text->bytes, text->size, "'PTTL'");
  script->is_exact = script->extends && !find_text(text->bytes, text->size, "for ");
  script->is_proof = script->deletes && script->extends;
  script->joins = find_text(text->bytes, text->size, "'ZADD'");
  script->hands_over = script->deletes && find_text(text->bytes, text->size, "'PUBLISH'");
  script->leaves = !script->joins && !script->hands_over && find_text(text->bytes, text->size, "'ZREM'");
  script->fences = find_text(text->bytes, text->size, "'NX'");
  script->raises = find_text(text->bytes, text->size, "n<tonumber");
  script->registers = find_text(text->bytes, text->size, "'SET'") && !script->fences && !script->raises;
  if (script->joins || script->leaves || script->registers || script->fences || script->raises)
    return script_count++;
  if ((script->deletes == script->extends && !script->is_proof) || (script->extends && !script->compares)) {
    world_violation(request->world, "a script that the model does not know: %.200s", script->text);
    return -1;
  }
  return script_count++;
}

static int script_by_sha(const struct request *request, const struct argument *sha)
{
  for (int i = 0; i < script_count; i++)
    if (server_is_text(sha, scripts[i].sha, 40))
      return request->node->scripts >> i & 1 ? i : -1;
  return -1;
}

void server_check_speaker(const struct request *request, const struct argument *token)
{
  if (token->size == TOKEN_SIZE)
    oracle_speaks(request->world, token->bytes, request->connection->life);
}

/* script 1 key token; or, with those who wait: script 3 key queue promises token place channels */
static void run_release(struct request *request, const struct script *script)
{
  int keys = script->hands_over ? 3 : 1;
  struct key *key =
      server_number(request, 2) == keys && request->count == (keys == 3 ? 9 : 5) ? server_key(request, 3) : NULL;
  const struct argument *token = &request->arguments[3 + keys];
  if (!key) {
    world_violation(request->world, "a release that the model does not know");
    return;
  }
  if (token->size == TOKEN_SIZE)
    network_check_release(request->connection, token->bytes, request->size);
  server_check_speaker(request, token);
  int deletes = key->live && (!script->compares || server_key_holds(key, token));
  if (deletes)
    server_free(request->world, key);
  server_reply_integer(request, deletes + (script->hands_over && waitqueue_hand_over(request) > 0 ? 2 : 0));
}

/* The client knows that a token is gone once it has read all of the reply. */
static void note_gone(struct request *request, int count)
{
  uint64_t reply_end = request->connection->replies_total + request->reply->end;
  for (int i = 0; i < count; i++) {
    const struct argument *token = &request->arguments[4 + count + i];
    const struct key *key = server_key(request, 3 + i);
    int resource = key ? (int)(key - request->node->keys) : -1;
    int is_ours = resource >= 0 && resource < request->world->key_count && token->size == TOKEN_SIZE;
    if (is_ours && !server_key_holds(key, token))
      backing_gone(request->connection, resource, token->bytes, reply_end);
  }
}

static void run_extend(struct request *request, const struct script *script)
{
  int64_t count = server_number(request, 2), ttl_ms = server_number(request, 3 + (int)count);
  if (count < 1 || request->count != 4 + 2 * count || ttl_ms <= 0) {
    world_violation(request->world, "an extension that is not: script n key.. ttl token..");
    return;
  }
  marker_check_ttl(request, ttl_ms);
  server_reply_number(request, '*', count);
  for (int i = 0; i < count; i++) {
    const struct argument *token = &request->arguments[4 + count + i];
    struct key *key = server_key(request, 3 + i);
    int confirms = key && server_key_holds(key, token);
    server_check_speaker(request, token);
    int64_t expire_ms = server_clock_ms(request->world, request->node) + ttl_ms;
    if (confirms)
      server_note_told(request, key);
    if (confirms && (!script->guards || key->expire_ms < expire_ms))
      server_end_key_at(request->node, key, expire_ms);
    server_reply_integer(request, confirms);
  }
  note_gone(request, (int)count);
}

static void run_expire(struct request *request)
{
  struct key *key = server_number(request, 2) == 1 && request->count == 6 ? server_key(request, 3) : NULL;
  int64_t ttl_ms = server_number(request, 5);
  int confirms;
  if (!key || ttl_ms <= 0) {
    world_violation(request->world, "a shortening that is not: script 1 key token ttl");
    return;
  }
  marker_check_ttl(request, ttl_ms);
  server_check_speaker(request, &request->arguments[4]);
  confirms = server_key_holds(key, &request->arguments[4]);
  if (confirms) {
    server_note_told(request, key);
    server_end_key_at(request->node, key, server_clock_ms(request->world, request->node) + ttl_ms);
    request->world->changes++;
  }
  server_reply_integer(request, confirms);
  if (!confirms && key >= request->node->keys && key < request->node->keys + request->world->key_count)
    backing_gone(request->connection, (int)(key - request->node->keys), request->arguments[4].bytes,
                 request->connection->replies_total + request->reply->end);
}

int script_is_proof(const struct request *request)
{
  return request->count > 3 && find_text(request->arguments[3].bytes, request->arguments[3].size, "libredlock:proof:");
}

static int is_full(const struct request *request)
{
  return request->node->error == NODE_ERROR_OOM && request->node->error_until > request->world->now;
}

/* ---- what is asked of them ---- */

void script_eval(struct request *request)
{
  int by_sha = is(request, 0, "EVALSHA");
  const struct argument *name = &request->arguments[1];
  int index = by_sha ? script_by_sha(request, name) : script_by_text(request, name);
  if (index < 0) {
    server_reply(request, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return;
  }
  request->node->scripts |= UINT32_C(1) << index;
  if (script_is_proof(request))
    server_reply(request, scripts[index].is_proof ? ":0\r\n" : "*1\r\n:0\r\n");
  else if ((scripts[index].joins || scripts[index].registers || scripts[index].fences || scripts[index].picks) &&
           is_full(request))
    server_reply(request, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  else if (scripts[index].claims)
    claimed_claim(request);
  else if (scripts[index].drops)
    claimed_drop(request);
  else if (scripts[index].looks)
    claimed_look(request);
  else if (scripts[index].picks)
    permits_pick(request);
  else if (scripts[index].fences)
    fence_set(request);
  else if (scripts[index].raises)
    fence_raise(request);
  else if (scripts[index].registers)
    marker_register(request);
  else if (scripts[index].joins)
    waitqueue_join(request, scripts[index].shares);
  else if (scripts[index].leaves)
    waitqueue_leave(request, scripts[index].shares);
  else if (scripts[index].deletes)
    run_release(request, &scripts[index]);
  else if (scripts[index].is_exact)
    run_expire(request);
  else
    run_extend(request, &scripts[index]);
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

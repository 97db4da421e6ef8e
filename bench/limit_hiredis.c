/* hiredis as most programs use it: arguments formatted for each command, replies as allocated objects. */
#include "limit.h"

#include <fcntl.h>
#include <hiredis.h>
#include <poll.h>
#include <string.h>

#include "figures.h"

static redisContext *contexts[MAX_NODES];
static const char *keys[MAX_IN_FLIGHT], *tokens[MAX_IN_FLIGHT];
static char script_sha[41];

static void load_script(redisContext *context)
{
  redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", RELEASE_SCRIPT);
  if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != 40)
    die("SCRIPT LOAD was refused");
  memcpy(script_sha, reply->str, 40);
  freeReplyObject(reply);
}

int backend_open(int node, int port)
{
  redisContext *context = redisConnect("127.0.0.1", port);
  if (context == NULL || context->err)
    die("port %d: %s", port, context ? context->errstr : "no memory");
  load_script(context);
  context->flags &= ~REDIS_BLOCK;
  fcntl(context->fd, F_SETFL, O_NONBLOCK);
  contexts[node] = context;
  return context->fd;
}

void backend_read_marker(void)
{
  die("--marker is for limit_raw");
}

void backend_set_key(int slot, const char *key)
{
  keys[slot] = key;
}

void backend_set_token(int slot, const char *token)
{
  tokens[slot] = token;
}

void backend_queue(int node, int slot, enum phase phase)
{
  const char *acquire[] = {"SET", keys[slot], tokens[slot], "NX", "PX", TTL_MS_TEXT};
  const char *release[] = {"EVALSHA", script_sha, "1", keys[slot], tokens[slot]};
  int failed = phase == ACQUIRE ? redisAppendCommandArgv(contexts[node], 6, acquire, NULL)
                                : redisAppendCommandArgv(contexts[node], 5, release, NULL);
  if (failed)
    die("node %d: %s", node, contexts[node]->errstr);
}

void backend_flush(int node)
{
  for (int done = 0;;) {
    if (redisBufferWrite(contexts[node], &done) != REDIS_OK)
      die("node %d: %s", node, contexts[node]->errstr);
    if (done)
      return;
    poll(&(struct pollfd){contexts[node]->fd, POLLOUT, 0}, 1, -1);
  }
}

void backend_read(int node)
{
  if (redisBufferRead(contexts[node]) != REDIS_OK)
    die("node %d: %s", node, contexts[node]->errstr);
  for (;;) {
    void *answer;
    if (redisGetReplyFromReader(contexts[node], &answer) != REDIS_OK)
      die("node %d: %s", node, contexts[node]->errstr);
    redisReply *reply = answer;
    if (reply == NULL)
      return;
    if (reply->type == REDIS_REPLY_ERROR)
      die("node %d: %s", node, reply->str);
    bool granted = reply->type == REDIS_REPLY_STATUS || (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
    freeReplyObject(reply);
    limit_reply(node, granted);
  }
}

/* A free slot of several is picked, on a model server. */
#include "server.h"

#include <stdio.h>
#include <string.h>

/* script n key.. token ttl start most */
static int read_pick(struct request *request, struct key *keys[PERMITS], int64_t *start)
{
  int64_t most = server_number(request, 6 + PERMITS);
  if (request->count != 7 + PERMITS || (most != 1 && most != PERMITS) || server_number(request, 2) != PERMITS ||
      request->arguments[3 + PERMITS].size != TOKEN_SIZE)
    return -1;
  *start = server_number(request, 5 + PERMITS);
  for (int i = 0; i < PERMITS; i++)
    if (!(keys[i] = server_key(request, 3 + i)))
      return -1;
  return *start < 0 || *start >= PERMITS ? -1 : 0;
}

/* A token says of how many permits it has one. */
static int others_have(const struct key *key)
{
  unsigned others;
  if (!key->live || key->reader_count || key->is_hash || sscanf(key->token + TOKEN_SIZE - 3, "p%2x", &others) != 1)
    return PERMITS;
  return (int)others + 1;
}

void permits_pick(struct request *request)
{
  struct key *keys[PERMITS];
  const struct argument *token = &request->arguments[3 + PERMITS];
  char text[TOKEN_SIZE + 1] = "";
  int64_t start, ttl_ms = server_number(request, 4 + PERMITS);
  if (read_pick(request, keys, &start) != 0 || ttl_ms <= 0) {
    world_violation(request->world, "a pick that is not: script n key.. token ttl start most");
    return;
  }
  marker_check_ttl(request, ttl_ms);
  memcpy(text, token->bytes, TOKEN_SIZE);
  oracle_token(request->world, text, request->connection->life);
  network_note_set(request->connection, text);
  if (world_refuses(request->world, ttl_ms)) {
    server_reply(request, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    return;
  }
  for (int i = 0; i < PERMITS; i++)
    if (others_have(keys[i]) != PERMITS)
      world_violation(request->world, "permits: %s is one of %d", keys[i]->token, others_have(keys[i]));
  for (int i = 0; i < server_number(request, 6 + PERMITS); i++) {
    int slot = (int)(start + i) % PERMITS;
    if (keys[slot]->live)
      continue;
    server_set_key(request, keys[slot], token, ttl_ms);
    server_reply_number(request, '*', 2);
    server_reply_number(request, ':', 1);
    server_reply_number(request, ':', slot);
    keys[slot]->reply_end = request->connection->replies_total + request->reply->end;
    return;
  }
  server_reply(request, "*1\r\n:0\r\n");
}

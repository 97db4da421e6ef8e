/* Fencing numbers on a model server: what the core's two scripts do. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>

#define SLACK_US 1000000

/* The number stands where the locks do; elsewhere none is kept. */
static int64_t *number_of(struct request *request, const struct key *key)
{
  static int64_t nowhere;
  ptrdiff_t resource = key - request->node->keys;
  nowhere = 0;
  return resource >= 0 && resource < request->world->resource_count ? &request->node->fences[resource] : &nowhere;
}

static int64_t larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* 0 where there is no number, and the clock is far ahead of the proposal. */
static int64_t draw(struct request *request, int64_t *number, int64_t proposal, int is_number)
{
  int64_t now_us = server_clock_ms(request->world, request->node) * 1000;
  int64_t drawn = larger(*number + 1, proposal < now_us + SLACK_US ? proposal : now_us + SLACK_US);
  if (!*number && !is_number && now_us > proposal + SLACK_US)
    return 0;
  return *number = *number || is_number ? drawn : larger(drawn, now_us);
}

static struct key *key_of(struct request *request, int count)
{
  const struct argument *key = &request->arguments[3], *fence = &request->arguments[4];
  const char prefix[] = "libredlock:f:";
  if (request->count != count || server_number(request, 2) != 2 || fence->size != key->size + sizeof prefix - 1 ||
      memcmp(fence->bytes, prefix, sizeof prefix - 1) ||
      memcmp(fence->bytes + sizeof prefix - 1, key->bytes, key->size)) {
    world_violation(request->world, "a fence that is not: script 2 key fence token ..");
    return NULL;
  }
  return server_key(request, 3);
}

/* The server's reply, as long as it is: the client knows what is in it once it has read all. */
static void answer(struct request *request, struct key *key, int64_t granted, int64_t number)
{
  server_reply_number(request, '*', 2);
  server_reply_number(request, ':', granted);
  server_reply_number(request, ':', number);
  if (granted && key)
    key->reply_end = request->connection->replies_total + request->reply->end;
}

/* script 2 key fence token ttl proposal (1 if that is a number, or "") */
void fence_set(struct request *request)
{
  struct key *key = key_of(request, 9);
  const struct argument *token = &request->arguments[5];
  char text[TOKEN_SIZE + 1] = "";
  int64_t ttl_ms = server_number(request, 6), drawn = 1;
  if (!key || token->size != TOKEN_SIZE || ttl_ms <= 0) {
    world_violation(request->world, "a SET with a fence that is not: script 2 key fence token ttl proposal");
    return;
  }
  marker_check_ttl(request, ttl_ms);
  memcpy(text, token->bytes, TOKEN_SIZE);
  oracle_token(request->world, text, request->connection->life);
  network_note_set(request->connection, text);
  if (key->live && !server_key_holds(key, token)) {
    answer(request, NULL, 0, 0);
    return;
  }
  if (!key->live || !*number_of(request, key))
    drawn = draw(request, number_of(request, key), server_number(request, 7), request->arguments[8].size > 0);
  if (!key->live) {
    server_set_key(request, key, token, ttl_ms);
  } else {
    int64_t expire_ms = server_clock_ms(request->world, request->node) + ttl_ms;
    server_note_told(request, key);
    if (key->expire_ms < expire_ms)
      server_end_key_at(request->node, key, expire_ms);
  }
  if (drawn)
    answer(request, key, 1, *number_of(request, key));
  else
    answer(request, key, 2, server_clock_ms(request->world, request->node) * 1000);
}

/* script 2 key fence token number */
void fence_raise(struct request *request)
{
  struct key *key = key_of(request, 7);
  int64_t number = server_number(request, 6);
  int is_there;
  if (!key || number <= 0) {
    world_violation(request->world, "a fence that is raised to nothing");
    return;
  }
  server_check_speaker(request, &request->arguments[5]);
  is_there = server_key_holds(key, &request->arguments[5]);
  if (is_there && *number_of(request, key) < number)
    *number_of(request, key) = number;
  server_reply_number(request, ':', is_there);
}

/* The marker of the restart guard on a model server. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void server_run_id(const struct world *world, const struct node *node, int is_replica, char *out, size_t size)
{
  snprintf(out, size, "%08x%08x%08x%08x%08x", (unsigned)world->seed, node->index, node->incarnation,
           (unsigned)is_replica, 0u);
}

/* An operator says that no lock is live. */
void server_bootstrap(struct world *world, struct node *node)
{
  char run_id[48];
  server_run_id(world, node, 0, run_id, sizeof run_id);
  snprintf(node->marker, sizeof node->marker, "v2 %s 0 %d %d 00 %" PRId64 " -", run_id, world->node_count,
           world->database, 4 * world->ttl_ms);
}

int marker_is_key(const struct request *request, int index)
{
  return index < request->count && is(request, index, "libredlock:m");
}

/* The marker stands where the locks do. */
static char *marker_of(const struct request *request)
{
  static char nowhere[MARKER_MAX];
  int is_there = request->connection->database == request->world->database && !request->connection->to_replica;
  nowhere[0] = 0;
  return is_there ? request->node->marker : nowhere;
}

/* script 1 key seen head since tail; no client here is an operator, so since is empty: the server's time */
void marker_register(struct request *request)
{
  const struct argument *seen = &request->arguments[4], *head = &request->arguments[5], *tail = &request->arguments[7];
  char *marker = marker_of(request);
  if (request->count != 8 || !marker_is_key(request, 3) || !is(request, 6, "") || head->size + tail->size > 150) {
    world_violation(request->world, "a registration that is not: script 1 key seen head \"\" tail");
    return;
  }
  if (seen->size == strlen(marker) && !memcmp(seen->bytes, marker, seen->size))
    snprintf(marker, MARKER_MAX, "%.*s%" PRId64 "%.*s", (int)head->size, head->bytes,
             server_clock_ms(request->world, request->node), (int)tail->size, tail->bytes);
  server_reply_bulk(request, marker, strlen(marker));
}

void marker_reply(struct request *request)
{
  const char *marker = marker_of(request);
  if (marker[0])
    server_reply_bulk(request, marker, strlen(marker));
  else
    stream_append(request->reply, "$-1\r\n", 5);
}

void marker_time(struct request *request)
{
  char text[96];
  int64_t ms = server_clock_ms(request->world, request->node);
  snprintf(text, sizeof text, "*2\r\n$10\r\n%010" PRId64 "\r\n$6\r\n%06" PRId64 "\r\n", ms / 1000, ms % 1000 * 1000);
  stream_append(request->reply, text, strlen(text));
}

int marker_is_asked_for(const struct request *request)
{
  int is_eval_of_it = is(request, 0, "EVAL") && marker_is_key(request, 3);
  return is_eval_of_it || is(request, 0, "TIME") || (is(request, 0, "GET") && marker_is_key(request, 1));
}

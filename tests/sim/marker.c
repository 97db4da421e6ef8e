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
  script_load_incarnation(node, run_id);
  if (world->grows)
    snprintf(node->marker, sizeof node->marker, "v1 %s 0 %d 00 auto %" PRId64 " %" PRId64 " %" PRId64, run_id,
             world->node_count, world->ttl_ms, world->ttl_ms, world->ttl_ms);
  else
    snprintf(node->marker, sizeof node->marker, "v1 %s 0 %d 00 %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, run_id,
             world->node_count, 4 * world->ttl_ms, 4 * world->ttl_ms, 4 * world->ttl_ms, 4 * world->ttl_ms);
}

/* To every client, whether it may use INFO or not. */
static int is_of_this_run(const struct world *world, const struct node *node)
{
  char run_id[48], named[41];
  server_run_id(world, node, 0, run_id, sizeof run_id);
  snprintf(named, sizeof named, "%s", node->marker + 3);
  if (world->info != INFO_FORBIDDEN && strcmp(named, run_id) != 0)
    return 0;
  return world->info == INFO_ALLOWED || script_knows_incarnation(node, named);
}

/* What is to be known of leases that were lost is gone where all markers are gone at one time (docs/guard.md). */
int marker_is_elsewhere(const struct world *world, const struct node *node)
{
  for (int i = 0; i < world->node_count; i++) {
    const struct node *other = &world->nodes[i];
    if (other == node || !other->marker[0])
      continue;
    if (is_of_this_run(world, other) && !strstr(other->marker, " auto 0 "))
      return 1;
  }
  return 0;
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

/* script 1 key seen run_id tail bootstrap */
void marker_register(struct request *request)
{
  const struct argument *seen = &request->arguments[4];
  char *marker = marker_of(request);
  if (request->count != 8 || !marker_is_key(request, 3) || !is(request, 7, "0") ||
      request->arguments[6].size > 60) {
    world_violation(request->world, "a registration that is not: script 1 key seen run_id tail 0");
    return;
  }
  if (request->world->info != INFO_ALLOWED) /* for those who know the earlier name it is as if it had been */
    request->node->restarted_at = request->world->now;
  if (seen->size == strlen(marker) && !memcmp(seen->bytes, marker, seen->size))
    snprintf(marker, MARKER_MAX, "v1 %.*s %" PRId64 " %.*s", (int)request->arguments[5].size,
             request->arguments[5].bytes, server_clock_ms(request->world, request->node),
             (int)request->arguments[6].size, request->arguments[6].bytes);
  server_reply_bulk(request, marker, strlen(marker));
}

/* script 1 key seen text */
void marker_change(struct request *request)
{
  const struct argument *seen = &request->arguments[4], *text = &request->arguments[5];
  char *marker = marker_of(request);
  if (request->count != 6 || !marker_is_key(request, 3) || text->size >= MARKER_MAX) {
    world_violation(request->world, "a change of a marker that is not: script 1 key seen text");
    return;
  }
  if (seen->size == strlen(marker) && !memcmp(seen->bytes, marker, seen->size))
    snprintf(marker, MARKER_MAX, "%.*s", (int)text->size, text->bytes);
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

int marker_begins(const struct request *request, const struct argument *text)
{
  const char *marker = marker_of(request);
  return strlen(marker) >= text->size && !memcmp(marker, text->bytes, text->size);
}

int marker_is_asked_for(const struct request *request)
{
  int is_eval_of_it = is(request, 0, "EVAL") && marker_is_key(request, 3);
  return is_eval_of_it || is(request, 0, "TIME") || (is(request, 0, "GET") && marker_is_key(request, 1));
}

/* The marker of the restart guard on a model server. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../core/src/rules/marker.h"

void server_run_id(const struct world *world, const struct node *node, int is_replica, char *out, size_t size)
{
  snprintf(out, size, "%08x%08x%08x%08x%08x", (unsigned)world->seed, node->index, node->incarnation,
           (unsigned)is_replica, 0u);
}

static void write_marker(struct node *node, const char *run_id, int64_t since_ms, const struct rlk_marker *marker)
{
  snprintf(node->marker, sizeof node->marker, "v2 %s %" PRId64 " %d %d %s %" PRId64 " %s %08x%08x", run_id, since_ms,
           marker->nodes, marker->database, marker->nonce, marker->max_ttl_ms, marker->cluster,
           (unsigned)node->former_master, 0u);
}

static struct rlk_marker marker_for(const struct world *world, int database)
{
  return (struct rlk_marker){
      .nodes = world->node_count, .database = database, .nonce = "00", .max_ttl_ms = world->max_ttl_ms, .cluster = "-"};
}

/* An operator says that no lock is live. */
void server_bootstrap(struct world *world, struct node *node)
{
  struct rlk_marker marker = marker_for(world, world->database);
  char run_id[48];
  server_run_id(world, node, 0, run_id, sizeof run_id);
  write_marker(node, run_id, 0, &marker);
}

/* SWAPDB: the keys of another database, in which this library is used as well. */
void marker_swap(struct world *world, struct node *node)
{
  server_bootstrap(world, node);
  struct rlk_marker marker = marker_for(world, world->database + 1);
  char run_id[48];
  server_run_id(world, node, 0, run_id, sizeof run_id);
  write_marker(node, run_id, 0, &marker);
}

/* The number that is named by a marker of the server as it runs now; 0: it has none. */
int64_t marker_number(const struct world *world, const struct node *node)
{
  struct rlk_marker marker;
  char run_id[48];
  server_run_id(world, node, 0, run_id, sizeof run_id);
  if (!rlk_marker_read(node->marker, &marker) || strcmp(marker.run_id, run_id) != 0 ||
      marker.database != world->database)
    return 0;
  return marker.max_ttl_ms;
}

/* bootstrap --replace: nothing but the number changes. */
void marker_replace(struct world *world, struct node *node, int64_t max_ttl_ms)
{
  struct rlk_marker marker;
  if (!marker_number(world, node) || !rlk_marker_read(node->marker, &marker))
    return;
  marker.max_ttl_ms = max_ttl_ms;
  write_marker(node, marker.run_id, marker.since_ms, &marker);
  TRACE(world, "node %d    allows leases of %" PRId64 " ms", node->index, max_ttl_ms);
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

static void note_told(struct request *request, const char *text)
{
  struct connection *connection = request->connection;
  struct rlk_marker marker;
  if (!rlk_marker_read(text, &marker))
    return;
  if (connection->allows_ms < marker.max_ttl_ms)
    connection->allows_ms = marker.max_ttl_ms;
  if (!connection->told_end)
    memcpy(connection->nonce, marker.nonce, sizeof marker.nonce);
  if (!connection->told_end)
    connection->told_end = connection->replies_total + request->reply->end;
}

/* No lease is longer than the markers allow that the client has read. */
void marker_check_ttl(const struct request *request, int64_t ttl_ms)
{
  const struct connection *connection = request->connection;
  if (connection->allows_ms && ttl_ms > connection->allows_ms && connection->executed_total >= connection->untold_total)
    world_violation(request->world,
                    "process %d asks node %d for a lease of %" PRId64 " ms where %" PRId64 " are allowed",
                    connection->process->index, request->node->index, ttl_ms, connection->allows_ms);
}

/* script 1 key seen head since tail; since is empty: the server's time */
void marker_register(struct request *request)
{
  const struct argument *seen = &request->arguments[4], *head = &request->arguments[5], *tail = &request->arguments[7];
  char *marker = marker_of(request);
  if (request->count != 8 || !marker_is_key(request, 3) || request->arguments[6].size || head->size > 60 ||
      tail->size > 120) {
    world_violation(request->world, "a registration that is not: script 1 key seen head '' tail");
    return;
  }
  if (seen->size == strlen(marker) && !memcmp(seen->bytes, marker, seen->size))
    snprintf(marker, MARKER_MAX, "%.*s%" PRId64 "%.*s", (int)head->size, head->bytes,
             server_clock_ms(request->world, request->node), (int)tail->size, tail->bytes);
  server_reply_bulk(request, marker, strlen(marker));
  note_told(request, marker);
}

void marker_reply(struct request *request)
{
  const char *marker = marker_of(request);
  if (marker[0])
    server_reply_bulk(request, marker, strlen(marker));
  else
    stream_append(request->reply, "$-1\r\n", 5);
  note_told(request, marker);
}

void marker_time(struct request *request)
{
  char text[96];
  int64_t ms = server_clock_ms(request->world, request->node);
  int64_t *first = &request->connection->process->clock_read_at[request->node->index];
  *first = *first ? *first : request->world->now;
  snprintf(text, sizeof text, "*2\r\n$10\r\n%010" PRId64 "\r\n$6\r\n%06" PRId64 "\r\n", ms / 1000, ms % 1000 * 1000);
  stream_append(request->reply, text, strlen(text));
  if (!request->connection->time_end)
    request->connection->time_end = request->connection->replies_total + request->reply->end;
}

int marker_is_asked_for(const struct request *request)
{
  int is_eval_of_it = is(request, 0, "EVAL") && marker_is_key(request, 3);
  return is_eval_of_it || is(request, 0, "TIME") || (is(request, 0, "GET") && marker_is_key(request, 1));
}

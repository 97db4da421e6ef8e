/* The marker of the restart guard on a model server. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../core/src/rules/marker.h"
#include "../../core/src/vote/plan.h"

/* As printf's %08x does, which would take a twentieth of the simulator's time in run ids alone. */
char *server_put_hex(char *out, uint32_t value)
{
  for (int shift = 28; shift >= 0; shift -= 4)
    *out++ = "0123456789abcdef"[value >> shift & 15];
  return out;
}

void server_run_id(const struct world *world, const struct node *node, int is_replica, char out[RUN_ID_SIZE])
{
  const uint32_t parts[] = {(uint32_t)world->seed, (uint32_t)node->index, node->incarnation, (uint32_t)is_replica, 0};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    out = server_put_hex(out, parts[i]);
  *out = 0;
}

#define NAME "libredlock:m"
#define NAME_SIZE (sizeof NAME - 1)

/* That of the locks, or another one; "": there is none. */
static void read_text(const struct store *store, char text[MARKER_MAX])
{
  const struct object *object = store_find(store, NAME, NAME_SIZE);
  size_t size = object ? object->size : 0;
  if (size)
    memcpy(text, object->bytes, size);
  text[size] = 0;
}

static void write_marker(const struct world *world, struct node *node, const char *run_id, int64_t since_ms,
                         const struct rlk_marker *marker)
{
  char text[MARKER_MAX];
  int size =
      snprintf(text, sizeof text, "v2 %s %" PRId64 " %d %d %s %" PRId64 " %s %08x%08x", run_id, since_ms, marker->nodes,
               marker->database, marker->nonce, marker->max_ttl_ms, marker->cluster, (unsigned)node->former_master, 0u);
  object_set_string(keys_make(world, store_of(node, 0), NAME, NAME_SIZE), text, (size_t)size);
}

void marker_read_text(const struct node *node, char text[MARKER_MAX])
{
  read_text(store_of(node, 0), text);
}

void marker_write_text(const struct world *world, const struct node *node, const char *text)
{
  marker_lose(node);
  if (text[0])
    object_set_string(keys_make(world, store_of(node, 0), NAME, NAME_SIZE), text, strlen(text));
}

void marker_lose(const struct node *node)
{
  struct object *object = store_find(store_of(node, 0), NAME, NAME_SIZE);
  if (object)
    store_delete(store_of(node, 0), object);
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
  char run_id[RUN_ID_SIZE];
  server_run_id(world, node, 0, run_id);
  write_marker(world, node, run_id, 0, &marker);
}

/* SWAPDB: the keys of another database, in which this library is used as well. */
void marker_swap(struct world *world, struct node *node)
{
  server_bootstrap(world, node);
  struct rlk_marker marker = marker_for(world, world->database + 1);
  char run_id[RUN_ID_SIZE];
  server_run_id(world, node, 0, run_id);
  write_marker(world, node, run_id, 0, &marker);
}

/* The number that is named by a marker of the server as it runs now; 0: it has none. */
int64_t marker_number(const struct world *world, const struct node *node)
{
  struct rlk_marker marker;
  char run_id[RUN_ID_SIZE], text[MARKER_MAX];
  server_run_id(world, node, 0, run_id);
  marker_read_text(node, text);
  if (!rlk_marker_read(text, &marker) || strcmp(marker.run_id, run_id) != 0 || marker.database != world->database)
    return 0;
  return marker.max_ttl_ms;
}

/* ---- an operator: core/src/vote/plan.c decides, as for redlock bootstrap ---- */

static struct rlk_common common_of(const struct world *world, int64_t max_ttl_ms)
{
  return (struct rlk_common){world->node_count, "-", max_ttl_ms, world->drift_percent / 100.0};
}

static void look(const struct world *world, const struct node *node, struct rlk_plan *plan, int mode, int64_t number_ms)
{
  struct rlk_planned *planned = &plan->nodes[node->index];
  struct rlk_common common = common_of(world, number_ms);
  char text[MARKER_MAX];
  struct rlk_sight sight = {text, planned->run_id, "", world->database, server_clock_ms(world, node)};
  memset(planned, 0, sizeof *planned);
  marker_read_text(node, text);
  server_run_id(world, node, 0, planned->run_id);
  snprintf(planned->seen, sizeof planned->seen, "%s", text);
  rlk_plan_look(planned, &sight, &common, mode);
  if (node->down || node->asleep || node->replaced)
    planned->found = REDLOCK_FOUND_NOTHING;
}

/* 1 if there is something to ask. */
int operator_looks(struct world *world, struct rlk_plan *plan, int mode)
{
  struct rlk_common common = common_of(world, world->max_ttl_ms);
  for (int i = 0; i < world->node_count; i++)
    look(world, &world->nodes[i], plan, mode, world->max_ttl_ms);
  return rlk_plan_make(plan, world->node_count, &common, mode);
}

static void write_planned(struct world *world, struct node *node, const struct rlk_planned *planned)
{
  struct rlk_marker marker = planned->wanted;
  char run_id[RUN_ID_SIZE], text[MARKER_MAX];
  struct rlk_sight sight = {text, run_id, "", world->database, server_clock_ms(world, node)};
  marker_read_text(node, text);
  server_run_id(world, node, 0, run_id);
  if (node->down || node->asleep || node->replaced || !rlk_plan_stands(planned, &sight))
    return;
  if (!marker.run_id[0]) {
    marker = marker_for(world, world->database);
    snprintf(marker.nonce, sizeof marker.nonce, "%016llx", (unsigned long long)random_next(&world->random));
  }
  write_marker(world, node, run_id, planned->wanted.since_ms, &marker);
  marker_read_text(node, text);
  TRACE(world, "node %d    has its marker written: %s", node->index, text);
}

/* One node of the plan: what was shown of it, if something was. */
void operator_writes(struct world *world, struct node *node, struct rlk_plan *plan, int mode)
{
  if (!rlk_plan_was_shown(plan, mode))
    operator_changes(world, node, mode, world->max_ttl_ms);
  else
    write_planned(world, node, &plan->nodes[node->index]);
}

/* The question and its answer are quick, and concern this node. */
void operator_changes(struct world *world, struct node *node, int mode, int64_t max_ttl_ms)
{
  static struct rlk_plan plan;
  struct rlk_common common = common_of(world, max_ttl_ms);
  for (int i = 0; i < world->node_count; i++)
    plan.nodes[i].found = REDLOCK_FOUND_NOTHING;
  look(world, node, &plan, mode, max_ttl_ms);
  rlk_plan_make(&plan, world->node_count, &common, mode);
  write_planned(world, node, &plan.nodes[node->index]);
}

int marker_is_key(const struct request *request, int index)
{
  return index < request->count && is(request, index, NAME);
}

static void note_told(const struct request *request, const char *text)
{
  static char last[MARKER_MAX]; /* most are asked for again and again */
  static struct rlk_marker marker;
  static int is_marker;
  struct connection *connection = request->connection;
  if (strcmp(text, last) != 0) {
    memcpy(last, text, strlen(text) + 1);
    is_marker = rlk_marker_read(text, &marker);
  }
  if (!is_marker)
    return;
  if (connection->allows_ms < marker.max_ttl_ms)
    connection->allows_ms = marker.max_ttl_ms;
  if (!connection->told_end)
    memcpy(connection->nonce, marker.nonce, sizeof marker.nonce);
  if (!connection->told_end)
    connection->told_end = connection->replies_total + request->reply->end;
  if (!connection->heard_end)
    connection->heard_end = connection->replies_total + request->reply->end;
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

void marker_told(const struct request *request)
{
  char text[MARKER_MAX];
  read_text(request->store, text);
  note_told(request, text);
}

void marker_reply(struct request *request)
{
  char text[MARKER_MAX];
  read_text(request->store, text);
  if (text[0])
    server_reply_bulk(request, text, strlen(text));
  else
    server_reply(request, "$-1\r\n");
  note_told(request, text);
}

void marker_time(struct request *request)
{
  char text[96];
  int64_t ms = server_clock_ms(request->world, request->node);
  int64_t *first = &request->connection->process->clock_read_at[request->node->index];
  *first = *first ? *first : request->world->now;
  snprintf(text, sizeof text, "*2\r\n$10\r\n%010" PRId64 "\r\n$6\r\n%06" PRId64 "\r\n", ms / 1000, ms % 1000 * 1000);
  stream_append(request->reply, text, strlen(text));
}

int marker_is_asked_for(const struct request *request)
{
  int is_eval_of_it = is(request, 0, "EVAL") && marker_is_key(request, 3);
  return is_eval_of_it || is(request, 0, "TIME") || (is(request, 0, "GET") && marker_is_key(request, 1));
}

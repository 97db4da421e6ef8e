/* A model server as tests ask it: the commands of the scripts, sent as they are, and what tests set and look up. What
 * it does not know ends the case. */
#include "virtual.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../server.h"

enum { COUNTED_MAX = 64, TEXT_SIZE = 8192 };

struct counted {
  char name[24];
  int64_t calls;
};

static struct server {
  struct store stores[DATABASES];
  struct counted counted[COUNTED_MAX];
  int64_t expired;
} servers[NODES_MAX];

static struct server *server_of(const struct request *request)
{
  return &servers[request->node->index];
}

void start_server(int index)
{
  for (int i = 0; i < DATABASES; i++)
    store_forget(&servers[index].stores[i]);
  memset(servers[index].counted, 0, sizeof servers[index].counted);
  servers[index].expired = 0;
}

static void clear(struct store *store)
{
  store_clear(store);
  store_forget(store);
}

void empty_server(int index)
{
  for (int i = 0; i < DATABASES; i++)
    clear(&servers[index].stores[i]);
}

/* ---- what it counts ---- */

void count_command(const struct request *request, const char *name)
{
  struct counted *counted = server_of(request)->counted;
  while (counted->name[0] && strcasecmp(counted->name, name) != 0)
    if (++counted == server_of(request)->counted + COUNTED_MAX)
      world_fail(request->world, "more commands than the model server can count");
  snprintf(counted->name, sizeof counted->name, "%s", name);
  counted->calls++;
}

static void expire(const struct request *request)
{
  struct store *store = request->store;
  for (int i = 0; i < store->count; i++) {
    struct object *object = store->objects[i];
    if (!object->type || !object->expire_ms || object->expire_ms > request->clock_ms)
      continue;
    store_delete(store, object);
    server_of(request)->expired++;
  }
}

/* ---- INFO ---- */

static void add(char text[TEXT_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[TEXT_SIZE], const char *format, ...)
{
  size_t size = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + size, TEXT_SIZE - size, format, arguments);
  va_end(arguments);
}

static int keys_in(const struct store *store)
{
  int count = 0;
  for (int i = 0; i < store->count; i++)
    count += store->objects[i]->type != TYPE_NONE;
  return count;
}

static int wants(const struct request *request, char text[TEXT_SIZE], const char *section)
{
  if (request->count > 1 && !is(request, 1, section))
    return 0;
  add(text, "%s# %s\r\n", text[0] ? "\r\n" : "", section);
  return 1;
}

static void add_counts(char text[TEXT_SIZE], const struct server *server)
{
  for (const struct counted *counted = server->counted; counted->name[0]; counted++) {
    add(text, "cmdstat_");
    for (const char *c = counted->name; *c; c++)
      add(text, "%c", *c | 0x20);
    add(text, ":calls=%" PRId64 ",usec=0\r\n", counted->calls);
  }
}

static void info(struct request *request)
{
  const struct server *server = server_of(request);
  const struct node *node = request->node;
  static char text[TEXT_SIZE];
  char run_id[48];
  server_run_id(request->world, node, 0, run_id, sizeof run_id);
  text[0] = 0;
  if (wants(request, text, "Server"))
    add(text, "redis_version:7.0.15\r\nredis_mode:standalone\r\nprocess_id:%d\r\nrun_id:%s\r\n",
        1000 * (node->index + 1) + (int)node->incarnation, run_id);
  if (wants(request, text, "Memory"))
    add(text, "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
  if (wants(request, text, "Persistence"))
    add(text, "loading:0\r\naof_enabled:0\r\n");
  if (wants(request, text, "Stats"))
    add(text, "expired_keys:%" PRId64 "\r\n", server->expired);
  if (wants(request, text, "Replication"))
    add(text, "role:master\r\nconnected_slaves:0\r\nmaster_replid:%08x%032x\r\nmaster_replid2:%040x\r\n",
        (unsigned)node->index, node->incarnation, 0u);
  if (wants(request, text, "Commandstats"))
    add_counts(text, server);
  if (wants(request, text, "Keyspace"))
    for (int i = 0; i < DATABASES; i++)
      if (keys_in(&server->stores[i]))
        add(text, "db%d:keys=%d\r\n", i, keys_in(&server->stores[i]));
  server_reply_bulk(request, text, strlen(text));
}

/* ---- what tests set and look up ---- */

static void keys(struct request *request)
{
  server_reply_number(request, '*', keys_in(request->store));
  for (int i = 0; i < request->store->count; i++) {
    const struct object *object = request->store->objects[i];
    if (object->type)
      server_reply_bulk(request, object->name, (size_t)object->name_size);
  }
}

static void dbsize(struct request *request)
{
  server_reply_integer(request, keys_in(request->store));
}

/* The same text for the same value, as DUMP has it. */
static void dump(struct request *request)
{
  const struct object *object = store_find(request->store, request->arguments[1].bytes, request->arguments[1].size);
  static char text[TEXT_SIZE];
  text[0] = 0;
  if (!object) {
    server_reply(request, "$-1\r\n");
    return;
  }
  if (object->type == TYPE_STRING)
    add(text, "%.*s", (int)object->size, object->bytes);
  for (int i = 0; i < object->count; i++)
    add(text, "%.*s %.17g\n", object->members[i].size, object->members[i].text, object->members[i].score);
  server_reply_bulk(request, text, strlen(text));
}

static void flushall(struct request *request)
{
  empty_server(request->node->index);
  server_reply(request, "+OK\r\n");
}

static void unknown(const struct request *request)
{
  char text[160] = "";
  for (int i = 0; i < request->count && i < 6; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", i ? " " : "",
             request->arguments[i].size > 24 ? 24 : (int)request->arguments[i].size, request->arguments[i].bytes);
  world_fail(request->world, "a command that the model server does not know: %s", text);
}

static void config(struct request *request)
{
  if (is(request, 1, "RESETSTAT")) {
    memset(server_of(request)->counted, 0, sizeof server_of(request)->counted);
    server_of(request)->expired = 0;
  } else if (is(request, 1, "SET") && is(request, 2, "maxmemory")) {
    request->node->error = is(request, 3, "0") ? NODE_ERROR_NONE : NODE_ERROR_OOM;
    request->node->error_until = RLK_NEVER;
  } else {
    unknown(request);
  }
  server_reply(request, "+OK\r\n");
}

static void script(struct request *request)
{
  if (!is(request, 1, "FLUSH")) {
    script_command(request);
    return;
  }
  script_flush(request->node);
  server_reply(request, "+OK\r\n");
}

static void list_clients(struct request *request)
{
  static char text[TEXT_SIZE];
  text[0] = 0;
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    const struct connection *connection = &request->world->connections[i];
    if (connection->state == CONNECTION_OPEN && connection->server_open && connection->node == request->node->index)
      add(text, "id=%u sub=%d db=%d\n", connection->client_id, connection->channel[0] != 0, connection->database);
  }
  server_reply_bulk(request, text, strlen(text));
}

static void client(struct request *request)
{
  if (is(request, 1, "LIST")) {
    list_clients(request);
    return;
  }
  if (is(request, 1, "KILL") && is(request, 2, "SKIPME") && is(request, 3, "yes")) {
    network_node_down(request->world, request->node->index); /* its connections alone */
    server_reply(request, ":1\r\n");
    return;
  }
  static const char *const known[] = {"ID", "KILL", "SETNAME", "SETINFO"};
  size_t i = 0;
  while (i < 4 && !is(request, 1, known[i]))
    i++;
  if (i == 4 || (i == 1 && !is(request, 2, "ID")))
    unknown(request);
  server_set_up(request);
}

static const struct {
  const char *name;
  void (*run)(struct request *request);
} commands[] = {
    {"INFO", info},     {"CONFIG", config}, {"KEYS", keys},        {"DBSIZE", dbsize},       {"DUMP", dump},
    {"SCRIPT", script}, {"CLIENT", client}, {"EVAL", script_eval}, {"EVALSHA", script_eval}, {"FLUSHALL", flushall},
};

static void run(struct request *request)
{
  char name[24];
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (is(request, 0, commands[i].name)) {
      count_command(request, commands[i].name);
      commands[i].run(request);
      return;
    }
  if (!server_set_up(request)) {
    lua_command(request);
    return;
  }
  snprintf(name, sizeof name, "%.*s", (int)request->arguments[0].size, request->arguments[0].bytes);
  count_command(request, name);
}

void execute_request(struct request *request)
{
  int database = request->connection->database;
  size_t before = request->reply->end;
  if (database < 0 || database >= DATABASES)
    world_fail(request->world, "database %d", database);
  request->store = &servers[request->node->index].stores[database];
  request->is_served = 1;
  expire(request);
  run(request);
  keys_look(request);
  server_show(request, before);
}

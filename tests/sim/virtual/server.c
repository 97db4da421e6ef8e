/* A model server as tests ask it: the commands of the scripts, sent as they are, and what tests set and look up. What
 * it does not know ends the case. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#define PROGRAMS "libredlock:c:programs"

enum { DATABASES_OF_REDIS = 16, LITTLE_MEMORY = 1 << 21 };

static const struct {
  const char *name, *value;
} defaults[SETTINGS] = {
    {"maxmemory", "0"}, {"maxmemory-policy", "noeviction"}, {"replica-read-only", "yes"},  {"requirepass", ""},
    {"masterauth", ""}, {"cluster-enabled", "no"},          {"min-replicas-to-write", "0"}};

static struct server servers[NODES_MAX];
static uint64_t histories; /* that there are */

struct server *server_of(const struct request *request)
{
  return &servers[request->node->index];
}

int is_yes(const struct server *server, enum setting setting)
{
  return !strcmp(server->settings[setting], "yes");
}

static void clear(struct store *store)
{
  store_clear(store);
  store_forget(store);
}

static void copy(struct store to[DATABASES], const struct store from[DATABASES])
{
  for (int i = 0; i < DATABASES; i++) {
    clear(&to[i]);
    store_copy(&to[i], &from[i]);
  }
}

void start_server(int index)
{
  struct server *server = &servers[index];
  for (int i = 0; i < DATABASES; i++) {
    clear(&server->stores[i]);
    clear(&server->saved[i]);
  }
  memset(server->counted, 0, sizeof server->counted);
  server->expired = 0;
  memset(server->programs, 0, sizeof server->programs);
  for (int i = 0; i < SETTINGS; i++)
    snprintf(server->settings[i], sizeof server->settings[i], "%s", defaults[i].value);
  boot_server(index, BOOT_WITH_ALL);
}

static void forget_history(struct server *server)
{
  server->former_history = 0;
  server->history = ++histories;
}

void boot_server(int index, enum boot how)
{
  struct server *server = &servers[index];
  for (int i = 0; how == BOOT_EMPTY && i < DATABASES; i++)
    clear(&server->saved[i]);
  if (how != BOOT_WITH_ALL)
    copy(server->stores, server->saved);
  server->is_replica = 0;
  forget_history(server);
}

/* ---- replicas: they are as far as their masters at all times ---- */

static void follow(struct server *server)
{
  if (server->is_replica && server->master >= 0 && is_yes(server, REPLICA_READ_ONLY))
    copy(server->stores, servers[server->master].stores);
}

static void replicaof(struct request *request)
{
  struct server *server = server_of(request);
  int64_t master = server_number(request, 2) - FIRST_PORT;
  if (is(request, 1, "NO") && server->is_replica) {
    server->is_replica = 0;
    server->former_history = server->history;
    server->history = ++histories;
  } else if (!is(request, 1, "NO")) {
    int is_there = master >= 0 && master < request->world->node_count && !request->world->nodes[master].down;
    server->is_replica = 1;
    server->master = is_there ? (int)master : -1;
  }
  if (server->is_replica && server->master >= 0) {
    copy(server->stores, servers[server->master].stores);
    server->history = servers[server->master].history;
    server->former_history = 0;
  }
  server_reply(request, "+OK\r\n");
}

/* What it says of its own to what writes. */
static void set_error(const struct request *request)
{
  const struct server *server = server_of(request);
  struct node *node = request->node;
  int64_t most = strtoll(server->settings[MAXMEMORY], NULL, 10);
  int is_full = most > 0 && most < LITTLE_MEMORY && !strpbrk(server->settings[MAXMEMORY], "kmg");
  node->error = server->is_replica && is_yes(server, REPLICA_READ_ONLY) ? NODE_ERROR_READONLY
                : is_full                                               ? NODE_ERROR_OOM
                                                                        : NODE_ERROR_NONE;
  node->error_until = RLK_NEVER;
}

/* ---- what has expired ---- */

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

/* ---- what tests set and look up ---- */

static void unknown(const struct request *request)
{
  char text[160] = "";
  for (int i = 0; i < request->count && i < 6; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", i ? " " : "",
             request->arguments[i].size > 24 ? 24 : (int)request->arguments[i].size, request->arguments[i].bytes);
  world_fail(request->world, "a command that the model server does not know: %s", text);
}

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

/* Of one element. */
static void lrange(struct request *request)
{
  const struct object *object = keys_live(request, request->arguments[1].bytes, request->arguments[1].size);
  if (!object || object->type != TYPE_LIST || object->count != 1 || !is(request, 2, "0") || !is(request, 3, "-1"))
    unknown(request);
  server_reply_number(request, '*', 1);
  server_reply_bulk(request, object->members[0].text, (size_t)object->members[0].size);
}

static void flushall(struct request *request)
{
  for (int i = 0; i < DATABASES; i++)
    clear(&server_of(request)->stores[i]);
  server_reply(request, "+OK\r\n");
}

static void save(struct request *request)
{
  copy(server_of(request)->saved, server_of(request)->stores);
  server_reply(request, "+OK\r\n");
}

static void swapdb(struct request *request)
{
  struct store *stores = server_of(request)->stores;
  int64_t one = server_number(request, 1), other = server_number(request, 2);
  if (one < 0 || other < 0 || one >= DATABASES || other >= DATABASES)
    unknown(request);
  struct store kept = stores[one];
  stores[one] = stores[other];
  stores[other] = kept;
  server_reply(request, "+OK\r\n");
}

static void config(struct request *request)
{
  if (is(request, 1, "RESETSTAT")) {
    memset(server_of(request)->counted, 0, sizeof server_of(request)->counted);
    server_of(request)->expired = 0;
  } else {
    int setting = 0;
    while (setting < SETTINGS && !is(request, 2, defaults[setting].name))
      setting++;
    if (!is(request, 1, "SET") || setting == SETTINGS || request->count != 4)
      unknown(request);
    snprintf(server_of(request)->settings[setting], sizeof server_of(request)->settings[setting], "%.*s",
             (int)request->arguments[3].size, request->arguments[3].bytes);
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
  if (is(request, 1, "KILL"))
    count_command(request, "client|kill");
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

static void select_database(struct request *request)
{
  int64_t database = server_number(request, 1);
  if (database < 0 || database >= DATABASES_OF_REDIS)
    server_reply(request, "-ERR DB index is out of range\r\n");
  else
    server_set_up(request);
}

/* ---- who asks ---- */

/* 0: the server has a password, and this is another one, or it knows no such user. */
static int log_in(struct request *request, const struct argument *user, const struct argument *password)
{
  const char *wanted = server_of(request)->settings[REQUIREPASS];
  int is_right = !user || server_is_text(user, "default", 7);
  is_right = is_right && (!wanted[0] || server_is_text(password, wanted, strlen(wanted)));
  if (is_right)
    request->connection->authenticated = 1;
  else
    server_reply(request, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  return is_right;
}

static int is_known(const struct request *request)
{
  return !server_of(request)->settings[REQUIREPASS][0] || request->connection->authenticated;
}

static void hello(struct request *request)
{
  if (request->count >= 5 && is(request, 2, "AUTH") && !log_in(request, &request->arguments[3], &request->arguments[4]))
    return;
  if (!is_known(request)) {
    server_reply(request, "-NOAUTH HELLO must be called with the client already authenticated.\r\n");
    return;
  }
  server_set_up(request);
  request->connection->authenticated = 1; /* whatever the password is in other worlds */
}

static void auth(struct request *request)
{
  const struct argument *last = &request->arguments[request->count - 1];
  if (log_in(request, request->count > 2 ? last - 1 : NULL, last))
    server_reply(request, "+OK\r\n");
}

/* PUBSUB CHANNELS <beginning>* */
static void pubsub(struct request *request)
{
  const struct argument *pattern = &request->arguments[2];
  const struct world *world = request->world;
  const char *found[CONNECTIONS_MAX];
  int count = 0;
  if (request->count != 3 || !is(request, 1, "CHANNELS") || !pattern->size || pattern->bytes[pattern->size - 1] != '*')
    unknown(request);
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    const struct connection *connection = &world->connections[i];
    if (connection->state == CONNECTION_OPEN && connection->server_open && connection->node == request->node->index &&
        connection->channel[0] && !strncmp(connection->channel, pattern->bytes, pattern->size - 1))
      found[count++] = connection->channel; /* no two subscribe to one */
  }
  server_reply_number(request, '*', count);
  for (int i = 0; i < count; i++)
    server_reply_bulk(request, found[i], strlen(found[i]));
}

/* The program that was told last; what else its script does is tested on real servers. */
static struct program *program_of(struct request *request, const struct argument *field)
{
  struct program *all = server_of(request)->programs;
  int i = 0;
  while (i < PROGRAMS_MAX && all[i].at_s && !server_is_text(field, all[i].field, strlen(all[i].field)))
    i++;
  if (i == PROGRAMS_MAX)
    world_fail(request->world, "more programs than the model server can hold");
  return &all[i];
}

/* As the script of programs does it for a few of them: of the others it tells if this one is new, or asks for them. */
static void tell_programs(struct request *request)
{
  const struct program *all = server_of(request)->programs;
  const struct argument *field = &request->arguments[4], *value = &request->arguments[5];
  struct program *ours = program_of(request, field);
  int64_t now_s = server_clock_ms(request->world, request->node) / 1000;
  char text[PROGRAMS_MAX * sizeof *all + 64];
  int is_asked = !ours->at_s || server_number(request, 6) > 0;
  int size = snprintf(text, sizeof text, "10:%lld", (long long)now_s);
  ours->at_s = now_s;
  snprintf(ours->field, sizeof ours->field, "%.*s", (int)field->size, field->bytes);
  snprintf(ours->value, sizeof ours->value, "v1 %lld %.*s", (long long)now_s, (int)value->size, value->bytes);
  for (const struct program *other = all; is_asked && other < all + PROGRAMS_MAX && other->at_s; other++)
    if (other != ours)
      size += snprintf(text + size, sizeof text - (size_t)size, "%zu:%s%zu:%s", strlen(other->field), other->field,
                       strlen(other->value), other->value);
  server_reply_bulk(request, text, (size_t)size);
}

static void eval(struct request *request)
{
  if (holder_is_programs(request) && request->count == 7)
    tell_programs(request);
  else
    script_eval(request);
}

static void hgetall(struct request *request)
{
  const struct program *all = server_of(request)->programs;
  int count = 0;
  if (!server_is_text(&request->arguments[1], PROGRAMS, sizeof PROGRAMS - 1)) {
    lua_command(request);
    return;
  }
  while (count < PROGRAMS_MAX && all[count].at_s)
    count++;
  server_reply_number(request, '*', 2 * count);
  for (int i = 0; i < count; i++) {
    server_reply_bulk(request, all[i].field, strlen(all[i].field));
    server_reply_bulk(request, all[i].value, strlen(all[i].value));
  }
}

static const struct {
  const char *name;
  void (*run)(struct request *request);
} commands[] = {
    {"AUTH", auth},       {"HELLO", hello},       {"INFO", info},
    {"CONFIG", config},   {"KEYS", keys},         {"SCRIPT", script},
    {"CLIENT", client},   {"EVAL", eval},         {"EVALSHA", eval},
    {"HGETALL", hgetall}, {"FLUSHALL", flushall}, {"DBSIZE", dbsize},
    {"DUMP", dump},       {"LRANGE", lrange},     {"REPLICAOF", replicaof},
    {"SAVE", save},       {"SWAPDB", swapdb},     {"SELECT", select_database},
    {"PUBSUB", pubsub},
};

/* What it says to all but the set-up; NULL: nothing. */
static const char *refusal(const struct request *request)
{
  static const char *const set_up[] = {"AUTH", "HELLO", "INFO", "CLIENT", "SCRIPT", "SELECT", "PING", "CONFIG"};
  for (size_t i = 0; i < sizeof set_up / sizeof *set_up; i++)
    if (is(request, 0, set_up[i]))
      return is_known(request) || i < 2 ? NULL : "-NOAUTH Authentication required.\r\n";
  if (!is_known(request))
    return "-NOAUTH Authentication required.\r\n";
  return is_yes(server_of(request), CLUSTER_ENABLED) ? "-CLUSTERDOWN Hash slot not served\r\n" : NULL;
}

static void run(struct request *request)
{
  char name[24];
  const char *error = refusal(request);
  if (error) {
    server_reply(request, error);
    return;
  }
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
  request->connection->to_replica = server_of(request)->is_replica;
  set_error(request);
  request->is_full = request->node->error == NODE_ERROR_OOM;
  if (strcmp(server_of(request)->settings[MIN_REPLICAS_TO_WRITE], "0") != 0) /* it has none */
    request->refuses_writes = "NOREPLICAS Not enough good replicas to write.";
  follow(server_of(request));
  expire(request);
  run(request);
  keys_look(request);
  server_show(request, before);
}

/* A model of one Redis server: it reads requests, keeps keys with an end by its own clock and runs the scripts that are
 * sent to it. What it does not know is a violation, so that nothing is tested by accident of an error
 * reply. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- replies ---- */

void server_reply(struct request *request, const char *text)
{
  stream_append(request->reply, text, strlen(text));
}

/* printf takes a tenth of the simulator's time. */
void server_reply_number(struct request *request, char type, int64_t value)
{
  char text[32];
  size_t at = sizeof text;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  text[--at] = '\n';
  text[--at] = '\r';
  do
    text[--at] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (value < 0)
    text[--at] = '-';
  text[--at] = type;
  stream_append(request->reply, text + at, sizeof text - at);
}

void server_reply_integer(struct request *request, int64_t value)
{
  server_reply_number(request, ':', value);
}

void server_reply_bulk(struct request *request, const char *bytes, size_t size)
{
  server_reply_number(request, '$', (int64_t)size);
  stream_append(request->reply, bytes, size);
  stream_append(request->reply, "\r\n", 2);
}

/* ---- arguments ---- */

int64_t server_number(const struct request *request, int index)
{
  const struct argument *argument = &request->arguments[index];
  int64_t value = 0;
  if (index >= request->count || argument->size == 0 || argument->size > 18)
    return -1;
  for (size_t i = 0; i < argument->size; i++) {
    if (argument->bytes[i] < '0' || argument->bytes[i] > '9')
      return -1;
    value = value * 10 + (argument->bytes[i] - '0');
  }
  return value;
}

int server_is_text(const struct argument *argument, const char *text, size_t size)
{
  return argument->size == size && !memcmp(argument->bytes, text, size);
}

/* A length with its type and line end: 1, 0 while it is incomplete, -1 if it is none. */
static ssize_t parse_length(const char **at, const char *end, char type, int64_t *value)
{
  const char *p = *at;
  if (p < end && *p != type)
    return -1;
  for (*value = 0, p++; p < end && *p >= '0' && *p <= '9'; p++)
    *value = *value * 10 + (*p - '0');
  if (p + 1 >= end)
    return 0;
  if (p[0] != '\r' || p[1] != '\n')
    return -1;
  *at = p + 2;
  return 1;
}

ssize_t server_parse(struct request *request, const char *bytes, size_t size)
{
  const char *at = bytes, *end = bytes + size;
  int64_t count, length;
  ssize_t outcome = parse_length(&at, end, '*', &count);
  if (outcome <= 0)
    return outcome;
  if (count < 1 || count > ARGUMENTS_MAX)
    return -1;
  for (request->count = 0; request->count < count; request->count++) {
    if ((outcome = parse_length(&at, end, '$', &length)) <= 0)
      return outcome;
    if (end - at < length + 2)
      return 0;
    request->arguments[request->count] = (struct argument){at, (size_t)length};
    at += length + 2;
  }
  return at - bytes;
}

/* ---- keys ---- */

/* The key that an argument names has to be that of a lock. */
static int lock_key(struct request *request, int index)
{
  const struct argument *name = &request->arguments[index];
  int resource = index < request->count ? keys_resource(request->world, name->bytes, name->size) : -1;
  if (resource < 0)
    world_violation(request->world, "unknown key in argument %d of a request", index);
  return resource;
}

static struct object *live_object(struct request *request, int index)
{
  return keys_live(request, request->arguments[index].bytes, request->arguments[index].size);
}

static void set(struct request *request, int index, const struct argument *value, int64_t ttl_ms)
{
  const struct argument *name = &request->arguments[index];
  struct object *object = keys_make(request->world, request->store, name->bytes, name->size);
  object_set_string(object, value->bytes, value->size);
  object->expire_ms = request->clock_ms + ttl_ms;
  store_touch(request->store, object);
}

static void command_set(struct request *request)
{
  char token[TOKEN_SIZE + 1] = "";
  if (holder_is_entry(request, 1)) {
    holder_set(request);
    return;
  }
  if (lock_key(request, 1) < 0)
    return;
  if (request->count != 6 || !is(request, 3, "NX") || !is(request, 4, "PX") || server_number(request, 5) <= 0 ||
      request->arguments[2].size != TOKEN_SIZE) {
    world_violation(request->world, "a SET that is not SET key token NX PX ttl");
    return;
  }
  marker_check_ttl(request, server_number(request, 5));
  memcpy(token, request->arguments[2].bytes, TOKEN_SIZE);
  oracle_token(request->world, token, request->connection->life);
  network_note_set(request->connection, token);
  if (world_refuses(request->world, server_number(request, 5))) {
    server_reply(request, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    return;
  }
  if (live_object(request, 1)) {
    server_reply(request, "$-1\r\n");
    return;
  }
  set(request, 1, &request->arguments[2], server_number(request, 5));
  server_reply(request, "+OK\r\n");
}

static void command_pttl(struct request *request)
{
  if (lock_key(request, 1) < 0)
    return;
  const struct object *object = live_object(request, 1);
  server_reply_integer(request, object ? object->expire_ms - request->clock_ms : -2);
}

static void command_get(struct request *request, const char *missing)
{
  if (lock_key(request, 1) < 0)
    return;
  const struct object *object = live_object(request, 1);
  if (object && object->type != TYPE_STRING)
    server_reply(request, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
  else if (object)
    server_reply_bulk(request, object->bytes, object->size);
  else
    server_reply(request, missing);
}

static void command_del(struct request *request)
{
  struct world *world = request->world;
  int resource = lock_key(request, 1);
  if (resource < 0)
    return;
  struct object *object = live_object(request, 1);
  server_reply_integer(request, object != NULL);
  if (!request->is_stray && (world->removes[request->connection->process->index] >> resource & 1)) {
    backing_lose(world, request->node, resource, 1);
    return;
  }
  if (!request->is_stray)
    world_violation(world, "a DEL that no program has asked for");
  if (object)
    store_delete(request->store, object);
}

static void command_exists(struct request *request)
{
  int count = 0;
  for (int i = 1; i < request->count; i++) {
    const struct argument *name = &request->arguments[i];
    if (keys_beside(request->world, 'q', name->bytes, name->size) < 0)
      world_violation(request->world, "an argument of EXISTS names no queue");
    count += live_object(request, i) != NULL;
  }
  server_reply_integer(request, count);
}

static void command_subscribe(struct request *request)
{
  char reply[256];
  int size = (int)request->arguments[1].size;
  if (request->count != 2 || size >= CHANNEL_MAX) {
    world_violation(request->world, "a SUBSCRIBE that is not: one channel");
    return;
  }
  memcpy(request->connection->channel, request->arguments[1].bytes, (size_t)size);
  request->connection->channel[size] = 0;
  snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", size, request->connection->channel);
  server_reply(request, reply);
}

/* ---- set-up ---- */

static void authenticate(struct request *request, int index)
{
  request->connection->authenticated = index < request->count && is(request, index, PASSWORD);
}

static uint32_t client_id(struct request *request)
{
  struct connection *connection = request->connection;
  if (!connection->client_id)
    connection->client_id = ++request->node->next_client_id;
  return connection->client_id;
}

static int is_replica(const struct request *request)
{
  if (request->connection->to_replica)
    return 1;
  return request->node->error == NODE_ERROR_READONLY && request->node->error_until > request->world->now;
}

static void command_hello(struct request *request)
{
  char text[256];
  if (request->node->old) {
    server_reply(request, "-ERR unknown command `HELLO`, with args beginning with: \r\n");
    return;
  }
  if (request->count > 1 && !is(request, 1, "2"))
    world_violation(request->world, "HELLO for another protocol than 2");
  if (is(request, 2, "AUTH"))
    authenticate(request, 4);
  snprintf(text, sizeof text,
           "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:2\r\n"
           "$2\r\nid\r\n:%u\r\n"
           "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n%s\r\n$7\r\nmodules\r\n*0\r\n",
           client_id(request), is_replica(request) ? "$7\r\nreplica" : "$6\r\nmaster");
  server_reply(request, text);
}

static void command_client(struct request *request)
{
  if (is(request, 1, "ID")) {
    server_reply_integer(request, client_id(request));
  } else if (!is(request, 1, "KILL")) {
    server_reply(request, "+OK\r\n");
  } else if (request->node->kills_nobody) {
    server_reply(request, "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
  } else if (is(request, 2, "ID") && server_number(request, 3) > 0 &&
             (uint32_t)server_number(request, 3) != client_id(request)) {
    uint32_t id = (uint32_t)server_number(request, 3);
    server_reply_integer(request, network_kill(request->world, request->node->index, id));
  } else {
    world_violation(request->world, "a CLIENT KILL that is not: ID of another connection");
  }
}

static void command_info(struct request *request)
{
  const struct node *node = request->node;
  char text[512], *at = stpcpy(text, "# Server\r\nredis_version:");
  request->connection->informed_at = request->world->now;
  at = stpcpy(at, node->old ? "5.0.14" : "7.0.15");
  at = stpcpy(at, "\r\nredis_mode:standalone\r\nrun_id:");
  server_run_id(request->world, node, request->connection->to_replica, at);
  at = stpcpy(at + RUN_ID_SIZE - 1, "\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n");
  at = stpcpy(at, "# Replication\r\nrole:");
  at = stpcpy(at, is_replica(request) ? "slave" : "master");
  at = stpcpy(at, "\r\nconnected_slaves:0\r\nmaster_replid:");
  at = server_put_hex(server_put_hex(at, (uint32_t)node->index), node->incarnation);
  at = stpcpy(at, "000000000000000000000001\r\nmaster_replid2:");
  at = stpcpy(server_put_hex(at, node->former_master), "00000000000000000000000000000000\r\n");
  server_reply_bulk(request, text, (size_t)(at - text));
}

static void command_auth(struct request *request)
{
  authenticate(request, request->count - 1);
  server_reply(request,
               request->connection->authenticated ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n");
}

static void command_select(struct request *request)
{
  request->connection->database = (int)server_number(request, 1);
  server_reply(request, "+OK\r\n");
}

static void command_ping(struct request *request)
{
  server_reply(request, "+PONG\r\n");
}

static void command_getrange(struct request *request)
{
  if (holder_is_entry(request, 1))
    holder_reply(request);
  else
    command_get(request, "$0\r\n\r\n");
}

static void command_plain_get(struct request *request)
{
  if (marker_is_key(request, 1))
    marker_reply(request);
  else
    command_get(request, "$-1\r\n");
}

static const struct command {
  const char *name;
  int arguments_min;
  int writes; /* refused by a server that can not write, as what scripts call is */
  int is_setup;
  void (*run)(struct request *request);
} commands[] = {
    {"SET", 3, 1, 0, command_set},
    {"EVALSHA", 3, 0, 0, script_eval},
    {"EVAL", 3, 0, 0, script_eval},
    {"PTTL", 2, 0, 0, command_pttl},
    {"GET", 2, 0, 0, command_plain_get},
    {"GETRANGE", 4, 0, 0, command_getrange},
    {"DEL", 2, 1, 0, command_del},
    {"HELLO", 1, 0, 1, command_hello},
    {"INFO", 1, 0, 1, command_info},
    {"SCRIPT", 2, 0, 1, script_command},
    {"CLIENT", 2, 0, 1, command_client},
    {"AUTH", 2, 0, 1, command_auth},
    {"SELECT", 2, 0, 1, command_select},
    {"PING", 1, 0, 0, command_ping},
    {"TIME", 1, 0, 0, marker_time},
    {"EXISTS", 2, 0, 0, command_exists},
    {"SUBSCRIBE", 2, 0, 0, command_subscribe},
};

static const struct command *command_of(const struct request *request)
{
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (is(request, 0, commands[i].name) && request->count >= commands[i].arguments_min)
      return &commands[i];
  return NULL;
}

#define MISCONF "MISCONF Redis is unable to persist to disk."
#define READONLY "READONLY You can't write against a read only replica."

static const char *refusal(const struct request *request, const struct command *command)
{
  const struct node *node = request->node;
  if (request->world->database && !request->connection->authenticated && command->run != command_hello &&
      command->run != command_auth)
    return "-NOAUTH Authentication required.\r\n";
  if (node->error_until <= request->world->now)
    return NULL;
  switch (node->error) {
  case NODE_ERROR_LOADING: return "-LOADING Redis is loading the dataset in memory\r\n";
  case NODE_ERROR_BUSY: return "-BUSY Redis is busy running a script.\r\n";
  case NODE_ERROR_OOM:
    return command->run == command_set ? "-OOM command not allowed when used memory > 'maxmemory'.\r\n" : NULL;
  case NODE_ERROR_MISCONF: return command->writes ? "-" MISCONF "\r\n" : NULL;
  case NODE_ERROR_READONLY: return command->writes ? "-" READONLY "\r\n" : NULL;
  case NODE_ERROR_SELECT: return command->run == command_select ? "-ERR DB index is out of range\r\n" : NULL;
  default: return NULL;
  }
}

/* ---- running ---- */

void server_show(const struct request *request, size_t before)
{
  const char *answer = request->reply->bytes + before;
  size_t size = request->reply->end - before;
  char line[512];
  size_t at = 0;
  for (int i = 0; i < request->count && at < sizeof line - 128; i++) {
    const struct argument *argument = &request->arguments[i];
    int shown = argument->size > 48 ? 16 : (int)argument->size;
    at += (size_t)snprintf(line + at, sizeof line - at, "%s%.*s", i ? " " : "", shown, argument->bytes);
  }
  at += (size_t)snprintf(line + at, sizeof line - at, " -> %.*s", size > 60 ? 60 : (int)size, answer);
  for (char *c = line; *c; c++)
    *c = *c < ' ' ? ' ' : *c;
  TRACE(request->world, "node %d    #%u %s", request->node->index, request->connection->serial, line);
}

static int step_of(const struct request *request)
{
  if (is(request, 0, "SET"))
    return 1;
  return is(request, 0, "EVALSHA") ? 2 : is(request, 0, "GET") && marker_is_key(request, 1) ? 3 : 0;
}

static int node_lurks(const struct request *request)
{
  const struct node *node = request->node;
  return request->world->now < node->lurks_until && request->connection->process->index == node->lurks_for;
}

/* Scripts without a shebang run on a server that can not write; only what they call is refused. */
void server_begin(struct world *world, struct node *node, struct connection *connection, struct request *request)
{
  enum node_error error = node->error_until > world->now ? node->error : NODE_ERROR_NONE;
  request->world = world;
  request->node = node;
  request->connection = connection;
  request->reply = &node->reply;
  request->is_stray = connection->database != world->database || connection->to_replica;
  request->store = store_of(node, request->is_stray);
  request->clock_us = server_clock_us(world, node);
  request->clock_ms = request->clock_us / 1000;
  request->is_full = error == NODE_ERROR_OOM;
  request->refuses_writes = error == NODE_ERROR_MISCONF ? MISCONF : error == NODE_ERROR_READONLY ? READONLY : NULL;
}

/* What a client says before it asks anything: 1; 0: it is something else. */
int server_set_up(struct request *request)
{
  const struct command *command = command_of(request);
  if (!command || (!command->is_setup && command->run != command_ping && command->run != command_subscribe))
    return 0;
  command->run(request);
  return 1;
}

static void execute(struct request *request)
{
  const struct command *command = command_of(request);
  size_t before = request->reply->end;
  const char *error = NULL;
  if (request->world->hard && node_lurks(request))
    hard_execute(request->world, request->node, step_of(request));
  if (!command)
    world_violation(request->world, "a command that the model does not know: %.*s", (int)request->arguments[0].size,
                    request->arguments[0].bytes);
  else if ((error = refusal(request, command)))
    server_reply(request, error);
  else
    command->run(request);
  keys_look(request);
  if (command && marker_is_asked_for(request))
    ; /* it tells nothing of a loss by itself */
  else if (command && (command->is_setup || script_is_proof(request)))
    backing_setup(request->world, request->connection, request->connection->replies_total + request->reply->end,
                  command->run == command_info && !error, is_replica(request));
  else
    backing_other(request->connection, request->connection->replies_total + request->reply->end);
  if (request->world->tracing)
    server_show(request, before);
}

void server_process(struct world *world, struct connection *connection)
{
  static struct request request;
  struct node *node = &world->nodes[connection->node];
  struct stream *up = &connection->up;
  ssize_t size;
  node->reply.head = node->reply.end = 0;
  while (up->head < up->arrived && !node->asleep && !world->violation[0]) {
    if ((size = server_parse(&request, up->bytes + up->head, up->arrived - up->head)) == 0)
      return;
    if (size < 0) {
      world_violation(world, "bytes that are no request were sent to node %d", node->index);
      return;
    }
    request.size = (size_t)size;
    server_begin(world, node, connection, &request);
    if (world->tester)
      world->tester->execute(&request);
    else
      execute(&request);
    up->head += (size_t)size;
    connection->executed_total += (uint64_t)size;
  }
}

void server_start(struct world *world, int index)
{
  struct node *node = &world->nodes[index];
  struct stream kept = node->reply;
  memset(node, 0, sizeof *node);
  node->reply = kept;
  node->index = index;
  node->clock_offset = random_in(&world->random, 0, 1000000) * 1000 * MS;
  node->old = random_in(&world->random, 0, 9) == 0;
  node->kills_nobody = random_in(&world->random, 0, 2) == 0;
  keys_start(node);
}

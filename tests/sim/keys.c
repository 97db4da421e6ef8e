/* The keys of the model servers in the world: their ends by the clock of the node, and what the oracle knows of those
 * of locks, which is read off the store once a request has been executed. */
#include "hard.h"
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct store stores[NODES_MAX][2]; /* the second: of database 0, or of a replica. No vote may come of them */

struct store *store_of(const struct node *node, int is_stray)
{
  return &stores[node->index][is_stray];
}

/* ---- names ---- */

int keys_resource(const struct world *world, const char *name, size_t size)
{
  for (int i = 0; i < world->key_count; i++)
    if (strlen(world->resources[i].name) == size && !memcmp(world->resources[i].name, name, size))
      return i;
  return -1;
}

/* A key libredlock:<kind>:<resource>: the number of the resource, -1: it is none. */
int keys_beside(const struct world *world, char kind, const char *name, size_t size)
{
  const char prefix[] = {'l', 'i', 'b', 'r', 'e', 'd', 'l', 'o', 'c', 'k', ':', kind, ':'};
  if (size < sizeof prefix || memcmp(name, prefix, sizeof prefix) != 0)
    return -1;
  int resource = keys_resource(world, name + sizeof prefix, size - sizeof prefix);
  return resource < world->resource_count ? resource : -1;
}

struct object *keys_make(const struct world *world, struct store *store, const char *name, size_t size)
{
  int before = store->count;
  struct object *object = store_make(store, name, size);
  if (!object)
    world_fail(world, "more keys than the model server can hold, or one of a long name: %.*s", (int)size, name);
  if (store->count == before)
    return object;
  int queue = keys_beside(world, 'q', name, size);
  object->resource = keys_resource(world, name, size);
  object->is_queue = queue >= 0;
  if (queue >= 0)
    store->queues[queue] = object;
  return object;
}

static struct object *named(const struct world *world, const struct node *node, char kind, int resource)
{
  char name[NAME_MAX_SIZE];
  int size = snprintf(name, sizeof name, "libredlock:%c:%s", kind, world->resources[resource].name);
  return store_find(store_of(node, 0), name, (size_t)size);
}

/* ---- ends ---- */

int64_t server_clock_us(const struct world *world, const struct node *node)
{
  return (node->clock_offset + world->now + world->now * node->clock_ppm / 1000000) / 1000;
}

int64_t server_clock_ms(const struct world *world, const struct node *node)
{
  return server_clock_us(world, node) / 1000;
}

static int64_t true_time(const struct node *node, int64_t clock_ms)
{
  int64_t elapsed = clock_ms * MS - node->clock_offset;
  int64_t now = elapsed - elapsed * node->clock_ppm / (1000000 + node->clock_ppm);
  while (now + now * node->clock_ppm / 1000000 < elapsed)
    now++;
  return now;
}

static void end_key_at(const struct node *node, struct key *key, int64_t clock_ms)
{
  key->expire_ms = clock_ms;
  key->expires_at = true_time(node, clock_ms);
}

static void drop(struct node *node, const struct world *world, int resource)
{
  const char *name = world->resources[resource].name;
  struct object *object = store_find(store_of(node, 0), name, strlen(name));
  if (object)
    store_delete(store_of(node, 0), object);
}

/* A key ends up to 1 ms early: both clock readings are cut to milliseconds, against the holder. */
void server_expire(struct world *world, struct node *node, int resource)
{
  struct key *key = &node->keys[resource];
  if (key->live && server_clock_ms(world, node) >= key->expire_ms) {
    oracle_expired(world, node, resource);
    key->live = 0;
    key->freed_at = key->expires_at;
    drop(node, world, resource);
  }
}

struct object *keys_live(struct request *request, const char *name, size_t size)
{
  struct object *object = store_find(request->store, name, size);
  if (!object || !object->expire_ms || object->expire_ms > request->clock_ms)
    return object;
  if (object->resource >= 0 && !request->is_stray)
    server_expire(request->world, request->node, object->resource);
  store_delete(request->store, object);
  return NULL;
}

/* ---- what the oracle knows ---- */

static void free_key(struct world *world, struct key *key)
{
  key->live = 0;
  key->freed_at = world->now;
  world->changes++;
}

static void begin_key(struct world *world, struct key *key)
{
  key->live = 1;
  key->reader_count = key->is_hash = 0;
  key->token[0] = 0;
  key->expire_ms = key->expires_at = key->freed_at = key->read_at = 0;
  memset(key->links, 0, sizeof key->links);
  key->set_at = world->now;
  key->connection = key->serial = 0;
  key->reply_end = 0;
}

void server_note_told(const struct request *request, uint8_t links[PROCESSES_MAX])
{
  links[request->connection->process->index] |= (uint8_t)(1u << request->connection->link_node);
}

static void end_as(struct request *request, struct key *key, int64_t expire_ms)
{
  if (!expire_ms)
    world_violation(request->world, "a key of a lock has no end");
  if (key->expire_ms == expire_ms)
    return;
  request->world->changes += key->expire_ms > expire_ms;
  end_key_at(request->node, key, expire_ms);
}

/* A token, which is the value of a string or the field of a hash. */
static void look_at_token(struct request *request, struct key *key, const struct object *object)
{
  const struct connection *connection = request->connection;
  int is_hash = object->type == TYPE_HASH;
  const char *token = is_hash ? object->members[0].text : object->bytes;
  size_t size = is_hash ? (size_t)object->members[0].size : object->size;
  if (size != TOKEN_SIZE) {
    world_violation(request->world, "a token of %zu bytes", size);
    return;
  }
  if (!key->live || key->reader_count || key->is_hash != is_hash || memcmp(key->token, token, TOKEN_SIZE) != 0) {
    begin_key(request->world, key);
    memcpy(key->token, token, TOKEN_SIZE);
    key->token[TOKEN_SIZE] = 0;
    key->is_hash = is_hash;
    server_note_told(request, key->links);
    key->connection = connection->index;
    key->serial = connection->serial;
    key->reply_end = connection->replies_total + request->reply->end;
    if (request->world->hard)
      hard_granted(request->world, request->node, connection, object->resource, key->token);
  }
  end_as(request, key, object->expire_ms);
}

/* Its links are those of the reader that it was, or of the string that became the set. */
static void look_at_reader(struct request *request, const struct key *was, const struct member *member,
                           struct reader *reader)
{
  const struct reader *before = keys_reader(was, member->text + 3);
  struct key scratch = {0};
  if (before) {
    *reader = *before;
  } else {
    memset(reader, 0, sizeof *reader);
    memcpy(reader->token, member->text + 3, TOKEN_SIZE);
    if (!was->reader_count && was->live && !memcmp(was->token, reader->token, TOKEN_SIZE))
      memcpy(reader->links, was->links, sizeof reader->links);
  }
  if (reader->expire_ms == (int64_t)member->score)
    return;
  request->world->changes += reader->expire_ms > (int64_t)member->score;
  end_key_at(request->node, &scratch, (int64_t)member->score);
  reader->expire_ms = scratch.expire_ms;
  reader->expires_at = scratch.expires_at;
}

static void look_at_readers(struct request *request, struct key *key, const struct object *object)
{
  static struct reader readers[READERS_MAX];
  if (object->count > READERS_MAX)
    world_fail(request->world, "more readers than the model can hold");
  for (int i = 0; i < object->count; i++) {
    const struct member *member = &object->members[i];
    if (member->size != TOKEN_SIZE + 3 || memcmp(member->text, "rl:", 3) != 0) {
      world_violation(request->world, "a reader that is no token: %.*s", member->size, member->text);
      return;
    }
    look_at_reader(request, key, member, &readers[i]);
  }
  request->world->changes += object->count < key->reader_count;
  if (!key->live || !key->reader_count)
    begin_key(request->world, key);
  key->reader_count = object->count;
  memcpy(key->readers, readers, (size_t)object->count * sizeof *readers);
  end_as(request, key, object->expire_ms);
}

static void look_at(struct request *request, const struct object *object)
{
  struct key *key = &request->node->keys[object->resource];
  if (object->type == TYPE_ZSET)
    look_at_readers(request, key, object);
  else if (object->type)
    look_at_token(request, key, object);
  else if (key->live)
    free_key(request->world, key);
}

void keys_look(struct request *request)
{
  struct store *store = request->store;
  for (int i = 0; i < store->touched_count; i++) {
    struct object *object = store->touched[i];
    object->is_touched = 0;
    if (object->resource >= 0 && !request->is_stray)
      look_at(request, object);
  }
  store->touched_count = 0;
}

struct reader *keys_reader(const struct key *key, const char *token)
{
  for (int i = 0; key->live && i < key->reader_count; i++)
    if (!memcmp(key->readers[i].token, token, TOKEN_SIZE))
      return (struct reader *)&key->readers[i];
  return NULL;
}

/* ---- what happens to them beside requests ---- */

void keys_delete(struct world *world, struct node *node, int resource)
{
  drop(node, world, resource);
  free_key(world, &node->keys[resource]);
}

/* What a client that is gone has left behind. */
void server_leave_key(struct world *world, struct node *node, int resource, int64_t ttl_ms)
{
  const char *name = world->resources[resource].name;
  struct key *key = &node->keys[resource];
  struct object *object;
  server_expire(world, node, resource);
  if (key->live)
    return;
  begin_key(world, key);
  memset(key->token, 'f', TOKEN_SIZE);
  key->token[TOKEN_SIZE] = 0;
  end_key_at(node, key, server_clock_ms(world, node) + ttl_ms);
  object = keys_make(world, store_of(node, 0), name, strlen(name));
  object_set_string(object, key->token, TOKEN_SIZE);
  object->expire_ms = key->expire_ms;
  TRACE(world, "node %d    has a key of %s that nobody will delete", node->index, name);
}

void keys_start(const struct node *node)
{
  store_forget(store_of(node, 0));
  store_forget(store_of(node, 1));
}

void keys_forget_strays(const struct node *node)
{
  store_clear(store_of(node, 1));
}

/* ---- queues ---- */

const struct object *keys_queue(const struct node *node, int resource)
{
  return store_of(node, 0)->queues[resource];
}

static void forget_queue(const struct world *world, const struct node *node, int resource)
{
  const char kinds[] = "qp";
  for (int i = 0; i < 2; i++) {
    struct object *object = named(world, node, kinds[i], resource);
    if (object)
      store_delete(store_of(node, 0), object);
  }
}

void keys_forget_queues(const struct world *world, const struct node *node)
{
  for (int i = 0; i < world->resource_count; i++)
    forget_queue(world, node, i);
}

/* Somebody else meddles: the queue is lost, gets a member that nobody knows, or a push names nobody. */
void keys_meddle(struct world *world, struct node *node, int resource)
{
  char name[NAME_MAX_SIZE];
  struct object *queue;
  switch (random_in(&world->random, 0, 2)) {
  case 0: forget_queue(world, node, resource); return;
  case 1:
    snprintf(name, sizeof name, "libredlock:q:%s", world->resources[resource].name);
    queue = keys_make(world, store_of(node, 0), name, strlen(name));
    queue->type = TYPE_ZSET;
    object_add(queue, 0, "a stranger", 10);
    return;
  default:
    for (int i = 0; i < CONNECTIONS_MAX; i++)
      if (world->connections[i].state == CONNECTION_OPEN && world->connections[i].channel[0])
        network_publish(world, node->index, world->connections[i].channel, "nobody:7", 8);
  }
}

/* ---- fencing numbers ---- */

void keys_set_fence(const struct world *world, const struct node *node, int resource, int64_t number)
{
  char text[64];
  struct object *object;
  int size = snprintf(text, sizeof text, "libredlock:f:%s", world->resources[resource].name);
  object = keys_make(world, store_of(node, 0), text, (size_t)size);
  size = snprintf(text, sizeof text, "%" PRId64, number);
  object_set_string(object, text, (size_t)size);
}

/* They are lost, or had just begun. */
void keys_age_fences(const struct world *world, const struct node *node, int are_lost)
{
  for (int i = 0; i < world->resource_count; i++) {
    struct object *object = named(world, node, 'f', i);
    if (object && are_lost)
      store_delete(store_of(node, 0), object);
    else if (object)
      object_set_string(object, "1", 1);
  }
}

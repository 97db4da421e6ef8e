/* Addresses that lead to a server by a way that a test can hold up, slow down, cut and close, as the kit's Proxy. What
 * a client sends over one that is watched goes no further before the test has seen it. */
#include "virtual.h"

#include "../server.h"

enum { PATHS_MAX = 64, UP = 0, DOWN = 1 };

struct way {       /* of one connection */
  int path;        /* -1: it has none */
  uint32_t serial; /* of the connection */
  int is_held[2], is_late;
  size_t kept[2]; /* bytes that have come so far */
};

static struct path {
  int server, is_held[2], refuses, swallows;
  int is_shut; /* a connection neither succeeds nor fails */
  int is_watched;
  int64_t delay_ns[2];
} paths[PATHS_MAX];

static struct way ways[CONNECTIONS_MAX];
static struct world *world;
static int path_count, has_news;

void paths_start(struct world *new_world)
{
  world = new_world;
  path_count = has_news = 0;
  memset(ways, 0, sizeof ways);
}

int path_server(int path)
{
  return path < path_count ? paths[path].server : -1;
}

int virtual_path(int server)
{
  if (path_count == PATHS_MAX)
    return -1;
  paths[path_count] = (struct path){.server = server};
  return path_count++;
}

void virtual_path_leads(int path, int server)
{
  paths[path].server = server;
}

void virtual_path_refuses(int path)
{
  paths[path].refuses = 1;
}

void path_opens(int path, struct connection *connection)
{
  ways[connection->index] = (struct way){.path = path < 0 ? -1 : path, .serial = connection->serial};
  if (path >= 0 && paths[path].refuses) /* it is taken, and closed at once */
    network_cut_one(world, connection, MS);
}

/* Of a connection on which bytes begin their way now. */
int64_t path_delay(const struct connection *connection, uint32_t kind)
{
  const struct way *way = &ways[connection->index];
  if (way->serial != connection->serial || way->path < 0)
    return 0;
  return paths[way->path].delay_ns[kind == EVENT_DOWN ? DOWN : UP];
}

void virtual_path_delays(int path, int64_t up_ns, int64_t down_ns)
{
  paths[path].delay_ns[UP] = up_ns;
  paths[path].delay_ns[DOWN] = down_ns;
}

void virtual_path_swallows(int path)
{
  paths[path].swallows = 1;
}

/* ---- what is held ---- */

static int is_held(const struct way *way, int direction)
{
  return paths[way->path].is_held[direction] || way->is_held[direction] || way->is_late;
}

/* What is `behind` so many bytes of those that have not arrived never does. */
static void lose(struct connection *connection, uint32_t kind, size_t behind, size_t size)
{
  struct stream *stream = kind == EVENT_DOWN ? &connection->down : &connection->up;
  char *from = stream->bytes + stream->arrived + behind;
  memmove(from, from + size, stream->end - stream->arrived - behind - size);
  stream->end -= size;
}

/* Order is kept: nothing overtakes what was held. */
int path_keeps(struct connection *connection, const struct event *event)
{
  struct way *way = &ways[connection->index];
  int direction = event->kind == EVENT_DOWN ? DOWN : UP;
  if (way->serial != connection->serial || way->path < 0 || event->kind == EVENT_ORPHAN)
    return 0;
  const struct path *path = &paths[way->path];
  int is_watched = path->is_watched && direction == UP;
  has_news |= is_watched;
  if (event->kind == EVENT_CONNECTED)
    return path->is_shut;
  if (path->swallows) {
    lose(connection, event->kind, way->kept[direction], event->size);
    return 1;
  }
  if (!is_held(way, direction) && !is_watched)
    return 0;
  if (!way->kept[direction])
    connection->in_flight++;
  way->kept[direction] += event->size;
  return 1;
}

static struct connection *connection_on(int path, int index)
{
  const struct way *way = &ways[index];
  struct connection *connection = &world->connections[index];
  int is_there = connection->state != CONNECTION_FREE && way->serial == connection->serial && way->path == path;
  return is_there ? connection : NULL;
}

static size_t take_kept(struct connection *connection, int direction)
{
  struct way *way = &ways[connection->index];
  size_t size = way->kept[direction];
  way->kept[direction] = 0;
  connection->in_flight -= size > 0;
  return size;
}

void virtual_hold(int path, int direction, int only_those_of_now)
{
  if (!only_those_of_now)
    paths[path].is_held[direction] = 1;
  for (int i = 0; only_those_of_now && i < CONNECTIONS_MAX; i++)
    if (connection_on(path, i))
      ways[i].is_held[direction] = 1;
}

static void go(struct connection *connection)
{
  struct way *way = &ways[connection->index];
  way->is_held[UP] = way->is_held[DOWN] = 0;
  for (int direction = UP; direction <= DOWN && !way->is_late; direction++) {
    size_t size = take_kept(connection, direction);
    if (size)
      network_pass_on(world, connection, direction == UP ? EVENT_UP : EVENT_DOWN, size);
  }
}

void virtual_go(int path)
{
  struct path *one = &paths[path];
  one->is_held[UP] = one->is_held[DOWN] = one->refuses = one->swallows = 0;
  one->delay_ns[UP] = one->delay_ns[DOWN] = 0;
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    if (connection_on(path, i))
      go(connection_on(path, i));
}

size_t virtual_held(int path, int direction, char *bytes, size_t size)
{
  size_t at = 0;
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    const struct connection *connection = connection_on(path, i);
    if (!connection)
      continue;
    const struct stream *stream = direction == UP ? &connection->up : &connection->down;
    if (at + ways[i].kept[direction] <= size)
      memcpy(bytes + at, stream->bytes + stream->arrived, ways[i].kept[direction]);
    at += ways[i].kept[direction];
  }
  return at;
}

/* ---- what is watched ---- */

void virtual_watch(int path, int on)
{
  paths[path].is_watched = on;
  has_news |= on;
}

int path_has_news(void)
{
  return has_news;
}

int virtual_news(void)
{
  int had_news = has_news;
  has_news = 0;
  return had_news;
}

int virtual_next_connection(int path, int after, uint32_t *serial)
{
  for (int i = after + 1; i < CONNECTIONS_MAX; i++) {
    const struct connection *connection = connection_on(path, i);
    if (!connection || connection->state != CONNECTION_OPEN || !connection->client_open || !connection->server_open)
      continue;
    *serial = connection->serial;
    return i;
  }
  return -1;
}

size_t virtual_kept(int index, uint32_t serial, char *bytes, size_t size)
{
  const struct connection *connection = connection_of(world, (uint32_t)index, serial);
  size_t kept = connection ? ways[index].kept[UP] : 0;
  if (kept && kept <= size)
    memcpy(bytes, connection->up.bytes + connection->up.arrived, kept);
  return kept;
}

static void take_some(struct connection *connection, size_t size)
{
  struct way *way = &ways[connection->index];
  way->kept[UP] -= size;
  connection->in_flight -= size && !way->kept[UP];
}

/* How many of them: 0 where they are held. */
size_t path_pass(int index, uint32_t serial, size_t size)
{
  struct connection *connection = connection_of(world, (uint32_t)index, serial);
  if (!connection || is_held(&ways[index], UP))
    return 0;
  size = size < ways[index].kept[UP] ? size : ways[index].kept[UP];
  take_some(connection, size);
  network_arrives(world, connection, size);
  return size;
}

void virtual_take(int index, uint32_t serial)
{
  struct connection *connection = connection_of(world, (uint32_t)index, serial);
  size_t size = connection ? ways[index].kept[UP] : 0;
  if (!size)
    return;
  take_some(connection, size);
  lose(connection, EVENT_UP, 0, size);
}

void virtual_say(int index, uint32_t serial, const char *bytes, size_t size)
{
  struct connection *connection = connection_of(world, (uint32_t)index, serial);
  if (connection)
    network_says(world, connection, bytes, size);
}

void virtual_end(int index, uint32_t serial, int is_reset)
{
  struct connection *connection = connection_of(world, (uint32_t)index, serial);
  if (connection)
    network_ends(world, connection, is_reset);
}

/* A path that is shut takes connections from now on. */
void virtual_shut(int path, int on)
{
  paths[path].is_shut = on;
  for (int i = 0; !on && i < CONNECTIONS_MAX; i++)
    if (connection_on(path, i) && world->connections[i].state == CONNECTION_CONNECTING)
      network_pass_on(world, connection_on(path, i), EVENT_CONNECTED, 0);
}

/* ---- what is cut ---- */

static int is_open(const struct connection *connection)
{
  return connection && connection->client_open && !connection->dropped;
}

void virtual_drop(int path, int is_late)
{
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    struct connection *connection = connection_on(path, i);
    if (!is_open(connection))
      continue;
    take_kept(connection, DOWN);
    ways[i].is_late = is_late;
    if (!is_late)
      take_kept(connection, UP);
    network_cut_one(world, connection, 0);
  }
}

void virtual_deliver(int path)
{
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    struct connection *connection = connection_on(path, i);
    size_t size = connection && ways[i].is_late ? take_kept(connection, UP) : 0;
    if (size)
      network_pass_on(world, connection, EVENT_ORPHAN, size);
  }
}

int virtual_connections(int path)
{
  int count = 0;
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    count += is_open(connection_on(path, i));
  return count;
}

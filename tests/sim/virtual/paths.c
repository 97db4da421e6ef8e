/* Addresses that lead to a server by a way that a test can hold up, cut and close, as the kit's Proxy. */
#include "virtual.h"

#include "../server.h"

enum { PATHS_MAX = 32, UP = 0, DOWN = 1 };

struct way {       /* of one connection */
  int path;        /* -1: it has none */
  uint32_t serial; /* of the connection */
  int is_held[2], is_late;
  size_t kept[2]; /* bytes that have come so far */
};

static struct path {
  int server, is_held[2], refuses;
} paths[PATHS_MAX];

static struct way ways[CONNECTIONS_MAX];
static struct world *world;
static int path_count;

void paths_start(struct world *new_world)
{
  world = new_world;
  path_count = 0;
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

/* ---- what is held ---- */

/* Order is kept: nothing overtakes what was held. */
int path_keeps(struct connection *connection, const struct event *event)
{
  struct way *way = &ways[connection->index];
  int direction = event->kind == EVENT_DOWN ? DOWN : UP;
  if (way->serial != connection->serial || way->path < 0 || event->kind == EVENT_ORPHAN)
    return 0;
  if (!paths[way->path].is_held[direction] && !way->is_held[direction] && !way->is_late)
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
  paths[path].is_held[UP] = paths[path].is_held[DOWN] = paths[path].refuses = 0;
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

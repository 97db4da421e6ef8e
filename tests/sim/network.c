/* The network: connections with their own pace, and the core's table of link functions over them.
 *
 * Within a connection nothing is reordered. A connection may break: then what was on its way arrives later, in part or
 * never, as a kernel and a network may do it; a request that arrives after all is executed and its reply is lost. */
#include "orders.h"
#include "sim.h"
#include "../../core/src/node/poller.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SOCKET_BUFFER = 256 * 1024, MESSAGE_MAX = 128 * 1024 };

/* ---- streams ---- */

void stream_append(struct stream *stream, const char *bytes, size_t size)
{
  if (stream->head == stream->end)
    stream->head = stream->arrived = stream->end = 0;
  if (stream->end + size > stream->capacity) {
    stream->capacity = (stream->end + size) * 2;
    stream->bytes = heap_realloc(stream->bytes, stream->capacity);
  }
  memcpy(stream->bytes + stream->end, bytes, size);
  stream->end += size;
}

static void stream_reset(struct stream *stream)
{
  stream->head = stream->arrived = stream->end = 0;
  stream->last_arrival = 0;
}

/* ---- connections ---- */

static void plan(struct world *world, struct connection *connection, uint32_t kind, int64_t at, size_t size)
{
  struct event event = {at, 0, kind, connection->index, connection->serial, (uint32_t)size};
  connection->in_flight++;
  queue_push(&world->queue, event);
}

static int64_t usual_delay(struct world *world)
{
  return random_in(&world->random, world->faults.delay_min, world->faults.delay_max);
}

static int64_t delay(struct world *world)
{
  int64_t usual = usual_delay(world);
  uint64_t dice = random_next(&world->random) % 1000000;
  if (world->orders.history && !world->calm)
    return orders_delay(world);
  if (world->calm)
    return usual;
  if (dice < world->faults.edge)
    return world_edge(world);
  if (dice < world->faults.edge + world->faults.tail)
    return usual << random_in(&world->random, 1, 8);
  return usual;
}

static void arrive(struct world *world, struct connection *connection, uint32_t kind, size_t size, int64_t lag)
{
  struct stream *stream = kind == EVENT_DOWN ? &connection->down : &connection->up;
  int64_t at = world->now + hard_lag(world, connection, kind, lag) + delay(world);
  at += world->tester ? world->tester->delay(connection, kind) : 0;
  stream->last_arrival = at > stream->last_arrival ? at : stream->last_arrival;
  if (stream->last_arrival - world->now > 20 * MS && stream->last_arrival > connection->trouble_at)
    connection->trouble_at = stream->last_arrival;
  plan(world, connection, kind, stream->last_arrival, size);
}

static void transfer(struct world *world, struct connection *connection, uint32_t kind, const char *bytes, size_t size,
                     int64_t lag)
{
  size_t first = size;
  stream_append(kind == EVENT_DOWN ? &connection->down : &connection->up, bytes, size);
  if (size > 1 && !world->calm && random_hits(&world->random, world->faults.split))
    first = (size_t)random_in(&world->random, 1, (int64_t)size - 1);
  arrive(world, connection, kind, first, lag);
  if (first < size)
    arrive(world, connection, kind, size - first, lag);
  world_note(world, kind, connection->serial, size);
  if (!world->orders.history) /* nobody is shown the hash of one */
    world_note_bytes(world, bytes, size);
}

struct connection *network_fresh(struct world *world)
{
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state != CONNECTION_FREE)
      continue;
    struct stream up = connection->up, down = connection->down;
    memset(connection, 0, sizeof *connection);
    connection->up = up, connection->down = down;
    stream_reset(&connection->up);
    stream_reset(&connection->down);
    connection->index = (uint32_t)i;
    if (i >= world->connections_used)
      world->connections_used = i + 1;
    connection->serial = ++world->connection_serial;
    return connection;
  }
  return NULL;
}

struct connection *connection_of(struct world *world, uint32_t index, uint32_t serial)
{
  struct connection *connection = &world->connections[index];
  return connection->state != CONNECTION_FREE && connection->serial == serial ? connection : NULL;
}

/* Once nobody can say or read anything on it any more. What a stopped server has in its buffer it still executes. */
static void give_back(struct world *world, struct connection *connection)
{
  struct node *node = &world->nodes[connection->node];
  int server_may_read = connection->server_open && node->asleep && connection->up.head < connection->up.arrived;
  if (!connection->client_open && !connection->in_flight && !server_may_read)
    connection->state = CONNECTION_FREE;
}

static int ready_for(const struct connection *connection)
{
  int what = 0;
  if (connection->state == CONNECTION_CONNECTING || !connection->client_open)
    return 0;
  if (connection->want_write && !connection->stalled)
    what |= RLK_WRITABLE;
  if (connection->down.head < connection->down.arrived || connection->ended)
    what |= RLK_READABLE;
  return what;
}

/* Pollers are level-triggered: what was not read to its end is told again. */
static void tell(struct connection *connection, int what)
{
  struct world *world = connection->process->world;
  uint32_t serial = connection->serial;
  process_told(connection->process, connection, what);
  if (connection->serial == serial && connection->state == CONNECTION_OPEN && (ready_for(connection) & RLK_READABLE))
    plan(world, connection, EVENT_UNREAD, world->now, 0);
}

static void report(struct connection *connection, int what)
{
  if (!connection->client_open || !connection->process)
    return;
  if (connection->process->asleep)
    connection->report |= what;
  else if (connection->process->running)
    threads_poke(connection->process);
  else
    tell(connection, what);
}

void network_report_all(struct process *process)
{
  struct world *world = process->world;
  for (int i = 0; i < world->connections_used && !process->asleep; i++) {
    struct connection *connection = &world->connections[i];
    int what = connection->report;
    if (connection->state == CONNECTION_FREE || connection->process != process || !what)
      continue;
    connection->report = 0;
    report(connection, what);
  }
}

/* What a poller finds, level-triggered. */
int network_gather(struct process *process, struct rlk_poll_event *events, int most)
{
  int count = 0;
  for (int i = 0; i < process->open_count && count < most; i++) {
    const struct connection *connection = &process->world->connections[process->open[i]];
    int what = ready_for(connection);
    if (what)
      events[count++] = (struct rlk_poll_event){connection->link_node, connection->generation, what};
  }
  return count;
}

/* ---- breaking ---- */

/* What was on its way to the server arrives later, in part, or never. */
static void orphan_requests(struct world *world, struct connection *connection)
{
  size_t size = connection->up.end - connection->up.arrived;
  int64_t later;
  if (connection->cut_up)
    return;
  connection->cut_up = 1;
  if (!size || !connection->server_open || random_in(&world->random, 0, 1))
    return;
  if (random_in(&world->random, 0, 2) == 0)
    size = (size_t)random_in(&world->random, 1, (int64_t)size);
  later = world_edge(world);
  later = later * random_in(&world->random, 0, 3) / 2;
  if (world->now + later < connection->written_at) /* nothing arrives before it is written */
    later = connection->written_at - world->now;
  plan(world, connection, EVENT_ORPHAN, world->now + later, size);
}

static void end_for_client(struct world *world, struct connection *connection, int64_t after)
{
  int64_t at = world->now + after;
  if (!connection->cut_down && connection->down.last_arrival > at)
    at = connection->down.last_arrival;
  plan(world, connection, EVENT_DOWN_END, at, 0);
}

static void drop(struct world *world, struct connection *connection)
{
  int64_t silence = random_in(&world->random, 0, 2) ? usual_delay(world) : random_in(&world->random, 0, 3000) * MS;
  TRACE(world, "network   #%u drops, process %d to node %d", connection->serial, connection->process->index,
        connection->node);
  connection->dropped = 1;
  connection->reset = (int)random_in(&world->random, 0, 1);
  connection->cut_down = (int)random_in(&world->random, 0, 1);
  orphan_requests(world, connection);
  end_for_client(world, connection, silence);
}

/* The connections that were made while the address led elsewhere. */
void network_drop_address(struct world *world, int link_node)
{
  for (int i = 0; i < world->connections_used; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state == CONNECTION_CONNECTING && connection->link_node == link_node)
      connection->node = world->leads_to[connection->process->index][link_node];
    if (connection->state == CONNECTION_OPEN && connection->client_open && !connection->dropped &&
        connection->link_node == link_node &&
        connection->node != world->leads_to[connection->process->index][link_node])
      drop(world, connection);
  }
}

/* What is on its way is lost, and the client is told after that long. */
void network_cut_one(struct world *world, struct connection *connection, int64_t after)
{
  connection->dropped = connection->cut_up = connection->cut_down = connection->reset = 1;
  end_for_client(world, connection, after);
}

/* ... at once. */
void network_cut(struct world *world, const struct process *process, int link_node)
{
  for (int i = 0; i < world->connections_used; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state != CONNECTION_OPEN || connection->process != process || connection->link_node != link_node ||
        !connection->client_open || connection->dropped)
      continue;
    network_cut_one(world, connection, usual_delay(world));
  }
}

void network_nemesis_drop(struct world *world)
{
  int start = (int)random_in(&world->random, 0, CONNECTIONS_MAX - 1);
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    struct connection *connection = &world->connections[(start + i) % CONNECTIONS_MAX];
    if (connection->state == CONNECTION_OPEN && connection->client_open && !connection->dropped) {
      drop(world, connection);
      return;
    }
  }
}

/* The server has done with it: what it had not executed is lost. */
static void close_by_server(struct world *world, struct connection *connection)
{
  connection->server_open = 0;
  connection->dropped = connection->cut_up = 1;
  connection->reset = 1;
  if (connection->client_open)
    end_for_client(world, connection, usual_delay(world));
  give_back(world, connection);
}

/* The server process is gone, and with it whatever it had not executed. */
void network_node_down(struct world *world, int node)
{
  for (int i = 0; i < world->connections_used; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state != CONNECTION_FREE && connection->node == node && connection->server_open)
      close_by_server(world, connection);
  }
}

int network_kill(struct world *world, int node, uint32_t client_id)
{
  for (int i = 0; i < world->connections_used; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state == CONNECTION_FREE || connection->node != node || !connection->server_open ||
        connection->client_id != client_id)
      continue;
    TRACE(world, "network   #%u is killed by node %d", connection->serial, node);
    close_by_server(world, connection);
    return 1;
  }
  return 0;
}

/* To all that have subscribed: their number. */
int network_publish(struct world *world, int node, const char *channel, const char *message, size_t size)
{
  char text[MESSAGE_MAX];
  int count = 0;
  size_t at = (size_t)snprintf(text, sizeof text, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%.64s\r\n$%zu\r\n", strlen(channel),
                               channel, size);
  if (at + size + 2 > sizeof text)
    world_fail(world, "a message of %zu bytes", size);
  memcpy(text + at, message, size);
  memcpy(text + at + size, "\r\n", 2);
  size += at + 2;
  for (int i = 0; i < world->connections_used; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state != CONNECTION_OPEN || connection->node != node || !connection->server_open ||
        strcmp(connection->channel, channel) != 0)
      continue;
    count++;
    if (connection->cut_down || !connection->client_open || connection->dropped)
      continue;
    connection->replies_total += size;
    transfer(world, connection, EVENT_DOWN, text, size, 0);
  }
  return count;
}

/* ---- the server's side ---- */

static void serve(struct world *world, struct connection *connection)
{
  struct node *node = &world->nodes[connection->node];
  if (!connection->server_open || node->asleep)
    return;
  server_process(world, connection);
  if (!node->reply.end || connection->cut_down || !connection->client_open || connection->dropped)
    return;
  connection->replies_total += node->reply.end;
  transfer(world, connection, EVENT_DOWN, node->reply.bytes, node->reply.end, 0);
}

static void server_sees_end(struct world *world, struct connection *connection)
{
  if (!connection->server_open)
    return;
  if (world->nodes[connection->node].asleep) {
    connection->in_flight++; /* the end is still to be seen: look again later */
    struct event event = {world->now + MS, 0, EVENT_UP_END, connection->index, connection->serial, 0};
    queue_push(&world->queue, event);
    return;
  }
  connection->server_open = 0;
  end_for_client(world, connection, usual_delay(world));
}

void network_node_awake(struct world *world, int node)
{
  for (int i = 0; i < world->connections_used; i++) {
    struct connection *connection = &world->connections[i];
    if (connection->state == CONNECTION_FREE || connection->node != node)
      continue;
    serve(world, connection);
    give_back(world, connection);
  }
}

/* ---- events ---- */

static void connected(struct world *world, struct connection *connection, const struct event *event)
{
  int refused = world->nodes[connection->node].down;
  if (connection->state != CONNECTION_CONNECTING)
    return;
  if (!refused && world->tester && world->tester->keeps(connection, event))
    return;
  connection->state = refused ? CONNECTION_FAILED : CONNECTION_OPEN;
  connection->server_open = !refused;
  connection->to_replica = world->nodes[connection->node].replaced;
  TRACE(world, "network   #%u %s, process %d to node %d", connection->serial, refused ? "is refused" : "connects",
        connection->process->index, connection->node);
  report(connection, RLK_WRITABLE);
}

static void bytes_up(struct world *world, struct connection *connection, const struct event *event)
{
  if (!connection->server_open || (event->kind == EVENT_UP && connection->cut_up))
    return;
  if (world->tester && world->tester->keeps(connection, event))
    return;
  connection->up.arrived += event->size;
  serve(world, connection);
}

static void bytes_down(const struct world *world, struct connection *connection, const struct event *event)
{
  const struct tester *tester = world->tester;
  if (connection->cut_down || !connection->client_open || (tester && tester->keeps(connection, event)))
    return;
  connection->down.arrived += event->size;
  report(connection, RLK_READABLE);
}

static void writable(struct connection *connection)
{
  int64_t now = connection->process->world->now;
  connection->stalled = 0;
  connection->trouble_at = now > connection->trouble_at ? now : connection->trouble_at;
  if (connection->want_write && connection->state != CONNECTION_CONNECTING)
    report(connection, RLK_WRITABLE);
}

void network_event(struct world *world, const struct event *event)
{
  struct connection *connection = connection_of(world, event->index, event->serial);
  if (!connection)
    return;
  connection->in_flight--;
  switch (event->kind) {
  case EVENT_CONNECTED: connected(world, connection, event); break;
  case EVENT_UP:
  case EVENT_ORPHAN: bytes_up(world, connection, event); break;
  case EVENT_UP_END: server_sees_end(world, connection); break;
  case EVENT_DOWN: bytes_down(world, connection, event); break;
  case EVENT_UNREAD:
    if (ready_for(connection) & RLK_READABLE)
      report(connection, RLK_READABLE);
    break;
  case EVENT_DOWN_END:
    connection->ended = 1;
    connection->cut_down = 1;
    report(connection, RLK_READABLE | RLK_WRITABLE);
    break;
  default: writable(connection);
  }
  give_back(world, connection);
}

/* What a tester has kept goes on. */
void network_pass_on(struct world *world, struct connection *connection, uint32_t kind, size_t size)
{
  plan(world, connection, kind, world->now, size);
}

void network_arrives(struct world *world, struct connection *connection, size_t size)
{
  connection->up.arrived += size;
  serve(world, connection);
}

/* A tester in the place of a server. */
void network_says(struct world *world, struct connection *connection, const char *bytes, size_t size)
{
  if (connection->server_open && !connection->cut_down && connection->client_open && !connection->dropped)
    transfer(world, connection, EVENT_DOWN, bytes, size, 0);
}

void network_ends(struct world *world, struct connection *connection, int is_reset)
{
  if (!connection->server_open)
    return;
  connection->server_open = 0;
  connection->reset = is_reset;
  end_for_client(world, connection, usual_delay(world));
}

void network_start(struct world *world)
{
  world->connection_serial = 0;
  world->connections_used = 0;
  for (int i = 0; i < CONNECTIONS_MAX; i++)
    world->connections[i].state = CONNECTION_FREE;
}

int network_is_quiet(const struct world *world)
{
  for (int i = 0; i < world->connections_used; i++) {
    const struct connection *connection = &world->connections[i];
    if (connection->state != CONNECTION_FREE && connection->in_flight)
      return 0;
  }
  return 1;
}

/* ---- a SET is never sent when its attempt is over (rule A.3.2) ---- */

/* A SET is executed. */
void network_note_set(struct connection *connection, const char *token)
{
  struct written_set *set = &connection->sets[connection->set_count++ % SETS_KEPT];
  memcpy(set->token, token, TOKEN_SIZE);
  set->start = connection->executed_total;
}

/* One write has the bytes [start, end): then all of it was still unsent when the end was made. */
static int is_one_write(const struct connection *connection, uint64_t start, uint64_t end)
{
  for (uint32_t i = 1; i < WRITES_KEPT && i < connection->writes; i++) {
    uint64_t from = connection->write_ends[(connection->writes - i - 1) % WRITES_KEPT];
    if (from <= start)
      return end <= connection->write_ends[(connection->writes - i) % WRITES_KEPT];
  }
  return 0;
}

/* The token is given up by a request of so many bytes. */
void network_check_release(const struct connection *connection, const char *token, size_t size)
{
  for (uint32_t i = 0; i < SETS_KEPT && i < connection->set_count; i++)
    if (!memcmp(token, connection->sets[i].token, TOKEN_SIZE) &&
        is_one_write(connection, connection->sets[i].start, connection->executed_total + size))
      world_violation(connection->process->world, "a SET was sent although its attempt was over");
}

/* ---- the core's link functions ---- */

static struct connection *of_link(const struct rlk_link *link)
{
  struct process *process = link->context;
  struct connection *connection = &process->world->connections[link->fd];
  if (connection->process != process || connection->life != process->life || connection->state == CONNECTION_FREE)
    world_violation(process->world, "process %d uses a connection that is not its own", process->index);
  return connection;
}

static int sim_open(struct rlk_link *link, const struct rlk_address *address)
{
  struct process *process = link->context;
  struct world *world = process->world;
  struct connection *connection = network_fresh(world);
  int64_t dice = world->calm ? 999999 : random_in(&world->random, 0, 999999);
  (void)address;
  if (!connection)
    return -EMFILE;
  connection->process = process;
  connection->life = process->life;
  connection->node = world->leads_to[process->index][link->node];
  connection->link_node = link->node;
  if (process->muted || (world->nodes[connection->node].down && random_in(&world->random, 0, 3) == 0))
    return -ECONNREFUSED;
  connection->generation = link->generation;
  connection->client_open = 1;
  if (process->open_count == OPEN_MAX)
    world_violation(world, "process %d has more connections than the model can hold", process->index);
  else
    process->open[process->open_count++] = connection->index;
  connection->state = CONNECTION_CONNECTING;
  connection->want_write = link->writing = 1;
  link->fd = (int)connection->index;
  TRACE(world, "process %d #%u connects to node %d by address %d", process->index, connection->serial, connection->node,
        connection->link_node);
  if (dice >= world->faults.refuse) /* else the SYN is swallowed */
    plan(world, connection, EVENT_CONNECTED,
         world->now + hard_lag(world, connection, EVENT_CONNECTED, process->lag) + 2 * delay(world), 0);
  return -EINPROGRESS;
}

static int sim_finish(struct rlk_link *link)
{
  switch (of_link(link)->state) {
  case CONNECTION_OPEN: return 0;
  case CONNECTION_CONNECTING: return -EINPROGRESS;
  default: return -ECONNREFUSED;
  }
}

static size_t room(struct world *world, struct connection *connection, size_t size)
{
  int64_t pause;
  if (connection->stalled)
    return 0;
  if (connection->up.end - connection->up.arrived > SOCKET_BUFFER) { /* full: until some of it has arrived */
    connection->stalled = 1;
    plan(world, connection, EVENT_WRITABLE, world->now + connection->process->lag + delay(world), 0);
    return 0;
  }
  if (world->calm || !random_hits(&world->random, world->faults.stall))
    return size;
  pause = delay(world);
  connection->stalled = 1;
  plan(world, connection, EVENT_WRITABLE, world->now + connection->process->lag + pause, 0);
  return (size_t)random_in(&world->random, 0, (int64_t)size);
}

static ssize_t sim_write(struct rlk_link *link, const char *data, size_t size)
{
  struct connection *connection = of_link(link);
  struct process *process = connection->process;
  struct world *world = process->world;
  size_t asked = size;
  process_lag(process);
  if (process->muted)
    return (ssize_t)size;
  if (connection->state != CONNECTION_OPEN)
    return -EAGAIN;
  if (connection->ended)
    return -EPIPE;
  size = room(world, connection, size);
  if (!size)
    return -EAGAIN;
  TRACE(world, "process %d #%u writes %zu bytes to node %d", process->index, connection->serial, size,
        connection->node);
  connection->written_total += size;
  /* requests that were queued before may take several writes after it, up to the first complete one */
  if (!connection->told_end || connection->read_total < connection->told_end || !connection->whole_write_told)
    connection->untold_total = connection->written_total;
  if (connection->told_end && connection->read_total >= connection->told_end)
    connection->whole_write_told |= size == asked;
  connection->write_ends[connection->writes++ % WRITES_KEPT] = connection->written_total;
  connection->written_at = world->now + process->lag;
  if (!connection->dropped && connection->server_open)
    transfer(world, connection, EVENT_UP, data, size, process->lag);
  process_lag(process);
  return (ssize_t)size;
}

/* The oracle wants to know when a client learnt that its SET was executed. */
static void note_read(struct connection *connection)
{
  struct world *world = connection->process->world;
  for (int i = 0; i < world->key_count; i++) {
    struct key *key = &world->nodes[connection->node].keys[i];
    if (key->serial == connection->serial && !key->read_at && connection->read_total >= key->reply_end)
      key->read_at = world->now;
  }
  backing_read(connection);
  hard_read(connection);
}

static ssize_t sim_read(struct rlk_link *link, char *data, size_t size)
{
  struct connection *connection = of_link(link);
  struct stream *down = &connection->down;
  struct process *process = connection->process;
  size_t ready = down->arrived - down->head;
  if (process->muted || connection->state != CONNECTION_OPEN)
    return -EAGAIN;
  if (!ready)
    return !connection->ended ? -EAGAIN : connection->reset ? -ECONNRESET : 0;
  size = size < ready ? size : ready;
  memcpy(data, down->bytes + down->head, size);
  down->head += size;
  connection->read_total += size;
  note_read(connection);
  TRACE(process->world, "process %d #%u reads %zu bytes from node %d", process->index, connection->serial, size,
        connection->node);
  return (ssize_t)size;
}

static void sim_want_write(struct rlk_link *link, int on)
{
  struct connection *connection = of_link(link);
  link->writing = connection->want_write = on;
  if (on && !connection->stalled && connection->state == CONNECTION_OPEN)
    plan(connection->process->world, connection, EVENT_WRITABLE, connection->process->world->now, 0);
}

static void forget_open(const struct connection *connection)
{
  struct process *process = connection->process;
  for (int i = 0; i < process->open_count; i++)
    if (process->open[i] == connection->index) {
      process->open[i] = process->open[--process->open_count];
      return;
    }
}

static void sim_close(struct rlk_link *link)
{
  if (link->fd < 0)
    return;
  struct connection *connection = of_link(link);
  struct world *world = connection->process->world;
  TRACE(world, "process %d #%u closes", connection->process->index, connection->serial);
  link->fd = -1;
  link->writing = 0;
  connection->client_open = 0;
  forget_open(connection);
  backing_close(connection);
  if (!connection->dropped && !world->calm && random_in(&world->random, 0, 1))
    orphan_requests(world, connection);
  connection->dropped = 1;
  give_back(world, connection);
}

/* In the child of a fork: the descriptor is closed, the connection is the parent's. */
static void sim_abandon(struct rlk_link *link)
{
  link->fd = -1;
  link->writing = 0;
}

const struct rlk_link_ops sim_link_ops = {sim_open,  sim_finish,  sim_write, sim_read, sim_want_write,
                                          sim_close, sim_abandon, NULL,      NULL,     NULL};

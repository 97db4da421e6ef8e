/* What a test listens to: channels of the servers, and the descriptors of its clients. A descriptor has the number of
 * its process; it is readable as the core's own set over links, timer and bell. */
#include "virtual.h"

#include <stdio.h>

#include "../../../core/src/client/client.h"
#include "../server.h"

static struct world *world;

void ears_start(struct world *new_world)
{
  world = new_world;
}

/* ---- channels ---- */

int virtual_listen(int server, const char *channel)
{
  struct connection *connection = network_fresh(world);
  if (!connection)
    return -1;
  connection->node = server;
  connection->state = CONNECTION_OPEN;
  connection->client_open = connection->server_open = 1;
  snprintf(connection->channel, sizeof connection->channel, "%s", channel);
  return (int)connection->index;
}

size_t virtual_heard(int connection, char *bytes, size_t size)
{
  struct stream *down = &world->connections[connection].down;
  size_t heard = down->arrived - down->head;
  if (heard <= size) {
    memcpy(bytes, down->bytes + down->head, heard);
    down->head = down->arrived;
  }
  return heard;
}

void virtual_listen_no_more(int connection)
{
  struct connection *one = &world->connections[connection];
  one->client_open = one->server_open = 0;
  if (!one->in_flight)
    one->state = CONNECTION_FREE;
}

/* ---- descriptors ---- */

int virtual_readable(int descriptor)
{
  struct process *process = &world->processes[descriptor];
  struct rlk_poll_event event;
  const struct rlk_poller *poller = &process->client->engine.net.poller;
  return poller->notify.readable > 0 || poller->wake.readable > 0 ||
         rlk_poller_armed_ns(poller) <= process_clock(process) || network_gather(process, &event, 1) > 0;
}

int __wrap_rlk_poller_public(struct rlk_poller *poller);
int __wrap_rlk_poller_public(struct rlk_poller *poller)
{
  poller->notify.ringer = 0; /* it can ring */
  return poller->outer = poller->inner;
}

void __wrap_rlk_poller_clear(struct rlk_poller *poller);
void __wrap_rlk_poller_clear(struct rlk_poller *poller)
{
  poller->notify.readable = -1;
}

void __wrap_rlk_poller_arm(struct rlk_poller *poller, int64_t at_ns, int64_t now_ns);
void __wrap_rlk_poller_arm(struct rlk_poller *poller, int64_t at_ns, int64_t now_ns)
{
  (void)now_ns;
  if (at_ns < poller->armed_ns)
    poller->armed_ns = at_ns;
}

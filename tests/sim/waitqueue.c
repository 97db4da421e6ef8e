/* What a model server does for those who wait in order: their queue, its scripts by their meaning, and its channels. */
#include "server.h"
#include "waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t clock_us(const struct request *request)
{
  const struct world *world = request->world;
  const struct node *node = request->node;
  return (node->clock_offset + world->now + world->now * node->clock_ppm / 1000000) / 1000;
}

/* The queue that argument names, of keys named libredlock:<kind>:<resource>; NULL, and a violation: it names none. */
static struct waitqueue *queue_of(struct request *request, int index, const char *kind)
{
  const struct argument *argument = &request->arguments[index];
  char name[64];
  for (int i = 0; index < request->count && i < request->world->resource_count; i++) {
    int size = snprintf(name, sizeof name, "libredlock:%s:%s", kind, request->world->resources[i].name);
    if (argument->size == (size_t)size && !memcmp(argument->bytes, name, argument->size))
      return &request->node->waitqueues[i];
  }
  world_violation(request->world, "argument %d of a request names no queue", index);
  return NULL;
}

static struct place *place_of(struct waitqueue *queue, const struct argument *name)
{
  for (int i = 0; i < queue->count; i++)
    if (strlen(queue->places[i].name) == name->size && !memcmp(queue->places[i].name, name->bytes, name->size))
      return &queue->places[i];
  return NULL;
}

static void take_out(const struct request *request, struct waitqueue *queue, int index)
{
  oracle_moves_up(request->world);
  queue->count--;
  memmove(&queue->places[index], &queue->places[index + 1], (size_t)(queue->count - index) * sizeof queue->places[0]);
}

static void leave(const struct request *request, struct waitqueue *queue, const struct argument *name)
{
  struct place *place = place_of(queue, name);
  if (place)
    take_out(request, queue, (int)(place - queue->places));
}

/* By arrival, then by name. */
static int comes_before(const struct place *one, const struct place *other)
{
  return one->arrived_us < other->arrived_us ||
         (one->arrived_us == other->arrived_us && strcmp(one->name, other->name) < 0);
}

static int stand_in(struct request *request, struct waitqueue *queue, const struct argument *name, int64_t arrived_us)
{
  const struct place *before = place_of(queue, name);
  struct place place = {.arrived_us = before && before->arrived_us < arrived_us ? before->arrived_us : arrived_us};
  int at = 0;
  leave(request, queue, name);
  if (queue->count == PLACES_MAX || name->size >= sizeof place.name) {
    world_violation(request->world, "more waiters than the model can hold");
    return 0;
  }
  memcpy(place.name, name->bytes, name->size);
  while (at < queue->count && comes_before(&queue->places[at], &place))
    at++;
  memmove(&queue->places[at + 1], &queue->places[at], (size_t)(queue->count - at) * sizeof place);
  queue->places[at] = place;
  queue->count++;
  return at;
}

struct slots { /* keys of a resource, each of which lets one in */
  const struct key *key[PERMITS];
  int count;
};

/* The keys before the first argument of the script: its own, those of the queue, and slots. -1, and a violation. */
static int read_slots(struct request *request, struct slots *slots)
{
  int64_t keys = server_number(request, 2);
  slots->count = 0;
  if (keys != 3 && keys != 2 + PERMITS) {
    world_violation(request->world, "a script of the queue on %d keys", (int)keys);
    return -1;
  }
  for (int i = 3; i < 3 + keys; i++)
    if (i == 3 || i > 5)
      if (!(slots->key[slots->count++] = server_key(request, i)))
        return -1;
  return 0;
}

/* One is free, or the readers of the first let one in that shares, whose name has a slash. */
static int is_open(const struct slots *slots, const char *name)
{
  for (int i = 0; i < slots->count; i++)
    if (!slots->key[i]->live)
      return 1;
  return slots->key[0]->reader_count && name[16] == '/';
}

/* When the first of them ends, by the clock of the server. */
static int64_t first_end_ms(const struct slots *slots)
{
  int64_t end_ms = slots->key[0]->expire_ms;
  for (int i = 1; i < slots->count; i++)
    end_ms = slots->key[i]->expire_ms < end_ms ? slots->key[i]->expire_ms : end_ms;
  return end_ms;
}

/* Tells the first, and takes those out that have a listener which does not hear; of others the next is told to ask. */
static void wake_the_first(struct request *request, struct waitqueue *queue, const struct argument *channels,
                           const struct argument *but, const struct slots *if_open)
{
  for (int i = 0, at = 0; i < 100 && at < queue->count && at <= 2; i++) {
    const char *name = queue->places[at].name;
    size_t size = strlen(name);
    char channel[128], message[64];
    if (but && but->size == size && !memcmp(but->bytes, name, size))
      return;
    if (if_open && !is_open(if_open, name))
      return;
    snprintf(channel, sizeof channel, "%.*s%.16s", (int)channels->size, channels->bytes, name);
    snprintf(message, sizeof message, "%s%s", name, at ? "?" : "");
    if (network_publish(request->world, request->node->index, channel, message) > 0)
      return;
    if (strchr("13579", name[size - 1]))
      take_out(request, queue, at);
    else
      at++;
  }
}

void waitqueue_join(struct request *request, int shares)
{
  struct slots slots;
  struct waitqueue *queue = queue_of(request, 4, "q");
  int at = 3 + (int)server_number(request, 2);
  const struct argument *name = &request->arguments[at], *channels = &request->arguments[at + 5];
  int64_t now_us = clock_us(request), pttl_ms;
  int rank = -1;
  if (read_slots(request, &slots) != 0)
    return;
  if (request->count != at + 6 || !queue || !queue_of(request, 5, "p")) {
    world_violation(request->world, "a JOIN that is not: keys queue promises place waited first step most channels");
    return;
  }
  for (int i = 0; i < 100 && queue->count > 0 && queue->places[0].promised_us <= now_us; i++)
    take_out(request, queue, 0);
  stand_in(request, queue, name, now_us - server_number(request, at + 1));
  pttl_ms = slots.key[0]->live ? first_end_ms(&slots) - server_clock_ms(request->world, request->node) : -2;
  if (shares && is_open(&slots, (const char[48]){[16] = name->bytes[16]}) && is_open(&slots, queue->places[0].name))
    pttl_ms = -2;
  if (!slots.key[0]->live || shares)
    wake_the_first(request, queue, channels, name, shares ? &slots : NULL);
  for (rank = 0; rank < queue->count && &queue->places[rank] != place_of(queue, name);)
    rank++;
  queue->places[rank].promised_us = now_us + server_number(request, at + 2);
  if (rank * server_number(request, at + 3) < server_number(request, at + 4))
    queue->places[rank].promised_us += rank * server_number(request, at + 3);
  else
    queue->places[rank].promised_us += server_number(request, at + 4);
  server_reply_number(request, '*', 2);
  server_reply_number(request, ':', rank);
  server_reply_number(request, ':', pttl_ms);
}

/* What a release does beside the delete: how many wait. */
int waitqueue_hand_over(struct request *request)
{
  struct waitqueue *queue = queue_of(request, 4, "q");
  if (!queue || !queue_of(request, 5, "p"))
    return 0;
  if (request->arguments[7].size > 0)
    leave(request, queue, &request->arguments[7]);
  wake_the_first(request, queue, &request->arguments[8], NULL, NULL);
  return queue->count;
}

void waitqueue_leave(struct request *request, int parts)
{
  struct slots slots;
  struct waitqueue *queue = queue_of(request, 4, "q");
  int at = 3 + (int)server_number(request, 2);
  if (read_slots(request, &slots) != 0 || !queue || !queue_of(request, 5, "p"))
    return;
  if (request->count != at + 2) {
    world_violation(request->world, "a LEAVE that is not: keys queue promises place channels");
    return;
  }
  if (request->arguments[at].size > 0)
    leave(request, queue, &request->arguments[at]);
  if (!slots.key[0]->live || parts)
    wake_the_first(request, queue, &request->arguments[at + 1], NULL, parts ? &slots : NULL);
  server_reply_number(request, ':', parts && queue->count > 0 ? 2 : 0);
}

void waitqueue_exists(struct request *request)
{
  struct waitqueue *queue = queue_of(request, 1, "q");
  server_reply_number(request, ':', queue && queue->count > 0);
}

void waitqueue_subscribe(struct request *request)
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
  stream_append(request->reply, reply, strlen(reply));
}

/* Somebody else meddles: the queue is lost, gets a member that nobody knows, or a push names nobody. */
void waitqueue_meddle(struct world *world, struct node *node, int resource)
{
  struct waitqueue *queue = &node->waitqueues[resource];
  switch (random_in(&world->random, 0, 2)) {
  case 0: queue->count = 0; return;
  case 1:
    if (queue->count < PLACES_MAX) {
      memmove(&queue->places[1], &queue->places[0], (size_t)queue->count++ * sizeof queue->places[0]);
      queue->places[0] = (struct place){.name = "a stranger", .arrived_us = 0, .promised_us = 0};
    }
    return;
  default:
    for (int i = 0; i < CONNECTIONS_MAX; i++)
      if (world->connections[i].state == CONNECTION_OPEN && world->connections[i].channel[0])
        network_publish(world, node->index, world->connections[i].channel, "nobody:7");
  }
}

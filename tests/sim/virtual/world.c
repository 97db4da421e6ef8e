/* The world of a test: its time, its clients and their calls, and what is done to its servers. */
#include "virtual.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../core/src/api/config.h"
#include "../../../core/src/node/poller.h"
#include "../server.h"

#define EPOCH (INT64_C(1767225600000) * MS) /* 2026 */
#define AGES (INT64_C(10000) * 3600000 * MS)

enum { EVENTS_KEPT = 256, EVENT_SIZE = 240 };

struct call {
  virtual_function *function;
  int64_t arguments[6], result;
  int has_returned;
};

static struct world world;
static struct call calls[PROCESSES_MAX][THREADS_PER_PROCESS];
static char events[EVENTS_KEPT][EVENT_SIZE], failure[512];
static uint64_t event_count;
static struct connection kits[NODES_MAX]; /* the test's own, one for each server */
static int server_count, returned;
static jmp_buf outermost;

/* ---- memory: no process forks here, and all of it is the system's ---- */

void *heap_realloc(void *memory, size_t size)
{
  memory = realloc(memory, size);
  if (!memory)
    abort();
  return memory;
}

void heap_free(void *memory)
{
  free(memory);
}

void *arena_use(const struct process *process)
{
  (void)process;
  return NULL;
}

void arena_return(void *before)
{
  (void)before;
}

void arena_start(int index)
{
  (void)index;
}

void arena_copy(int index)
{
  (void)index;
}

void arena_put_back(int index)
{
  (void)index;
}

/* ---- what the world tells ---- */

static void hear(const char *event)
{
  snprintf(events[event_count++ % EVENTS_KEPT], EVENT_SIZE, "%s", event);
}

/* Ends the call of the test; the world stands still from now on. */
static void fail(const char *why) __attribute__((noreturn));
static void fail(const char *why)
{
  if (!failure[0])
    snprintf(failure, sizeof failure, "%s", why);
  while (thread_is_running())
    thread_nap(AGES);
  longjmp(outermost, 1);
}

static const struct tester tester = {execute_request, count_command, path_keeps, path_delay, hear, fail};

const char *virtual_failure(void)
{
  if (!failure[0] && world.violation[0])
    snprintf(failure, sizeof failure, "%s", world.violation);
  return failure;
}

const char *virtual_event(int ago)
{
  uint64_t kept = event_count < EVENTS_KEPT ? event_count : EVENTS_KEPT;
  return (uint64_t)ago < kept ? events[(event_count - 1 - (uint64_t)ago) % EVENTS_KEPT] : "";
}

/* ---- time ---- */

int64_t virtual_now_ns(void)
{
  return world.now;
}

int64_t virtual_epoch_ns(void)
{
  return EPOCH;
}

int virtual_run(int64_t until_ns)
{
  int before = returned;
  if (virtual_failure()[0] || setjmp(outermost) != 0)
    return 1;
  while (returned == before && !path_has_news() && world_step(&world, until_ns))
    ;
  if (returned == before && !path_has_news() && world.now < until_ns)
    world.now = until_ns;
  return returned != before || path_has_news();
}

/* ---- clients ---- */

static int64_t now_ns(void *context)
{
  return process_clock(context);
}

static uint64_t random_bits(void *context)
{
  return random_next(&((struct process *)context)->random);
}

static int64_t wall_ns(void *context)
{
  (void)context;
  return EPOCH + world.now;
}

static int64_t process_number(void *context, char *host, size_t size)
{
  return rlk_platform_real.process(context, host, size);
}

static const struct rlk_platform platform = {now_ns, random_bits, wall_ns, process_number};

static struct rlk_link_ops link_ops; /* the network's, with the servers at their ports */

static int open_link(struct rlk_link *link, const struct rlk_address *address)
{
  struct process *process = link->context;
  int server = address->port - FIRST_PORT;
  int path = address->port - FIRST_PATH, outcome;
  if (path >= 0)
    server = path_server(path);
  if (server < 0 || server >= server_count)
    return -ECONNREFUSED;
  world.leads_to[process->index][link->node] = server;
  outcome = sim_link_ops.open(link, address);
  if (outcome == -EINPROGRESS)
    path_opens(path, &world.connections[link->fd]);
  return outcome;
}

redlock_client *virtual_client(int *index)
{
  struct process *process;
  *index = 0;
  while (*index < PROCESSES_MAX && (world.processes[*index].client || world.processes[*index].running > 1))
    ++*index;
  if (*index == PROCESSES_MAX) {
    snprintf(failure, sizeof failure, "more clients than the world can hold");
    return NULL;
  }
  process = &world.processes[*index];
  struct rlk_env env = {&platform, &link_ops, process, 0};
  memset(process, 0, sizeof *process);
  process->world = &world;
  process->index = *index;
  process->clock_offset = 1000000 * MS;
  process->random = random_next(&world.random);
  process->life = ++world.lives;
  process->blocking = process->running = 1; /* what arrives is left to its calls */
  process->client = rlk_client_new_in(&env);
  if (process->client)
    rlk_client_read_environment(process->client);
  return process->client;
}

static void run(struct process *process, int number)
{
  struct call *call = &calls[process->index][number];
  const int64_t *a = call->arguments;
  call->result = call->function(a[0], a[1], a[2], a[3], a[4], a[5]);
  if (process->leaving)
    process->client = NULL;
  call->has_returned = 1;
  returned++;
}

int virtual_call(int index, virtual_function *function, const int64_t *arguments)
{
  struct process *process = &world.processes[index];
  int number = 0;
  if (virtual_failure()[0] || setjmp(outermost) != 0)
    return 0;
  while (number < THREADS_PER_PROCESS && (number == KEEPER || calls[index][number].function))
    number++;
  if (number == THREADS_PER_PROCESS)
    fail("more calls at once than a process can have");
  struct call *call = &calls[index][number];
  process->leaving |= function == (virtual_function *)(void *)redlock_client_free;
  call->function = function;
  memcpy(call->arguments, arguments, sizeof call->arguments);
  threads_open(process);
  thread_start(process, number, run);
  return number;
}

int virtual_returned(int index, int number, int64_t *result)
{
  struct call *call = &calls[index][number];
  if (!call->has_returned)
    return 0;
  *result = call->result;
  call->function = NULL;
  call->has_returned = 0;
  return 1;
}

/* The only descriptor that the core polls is its own public one. */

int __wrap_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms)
{
  (void)descriptors;
  (void)count;
  thread_nap((timeout_ms ? 1 : 0) * MS);
  return 0;
}

/* ---- servers ---- */

int virtual_server(void)
{
  if (server_count == NODES_MAX) {
    snprintf(failure, sizeof failure, "more servers than the world can hold");
    return 0;
  }
  start_server(server_count);
  kits[server_count] = (struct connection){.process = &world.processes[0], .node = server_count};
  world.nodes[server_count].index = server_count;
  world.nodes[server_count].clock_offset = EPOCH;
  world.node_count = server_count + 1;
  return server_count++;
}

void virtual_stop(int server, int on)
{
  struct node *node = &world.nodes[server];
  TRACE(&world, "node %d    %s", server, on ? "is stopped" : "goes on");
  node->asleep = on;
  if (!on && setjmp(outermost) == 0)
    network_node_awake(&world, server);
}

size_t virtual_pass(int connection, uint32_t serial, size_t size)
{
  return virtual_failure()[0] || setjmp(outermost) != 0 ? 0 : path_pass(connection, serial, size);
}

void virtual_kill(int server)
{
  TRACE(&world, "node %d    is killed", server);
  world.nodes[server].asleep = 0;
  world.nodes[server].down = 1;
  network_node_down(&world, server);
}

void virtual_boot(int server, enum boot how)
{
  static const char *const words[] = {"without its data", "with the data that it had saved", "with its data"};
  struct node *node = &world.nodes[server];
  TRACE(&world, "node %d    boots %s", server, words[how]);
  boot_server(server, how);
  node->down = node->asleep = 0;
  node->incarnation++;
  script_flush(node);
}

void virtual_step_clock(int server, int64_t by_ns)
{
  world.nodes[server].clock_offset += by_ns;
}

const char *virtual_command(int server, const char *bytes, size_t size, size_t *reply_size)
{
  static struct request request;
  struct node *node = &world.nodes[server];
  struct connection *kit = &kits[server];
  node->reply.head = node->reply.end = 0;
  *reply_size = 0;
  if (virtual_failure()[0] || setjmp(outermost) != 0)
    return "";
  if (server_parse(&request, bytes, size) != (ssize_t)size)
    fail("a request that the model server can not read");
  request.size = size;
  server_begin(&world, node, kit, &request);
  execute_request(&request);
  *reply_size = node->reply.end;
  return node->reply.bytes;
}

/* ---- worlds ---- */

void virtual_start(uint64_t seed, int64_t delay_min_ns, int64_t delay_max_ns)
{
  for (int i = 0; i < CONNECTIONS_MAX; i++) {
    free(world.connections[i].up.bytes);
    free(world.connections[i].down.bytes);
  }
  free(world.queue.heap);
  if (failure[0])
    lua_forget();
  memset(&world, 0, sizeof world);
  memset(calls, 0, sizeof calls);
  failure[0] = 0;
  event_count = 0;
  server_count = 0;
  link_ops = sim_link_ops;
  link_ops.open = open_link;
  world.tester = &tester;
  world.seed = seed;
  world.random = seed * UINT64_C(0xD1342543DE82EF95) + 1;
  world.now = MS;
  world.calm = world.tracing = 1;
  world.ttl_ms = world.node_timeout_ms = world.connect_timeout_ms = 1000;
  world.faults.delay_min = delay_min_ns;
  world.faults.delay_max = delay_max_ns;
  threads_forget();
  paths_start(&world);
  ears_start(&world);
}

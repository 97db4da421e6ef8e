/* A thread waits in a call, and does the input and output of the client meanwhile, while another one runs the client's
 * loop. A cancel that comes as the loop looks for input wakes the call all the same ("cancel"); and the loop, as often
 * as it turns, lets the thread sleep that has nothing to do ("sleep"). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { NODES = 3, TURNS = 200 };

static redlock_lock *lock;
static _Thread_local int in_call;
static atomic_int waits, may_wait, wakes;
static int cancels; /* at the next look */

/* In place of the C library's, for the shared library too. */
#pragma GCC visibility push(default)

int epoll_wait(int fd, struct epoll_event *events, int size, int timeout_ms)
{
  int (*real)(int, struct epoll_event *, int, int);
  int count;
  *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
  if (!in_call && cancels) {
    cancels = 0;
    redlock_lock_cancel(lock);
  }
  if (!in_call || timeout_ms == 0)
    return real(fd, events, size, timeout_ms);
  atomic_store(&waits, 1);
  while (!atomic_load(&may_wait)) /* the system does not let it run */
    poll(NULL, 0, 1);
  count = real(fd, events, size, timeout_ms);
  atomic_fetch_add(&wakes, 1);
  return count;
}

#pragma GCC visibility pop

/* A server that accepts and says nothing. */
static int silent_server(char *url, size_t size)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 8) == 0);
  CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
  snprintf(url, size, "redis://127.0.0.1:%d", ntohs(address.sin_port));
  return fd;
}

static int are_connected(redlock_client *client)
{
  char text[16384];
  const char *at = text;
  int count = 0;
  redlock_client_describe(client, text, sizeof text);
  while ((at = strstr(at, "\"state\":\"setup\"")) != NULL) {
    at++;
    count++;
  }
  return count == NODES;
}

static void *call(void *nothing)
{
  in_call = 1;
  CHECK_STATUS(lock, redlock_lock_acquire(lock, -1), REDLOCK_CANCELLED);
  return nothing;
}

static void turn(redlock_client *client)
{
  CHECK(redlock_client_process(client) == REDLOCK_OK);
}

static void lets_it_sleep(redlock_client *client)
{
  int before;
  atomic_store(&may_wait, 1);
  poll(NULL, 0, 100); /* what it was called for until now */
  before = atomic_load(&wakes);
  for (int i = 0; i < TURNS; i++) {
    turn(client);
    poll(NULL, 0, 1);
  }
  CHECK(atomic_load(&wakes) - before <= TURNS / 20);
  redlock_lock_cancel(lock);
}

static void cancels_as_it_looks(redlock_client *client)
{
  cancels = 1;
  turn(client);
  CHECK(!cancels);
  atomic_store(&may_wait, 1);
}

int main(int count, char **words)
{
  redlock_client *client = redlock_client_new();
  char urls[NODES][64], nodes[NODES * 64];
  int servers[NODES];
  pthread_t thread;
  CHECK(count == 2 && client);
  alarm(30); /* without the cancel the call would take longer */
  for (int i = 0; i < NODES; i++)
    servers[i] = silent_server(urls[i], sizeof urls[i]);
  snprintf(nodes, sizeof nodes, "%s,%s,%s", urls[0], urls[1], urls[2]);
  check_set(client, "nodes", nodes);
  check_set(client, "connect_timeout_ms", "60000");
  check_set(client, "outage_wait_ms", "-1");
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  CHECK(redlock_client_fd(client) >= 0);
  lock = redlock_lock_new(client, "waited for", 10);
  CHECK(lock);
  CHECK(pthread_create(&thread, NULL, call, NULL) == 0);
  while (!atomic_load(&waits) || !are_connected(client)) {
    turn(client);
    poll(NULL, 0, 1);
  }
  if (strcmp(words[1], "cancel") == 0)
    cancels_as_it_looks(client);
  else
    lets_it_sleep(client);
  pthread_join(thread, NULL);
  redlock_lock_free(lock);
  redlock_client_free(client);
  for (int i = 0; i < NODES; i++)
    close(servers[i]);
  puts("ok");
  return 0;
}

/* Names that take long to look up: however often a node tries to connect meanwhile, one look-up of its name runs. Once
 * the answers come, they serve. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { NODES = 5, TRIES = 4 };

static atomic_int running, answered;

/* In place of the C library's, for the shared library too. */
#pragma GCC visibility push(default)

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
  int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
  (void)name;
  atomic_fetch_add(&running, 1);
  while (!atomic_load(&answered))
    poll(NULL, 0, 1);
  atomic_fetch_sub(&running, 1);
  return real("127.0.0.1", service, hints, list);
}

#pragma GCC visibility pop

/* REDLOCK_NODES with a name in place of the address. */
static void name_nodes(char *named, size_t size)
{
  const char *nodes = getenv("REDLOCK_NODES"), *at;
  size_t length = 0;
  CHECK(nodes);
  while ((at = strstr(nodes, "127.0.0.1")) != NULL) {
    length += (size_t)snprintf(named + length, size - length, "%.*sname.test", (int)(at - nodes), nodes);
    CHECK(length < size);
    nodes = at + strlen("127.0.0.1");
  }
  snprintf(named + length, size - length, "%s", nodes);
}

/* How often the node that tried least has tried to connect. */
static long tries(redlock_client *client)
{
  static const char field[] = "\"connects\":";
  char text[16384];
  const char *at = text;
  long least = 1000, nodes = 0;
  CHECK(redlock_client_describe(client, text, sizeof text) < (int64_t)sizeof text);
  for (; (at = strstr(at, field)) != NULL; nodes++) {
    long count = strtol(at += strlen(field), NULL, 10);
    least = count < least ? count : least;
  }
  CHECK(nodes == NODES);
  return least;
}

int main(void)
{
  redlock_client *client = check_client();
  redlock_lock *lock;
  char named[4096];
  alarm(120); /* a call that does not return is a failure */
  name_nodes(named, sizeof named);
  check_set(client, "nodes", named);
  check_set(client, "connect_timeout_ms", "50");
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  lock = redlock_lock_new(client, "named", 5);
  CHECK(lock);
  while (tries(client) < TRIES)
    CHECK(redlock_lock_acquire(lock, 0) != REDLOCK_OK);
  CHECK(atomic_load(&running) == NODES);
  atomic_store(&answered, 1);
  while (redlock_lock_acquire(lock, 0) != REDLOCK_OK)
    ;
  CHECK_OK(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
  puts("ok");
  return 0;
}

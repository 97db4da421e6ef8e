/* What the programs share: a check that says where it failed, and a client of REDLOCK_NODES. */
#ifndef CHECK_H
#define CHECK_H

#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      _Exit(1);                                                                                                        \
    }                                                                                                                  \
  } while (0)

static inline void check_set(redlock_client *client, const char *name, const char *value)
{
  char why[512];
  if (redlock_client_set(client, name, value) != REDLOCK_OK) {
    redlock_client_message(client, why, sizeof why);
    fprintf(stderr, "%s\n", why);
    _Exit(1);
  }
}

/* Calm time-outs: sanitizers and valgrind are slow. */
static inline redlock_client *check_client(void)
{
  redlock_client *client = redlock_client_new();
  CHECK(client);
  CHECK(getenv("REDLOCK_NODES"));
  check_set(client, "nodes", getenv("REDLOCK_NODES"));
  check_set(client, "ttl_ms", "30000");
  check_set(client, "node_timeout_ms", "5000");
  check_set(client, "connect_timeout_ms", "20000");
  check_set(client, "exit_drain_ms", "10000");
  return client;
}

static inline void check_status(redlock_lock *lock, int status, int wanted, const char *file, int line)
{
  char why[1024];
  if (status == wanted)
    return;
  redlock_lock_message(lock, why, sizeof why);
  fprintf(stderr, "%s:%d: %s instead of %s: %s\n", file, line, redlock_status_name(status), redlock_status_name(wanted),
          why);
  _Exit(1);
}

#define CHECK_STATUS(lock, call, wanted) check_status(lock, call, wanted, __FILE__, __LINE__)
#define CHECK_OK(lock, call) CHECK_STATUS(lock, call, REDLOCK_OK)

#endif

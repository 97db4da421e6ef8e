/* The end of many locks at once: how long it takes until none of their keys is left, by releases or by a drain. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "subject.h"

enum { LOCKS_MAX = 1000000, STARTED_AT_ONCE = 64, LIMIT_MS = 60000 };

static redlock_client *client;
static redlock_lock **locks;
static int lock_count = 1000, is_drained;

static void start(int index, int operation)
{
  if (redlock_lock_start(locks[index], operation, -2) != REDLOCK_OK)
    die("operation %d on lock %d cannot be started", operation, index);
}

static void require_ok(redlock_lock *lock)
{
  if (redlock_lock_status(lock) != REDLOCK_OK)
    die("an operation ended with %s", redlock_status_name(redlock_lock_status(lock)));
}

/* The operation on all locks, so many at once. */
static void perform(int operation, int at_once)
{
  struct pollfd wanted = {.fd = redlock_client_fd(client), .events = POLLIN};
  for (int started = 0, ended = 0; ended < lock_count;) {
    while (started < lock_count && started < ended + at_once)
      start(started++, operation);
    poll(&wanted, 1, 1);
    redlock_client_process(client);
    for (uint64_t tag; redlock_client_next(client, &tag) == 1; ended++)
      require_ok(locks[tag]);
  }
}

static void end_all(void)
{
  if (!is_drained)
    perform(REDLOCK_RELEASE, lock_count);
  if (redlock_client_drain(client, LIMIT_MS) != REDLOCK_OK)
    die("keys may be left");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'l': lock_count = (int)parse_number(state, "locks", text, 1, LOCKS_MAX); return 0;
  case 'd': is_drained = 1; return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = client; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option options[] = {
      {"locks", 'l', "N", 0, "how many (default 1000)", 0},
      {"drain", 'd', NULL, 0, "by a drain alone, without releases", 0},
      {0},
  };
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = options,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "The end of many locks at once, through libredlock."};
  client = redlock_client_new();
  if (client == NULL)
    die("no memory for a client");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  locks = calloc((size_t)lock_count, sizeof(redlock_lock *));
  if (locks == NULL)
    die("no memory for %d locks", lock_count);
  for (int i = 0; i < lock_count; i++)
    locks[i] = subject_lock(client, (unsigned)i);
  perform(REDLOCK_ACQUIRE, STARTED_AT_ONCE);
  int64_t begin_ns = now_ns();
  end_all();
  int64_t took_ns = now_ns() - begin_ns;
  printf("{\"locks\":%d,\"ms\":%.2f,\"us_each\":%.3f}\n", lock_count, (double)took_ns / 1e6,
         (double)took_ns / 1e3 / lock_count);
  for (int i = 0; i < lock_count; i++)
    redlock_lock_free(locks[i]);
  free(locks);
  redlock_client_free(client);
  return 0;
}

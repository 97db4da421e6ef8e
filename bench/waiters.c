/* Many waiters of one client on a lock that another client holds: what they cost while it is held, and how fast and in
 * which order they are served when it is released. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "figures.h"
#include "subject.h"

enum { WAITERS_MAX = 10000 };

static redlock_client *client;
static redlock_lock *locks[WAITERS_MAX];
static int waiters = 1000;
static int64_t held_ms = 10000;

static double cpu_s(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int64_t commands(void)
{
  char text[65536];
  const char *found;
  redlock_client_describe(client, text, sizeof text);
  found = strstr(text, "\"commands\":");
  return found ? strtoll(found + 11, NULL, 10) : 0;
}

/* Runs the client's loop until end_ns: the number of waiters that were served. Each is released at once. */
static int run(int64_t end_ns, int wanted, int64_t *disorder)
{
  struct pollfd readable = {.fd = redlock_client_fd(client), .events = POLLIN};
  static int last = -1;
  int served = 0;
  while (served < wanted && now_ns() < end_ns) {
    poll(&readable, 1, 10);
    redlock_client_process(client);
    for (uint64_t tag; redlock_client_next(client, &tag) == 1;) {
      if (redlock_lock_state(locks[tag]) != REDLOCK_STATE_HELD)
        continue;
      *disorder += (int)tag < last;
      last = (int)tag;
      if (redlock_lock_start(locks[tag], REDLOCK_RELEASE, 0) != REDLOCK_OK)
        die("a release could not be started");
      served++;
    }
  }
  return served;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'w': waiters = (int)parse_number(state, "waiters", text, 1, WAITERS_MAX); return 0;
  case 'h': held_ms = parse_number(state, "held", text, 1, 3600000); return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = client; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* The holder is another process as far as the nodes can tell: a client of its own. */
static redlock_lock *take(redlock_client *holder)
{
  char nodes[4096];
  redlock_client_get(client, "nodes", nodes, sizeof nodes);
  redlock_client_set(holder, "nodes", nodes);
  redlock_client_set(holder, "ttl_ms", "600000");
  if (redlock_client_open(holder) != REDLOCK_OK)
    die("the holder's client does not open");
  redlock_lock *lock = subject_lock(holder, 0);
  if (redlock_lock_acquire(lock, 60000) != REDLOCK_OK)
    die("the holder does not get the lock");
  return lock;
}

int main(int argc, char **argv)
{
  static const struct argp_option own[] = {
      {"waiters", 'w', "N", 0, "how many (default 1000)", 0},
      {"held", 'h', "MS", 0, "for how long the lock is held while they wait (default 10000)", 0},
      {0},
  };
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = own,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "Many waiters of one client on one lock, through libredlock."};
  int64_t disorder = 0;
  client = redlock_client_new();
  redlock_client *holder = redlock_client_new();
  if (client == NULL || holder == NULL)
    die("no memory for a client");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  redlock_lock *held = take(holder);
  for (int i = 0; i < waiters; i++) {
    locks[i] = subject_lock(client, 0);
    redlock_lock_set_tag(locks[i], (uint64_t)i);
    if (redlock_lock_start(locks[i], REDLOCK_ACQUIRE, -1) != REDLOCK_OK)
      die("waiter %d cannot be started", i);
  }
  run(now_ns() + 1000000000, waiters, &disorder); /* they settle down */
  double cpu_begin_s = cpu_s();
  int64_t commands_begin = commands(), begin_ns = now_ns();
  run(begin_ns + held_ms * 1000000, waiters, &disorder);
  double waited_s = (double)(now_ns() - begin_ns) / 1e9, used_s = cpu_s() - cpu_begin_s;
  double rate = (double)(commands() - commands_begin) / waited_s / waiters;
  if (redlock_lock_release(held) != REDLOCK_OK)
    die("the holder had lost the lock");
  begin_ns = now_ns();
  int served = run(begin_ns + 120000000000, waiters, &disorder);
  printf("{\"waiters\":%d,\"commands_per_s\":%.4f,\"share_of_core\":%.5f,\"served\":%d,\"serve_s\":%.4f,"
         "\"disorder\":%" PRId64 "}\n",
         waiters, rate, used_s / waited_s, served, (double)(now_ns() - begin_ns) / 1e9, disorder);
  for (int i = 0; i < waiters; i++)
    redlock_lock_free(locks[i]);
  redlock_lock_free(held);
  redlock_client_free(holder);
  redlock_client_free(client);
  return 0;
}

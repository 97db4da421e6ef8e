/* Holds many renewed leases in one process for a time: what that costs, and whether all of them last. They are taken
 * over some seconds, as in a living program; taken in one burst they would be renewed in a few large commands. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "figures.h"
#include "subject.h"

enum { LEASES_MAX = 100000, STARTED_AT_ONCE = 64 };

static redlock_client *client;
static redlock_lock **locks;
static int lease_count = 10000;
static int64_t spread_ms = 5000, hold_ms = 30000;

static void start(int index)
{
  locks[index] = subject_lock(client, (unsigned)index);
  if (redlock_lock_start(locks[index], REDLOCK_ACQUIRE, -2) != REDLOCK_OK)
    die("lock %d cannot be acquired", index);
}

static void require_held(redlock_lock *lock)
{
  if (redlock_lock_status(lock) == REDLOCK_OK)
    return;
  char message[512];
  redlock_lock_message(lock, message, sizeof message);
  die("not acquired: %s", message);
}

/* How many may have been started by now. */
static int allowed(int64_t begin_ns, int held)
{
  int64_t by_now = spread_ms > 0 ? lease_count * (now_ns() - begin_ns) / (spread_ms * 1000000) : lease_count;
  int64_t most = by_now < lease_count ? by_now : lease_count;
  return most < held + STARTED_AT_ONCE ? (int)most : held + STARTED_AT_ONCE;
}

static void acquire_all(void)
{
  struct pollfd wanted = {.fd = redlock_client_fd(client), .events = POLLIN};
  int64_t begin_ns = now_ns();
  for (int started = 0, held = 0; held < lease_count;) {
    while (started < allowed(begin_ns, held))
      start(started++);
    poll(&wanted, 1, 1);
    redlock_client_process(client);
    for (uint64_t tag; redlock_client_next(client, &tag) == 1; held++)
      require_held(locks[tag]);
  }
}

static double cpu_s(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int count_lost(void)
{
  int lost = 0;
  for (int i = 0; i < lease_count; i++)
    lost += redlock_lock_state(locks[i]) != REDLOCK_STATE_HELD;
  return lost;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'l': lease_count = (int)parse_number(state, "leases", text, 1, LEASES_MAX); return 0;
  case 's': spread_ms = parse_number(state, "spread", text, 0, 3600000); return 0;
  case 'h': hold_ms = parse_number(state, "hold", text, 1, 3600000); return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = client; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option options[] = {
      {"leases", 'l', "N", 0, "how many (default 10000)", 0},
      {"spread", 's', "MS", 0, "over how long they are taken (default 5000)", 0},
      {"hold", 'h', "MS", 0, "for how long (default 30000)", 0},
      {0},
  };
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = options,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "Renewed leases of one process, through libredlock."};
  client = redlock_client_new();
  if (client == NULL)
    die("no memory for a client");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  locks = calloc((size_t)lease_count, sizeof(redlock_lock *));
  if (locks == NULL)
    die("no memory for %d leases", lease_count);
  acquire_all();
  double cpu_begin_s = cpu_s();
  int64_t begin_ns = now_ns();
  poll(NULL, 0, (int)hold_ms);
  double wall_s = (double)(now_ns() - begin_ns) / 1e9;
  double used_s = cpu_s() - cpu_begin_s;
  printf("{\"leases\":%d,\"held_s\":%.2f,\"cpu_s\":%.4f,\"share_of_core\":%.5f,\"lost\":%d,\"rss_kb\":%ld}\n",
         lease_count, wall_s, used_s, used_s / wall_s, count_lost(), rss_kb());
  for (int i = 0; i < lease_count; i++)
    redlock_lock_free(locks[i]);
  free(locks);
  redlock_client_free(client);
  return 0;
}

/* Processes that contend for one resource: who gets it how often, how long they wait, and whether two ever hold it.
 * Some may share it: then the figures are those of the others, and what the readers got is only counted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"
#include "subject.h"

enum { PROCESSES_MAX = 256, WAITS_MAX = 20000 };

struct share {
  int64_t acquired, commands, waits, longest_ns;
  uint32_t wait_us[WAITS_MAX];
};

static struct {
  _Atomic int ready, go, inside, reading;
  _Atomic int64_t overlaps, failed;
  int64_t end_ns;
  struct share of[PROCESSES_MAX];
} *shared;

static redlock_client *client; /* each process has connections of its own: they are made anew after the fork */
static int processes = 16, readers;
static int64_t hold_us = 5000, think_us, measure_ms = 5000;

static void pause_us(int64_t us)
{
  struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

static void hold(struct share *share, int shares, int64_t wait_ns)
{
  _Atomic int *mine = shares ? &shared->reading : &shared->inside;
  if (((*mine)++ != 0 && !shares) || (shares ? shared->inside : shared->reading) != 0)
    shared->overlaps++;
  share->acquired++;
  if (share->waits < WAITS_MAX)
    share->wait_us[share->waits++] = (uint32_t)(wait_ns / 1000);
  if (wait_ns > share->longest_ns)
    share->longest_ns = wait_ns;
  pause_us(hold_us);
  (*mine)--;
}

static void contend(int number)
{
  struct share *share = &shared->of[number];
  int shares = number < readers;
  prctl(PR_SET_TIMERSLACK, 1);
  redlock_lock *lock = subject_lock(client, 0);
  if (redlock_lock_set(lock, "shared", shares ? "true" : "false") != REDLOCK_OK)
    die("a lock cannot be shared");
  if (redlock_lock_acquire(lock, 60000) != REDLOCK_OK || redlock_lock_release(lock) != REDLOCK_OK)
    shared->failed++;
  int64_t before = commands_of(client);
  shared->ready++;
  while (!shared->go)
    pause_us(200);
  while (now_ns() < shared->end_ns) {
    int64_t begin_ns = now_ns();
    int status = redlock_lock_acquire(lock, (shared->end_ns - begin_ns) / 1000000 + 1);
    if (status == REDLOCK_OK) {
      hold(share, shares, now_ns() - begin_ns);
      if (redlock_lock_release(lock) != REDLOCK_OK)
        shared->failed++;
      if (think_us)
        pause_us(think_us);
    } else if (now_ns() < shared->end_ns) {
      shared->failed++;
    } else if (now_ns() - begin_ns > share->longest_ns) {
      share->longest_ns = now_ns() - begin_ns; /* it waited to the end without the lock */
    }
  }
  share->commands = commands_of(client) - before;
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static int ascending(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static void print(void)
{
  static uint32_t all[PROCESSES_MAX * 2000];
  int64_t count = 0, sum = 0, commands = 0, longest_ns = 0, reads = 0;
  double squares = 0;
  for (int i = 0; i < readers; i++)
    reads += shared->of[i].acquired;
  for (int i = readers; i < processes; i++) {
    struct share *share = &shared->of[i];
    sum += share->acquired;
    squares += (double)share->acquired * (double)share->acquired;
    commands += share->commands;
    if (share->longest_ns > longest_ns)
      longest_ns = share->longest_ns;
    for (int64_t w = 0; w < share->waits && count < PROCESSES_MAX * 2000; w++)
      all[count++] = share->wait_us[w];
  }
  qsort(all, (size_t)count, sizeof all[0], ascending);
  printf("{\"processes\":%d,\"acquired\":%" PRId64 ",\"per_s\":%.2f,\"jain\":%.4f,\"p50_ms\":%.2f,\"p99_ms\":%.2f,"
         "\"longest_ms\":%.2f,\"commands\":%.2f,\"overlaps\":%" PRId64 ",\"failed\":%" PRId64 ",\"reads\":%" PRId64
         "}\n",
         processes, sum, (double)sum * 1000 / (double)measure_ms,
         squares > 0 ? (double)sum * (double)sum / ((processes - readers) * squares) : 0,
         count ? all[count / 2] / 1e3 : 0, count ? all[count * 99 / 100] / 1e3 : 0, (double)longest_ns / 1e6,
         sum ? (double)commands / (double)sum : 0, (int64_t)shared->overlaps, (int64_t)shared->failed, reads);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'p': processes = (int)parse_number(state, "processes", text, 1, PROCESSES_MAX); return 0;
  case 'r': readers = (int)parse_number(state, "readers", text, 0, PROCESSES_MAX - 1); return 0;
  case 't': think_us = parse_number(state, "think-us", text, 0, 60000000); return 0;
  case 'h': hold_us = parse_number(state, "hold-us", text, 0, 60000000); return 0;
  case 's': measure_ms = parse_number(state, "milliseconds", text, 1, 3600000); return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = client; return 0;
  case ARGP_KEY_END:
    if (readers >= processes)
      argp_error(state, "--readers=%d: allowed with %d processes: 0 to %d", readers, processes, processes - 1);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option own[] = {
      {"processes", 'p', "N", 0, "how many contend (default 16)", 0},
      {"readers", 'r', "N", 0, "how many of them share the lock (default 0)", 0},
      {"think-us", 't', "US", 0, "how long each pauses between two holds (default 0)", 0},
      {"hold-us", 'h', "US", 0, "how long each holds the lock (default 5000)", 0},
      {"milliseconds", 's', "MS", 0, "measure for MS (default 5000)", 0},
      {0},
  };
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = own,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "Processes that contend for one resource, through libredlock."};
  client = redlock_client_new();
  shared = shared_memory(sizeof *shared);
  if (client == NULL)
    die("no memory");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  fork_each(processes, contend);
  while (shared->ready < processes)
    pause_us(1000);
  shared->end_ns = now_ns() + measure_ms * 1000000;
  shared->go = 1;
  for (int i = 0; i < processes; i++)
    wait(NULL);
  print();
  redlock_client_free(client);
  return 0;
}

/* Hosts that try to take one lock at the same moment, without a wait: how often none of them gets it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"
#include "subject.h"

enum { HOSTS_MAX = 64, ROUNDS_MAX = 1000000, LEAD_NS = 1000000 };

static struct {
  _Atomic int round, ready, done, won; /* the round that may begin; hosts that are ready for it, have tried, have won */
  _Atomic int64_t failed, attempts, longest_ns;
  int64_t begin_ns;
} *shared;

static redlock_client *client; /* each host has connections of its own: they are made anew after the fork */
static int hosts = 3, rounds = 1000;

static void pause_ns(int64_t ns)
{
  struct timespec time = {ns / 1000000000, ns % 1000000000};
  nanosleep(&time, NULL);
}

static void wait_for(_Atomic int *value, int least)
{
  while (*value < least)
    pause_ns(50000);
}

static void begin_together(void)
{
  struct timespec time = {shared->begin_ns / 1000000000, shared->begin_ns % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void host(int number)
{
  redlock_lock *lock = subject_lock(client, 0), *other = subject_lock(client, 1 + (unsigned)number);
  prctl(PR_SET_TIMERSLACK, 1);
  if (redlock_lock_acquire(other, 60000) != REDLOCK_OK || redlock_lock_release(other) != REDLOCK_OK)
    shared->failed++;
  for (int round = 1; round <= rounds; round++) {
    int status;
    shared->ready++;
    wait_for(&shared->round, round);
    begin_together();
    status = redlock_lock_acquire(lock, 0);
    if (now_ns() - shared->begin_ns > shared->longest_ns)
      shared->longest_ns = now_ns() - shared->begin_ns;
    shared->attempts += redlock_lock_attempts(lock);
    shared->won += status == REDLOCK_OK;
    shared->failed += status != REDLOCK_OK && status != REDLOCK_BUSY;
    shared->done++;
    wait_for(&shared->done, round * hosts);
    if (status == REDLOCK_OK && (redlock_lock_release(lock) != REDLOCK_OK || redlock_lock_settle(lock, 1000) < 0))
      shared->failed++;
  }
  redlock_lock_free(other);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void measure(void)
{
  int nobody = 0, several = 0, won = 0;
  for (int round = 1; round <= rounds; round++) {
    int before = won;
    wait_for(&shared->ready, round * hosts);
    shared->begin_ns = now_ns() + LEAD_NS;
    shared->round = round;
    wait_for(&shared->done, round * hosts);
    won = shared->won;
    nobody += won == before;
    several += won > before + 1;
  }
  printf("{\"hosts\":%d,\"rounds\":%d,\"nobody\":%d,\"several\":%d,\"attempts\":%.3f,\"longest_ms\":%.2f,\"failed\":"
         "%" PRId64 "}\n",
         hosts, rounds, nobody, several, (double)shared->attempts / (double)hosts / (double)rounds,
         (double)shared->longest_ns / 1e6, (int64_t)shared->failed);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'p': hosts = (int)parse_number(state, "hosts", text, 1, HOSTS_MAX); return 0;
  case 'r': rounds = (int)parse_number(state, "rounds", text, 1, ROUNDS_MAX); return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = client; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option own[] = {
      {"hosts", 'p', "N", 0, "how many try (default 3)", 0},
      {"rounds", 'r', "N", 0, "how often (default 1000)", 0},
      {0},
  };
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = own,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "Hosts that try to take one lock at once, through libredlock."};
  client = redlock_client_new();
  shared = shared_memory(sizeof *shared);
  if (client == NULL)
    die("no memory");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  fork_each(hosts, host);
  measure();
  for (int i = 0; i < hosts; i++)
    wait(NULL);
  redlock_client_free(client);
  return 0;
}

/* Waiters on a lock that another process holds: what they cost while it is held, how fast and in which order they are
 * served once it is released, and how long as many cycles take without contention. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figures.h"
#include "subject.h"

enum { WAITERS_MAX = 10000, PROCESSES_MAX = 256, SERVE_MAX_S = 120 };

/* What one process has measured. */
struct line {
  int64_t commands, cpu_us, disorder, end_ns;
  int served;
};

static struct {
  _Atomic int go, measured, served; /* processes that have */
  int64_t begin_ns, end_ns;         /* of the time in which they just wait */
  struct line of[PROCESSES_MAX];
} *shared;

static redlock_client *client; /* each process has connections of its own: they are made again after the fork */
static redlock_lock *locks[WAITERS_MAX];
static int waiters = 1000, processes = 1;
static int64_t held_ms = 10000, settle_ms = 2000;
static int turn[PROCESSES_MAX + 1]
               [2]; /* pipes: whose turn it is to make a cycle once all are served; the last is ours */

static int64_t cpu_us(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void start(redlock_lock *lock, enum redlock_operation operation)
{
  if (redlock_lock_start(lock, operation, operation == REDLOCK_ACQUIRE ? -1 : 0) != REDLOCK_OK)
    die("an operation could not be started");
}

/* An operation of this lock has ended: 1 if that was its release. */
static int advance(redlock_lock *lock)
{
  if (redlock_lock_status(lock) != REDLOCK_OK)
    die("an operation ended with %d", redlock_lock_status(lock));
  if (redlock_lock_state(lock) != REDLOCK_STATE_HELD)
    return 1;
  start(lock, REDLOCK_RELEASE); /* at once: the next is waiting */
  return 0;
}

/* Runs the client's loop until end_ns, or until all are served. */
static void run_until(int64_t end_ns, struct line *line)
{
  struct pollfd readable = {.fd = redlock_client_fd(client), .events = POLLIN};
  static int64_t latest = -1; /* the one that began last of those that had the lock */
  for (int64_t now; line->served < waiters && (now = now_ns()) < end_ns;) {
    poll(&readable, 1, (int)((end_ns - now) / 1000000 + 1));
    redlock_client_process(client);
    for (uint64_t tag; redlock_client_next(client, &tag) == 1;) {
      if (advance(locks[tag])) {
        line->served++;
      } else {
        line->disorder += (int64_t)tag < latest;
        latest = (int64_t)tag > latest ? (int64_t)tag : latest;
      }
    }
  }
}

static void wait_in_line(struct line *line)
{
  while (!shared->go)
    poll(NULL, 0, 1);
  for (int i = 0; i < waiters; i++) {
    locks[i] = subject_lock(client, 0);
    if (redlock_lock_set_tag(locks[i], (uint64_t)i) != REDLOCK_OK)
      die("waiter %d has no tag", i);
    start(locks[i], REDLOCK_ACQUIRE);
  }
  run_until(shared->begin_ns, line);
  int64_t commands = commands_of(client), used_us = cpu_us();
  run_until(shared->end_ns, line);
  line->commands = commands_of(client) - commands;
  line->cpu_us = cpu_us() - used_us;
  shared->measured++;
  run_until(shared->end_ns + SERVE_MAX_S * INT64_C(1000000000), line);
  line->end_ns = now_ns();
  shared->served++;
}

static void cycle(redlock_lock *lock)
{
  struct pollfd readable = {.fd = redlock_client_fd(client), .events = POLLIN};
  start(lock, REDLOCK_ACQUIRE);
  for (int is_over = 0; !is_over;) {
    poll(&readable, 1, -1);
    redlock_client_process(client);
    for (uint64_t tag; redlock_client_next(client, &tag) == 1;)
      is_over = advance(lock);
  }
}

static void make_cycles(redlock_lock *lock)
{
  for (int cycles = 0; cycles < waiters; cycles++)
    cycle(lock);
}

static void pass_the_turn_to(int number)
{
  if (write(turn[number][1], "", 1) != 1)
    die("a turn cannot be passed on");
}

static void await_the_turn_of(int number)
{
  char byte;
  if (read(turn[number][0], &byte, 1) != 1)
    die("a turn does not come");
}

static void be_a_line(int number)
{
  wait_in_line(&shared->of[number]);
  await_the_turn_of(number);
  make_cycles(locks[0]);
  pass_the_turn_to(number + 1);
  await_the_turn_of(number); /* the end of a process costs as much as a lock: no process ends yet */
}

/* How long as many cycles take as there were waiters, on the same lock: each process in turn makes those of its own. */
static double in_turns_s(void)
{
  int64_t begin_ns = now_ns();
  pass_the_turn_to(0);
  await_the_turn_of(processes);
  return (double)(now_ns() - begin_ns) / 1e9;
}

/* The same in one process, whose caches are warm. */
static double alone_s(redlock_lock *lock)
{
  int64_t begin_ns = now_ns();
  for (int i = 0; i < processes; i++)
    make_cycles(lock);
  return (double)(now_ns() - begin_ns) / 1e9;
}

static void print(int64_t released_ns, double in_turns, double alone)
{
  struct line all = {0};
  double held_s = (double)held_ms / 1e3;
  for (int i = 0; i < processes; i++) {
    const struct line *line = &shared->of[i];
    all.commands += line->commands;
    all.cpu_us += line->cpu_us;
    all.disorder += line->disorder;
    all.served += line->served;
    all.end_ns = line->end_ns > all.end_ns ? line->end_ns : all.end_ns;
  }
  printf("{\"processes\":%d,\"waiters\":%d,\"commands_per_s\":%.4f,\"share_of_core\":%.5f,\"served\":%d,"
         "\"serve_s\":%.4f,\"in_turns_s\":%.4f,\"alone_s\":%.4f,\"disorder\":%" PRId64 "}\n",
         processes, waiters, (double)all.commands / held_s / (waiters * processes), (double)all.cpu_us / 1e6 / held_s,
         all.served, (double)(all.end_ns - released_ns) / 1e9, in_turns, alone, all.disorder);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'p': processes = (int)parse_number(state, "processes", text, 1, PROCESSES_MAX); return 0;
  case 'w': waiters = (int)parse_number(state, "waiters", text, 1, WAITERS_MAX); return 0;
  case 'h': held_ms = parse_number(state, "held", text, 1, 3600000); return 0;
  case 's': settle_ms = parse_number(state, "settle", text, 0, 3600000); return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = client; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option own[] = {
      {"processes", 'p', "N", 0, "how many processes wait (default 1)", 0},
      {"waiters", 'w', "N", 0, "how many waiters each has (default 1000)", 0},
      {"held", 'h', "MS", 0, "for how long the lock is held while they are measured (default 10000)", 0},
      {"settle", 's', "MS", 0, "for how long it is held before that (default 2000)", 0},
      {0},
  };
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = own,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "Waiters on a lock that another process holds, through libredlock."};
  client = redlock_client_new();
  shared = shared_memory(sizeof *shared);
  if (client == NULL)
    die("no memory");
  for (int i = 0; i <= PROCESSES_MAX; i++)
    if (pipe(turn[i]) != 0)
      die("no pipe");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  fork_each(processes, be_a_line);
  redlock_lock *held = subject_lock(client, 0);
  if (redlock_lock_set(held, "ttl_ms", "600000") != REDLOCK_OK || redlock_lock_acquire(held, 60000) != REDLOCK_OK)
    die("the lock cannot be held");
  shared->begin_ns = now_ns() + settle_ms * 1000000;
  shared->end_ns = shared->begin_ns + held_ms * 1000000;
  shared->go = 1;
  while (shared->measured < processes)
    poll(NULL, 0, 10);
  int64_t released_ns = now_ns();
  if (redlock_lock_release(held) != REDLOCK_OK)
    die("the holder had lost the lock");
  while (shared->served < processes && waitpid(-1, NULL, WNOHANG) == 0)
    poll(NULL, 0, 10);
  if (shared->served < processes)
    die("a process of waiters failed");
  double in_turns = in_turns_s();
  print(released_ns, in_turns, alone_s(held));
  for (int i = 0; i < processes; i++)
    pass_the_turn_to(i);
  for (int i = 0, status; i < processes; i++)
    if (wait(&status) < 0 || status != 0)
      die("a process of waiters failed");
  redlock_lock_free(held);
  redlock_client_free(client);
  return 0;
}

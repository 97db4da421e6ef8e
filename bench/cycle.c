/* Redlock cycles (acquire, then release) through libredlock, in the three shapes that programs use it in. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "subject.h"

enum { MAX_IN_FLIGHT = 1024 };

struct slot {
  redlock_lock *lock;
  enum redlock_operation running;
  int64_t begin_ns;
};

static struct figures figures;
static redlock_client *client;
static const char *shape = "blocking";
static int in_flight = 1, resources = 1;

static void count_failure(redlock_lock *lock)
{
  char message[512];
  redlock_lock_message(lock, message, sizeof message);
  if (figures.failed++ == 0)
    fprintf(stderr, "first failure: %s\n", message);
}

/* With more resources than its own, if it is to have them. */
static redlock_lock *new_lock(unsigned number)
{
  redlock_lock *lock = subject_lock(client, number);
  for (int i = 1; i < resources; i++) {
    char name[48];
    int size = snprintf(name, sizeof name, "bench:%06u:%d", number, i);
    if (redlock_lock_add(lock, name, (size_t)size) != REDLOCK_OK)
      die("no lock of %d resources", resources);
  }
  return lock;
}

static void *run_blocking(void *argument)
{
  redlock_lock *lock = argument;
  while (figures_next(&figures)) {
    int64_t begin_ns = now_ns();
    if (redlock_lock_acquire(lock, -2) != REDLOCK_OK || redlock_lock_release(lock) != REDLOCK_OK)
      count_failure(lock);
    figures_add(&figures, now_ns() - begin_ns);
  }
  redlock_lock_free(lock);
  return NULL;
}

static void run_threads(void)
{
  pthread_t threads[MAX_IN_FLIGHT];
  for (int i = 0; i < in_flight; i++) {
    int failed = pthread_create(&threads[i], NULL, run_blocking, new_lock((unsigned)i));
    if (failed)
      die("thread %d: %s", i, strerror(failed));
  }
  for (int i = 0; i < in_flight; i++)
    pthread_join(threads[i], NULL);
}

static void start(struct slot *slot, enum redlock_operation operation)
{
  slot->running = operation;
  if (redlock_lock_start(slot->lock, operation, operation == REDLOCK_ACQUIRE ? -2 : 0) != REDLOCK_OK) {
    count_failure(slot->lock);
    die("an operation could not be started");
  }
}

static int start_cycle(struct slot *slot)
{
  if (!figures_next(&figures))
    return 0;
  slot->begin_ns = now_ns();
  start(slot, REDLOCK_ACQUIRE);
  return 1;
}

/* Goes on with a slot whose operation ended; the number of cycles that have ended for good. */
static int advance(struct slot *slot)
{
  int status = redlock_lock_status(slot->lock);
  if (status == REDLOCK_PENDING)
    return 0;
  if (status != REDLOCK_OK)
    count_failure(slot->lock);
  if (status == REDLOCK_OK && slot->running == REDLOCK_ACQUIRE) {
    start(slot, REDLOCK_RELEASE);
    return 0;
  }
  figures_add(&figures, now_ns() - slot->begin_ns);
  return 1 - start_cycle(slot);
}

static void run_started(void)
{
  static struct slot slots[MAX_IN_FLIGHT];
  struct pollfd wanted = {.fd = redlock_client_fd(client), .events = POLLIN};
  int active = 0;
  for (int i = 0; i < in_flight; i++) {
    slots[i].lock = new_lock((unsigned)i);
    active += start_cycle(&slots[i]);
  }
  while (active > 0) {
    if (poll(&wanted, 1, 5000) == 0)
      die("nothing happened for 5 s");
    if (redlock_client_process(client) != REDLOCK_OK)
      die("redlock_client_process failed");
    for (uint64_t tag; redlock_client_next(client, &tag) == 1;)
      active -= advance(&slots[tag]);
  }
  for (int i = 0; i < in_flight; i++)
    redlock_lock_free(slots[i].lock);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'S':
    shape = text;
    if (strcmp(text, "blocking") && strcmp(text, "threads") && strcmp(text, "started"))
      argp_error(state, "--shape=%s: blocking, threads or started are allowed", text);
    return 0;
  case 'k': in_flight = (int)parse_number(state, "in-flight", text, 1, MAX_IN_FLIGHT); return 0;
  case 'r': resources = (int)parse_number(state, "resources", text, 1, 100); return 0;
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &figures;
    state->child_inputs[1] = client;
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option options[] = {
      {"shape", 'S', "SHAPE", 0, "blocking (default; one cycle at a time), threads or started", 0},
      {"resources", 'r', "N", 0, "resources of each lock (default 1)", 0},
      {"in-flight", 'k', "N", 0, "threads or started cycles at the same time (default 1)", 0},
      {0},
  };
  static const struct argp_child children[] = {{&figures_argp, 0, NULL, 0}, {&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options, .parser = parse_option, .children = children, .doc = "Redlock cycles through libredlock."};
  figures_init(&figures);
  client = redlock_client_new();
  if (client == NULL)
    die("no memory for a client");
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  if (!strcmp(shape, "threads"))
    run_threads();
  else if (!strcmp(shape, "started"))
    run_started();
  else
    run_blocking(new_lock(0));
  figures_print(&figures, "");
  redlock_client_free(client);
  return 0;
}

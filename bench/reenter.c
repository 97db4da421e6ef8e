/* A held lock that its handle acquires again and releases: nothing is sent. The best of several batches, since another
 * program on the core only adds to the time. */
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "subject.h"

enum { BATCHES = 50, PAIRS = 20000 };

static double batch_us(redlock_lock *lock)
{
  int64_t begin_ns = now_ns();
  for (int i = 0; i < PAIRS; i++)
    if (redlock_lock_acquire(lock, 0) != REDLOCK_OK || redlock_lock_release(lock) != REDLOCK_OK)
      die("an inner call failed: %s", redlock_status_name(redlock_lock_status(lock)));
  return (double)(now_ns() - begin_ns) / 1e3 / PAIRS;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  (void)text;
  if (key != ARGP_KEY_INIT)
    return ARGP_ERR_UNKNOWN;
  state->child_inputs[0] = state->input;
  return 0;
}

int main(int argc, char **argv)
{
  static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .parser = parse_option, .children = children, .doc = "Acquires again what is held, through libredlock."};
  double best_us = 0;
  redlock_client *client = redlock_client_new();
  if (client == NULL)
    die("no memory for a client");
  argp_parse(&argp, argc, argv, 0, NULL, client);
  redlock_lock *lock = subject_lock(client, 0);
  redlock_lock_set(lock, "reentrant", "true");
  redlock_lock_set(lock, "renew", "true");
  if (redlock_lock_acquire(lock, -2) != REDLOCK_OK)
    die("the lock cannot be acquired");
  for (int i = 0; i < BATCHES; i++) {
    double us = batch_us(lock);
    best_us = i == 0 || us < best_us ? us : best_us;
  }
  printf("{\"pairs\":%d,\"us_each\":%.4f}\n", BATCHES * PAIRS, best_us / 2);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return 0;
}

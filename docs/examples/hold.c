/* Holds a lock, renewed, until its standard input ends, and hears at once when the lock is lost.
 * The started shape: one poll over the client's descriptor and whatever else the program waits for.
 *
 *   REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 ./hold orders:42 5000 */
#include <poll.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waits for the client or for the input; 1 if the input has ended. */
static int turn(redlock_client *client, int input)
{
  char byte;
  struct pollfd wanted[] = {{.fd = redlock_client_fd(client), .events = POLLIN}, {.fd = input, .events = POLLIN}};
  poll(wanted, 2, -1);
  redlock_client_process(client);
  return input >= 0 && wanted[1].revents && read(input, &byte, 1) <= 0;
}

static int run(redlock_client *client, redlock_lock *lock, int operation, int64_t arg)
{
  int status = redlock_lock_start(lock, operation, arg);
  if (status != REDLOCK_OK)
    return status;
  while (redlock_lock_status(lock) == REDLOCK_PENDING)
    turn(client, -1);
  return redlock_lock_status(lock);
}

static void say(redlock_lock *lock, const char *word)
{
  char text[1024];
  redlock_lock_message(lock, text, sizeof text);
  printf("%s: %s\n", word, text);
  fflush(stdout);
}

static int hold(redlock_client *client, redlock_lock *lock)
{
  uint64_t tag;
  if (run(client, lock, REDLOCK_ACQUIRE, -2) != REDLOCK_OK) {
    say(lock, "refused");
    return EXIT_FAILURE;
  }
  say(lock, "held");
  while (redlock_lock_state(lock) == REDLOCK_STATE_HELD) {
    if (turn(client, STDIN_FILENO)) {
      int status = run(client, lock, REDLOCK_RELEASE, 0);
      say(lock, status == REDLOCK_OK ? "released" : redlock_status_name(status));
      return status == REDLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    while (redlock_client_next(client, &tag) == 1)
      continue; /* there is but one lock; with several the tag says whose state to look at */
  }
  puts("lost: the lease has run out, somebody else may hold the lock now");
  return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
  const char *nodes = getenv("REDLOCK_NODES");
  const char *resource = argc > 1 ? argv[1] : "orders:42";
  redlock_client *client = redlock_client_new();
  if (redlock_client_set(client, "nodes", nodes ? nodes : "") != REDLOCK_OK ||
      redlock_client_set(client, "ttl_ms", argc > 2 ? argv[2] : "5000") != REDLOCK_OK ||
      redlock_client_set(client, "renew", "true") != REDLOCK_OK || redlock_client_open(client) != REDLOCK_OK) {
    char text[512];
    redlock_client_message(client, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    redlock_client_free(client);
    return EXIT_FAILURE;
  }
  redlock_lock *lock = redlock_lock_new(client, resource, strlen(resource));
  int code = hold(client, lock);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return code;
}

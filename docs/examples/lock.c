/* Takes a lock, works, extends it and gives it back: cc lock.c $(pkg-config --cflags --libs libredlock)
 *
 *   REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 ./lock orders:42 */
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int client_failed(redlock_client *client)
{
  char text[512];
  redlock_client_message(client, text, sizeof text);
  fprintf(stderr, "%s\n", text);
  redlock_client_free(client);
  return EXIT_FAILURE;
}

static int work_under_lock(redlock_lock *lock)
{
  char text[1024];
  int status = redlock_lock_acquire(lock, 60000); /* new nodes vote after a while, or at once if bootstrapped */
  if (status == REDLOCK_OK) {
    printf("held for %lld ms more\n", (long long)redlock_lock_validity_ms(lock));
    status = redlock_lock_extend(lock, 20000);
    printf("extended: %s, held for %lld ms more\n", redlock_status_name(status),
           (long long)redlock_lock_validity_ms(lock));
    status = redlock_lock_release(lock); /* REDLOCK_LOST: the work took too long, somebody else may have worked too */
  }
  redlock_lock_message(lock, text, sizeof text);
  printf("%s: %s\n", redlock_status_name(status), text);
  return status;
}

int main(int argc, char **argv)
{
  const char *nodes = getenv("REDLOCK_NODES");
  const char *resource = argc > 1 ? argv[1] : "orders:42";
  redlock_client *client = redlock_client_new();
  if (redlock_client_set(client, "nodes", nodes ? nodes : "") != REDLOCK_OK ||
      redlock_client_set(client, "ttl_ms", "10000") != REDLOCK_OK || redlock_client_open(client) != REDLOCK_OK)
    return client_failed(client);

  redlock_lock *lock = redlock_lock_new(client, resource, strlen(resource));
  int status = work_under_lock(lock);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return status == REDLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

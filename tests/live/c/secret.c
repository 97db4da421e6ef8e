/* A client whose nodes come through a pipe; the test looks for their password in the memory of the process.
 *     secret [OPTION=VALUE...] <<< URLS
 * says "open" once a lock was tried, and "freed" when the client is; each time it goes on with a line. */
#include <string.h>
#include <unistd.h>

#include "check.h"

static char line[4096];

/* Not by stdio, whose buffer would keep it. */
static void read_line(void)
{
  size_t size = 0;
  while (size + 1 < sizeof line && read(STDIN_FILENO, line + size, 1) == 1 && line[size] != '\n')
    size++;
  line[size] = 0;
}

static void say(const char *word)
{
  puts(word);
  fflush(stdout);
  read_line();
}

static void set_pair(redlock_client *client, char *pair)
{
  char *value = strchr(pair, '=');
  CHECK(value);
  *value = 0;
  check_set(client, pair, value + 1);
  *value = '=';
}

int main(int argc, char **argv)
{
  redlock_client *client = redlock_client_new();
  redlock_lock *lock;
  CHECK(client);
  read_line();
  check_set(client, "nodes", line);
  explicit_bzero(line, sizeof line);
  for (int i = 1; i < argc; i++)
    set_pair(client, argv[i]);
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  lock = redlock_lock_new(client, "r", 1);
  CHECK(lock);
  printf("%s ", redlock_status_name(redlock_lock_acquire(lock, 2000)));
  say("open");
  redlock_lock_free(lock);
  redlock_client_free(client);
  say("freed");
  return 0;
}

/* The options that the environment may set, as a client has them that was told nothing else; "set-user-ID" first where
 * the program runs with the rights of another user than its caller. */
#include <unistd.h>

#include "check.h"

static void print(redlock_client *client, const char *name)
{
  char value[64];
  CHECK(redlock_client_get(client, name, value, sizeof value) >= 0);
  printf(" %s=%s", name, value);
}

int main(void)
{
  redlock_client *client = redlock_client_new();
  CHECK(client);
  check_set(client, "nodes", "redis://127.0.0.1:1");
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  printf("%s", geteuid() == getuid() ? "plain" : "set-user-ID");
  print(client, "guard");
  print(client, "max_ttl_ms");
  fflush(stdout);
  _Exit(0); /* a sanitizer may not look for leaks in such a program */
}

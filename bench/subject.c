#include "subject.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

#ifdef RLK_TEST_BUILD
#include "../core/src/base/mutant.h"
#endif

static void refuse(struct argp_state *state, redlock_client *client)
{
  char message[512];
  redlock_client_message(client, message, sizeof message);
  argp_error(state, "%s", message);
}

static void set_option(struct argp_state *state, redlock_client *client, const char *name, const char *value)
{
  if (redlock_client_set(client, name, value) != REDLOCK_OK)
    refuse(state, client);
}

static void set_pair(struct argp_state *state, redlock_client *client, char *pair)
{
  char *value = strchr(pair, '=');
  if (value == NULL)
    argp_error(state, "--set=%s: NAME=VALUE is allowed", pair);
  *value = '\0';
  set_option(state, client, pair, value + 1);
}

static void wait_for_all(struct argp_state *state)
{
#ifdef RLK_TEST_BUILD
  (void)state;
  rlk_test_wait_all = 1;
#else
  argp_error(state, "--wait-all: only the program of a test build can do that");
#endif
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  redlock_client *client = state->input;
  switch (key) {
  case 'n': set_option(state, client, "nodes", text); return 0;
  case 'o': set_pair(state, client, text); return 0;
  case 'a': wait_for_all(state); return 0;
  case ARGP_KEY_END:
    if (redlock_client_open(client) != REDLOCK_OK)
      refuse(state, client);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"nodes", 'n', "URL,...", 0, "the nodes, as for the library", 0},
    {"set", 'o', "NAME=VALUE", 0, "sets an option of the client", 0},
    {"wait-all", 'a', NULL, 0, "wait for all nodes (default: for a majority)", 0},
    {0},
};

const struct argp subject_argp = {.options = options, .parser = parse_option};

redlock_lock *subject_lock(redlock_client *client, unsigned number)
{
  char resource[32];
  int size = snprintf(resource, sizeof resource, "bench:%06u", number);
  redlock_lock *lock = redlock_lock_new(client, resource, (size_t)size);
  if (lock == NULL || redlock_lock_set_tag(lock, number) != REDLOCK_OK)
    die("no lock for %s", resource);
  return lock;
}

int64_t commands_of(redlock_client *client)
{
  char text[65536];
  const char *found;
  redlock_client_describe(client, text, sizeof text);
  found = strstr(text, "\"commands\":");
  return found ? strtoll(found + 11, NULL, 10) : 0;
}

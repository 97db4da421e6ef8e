/* A client that is fresh, or open with a node that is not there: what can be set without asking a server. */
#ifndef SETTINGS_WORLD_H
#define SETTINGS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "redlock.h"

#pragma GCC diagnostic ignored "-Wunused-function"

#define NODE "redis://127.0.0.1:1"

static redlock_client *client;
static redlock_lock *lock;
static char said[4096];

static int fresh_client(void **state)
{
  (void)state;
  client = redlock_client_new();
  lock = NULL;
  return client ? 0 : -1;
}

static int open_client(void **state)
{
  fresh_client(state);
  assert_int_equal(redlock_client_set(client, "nodes", NODE), REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "node_timeout_ms", "2000"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  lock = redlock_lock_new(client, "r", 1);
  return lock ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  redlock_lock_free(lock);
  redlock_client_free(client);
  return 0;
}

static const char *message(void)
{
  redlock_client_message(client, said, sizeof said);
  return said;
}

static const char *lock_message(void)
{
  redlock_lock_message(lock, said, sizeof said);
  return said;
}

static const char *get(const char *name)
{
  static char value[8192];
  assert_true(redlock_client_get(client, name, value, sizeof value) >= 0);
  return value;
}

static void assert_says(const char *text, const char *word)
{
  if (!strstr(text, word))
    fail_msg("\"%s\" does not say \"%s\"", text, word);
}

static void assert_starts_with(const char *text, const char *words)
{
  if (strncmp(text, words, strlen(words)) != 0)
    fail_msg("\"%s\" does not start with \"%s\"", text, words);
}

static int set(const char *name, const char *value)
{
  return redlock_client_set(client, name, value);
}

static const char *range_of(const char *name)
{
  for (int i = 0; redlock_option_at(i, REDLOCK_OPTION_NAME); i++)
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_NAME), name) == 0)
      return redlock_option_at(i, REDLOCK_OPTION_RANGE);
  fail_msg("there is no option %s", name);
  return "";
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, fresh_client, end)
#define OPEN(test) cmocka_unit_test_setup_teardown(test, open_client, end)

#endif

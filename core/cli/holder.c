/* holder.c - who holds a lock, from what the nodes answered to an inspect. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

bool node_told(redlock_lock *lock, int node)
{
  int vote = redlock_lock_vote(lock, node);
  return vote == REDLOCK_OK || vote == REDLOCK_BUSY || vote == REDLOCK_NOT_HELD;
}

bool node_has_key(redlock_lock *lock, int node)
{
  int vote = redlock_lock_vote(lock, node);
  return vote == REDLOCK_OK || vote == REDLOCK_BUSY;
}

/* Nodes on which the key has this value. */
static int count_of(redlock_client *client, redlock_lock *lock, const char *token)
{
  int count = 0;
  for (int i = 0; i < redlock_client_node_count(client); i++) {
    char *value = node_answer(lock, i, REDLOCK_ANSWER_TOKEN);
    count += node_has_key(lock, i) && strcmp(value, token) == 0;
    free(value);
  }
  return count;
}

static char *left_words(int64_t ms)
{
  if (ms == REDLOCK_TTL_ENDLESS)
    return format("no TTL");
  char *time = duration_words(ms);
  char *words = format("%s left", time);
  free(time);
  return words;
}

static char *no_holder_words(redlock_client *client, redlock_lock *lock)
{
  int nodes = redlock_client_node_count(client), keys = 0;
  for (int i = 0; i < nodes; i++)
    keys += node_has_key(lock, i);
  return keys == 0 ? format("by nobody") : format("by no majority: a key on %d of %d nodes", keys, nodes);
}

char *holder_words(redlock_client *client, redlock_lock *lock)
{
  if (redlock_lock_verdict(lock) != REDLOCK_VERDICT_HELD)
    return no_holder_words(client, lock);
  char *token = lock_holder(lock);
  char *left = left_words(redlock_lock_holder_ttl_ms(lock));
  int count = count_of(client, lock, token), nodes = redlock_client_node_count(client);
  const char *shown = *token != '\0' ? token : "no text"; /* a key of another type */
  char *words = format("by %.*s on %d of %d nodes, %s", TOKEN_SHOWN, shown, count, nodes, left);
  free(token);
  free(left);
  return words;
}

/* Uses its own handle, since the session's may be waiting. */
void holder_say(struct session *session, const char *more)
{
  const char *resource = session->args->resource;
  redlock_lock *lock = must(redlock_lock_new(session->client, resource, strlen(resource)));
  int status = session_inspect(session, lock);
  char *words = holder_words(session->client, lock);
  if (status == REDLOCK_OK || status == REDLOCK_BUSY)
    fail(0, "held %s; %s", words, more);
  else if (session->caught == 0)
    fail(0, "the nodes did not say who holds it; %s", more);
  free(words);
  redlock_lock_free(lock);
}

/* holder.c - who holds a lock, from what the nodes answered to an inspect. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { HOLDER_LIMIT_MS = 250 /* a refusal does not wait longer for the name */ };

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

bool is_answer(int status)
{
  return status == REDLOCK_OK || status == REDLOCK_BUSY || redlock_status_is(status, REDLOCK_IS_RETRIABLE) ||
         status == REDLOCK_REFUSED_CONFIG;
}

int nodes_with_key(redlock_client *client, redlock_lock *lock, const char *token)
{
  int count = 0;
  for (int i = 0; i < redlock_client_node_count(client); i++) {
    char *value = node_answer(lock, i, REDLOCK_ANSWER_TOKEN);
    count += node_has_key(lock, i) && (token == NULL || strcmp(value, token) == 0);
    free(value);
  }
  return count;
}

int nodes_told(redlock_client *client, redlock_lock *lock)
{
  int told = 0;
  for (int i = 0; i < redlock_client_node_count(client); i++)
    told += node_told(lock, i);
  return told;
}

const char *token_shown(const char *token)
{
  int permits = permits_of(token, strlen(token));
  return permits < 0 ? token : token + strlen(token) - TOKEN_SHOWN - (permits > 0 ? strlen("p01") : 0);
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
  int nodes = redlock_client_node_count(client), keys = nodes_with_key(client, lock, NULL);
  int told = nodes_told(client, lock);
  return keys > 0       ? format("by no majority: a key on %d of %d nodes", keys, nodes)
         : told < nodes ? format("by nobody on %d of %d nodes", told, nodes)
                        : format("by nobody");
}

json_t *holder_client(redlock_lock *lock)
{
  char *text = lock_held_by(lock);
  json_t *client = *text != '\0' ? json_loads(text, 0, NULL) : NULL;
  free(text);
  return client;
}

/* "worker-7 (pid 812 on web-3) for 4.2 s" */
static char *holder_client_words(const json_t *client)
{
  char *held = duration_words(number_in(client, "held_ms")), *words = append(client_words(client), " for %s", held);
  free(held);
  return words;
}

void holder_ask(struct session *session)
{
  (void)redlock_lock_who(session->lock, HOLDER_LIMIT_MS);
}

/* "3 readers, with the longest lease ", the words above, and a comma */
static char *reader_words(const json_t *client)
{
  long long readers = number_in(client, "readers");
  if (readers == 0)
    return format("readers");
  char *name = holder_client_words(client);
  char *words =
      readers == 1 ? format("1 reader, %s,", name) : format("%lld readers, with the longest lease %s,", readers, name);
  free(name);
  return words;
}

/* "worker-7 (pid 812 on web-3) for 4.2 s, 0123abcd" */
static char *owner_words(const json_t *client, const char *token)
{
  char *name = client != NULL ? append(holder_client_words(client), ", ") : NULL;
  const char *shown = token_shown(token);
  return *token != '\0' ? append(name, "%.*s", bytes_in_columns(shown, TOKEN_SHOWN), shown)
                        : append(name, "a key without a token");
}

bool has_holder(int verdict)
{
  return verdict == REDLOCK_VERDICT_HELD || verdict == REDLOCK_VERDICT_SHARED;
}

char *holder_words(redlock_client *client, redlock_lock *lock)
{
  int verdict = redlock_lock_verdict(lock), nodes = redlock_client_node_count(client);
  bool is_shared = verdict == REDLOCK_VERDICT_SHARED;
  if (!has_holder(verdict))
    return no_holder_words(client, lock);
  char *token = lock_holder(lock), *left = left_words(redlock_lock_holder_ttl_ms(lock));
  json_t *holder = holder_client(lock);
  char *who = is_shared ? reader_words(holder) : owner_words(holder, token);
  char *words =
      format("by %s on %d of %d nodes, %s", who, nodes_with_key(client, lock, is_shared ? NULL : token), nodes, left);
  json_decref(holder);
  free(who);
  free(token);
  free(left);
  return words;
}

/* Uses handles of its own, since the session's may be waiting. */
void holder_say(struct session *session, const char *more)
{
  struct slots slots;
  int status = slots_inspect(&slots, session);
  char *holder = slots.count > 1 ? NULL : holder_words(session->client, slots.locks[0]);
  char *words = slots.count > 1 ? slots_words(&slots) : format("held %s", holder);
  if (status == REDLOCK_OK)
    fail(0, "%s; %s", words, more);
  else if (session->caught == 0)
    fail(0, "the nodes did not say who holds it; %s", more);
  free(holder);
  free(words);
  slots_free(&slots);
}

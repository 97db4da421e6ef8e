/* events.c - what the library tells beside the answers to calls. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

json_t *next_event(redlock_client *client)
{
  char line[2048];
  int64_t length = redlock_client_event(client, line, sizeof line);
  if (length <= 0 || length >= (int64_t)sizeof line)
    return NULL;
  return json_loadb(line, (size_t)length, 0, NULL);
}

static void say_warning(const struct args *args, const json_t *event)
{
  const char *kind = json_string_value(json_object_get(event, "event"));
  const char *detail = json_string_value(json_object_get(event, "detail"));
  if (kind == NULL || detail == NULL || strcmp(kind, "warning") != 0)
    return;
  char *words = in_users_words(args, NULL, detail);
  fail(0, "warning: %s", words);
  free(words);
}

void say_warnings(const struct session *session)
{
  json_t *event;
  while ((event = next_event(session->client)) != NULL) {
    say_warning(session->args, event);
    json_decref(event);
  }
}

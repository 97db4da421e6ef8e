/* events.c - the library's reports beside the results of calls. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* The detail becomes the input of in_users_words. */
static void take_parts(json_t *event)
{
  json_t *parts = json_object_get(event, "parts"), *part;
  char *joined = NULL;
  size_t i;
  json_array_foreach(parts, i, part)
    joined = append(joined, "%s%s", i > 0 ? PART : "", json_string_value(part));
  if (joined != NULL)
    json_object_set_new(event, "detail", must(json_string(joined)));
  free(joined);
}

static json_t *next_event(redlock_client *client)
{
  char line[2048];
  int64_t length = redlock_client_event(client, line, sizeof line);
  if (length <= 0 || length >= (int64_t)sizeof line)
    return NULL;
  json_t *event = json_loadb(line, (size_t)length, 0, NULL);
  take_parts(event);
  return event;
}

bool say_warnings(const struct session *session)
{
  json_t *event;
  bool waits = false;
  while ((event = next_event(session->client)) != NULL) {
    char *words = in_users_words(session->args, NULL, text_in(event, "detail"));
    bool is_warning = strcmp(text_in(event, "event"), "warning") == 0, is_of_lock = json_object_get(event, "resource");
    if (is_warning && is_of_lock && !waits && !session->args->quiet)
      fail(0, "\"%s\" %s", text_in(event, "resource"), words);
    else if (is_warning && !is_of_lock && *text_in(event, "node") == '\0')
      fail(0, "warning: %s", words);
    waits |= is_warning && is_of_lock;
    free(words);
    json_decref(event);
  }
  return waits;
}

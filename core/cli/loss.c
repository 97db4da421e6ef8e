/* loss.c - why a lock was lost, from what the library has told meanwhile. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* The next event; NULL if there is none. */
static json_t *next_event(redlock_client *client)
{
  char line[2048];
  int64_t length = redlock_client_event(client, line, sizeof line);
  if (length <= 0 || length >= (int64_t)sizeof line)
    return NULL;
  return json_loadb(line, (size_t)length, 0, NULL);
}

/* Keeps the last word on each node and on each kind of trouble; a node that came back is no trouble. */
static void note(json_t *known, const json_t *event)
{
  const char *kind = json_string_value(json_object_get(event, "event"));
  const char *node = json_string_value(json_object_get(event, "node"));
  json_t *detail = json_object_get(event, "detail");
  if (kind == NULL || detail == NULL || strcmp(kind, "warning") == 0)
    return;
  if (strcmp(kind, "node_up") == 0)
    json_object_del(known, node);
  else
    json_object_set(known, node != NULL ? node : kind, detail);
}

static char *append(char *text, const char *separator, const char *who, const char *detail)
{
  char *longer = format("%s%s%s%s", text, separator, who, detail);
  free(text);
  return longer;
}

static char *take(char *text, json_t *known, const char *kind)
{
  const char *detail = json_string_value(json_object_get(known, kind));
  if (detail != NULL)
    text = append(text, *text ? ", " : "", "", detail);
  json_object_del(known, kind);
  return text;
}

char *loss_reason(redlock_client *client)
{
  json_t *known = must(json_object()), *event, *detail;
  while ((event = next_event(client)) != NULL) {
    note(known, event);
    json_decref(event);
  }
  char *text = take(format("%s", ""), known, "lost");
  text = take(text, known, json_object_get(known, "limit") != NULL ? "limit" : "at_risk");
  json_object_del(known, "at_risk");
  const char *node;
  const char *separator = ": ";
  json_object_foreach (known, node, detail) {
    char *who = format("%s ", node);
    text = append(text, separator, who, json_string_value(detail));
    free(who);
    separator = ", ";
  }
  json_decref(known);
  return text;
}

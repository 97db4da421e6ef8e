/* loss.c - why a lock was lost, from the library's reports. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* Keeps the latest event of each node, and what the lock itself has lost or may lose. A node that came back is not a
 * problem unless it restarted. */
static void note(json_t *known, json_t *restarted, const json_t *event)
{
  const char *kind = text_in(event, "event"), *node = text_in(event, "node");
  json_t *detail = json_object_get(event, "detail");
  bool is_of_lock = *node == '\0' && (strcmp(kind, "lost") == 0 || strcmp(kind, "at_risk") == 0);
  if (detail == NULL || strcmp(kind, "warning") == 0 || (*node == '\0' && !is_of_lock))
    return;
  if (strcmp(kind, "node_restarted") == 0)
    json_object_set(restarted, node, detail);
  if (strcmp(kind, "node_up") != 0)
    json_object_set(known, is_of_lock ? kind : node, detail);
  else if (json_object_get(restarted, node) != NULL)
    json_object_set(known, node, json_object_get(restarted, node));
  else
    json_object_del(known, node);
}

static char *take(char *text, json_t *known, const char *kind)
{
  const char *detail = json_string_value(json_object_get(known, kind));
  if (detail != NULL)
    text = append(text, "%s%s", *text ? ", " : "", detail);
  json_object_del(known, kind);
  return text;
}

static json_t *known_of(redlock_client *client)
{
  json_t *known = must(json_object()), *restarted = must(json_object()), *event;
  while ((event = next_event(client)) != NULL) {
    note(known, restarted, event);
    json_decref(event);
  }
  json_decref(restarted);
  return known;
}

static char *append_nodes(char *text, json_t *known)
{
  const char *node, *separator = strstr(text, ": ") ? ", " : ": ";
  json_t *detail;
  json_object_foreach(known, node, detail) {
    text = append(text, "%s%s %s", separator, node, json_string_value(detail));
    separator = ", ";
  }
  return text;
}

char *loss_reason(const struct session *session)
{
  json_t *known = known_of(session->client);
  char *text = take(format("%s", ""), known, "lost");
  if (redlock_lock_loss(session->lock) == REDLOCK_LOSS_EXPIRED) /* why it was not renewed */
    text = take(text, known, "at_risk");
  json_object_del(known, "at_risk");
  text = append_nodes(text, known);
  json_decref(known);
  char *words = in_users_words(session->args, NULL, text);
  free(text);
  return words;
}

const char *loss_name(redlock_lock *lock)
{
  static const char *const names[] = {
      [REDLOCK_LOSS_EXPIRED] = "expired", [REDLOCK_LOSS_GONE] = "gone",   [REDLOCK_LOSS_RESTARTED] = "restarted",
      [REDLOCK_LOSS_REFUSED] = "refused", [REDLOCK_LOSS_LIMIT] = "limit", [REDLOCK_LOSS_CLOCK] = "clock",
      [REDLOCK_LOSS_CLOSED] = "closed",
  };
  int loss = redlock_lock_loss(lock);
  return loss >= 0 && loss < (int)(sizeof names / sizeof *names) ? names[loss] : NULL;
}

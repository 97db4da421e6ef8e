/* quarantine.c - why a lock on new nodes has to wait, in one line. */
#include "cli.h"

#include <stdlib.h>

/* The longest that one of the quarantined nodes has still to wait; -1 if one of them does not know. */
static int64_t longest_ms(const json_t *nodes, int *quarantined)
{
  json_t *node;
  size_t index;
  int64_t longest = 0;
  *quarantined = 0;
  json_array_foreach(nodes, index, node) {
    const json_t *left = json_object_get(node, "quarantine_left_ms");
    if (!json_is_true(json_object_get(node, "quarantined")))
      continue;
    ++*quarantined;
    if (longest >= 0 && (!json_is_integer(left) || json_integer_value(left) > longest))
      longest = json_is_integer(left) ? json_integer_value(left) : -1;
  }
  return longest;
}

/* NULL unless a majority is quarantined. The nodes' own messages all say the same; doctor shows them. */
char *quarantine_words(struct session *session)
{
  json_t *nodes = described(session->client, "nodes");
  int quarantined, count = redlock_client_node_count(session->client);
  int64_t left_ms = longest_ms(nodes, &quarantined);
  json_decref(nodes);
  if (quarantined <= count / 2)
    return NULL;
  char *left = left_ms >= 0 ? duration_words(left_ms) : format("a time that is not known yet");
  char *who = count == 1 ? format("the node is new or may have lost keys, and does not vote")
                         : format("%d of %d nodes are new or may have lost keys, and do not vote", quarantined, count);
  char *words = format("%s for another %s; `redlock bootstrap` ends that if no lock is live", who, left);
  free(who);
  free(left);
  return words;
}

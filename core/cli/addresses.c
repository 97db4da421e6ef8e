/* addresses.c - for redlock doctor: does a name with several addresses lead to one server? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

enum { ADDRESSES_MAX = 8, RUN_ID_SIZE = 41 };

/* False if it did not answer. */
static bool read_run_id(struct wire *wire, char run_id[RUN_ID_SIZE])
{
  const char *words[] = {"INFO", "server"};
  redisReply *reply = wire != NULL && wire_send(wire, 2, words, NULL) ? wire_reply(wire) : NULL;
  const char *at = reply != NULL && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "\nrun_id:") : NULL;
  bool is_read = at != NULL && sscanf(at, "\nrun_id:%40[0-9a-f]", run_id) == 1;
  freeReplyObject(reply);
  return is_read;
}

/* How many servers answer at the addresses. */
static int count_servers(struct wires *wires, int node, int count)
{
  char run_ids[ADDRESSES_MAX][RUN_ID_SIZE];
  int servers = 0;
  for (int i = 0; i < count; i++) {
    struct wire *wire = wire_open_at(wires, node, i);
    bool is_new = read_run_id(wire, run_ids[servers]);
    for (int other = 0; is_new && other < servers; other++)
      is_new = strcmp(run_ids[other], run_ids[servers]) != 0;
    servers += is_new;
    wire_close(wire);
  }
  return servers;
}

json_t *addresses_examine(struct session *session)
{
  struct wires *wires = wires_new(session);
  json_t *found = must(json_array());
  for (int i = 0; wires != NULL && i < wires_count(wires) && session->caught == 0; i++) {
    int count = wires_addresses(wires, i);
    json_t *node = must(json_object());
    if (count > 0) {
      json_object_set_new(node, "addresses", json_integer(count));
      json_object_set_new(node, "servers", json_integer(count_servers(wires, i, count)));
    }
    json_array_append_new(found, node);
  }
  wires_free(wires);
  return found;
}

bool addresses_differ(const json_t *node)
{
  return json_integer_value(json_object_get(node, "servers")) > 1;
}

void addresses_print(FILE *out, const json_t *node)
{
  if (addresses_differ(node))
    fprintf(out,
            "    its name has %lld addresses and leads to %lld servers: two programs may ask different ones\n"
            "    advice: give each server a name of its own in the list of nodes\n",
            (long long)json_integer_value(json_object_get(node, "addresses")),
            (long long)json_integer_value(json_object_get(node, "servers")));
}

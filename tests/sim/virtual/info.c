/* What a model server counts, and what it says of itself. */
#include "model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void count_command(const struct request *request, const char *name)
{
  struct counted *counted = server_of(request)->counted;
  while (counted->name[0] && strcasecmp(counted->name, name) != 0)
    if (++counted == server_of(request)->counted + COUNTED_MAX)
      world_fail(request->world, "more commands than the model server can count");
  snprintf(counted->name, sizeof counted->name, "%s", name);
  counted->calls++;
}

void add(char text[TEXT_SIZE], const char *format, ...)
{
  size_t size = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + size, TEXT_SIZE - size, format, arguments);
  va_end(arguments);
}

int keys_in(const struct store *store)
{
  int count = 0;
  for (int i = 0; i < store->count; i++)
    count += store->objects[i]->type != TYPE_NONE;
  return count;
}

static int wants(const struct request *request, char text[TEXT_SIZE], const char *section)
{
  if (request->count > 1 && !is(request, 1, section))
    return 0;
  add(text, "%s# %s\r\n", text[0] ? "\r\n" : "", section);
  return 1;
}

static void add_counts(char text[TEXT_SIZE], const struct server *server)
{
  for (const struct counted *counted = server->counted; counted->name[0]; counted++) {
    add(text, "cmdstat_");
    for (const char *c = counted->name; *c; c++)
      add(text, "%c", *c | 0x20);
    add(text, ":calls=%" PRId64 ",usec=0\r\n", counted->calls);
  }
}

void info(struct request *request)
{
  const struct server *server = server_of(request);
  const struct node *node = request->node;
  static char text[TEXT_SIZE];
  char run_id[RUN_ID_SIZE];
  server_run_id(request->world, node, 0, run_id);
  text[0] = 0;
  if (wants(request, text, "Server"))
    add(text, "redis_version:7.0.15\r\nredis_mode:%s\r\nprocess_id:%d\r\nrun_id:%s\r\n",
        is_yes(server, CLUSTER_ENABLED) ? "cluster" : "standalone", 1000 * (node->index + 1) + (int)node->incarnation,
        run_id);
  if (wants(request, text, "Memory"))
    add(text, "maxmemory:%s\r\nmaxmemory_policy:%s\r\n",
        strcmp(server->settings[MAXMEMORY], "100mb") != 0 ? server->settings[MAXMEMORY] : "104857600",
        server->settings[MAXMEMORY_POLICY]);
  if (wants(request, text, "Persistence"))
    add(text, "loading:0\r\naof_enabled:0\r\n");
  if (wants(request, text, "Stats"))
    add(text, "expired_keys:%" PRId64 "\r\n", server->expired);
  if (wants(request, text, "Replication") && server->is_replica)
    add(text, "role:slave\r\nmaster_link_status:%s\r\n", server->master < 0 ? "down" : "up");
  else if (request->count == 1 || is(request, 1, "Replication"))
    add(text, "role:master\r\n");
  if (request->count == 1 || is(request, 1, "Replication"))
    add(text, "connected_slaves:0\r\nmaster_replid:%016" PRIx64 "%024x\r\nmaster_replid2:%016" PRIx64 "%024x\r\n",
        server->history, 0u, server->former_history, 0u);
  if (wants(request, text, "Commandstats"))
    add_counts(text, server);
  if (wants(request, text, "Keyspace"))
    for (int i = 0; i < DATABASES; i++)
      if (keys_in(&server->stores[i]))
        add(text, "db%d:keys=%d,expires=0\r\n", i, keys_in(&server->stores[i]));
  server_reply_bulk(request, text, strlen(text));
}

/* What clients tell of themselves on a model server: entries under libredlock:c: and their number. */
#include "server.h"

#include <stdio.h>

#define ENTRY "v1 1 sim libredlock"
#define PROGRAMS "libredlock:c:programs"
static const char prefix[] = "libredlock:c:";

enum { PREFIX_SIZE = sizeof prefix - 1, NUMBER_SIZE = 12 };

int holder_is_entry(const struct request *request, int index)
{
  const struct argument *key = &request->arguments[index];
  return index < request->count && key->size == PREFIX_SIZE + NUMBER_SIZE && !memcmp(key->bytes, prefix, PREFIX_SIZE);
}

/* The last clients that have written theirs are known. */
static int is_known(const struct request *request)
{
  for (int i = 0; i < ENTRIES_MAX; i++)
    if (!memcmp(request->node->entries[i], request->arguments[1].bytes + PREFIX_SIZE, NUMBER_SIZE))
      return 1;
  return 0;
}

void holder_set(struct request *request)
{
  struct node *node = request->node;
  if (request->count != 5 || !is(request, 3, "PX") || server_number(request, 4) <= 0 ||
      !server_is_text(&request->arguments[2], ENTRY, sizeof ENTRY - 1)) {
    world_violation(request->world, "an entry that is not: SET key entry PX time");
    return;
  }
  if (!is_known(request))
    memcpy(node->entries[node->entry_count++ % ENTRIES_MAX], request->arguments[1].bytes + PREFIX_SIZE, NUMBER_SIZE);
  server_reply(request, "+OK\r\n");
}

int holder_is_programs(const struct request *request)
{
  return request->count > 3 && server_is_text(&request->arguments[3], PROGRAMS, sizeof PROGRAMS - 1);
}

/* Nothing reads it here: what it leaves behind is tested on real servers. */
void holder_programs(struct request *request)
{
  if (request->count != 7 || server_number(request, 2) != 1) {
    world_violation(request->world,
                    "a program that is not told by one key, a field, a value and the room of the reply");
    return;
  }
  server_reply(request, ":1\r\n");
}

void holder_reply(struct request *request)
{
  if (is_known(request))
    server_reply_bulk(request, ENTRY, sizeof ENTRY - 1);
  else
    server_reply(request, "$0\r\n\r\n");
}

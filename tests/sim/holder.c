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

static void keep(char *to, size_t size, const struct argument *text)
{
  snprintf(to, size, "%.*s", (int)text->size, text->bytes);
}

/* What else the script does is tested on real servers. */
void holder_programs(struct request *request)
{
  struct program *program = &request->node->program;
  if (request->count != 6 || server_number(request, 2) != 1) {
    world_violation(request->world, "a program that is not told by one key, a field and a value");
    return;
  }
  program->writes++;
  program->at_s = server_clock_ms(request->world, request->node) / 1000;
  keep(program->field, sizeof program->field, &request->arguments[4]);
  keep(program->value, sizeof program->value, &request->arguments[5]);
  server_reply(request, ":1\r\n");
}

int holder_is_asked_for_programs(const struct request *request)
{
  return is(request, 0, "HGETALL") && server_is_text(&request->arguments[1], PROGRAMS, sizeof PROGRAMS - 1);
}

/* The last one. */
void holder_programs_told(struct request *request)
{
  const struct program *program = &request->node->program;
  char value[sizeof program->value + 32];
  snprintf(value, sizeof value, "v1 %lld %s", (long long)program->at_s, program->value);
  server_reply_number(request, '*', program->writes ? 2 : 0);
  if (!program->writes)
    return;
  server_reply_bulk(request, program->field, strlen(program->field));
  server_reply_bulk(request, value, strlen(value));
}

void holder_reply(struct request *request)
{
  if (is_known(request))
    server_reply_bulk(request, ENTRY, sizeof ENTRY - 1);
  else
    server_reply(request, "$0\r\n\r\n");
}

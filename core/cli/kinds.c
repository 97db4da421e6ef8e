/* kinds.c - redlock doctor --kinds: which rights of the kinds of lock in use does the ACL of a node lack? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "wire.h"

enum { SHARED = 1, SEVERAL = 2, PERMITS = 4, HASH = 8 };

static const char *const names[] = {"shared", "several", "permits", "hash", NULL}; /* in the order of the bits */

/* clang-format off */
/* docs/redlock.md, Permissions, has the same: first what a plain lock needs, then what the kinds add. */
static const char rights[] =
    "-@all +hello +auth +select +info +set +get +getrange +pttl +pexpire +del +eval +evalsha +script|load +client|id "
    "+client|setname +exists +time +hset +hgetall +hdel +zadd +zrange +zrank +zrem +zscore +publish +subscribe";

/* Tried in this order on a key that holds "x" and has a TTL; none leaves another. */
static const struct {
  const char *name, *arguments[2];
  unsigned kinds;
} tried[] = {{"type", {NULL}, SHARED | SEVERAL | HASH},
                {"mget", {NULL}, SHARED | SEVERAL | PERMITS},
                {"append", {""}, SHARED},
                {"zcount", {"-inf", "+inf"}, SHARED},
                {"zremrangebyscore", {"-inf", "+inf"}, SHARED},
                {"msetnx", {"x"}, SEVERAL},
                {"hset", {"x", "1"}, HASH},
                {"hexists", {"x"}, HASH},
                {"hdel", {"x"}, HASH},
                {"hrandfield", {NULL}, HASH},
                {"pexpireat", {"1"}, SHARED}};
/* clang-format on */

enum { COMMANDS = sizeof tried / sizeof *tried };

static unsigned kinds; /* that are wanted, as bits */

static int read_kinds(const struct flag *flag, const char *given, struct args *args)
{
  (void)flag, (void)args;
  const char *word = given;
  do {
    size_t size = strcspn(word, ","), i = 0;
    while (names[i] != NULL && (strlen(names[i]) != size || strncmp(names[i], word, size) != 0))
      i++;
    if (names[i] == NULL)
      return fail(EXIT_USAGE, "--kinds %s: allowed are shared, several, permits and hash, separated by commas", given);
    kinds |= 1U << i;
    word += size;
  } while (*word++ == ',');
  return 0;
}

const struct flag kinds_flag =
    FLAG("kinds", 0, "KIND,...", read_kinds,
         "also try what these kinds of lock need: shared, several, permits, hash; print the ACL of their user");

bool kinds_are_given(void)
{
  return kinds != 0;
}

/* ---- asking ---- */

static redisReply *answer_to(struct wire *wire, const char *const *words)
{
  int count = 0;
  while (words[count] != NULL)
    count++;
  return wire_send(wire, count, words, NULL) ? wire_reply(wire) : NULL;
}

static bool is_error(const redisReply *reply, const char *start)
{
  return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, start, strlen(start)) == 0;
}

/* A server looks at the command first: if the user may not touch the key, it may still use the command. */
static bool is_denied(const redisReply *reply)
{
  return is_error(reply, "ERR unknown command") || (is_error(reply, "NOPERM") && strstr(reply->str, "command") != NULL);
}

/* The key is there, or nothing can be stored under it. */
static bool store_key(struct wire *wire, const char *key)
{
  redisReply *reply = answer_to(wire, (const char *[]){"SET", key, "x", "NX", "PX", "10000", NULL});
  bool is_safe =
      reply != NULL && (reply->type == REDIS_REPLY_STATUS || (is_error(reply, "NOPERM") && !is_denied(reply)));
  freeReplyObject(reply);
  return is_safe;
}

/* The commands that are denied, as bits; false if they are not known. */
static bool try_commands(struct wire *wire, const char *key, unsigned *denied)
{
  bool goes_on = store_key(wire, key);
  for (int i = 0; i < COMMANDS && goes_on; i++) {
    const char *const *more = tried[i].arguments;
    redisReply *reply = answer_to(wire, (const char *[]){tried[i].name, key, more[0], more[0] ? more[1] : NULL, NULL});
    goes_on = reply != NULL;
    if (goes_on && is_denied(reply))
      *denied |= 1U << i;
    freeReplyObject(reply);
  }
  if (goes_on)
    freeReplyObject(answer_to(wire, (const char *[]){"DEL", key, NULL}));
  return goes_on;
}

/* Of each kind the commands that are denied. */
static json_t *denied_json(unsigned denied)
{
  json_t *all = must(json_object());
  for (int kind = 0; names[kind] != NULL; kind++) {
    json_t *some = must(json_array());
    for (int i = 0; i < COMMANDS; i++)
      if (tried[i].kinds & 1U << kind && denied & 1U << i)
        json_array_append_new(some, json_string(tried[i].name));
    if (kinds & 1U << kind)
      json_object_set(all, names[kind], some);
    json_decref(some);
  }
  return all;
}

/* An array with an object for each node, or null for one that did not answer. */
json_t *kinds_examine(struct session *session)
{
  struct wires *wires = wires_new(session);
  json_t *found = must(json_array());
  char *prefix = client_option(session->client, "key_prefix");
  char *key = format("%slibredlock:probe:%lld", prefix, (long long)now_ms());
  for (int i = 0; wires != NULL && i < wires_count(wires) && session->caught == 0; i++) {
    unsigned denied = 0;
    struct wire *wire = wire_open(wires, i);
    bool is_known = wire != NULL && try_commands(wire, key, &denied);
    json_array_append_new(found, is_known ? denied_json(denied) : json_null());
    wire_close(wire);
  }
  free(key);
  free(prefix);
  wires_free(wires);
  return found;
}

/* ---- saying ---- */

bool kinds_lack(const json_t *node)
{
  const char *name;
  json_t *denied;
  json_object_foreach(json_object_get(node, "kinds"), name, denied)
    if (json_array_size(denied) > 0)
      return true;
  return false;
}

void kinds_print(FILE *out, const json_t *node)
{
  const char *name;
  json_t *denied, *command;
  size_t i;
  json_object_foreach(json_object_get(node, "kinds"), name, denied) {
    if (json_array_size(denied) == 0)
      continue;
    fprintf(out, "    %s: the user may not run", name);
    json_array_foreach(denied, i, command)
      fprintf(out, "%s %s", i > 0 ? "," : "", json_string_value(command));
    fputs("\n    advice: add", out);
    json_array_foreach(denied, i, command)
      fprintf(out, " +%s", json_string_value(command));
    fputs(" to the ACL of the user\n", out);
  }
}

static void put_commands(FILE *out, unsigned wanted)
{
  for (int i = 0; i < COMMANDS; i++)
    if (tried[i].kinds & wanted)
      fprintf(out, " +%s", tried[i].name);
}

void kinds_print_rights(void)
{
  puts("Of a program's user, where PREFIX is --key-prefix:");
  printf("  ~PREFIX* resetchannels &PREFIXlibredlock:w:* %s\n", rights);
  for (int kind = 0; names[kind] != NULL; kind++) {
    printf("%s locks also need:", names[kind]);
    put_commands(stdout, 1U << kind);
    putchar('\n');
  }
  puts("`redlock ls` also needs +scan; `redlock doctor --kinds shared,...` tries them, and prints the line with your "
       "prefix.");
}

/* What the ACL of a program's user has for plain locks and these kinds; free it. */
char *kinds_line(const struct session *session)
{
  char *prefix = client_option(session->client, "key_prefix"), *line = NULL;
  size_t size;
  FILE *out = must(open_memstream(&line, &size));
  fprintf(out, "~%s* resetchannels &%slibredlock:w:* %s", prefix, prefix, rights);
  put_commands(out, kinds);
  free(prefix);
  return fclose(out) == 0 ? must(line) : must(NULL);
}

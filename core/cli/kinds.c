/* kinds.c - redlock doctor --kinds: which rights of the kinds of lock in use does the ACL of a node lack? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

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
                {"zcount", {"-inf", "+inf"}, SHARED},
                {"zremrangebyscore", {"-inf", "+inf"}, SHARED},
                {"msetnx", {"x"}, SEVERAL},
                {"hset", {"x", "1"}, HASH},
                {"hexists", {"x"}, HASH},
                {"hdel", {"x"}, HASH},
                {"hrandfield", {NULL}, HASH},
                {"pexpireat", {"1"}, SHARED}};
/* clang-format on */

enum { COMMANDS = sizeof tried / sizeof *tried, LIMIT_MS = 2000 };

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

/* A server looks at the command first: if the user may not touch the key, it may still use the command. Of a script it
 * says "can't run this command" (6.2) or "permissions to run", and of one that it does not have "Unknown". */
static const char script_head[] =
    "local key=ARGV[1]..'libredlock:probe:'..redis.sha1hex(redis.call('TIME')[1])\n"
    "local function error_of(...) local r=redis.pcall(...) return type(r)=='table' and r.err or '' end\n"
    "local function is_denied(e) return e:find('to run the') or e:find('run this command') or e:find('Unknown') end\n"
    "local e=error_of('SET',key,'x','NX','PX','10000')\n"
    "if e~='' and (is_denied(e) or not e:find('key')) then return 'unknown' end\n"
    "local denied=''\n"
    "local function try(name,...) if is_denied(error_of(name,key,...)) then denied=denied..name..' ' end end\n";

static char *script_of_tries(void)
{
  char *script = format("%s", script_head);
  for (int i = 0; i < COMMANDS; i++) {
    const char *const *more = tried[i].arguments;
    script = append(script, "try('%s'", tried[i].name);
    for (int word = 0; word < 2 && more[word] != NULL; word++)
      script = append(script, ",'%s'", more[word]);
    script = append(script, ")\n");
  }
  return append(script, "error_of('DEL',key)\nreturn denied\n");
}

/* The commands that are denied, as bits; false if they are not known. */
static bool read_denied(redlock_lock *lock, int node, unsigned *denied)
{
  char text[200] = "";
  redlock_lock_answer(lock, node, REDLOCK_ANSWER_TEXT, text, sizeof text);
  for (int i = 0; i < COMMANDS; i++) {
    char *word = format("%s ", tried[i].name);
    *denied |= strstr(text, word) != NULL ? 1U << i : 0;
    free(word);
  }
  return redlock_lock_vote(lock, node) == REDLOCK_OK && strcmp(text, "unknown") != 0;
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
  json_t *found = must(json_array());
  char *script = script_of_tries();
  redlock_lock *lock = must(redlock_lock_new(session->client, script, strlen(script)));
  (void)session_operate(session, lock, REDLOCK_EXAMINE, LIMIT_MS);
  for (int i = 0; i < redlock_client_node_count(session->client); i++) {
    unsigned denied = 0;
    json_array_append_new(found, read_denied(lock, i, &denied) ? denied_json(denied) : json_null());
  }
  redlock_lock_free(lock);
  free(script);
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

void kinds_print(const json_t *node)
{
  const char *name;
  json_t *denied, *command;
  size_t i;
  json_object_foreach(json_object_get(node, "kinds"), name, denied) {
    if (json_array_size(denied) == 0)
      continue;
    printf("    %s: the user may not run", name);
    json_array_foreach(denied, i, command)
      printf("%s %s", i > 0 ? "," : "", json_string_value(command));
    fputs("\n    advice: add", stdout);
    json_array_foreach(denied, i, command)
      printf(" +%s", json_string_value(command));
    fputs(" to the ACL of the user\n", stdout);
  }
}

/* The text, with the rights that these kinds need beside those of a plain lock. */
static char *with_rights(char *text, unsigned wanted)
{
  for (int i = 0; i < COMMANDS; i++) {
    char *right = format(" +%s ", tried[i].name);
    if (tried[i].kinds & wanted && strstr(rights, right) == NULL)
      text = append(text, " +%s", tried[i].name);
    free(right);
  }
  return text;
}

void kinds_print_rights(void)
{
  puts("Of a program's user, where PREFIX is --key-prefix (in a shell put it into quotes):");
  printf("  ~PREFIX* resetchannels &PREFIXlibredlock:w:* %s\n", rights);
  for (int kind = 0; names[kind] != NULL; kind++) {
    char *line = with_rights(format("%s locks also need:", names[kind]), 1U << kind);
    puts(line);
    free(line);
  }
  puts("`redlock ls` also needs +scan; `redlock doctor --kinds shared,...` tries them, and prints the line with your "
       "prefix.");
}

/* What the ACL of a program's user has for plain locks and these kinds; free it. */
char *kinds_line(const struct session *session)
{
  char *prefix = client_option(session->client, "key_prefix");
  char *line = format("~%s* resetchannels &%slibredlock:w:* %s", prefix, prefix, rights);
  free(prefix);
  return with_rights(line, kinds);
}

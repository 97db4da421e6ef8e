/* programs.c - which programs use the nodes, by what they have left there, and whose list is another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

enum { NONCE_SIZE = 16, SHOWN_MAX = 10, HOUR_S = 3600 };

static bool shows_all;

/* Whatever a neighbour has written there, the reply is small: the time, the marker, then each field and its value. */
static const char read_script[] =
    "local all,out=redis.call('HGETALL',KEYS[1]),{redis.call('TIME')[1],redis.call('GET',KEYS[2]) or ''}\n"
    "for i=1,#all,2 do\n"
    "  if #all[i]<=400 and #all[i+1]<=8192 and #out<2002 then out[#out+1]=all[i] out[#out+1]=all[i+1] end\n"
    "end\n"
    "return out";

/* ---- reading ---- */

/* Takes a word off the line; NULL: there is none. */
static char *word_of(char **line)
{
  char *word = *line, *end = word != NULL ? strchr(word, ' ') : NULL;
  *line = end != NULL ? end + 1 : NULL;
  if (end != NULL)
    *end = '\0';
  return word != NULL && *word != '\0' ? word : NULL;
}

static bool is_nonce(const char *word)
{
  return strcmp(word, "-") == 0 || (strlen(word) == NONCE_SIZE && strspn(word, "0123456789abcdef") == NONCE_SIZE);
}

/* An array of {node, nonce}; NULL if it is none. */
static json_t *list_of(char *line)
{
  json_t *list = must(json_array());
  for (char *nonce; (nonce = word_of(&line)) != NULL;) {
    char *name = word_of(&line);
    if (name == NULL || !is_nonce(nonce)) {
      json_decref(list);
      return NULL;
    }
    json_array_append_new(list, must(json_pack("{s:s,s:s}", "node", name, "nonce", nonce)));
  }
  return list;
}

static int64_t number_of(const char *word)
{
  return word != NULL && strspn(word, "0123456789") == strlen(word) ? strtoll(word, NULL, 10) : -1;
}

/* One field and its value; NULL if no program has written them within an hour: a node lets old ones go when a new one
 * comes. */
static json_t *program_of(char *field, char *value, int64_t now_s)
{
  const char *digest = word_of(&field), *host = word_of(&field), *form = word_of(&value);
  int64_t seen_s = number_of(word_of(&value)), pid = number_of(word_of(&value));
  const char *version = word_of(&value);
  int64_t max_ttl_ms = number_of(word_of(&value));
  json_t *list = list_of(value);
  if (digest == NULL || host == NULL || field == NULL || form == NULL || strcmp(form, "v1") != 0 ||
      llabs(now_s - seen_s) > HOUR_S || pid < 0 || version == NULL || max_ttl_ms < 0 || list == NULL) {
    json_decref(list);
    return NULL;
  }
  json_int_t ago_s = now_s > seen_s ? now_s - seen_s : 0;
  return must(json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:o}", "host", host, "program", field, "version", version, "pid",
                        (json_int_t)pid, "max_ttl_ms", (json_int_t)max_ttl_ms, "seen_s_ago", ago_s, "nodes", list));
}

/* What the nodes tell of one program: each has seen its own marker at least. */
static void merge(json_t *known, const json_t *program)
{
  json_t *list = json_object_get(known, "nodes"), *more = json_object_get(program, "nodes"), *node;
  json_t *ago = json_object_get(program, "seen_s_ago");
  size_t i;
  if (json_integer_value(ago) < json_integer_value(json_object_get(known, "seen_s_ago"))) {
    json_object_set(known, "seen_s_ago", ago);
    json_object_set(known, "pid", json_object_get(program, "pid"));
  }
  json_array_foreach(list, i, node) {
    json_t *nonce = json_object_get(json_array_get(more, i), "nonce");
    if (nonce != NULL && strcmp(json_string_value(json_object_get(node, "nonce")), "-") == 0)
      json_object_set(node, "nonce", nonce);
  }
}

static void add_program(json_t *programs, const redisReply *field, const redisReply *value, int64_t now_s)
{
  char *key = wire_escaped(field->str, field->len), *name = must(strdup(key));
  char *text = wire_escaped(value->str, value->len);
  json_t *program = program_of(name, text, now_s), *known = json_object_get(programs, key);
  if (program != NULL && known != NULL)
    merge(known, program);
  else if (program != NULL)
    json_object_set(programs, key, program);
  json_decref(program);
  free(text);
  free(name);
  free(key);
}

static bool is_text(const redisReply *reply)
{
  return reply->type == REDIS_REPLY_STRING;
}

/* The nonce of the node's marker, "-" if it is not known. */
static const char *read_node(struct wire *wire, const char *prefix, json_t *programs, char nonce[NONCE_SIZE + 1])
{
  char *key = format("%slibredlock:c:programs", prefix), *marker = format("%slibredlock:m", prefix);
  const char *words[] = {"EVAL", read_script, "2", key, marker};
  redisReply *reply = wire_send(wire, 5, words, NULL) ? wire_reply(wire) : NULL;
  strcpy(nonce, "-");
  if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 && is_text(reply->element[0]) &&
      is_text(reply->element[1])) {
    int64_t now_s = strtoll(reply->element[0]->str, NULL, 10);
    (void)sscanf(reply->element[1]->str, "v2 %*s %*s %*s %*s %16[0-9a-f]", nonce);
    for (size_t i = 2; i + 1 < reply->elements; i += 2)
      if (is_text(reply->element[i]) && is_text(reply->element[i + 1]))
        add_program(programs, reply->element[i], reply->element[i + 1], now_s);
  }
  freeReplyObject(reply);
  free(marker);
  free(key);
  return nonce;
}

/* ---- comparing ---- */

static const char *text_of(const json_t *node, const char *field)
{
  return json_string_value(json_object_get(node, field));
}

static bool is_reached(const json_t *node)
{
  return strcmp(text_of(node, "nonce"), "-") != 0;
}

/* The same marker, or the same name: its server may have been replaced, or be down for one of them. */
static bool has_node(const json_t *list, const json_t *node)
{
  json_t *other;
  size_t i;
  json_array_foreach(list, i, other)
    if (strcmp(text_of(other, "node"), text_of(node, "node")) == 0 ||
        (is_reached(node) && strcmp(text_of(other, "nonce"), text_of(node, "nonce")) == 0))
      return true;
  return false;
}

/* The nodes of the list that are not in the other one. */
static json_t *beyond(const json_t *list, const json_t *other, int *reached)
{
  json_t *nodes = must(json_array()), *node;
  size_t i;
  json_array_foreach(list, i, node) {
    if (has_node(other, node))
      continue;
    json_array_append(nodes, node);
    *reached += is_reached(node);
  }
  return nodes;
}

/* Of nodes that were not reached nobody knows whether they are the same under another name: lists of one length differ
 * if there are more servers than places. */
static void compare(json_t *program, const json_t *mine)
{
  const json_t *theirs = json_object_get(program, "nodes");
  int reached = 0;
  json_t *more = beyond(theirs, mine, &reached), *less = beyond(mine, theirs, &reached);
  size_t places = json_array_size(more) > json_array_size(less) ? json_array_size(more) : json_array_size(less);
  if ((size_t)reached > places || json_array_size(theirs) != json_array_size(mine))
    json_object_set_new(program, "differs", must(json_pack("{s:O,s:O}", "has", more, "lacks", less)));
  json_decref(more);
  json_decref(less);
}

static json_t *sorted(json_t *by_key, const json_t *mine)
{
  json_t *programs = must(json_array()), *program;
  const char *key;
  json_object_foreach(by_key, key, program) {
    compare(program, mine);
    json_array_append(programs, program);
  }
  json_decref(by_key);
  return programs;
}

json_t *programs_examine(struct session *session, const json_t *nodes)
{
  struct wires *wires = wires_new(session);
  char *prefix = client_option(session->client, "key_prefix");
  json_t *by_key = must(json_object()), *mine = must(json_array());
  for (int i = 0; wires != NULL && i < wires_count(wires) && session->caught == 0; i++) {
    const json_t *node = json_array_get(nodes, (size_t)i);
    bool is_ready = strcmp(text_of(node, "state"), "ready") == 0;
    struct wire *wire = is_ready ? wire_open(wires, i) : NULL;
    char nonce[NONCE_SIZE + 1] = "-";
    if (wire != NULL)
      read_node(wire, prefix, by_key, nonce);
    json_array_append_new(mine, must(json_pack("{s:s,s:s}", "node", text_of(node, "node"), "nonce", nonce)));
    wire_close(wire);
  }
  free(prefix);
  wires_free(wires);
  json_t *programs = sorted(by_key, mine);
  json_decref(mine);
  return programs;
}

/* ---- showing ---- */

static char *names_of(const json_t *list)
{
  char *names = must(strdup(""));
  json_t *node;
  size_t i;
  json_array_foreach(list, i, node) {
    char *longer = format("%s%s%s", names, i > 0 ? ", " : "", text_of(node, "node"));
    free(names);
    names = longer;
  }
  return names;
}

static char *seen_words(const json_t *program)
{
  int64_t ago_s = json_integer_value(json_object_get(program, "seen_s_ago"));
  char *words = ago_s >= 60 ? duration_words(ago_s * 1000) : NULL,
       *seen = words ? format("%s ago", words) : format("now");
  free(words);
  return seen;
}

static void print_table(FILE *out, const json_t *programs)
{
  json_t *program;
  size_t i;
  fprintf(out, "%-16s  %-16s  %-8s  %8s  %10s  NODES\n", "HOST", "PROGRAM", "VERSION", "MAX TTL", "LAST SEEN");
  json_array_foreach(programs, i, program) {
    char *number = duration_text(json_integer_value(json_object_get(program, "max_ttl_ms")));
    char *seen = seen_words(program), *names = names_of(json_object_get(program, "nodes"));
    fprintf(out, "%-16s  %-16s  %-8s  %8s  %10s  %s\n", text_of(program, "host"), text_of(program, "program"),
            text_of(program, "version"), number, seen, names);
    free(names);
    free(seen);
    free(number);
  }
}

static void print_difference(FILE *out, const json_t *program)
{
  const json_t *differs = json_object_get(program, "differs");
  char *has = names_of(json_object_get(differs, "has")), *lacks = names_of(json_object_get(differs, "lacks"));
  char *seen = seen_words(program);
  fprintf(out, "%s on %s (seen %s) has another list of nodes: ", text_of(program, "program"), text_of(program, "host"),
          seen);
  fprintf(out, "%s%s%s%s%s\n", *has != '\0' ? "with " : "", has, *has != '\0' && *lacks != '\0' ? ", " : "",
          *lacks != '\0' ? "without " : "", lacks);
  free(seen);
  free(has);
  free(lacks);
}

void programs_print(FILE *out, const json_t *programs)
{
  int differ = 0;
  json_t *program;
  size_t i;
  if (shows_all)
    print_table(out, programs);
  json_array_foreach(programs, i, program)
    if (json_object_get(program, "differs") != NULL && differ++ < SHOWN_MAX)
      print_difference(out, program);
  if (differ > SHOWN_MAX)
    fprintf(out, "%d more programs have another list of nodes; --programs shows all\n", differ - SHOWN_MAX);
  if (differ > 0)
    fputs("    advice: give all programs the same list; until then two of them may hold a lock at a time\n", out);
}

void programs_say(const json_t *programs, int64_t below_ms, int64_t above_ms)
{
  int said = 0;
  json_t *program;
  size_t i;
  json_array_foreach(programs, i, program) {
    int64_t number_ms = json_integer_value(json_object_get(program, "max_ttl_ms"));
    if ((number_ms >= below_ms && number_ms <= above_ms) || said++ >= SHOWN_MAX)
      continue;
    char *number = duration_text(number_ms), *seen = seen_words(program);
    fprintf(stderr, "%s on %s (seen %s) has max_ttl_ms = %s\n", text_of(program, "program"), text_of(program, "host"),
            seen, number);
    free(seen);
    free(number);
  }
  if (said > SHOWN_MAX)
    fprintf(stderr, "... and %d more: `redlock doctor --programs` shows all\n", said - SHOWN_MAX);
}

const struct flag programs_flag =
    FLAG_TO("programs", 0, NULL, flag_switch, &shows_all, "show the programs that used the nodes within an hour");

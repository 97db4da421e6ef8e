/* scan.c - the names of locks that the nodes have: SCAN for the keys, GETRANGE, ZRANGE and HRANDFIELD for the form of
 * their values. */
#include "scan.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

/* A server answers others between two rounds, and has a pause: 25,000 keys per second at most. */
enum { KEYS_PER_ROUND = 250, PAUSE_MS = 10, SLOTS_MAX = 256 };

static int compare(const void *left, const void *right)
{
  const struct scan_name *a = left, *b = right;
  int order = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
  order = order != 0 ? order : (a->size > b->size) - (a->size < b->size);
  return order != 0 ? order : a->slot - b->slot;
}

/* What a key stands for. */
struct meaning {
  const char *resource; /* NULL: the key is none of a lock */
  size_t size;
  int slot;
};

static void add(struct scan *scan, const struct meaning *key)
{
  struct scan_name *name = must(calloc(1, sizeof *name + key->size + 1));
  name->slot = key->slot;
  name->size = key->size;
  memcpy(name->bytes, key->resource, key->size);
  if (tfind(name, &scan->tree, compare) != NULL) {
    free(name);
  } else if (scan->count == (size_t)scan->limit) {
    scan->is_cut = true;
    free(name);
  } else {
    must(tsearch(name, &scan->tree, compare));
    scan->count++;
  }
}

#define SLOT_KEYS "libredlock:s:"

static bool begins_with(const char *bytes, size_t size, const char *start)
{
  return size >= strlen(start) && memcmp(bytes, start, strlen(start)) == 0;
}

/* The number in front of a colon that begins the rest of a slot's key; 0 if there is none. */
static int slot_of(const char *rest, size_t size, size_t *digits)
{
  int slot = 0;
  for (*digits = 0; *digits < size && rest[*digits] >= '0' && rest[*digits] <= '9' && slot < SLOTS_MAX; ++*digits)
    slot = 10 * slot + (rest[*digits] - '0');
  return *digits < size && rest[*digits] == ':' && slot < SLOTS_MAX ? slot : 0;
}

/* Of the library's own keys only those of permits stand for a lock; and none that no program can lock. */
static struct meaning meaning_of(const struct scan *scan, const char *key, size_t size)
{
  static const char own[] = "libredlock:";
  size_t before = strlen(scan->own_keys) - strlen(own), digits;
  struct meaning meaning = {.resource = NULL};
  const char *resource = key + before;
  if (size <= before || memcmp(key, scan->own_keys, before) != 0)
    return meaning;
  size -= before;
  if (begins_with(resource, size, SLOT_KEYS)) {
    resource += strlen(SLOT_KEYS);
    size -= strlen(SLOT_KEYS);
    meaning.slot = slot_of(resource, size, &digits);
    if (meaning.slot == 0)
      return meaning;
    resource += digits + 1;
    size -= digits + 1;
  }
  bool is_wanted = size > 0 && begins_with(resource, size, scan->prefix) && !begins_with(resource, size, own) &&
                   (meaning.slot > 0 || !begins_with(key, size + before, own));
  meaning.resource = is_wanted ? resource : NULL;
  meaning.size = size;
  return meaning;
}

/* How to read the token in a key of a plain lock, one of those that readers have, and one that is a hash. The rights of
 * operators may be older than hashes. */
static const struct {
  const char *words[3], *before_token;
  bool may_be_denied;
} reads[] = {
    {{"GETRANGE", "0", "40"}, "", false}, {{"ZRANGE", "0", "0"}, "rl:", false}, {{"HRANDFIELD", "2", NULL}, "", true}};

enum { READS = sizeof reads / sizeof *reads };

/* One of this library: nothing else is listed. */
static bool has_token(const redisReply *value, const char *before)
{
  if (value->type == REDIS_REPLY_ARRAY)
    value = value->elements == 1 ? value->element[0] : NULL;
  return value != NULL && value->type == REDIS_REPLY_STRING && begins_with(value->str, value->len, before) &&
         permits_of(value->str + strlen(before), value->len - strlen(before)) >= 0;
}

/* A pattern that matches the bytes themselves, and anything behind them. */
static char *put_pattern(char *to, const char *bytes, size_t size)
{
  for (; size > 0; bytes++, size--) {
    if (strchr("*?[]\\^-", *bytes) != NULL)
      *to++ = '\\';
    *to++ = *bytes;
  }
  *to++ = '*';
  return to;
}

/* The resource ends the key of a permit, too, and begins behind the key prefix or behind SLOT_KEYS and a number. */
static char *pattern_of(const struct scan *scan)
{
  size_t before = strlen(scan->own_keys) - strlen("libredlock:"), size = strlen(scan->prefix);
  char *pattern = must(calloc(before + size + 3, 2)), *to = put_pattern(pattern, scan->own_keys, before);
  if (size > 0)
    put_pattern(to, scan->prefix, size);
  return pattern;
}

/* An error reply, for the caller to print. */
static bool refuse(struct scan *scan, const redisReply *reply, char **why)
{
  static const char denied[] = "NOPERM", unknown[] = "ERR unknown command";
  scan->forbidden +=
      strncmp(reply->str, denied, strlen(denied)) == 0 || strncmp(reply->str, unknown, strlen(unknown)) == 0;
  *why = format("%s", reply->str);
  return false;
}

static bool send_read(struct wire *wire, const char *const read[3], const redisReply *key)
{
  const char *words[] = {read[0], key->str, read[1], read[2]};
  size_t sizes[] = {strlen(read[0]), (size_t)key->len, strlen(read[1]), read[2] != NULL ? strlen(read[2]) : 0};
  return wire_send(wire, read[2] != NULL ? 4 : 3, words, sizes);
}

/* The meaning of a key without a token is NULL; one of another type keeps it, for the next command. */
static bool take_value(struct scan *scan, struct meaning *key, int read, const redisReply *value, char **why)
{
  if (value->type == REDIS_REPLY_ERROR && (strncmp(value->str, "WRONGTYPE", 9) == 0 || reads[read].may_be_denied))
    return true;
  if (value->type == REDIS_REPLY_ERROR)
    return *why == NULL ? refuse(scan, value, why) : false;
  if (has_token(value, reads[read].before_token))
    add(scan, key);
  key->resource = NULL;
  return true;
}

static bool read_keys(struct scan *scan, struct wire *wire, int read, const redisReply *keys, struct meaning *meanings,
                      char **why)
{
  bool goes_on = true;
  for (size_t i = 0; goes_on && i < keys->elements; i++)
    goes_on = meanings[i].resource == NULL || send_read(wire, reads[read].words, keys->element[i]);
  for (size_t i = 0; goes_on && i < keys->elements; i++) {
    if (meanings[i].resource == NULL)
      continue;
    redisReply *value = wire_reply(wire);
    goes_on = value != NULL && take_value(scan, &meanings[i], read, value, why);
    freeReplyObject(value);
  }
  return goes_on;
}

static bool take_keys(struct scan *scan, struct wire *wire, const redisReply *keys, char **why)
{
  struct meaning *meanings = must(calloc(keys->elements + 1, sizeof *meanings));
  for (size_t i = 0; i < keys->elements; i++)
    meanings[i] = meaning_of(scan, keys->element[i]->str, (size_t)keys->element[i]->len);
  bool goes_on = true;
  for (int i = 0; goes_on && i < READS; i++)
    goes_on = read_keys(scan, wire, i, keys, meanings, why);
  free(meanings);
  return goes_on;
}

/* One round; the cursor is "0" behind the last one. */
static bool scan_round(struct scan *scan, struct wire *wire, char cursor[32], char **why)
{
  char *pattern = pattern_of(scan), count[16];
  snprintf(count, sizeof count, "%d", KEYS_PER_ROUND);
  const char *words[] = {"SCAN", cursor, "MATCH", pattern, "COUNT", count};
  redisReply *reply = wire_send(wire, 6, words, NULL) ? wire_reply(wire) : NULL;
  bool goes_on = reply != NULL;
  if (goes_on && reply->type == REDIS_REPLY_ERROR)
    goes_on = refuse(scan, reply, why);
  else if (goes_on && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2))
    *why = format("SCAN has an answer that is none"), goes_on = false;
  if (goes_on) {
    snprintf(cursor, 32, "%s", reply->element[0]->str);
    goes_on = take_keys(scan, wire, reply->element[1], why);
  }
  freeReplyObject(reply);
  free(pattern);
  return goes_on;
}

static bool scan_node(struct scan *scan, struct wires *wires, int node, char **why)
{
  char cursor[32] = "0";
  struct wire *wire = wire_open(wires, node);
  bool goes_on = wire != NULL;
  while (goes_on) {
    goes_on = scan_round(scan, wire, cursor, why);
    if (strcmp(cursor, "0") == 0 || scan->is_cut)
      break;
    session_pause(scan->session, now_ms() + PAUSE_MS);
    goes_on = goes_on && scan->session->caught == 0;
  }
  wire_close(wire);
  if (!goes_on && *why == NULL)
    *why = format("%s", wires_why(wires));
  return goes_on;
}

/* The result on one node. */
static void note_node(struct scan *scan, int node, bool is_scanned, char *why)
{
  char *name = node_name(scan->session->client, node);
  json_t *object = must(json_object());
  json_object_set_new(object, "node", json_string(name));
  json_object_set_new(object, "scanned", json_boolean(is_scanned));
  if (!is_scanned && scan->session->caught == 0) {
    json_object_set_new(object, "why", json_string(why));
    fail(0, "%s was not scanned: %s", name, why);
  }
  json_array_append_new(scan->nodes, object);
  scan->scanned += is_scanned;
  free(name);
  free(why);
}

static void *place;

static void take_out(const void *at, VISIT visit, int depth)
{
  struct scan_name ***to = place;
  (void)depth;
  if (visit == postorder || visit == leaf)
    *(*to)++ = *(struct scan_name *const *)at;
}

static void put_in_order(struct scan *scan)
{
  struct scan_name **to = scan->names = must(calloc(scan->count + 1, sizeof *scan->names));
  place = &to;
  twalk(scan->tree, take_out);
  place = NULL;
}

int scan_run(struct scan *scan, struct session *session)
{
  scan->session = session;
  scan->nodes = must(json_array());
  char *key_prefix = client_option(session->client, "key_prefix");
  const char *prefix = session->args->prefix != NULL ? session->args->prefix : "";
  scan->prefix = format("%s", prefix);
  scan->own_keys = format("%slibredlock:", key_prefix);
  bool is_all = session->args->prefix == NULL && *key_prefix == '\0';
  free(key_prefix);
  if (is_all)
    return fail(EXIT_USAGE, "PREFIX is missing, and no --key-prefix is set; redlock ls '' lists all of the nodes");
  struct wires *wires = wires_new(session);
  if (wires == NULL)
    return EXIT_INTERNAL;
  for (int i = 0; i < wires_count(wires) && session->caught == 0; i++) {
    char *why = NULL;
    bool is_scanned = scan->is_cut || scan_node(scan, wires, i, &why);
    note_node(scan, i, is_scanned, why);
  }
  wires_free(wires);
  put_in_order(scan);
  return session->caught != 0 ? 128 + session->caught : 0;
}

static void keep(void *name)
{
  (void)name;
}

void scan_free(struct scan *scan)
{
  for (size_t i = 0; scan->names != NULL && i < scan->count; i++)
    free(scan->names[i]);
  tdestroy(scan->tree, scan->names != NULL ? keep : free);
  free(scan->names);
  free(scan->prefix);
  free(scan->own_keys);
  json_decref(scan->nodes);
}

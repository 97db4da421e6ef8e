#include "neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "../lock/listing.h"

enum { NONCE_SIZE = 16, HOUR_S = 3600 };

struct word {
  const char *at;
  size_t size;
};

struct server {
  struct word nonce, name;
};

struct servers {
  int count;
  struct server at[RLK_NODES_MAX];
};

/* A field of libredlock:c:programs and its value. */
struct program {
  struct word digest, host, name, version;
  int64_t pid, max_ttl_ms, ago_s;
  struct servers servers;
};

/* ---- reading ---- */

/* Takes a word off the text; its size is 0 if there is none. */
static struct word take(struct rlk_field *text)
{
  struct word word = {text->bytes, 0};
  while (word.size < text->size && text->bytes[word.size] != ' ')
    word.size++;
  size_t used = word.size < text->size ? word.size + 1 : word.size;
  text->bytes += used;
  text->size -= used;
  return word;
}

static int is(struct word word, const char *text)
{
  return word.size == strlen(text) && memcmp(word.at, text, word.size) == 0;
}

static int is_same(struct word a, struct word b)
{
  return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

static size_t span(struct word word, const char *allowed)
{
  size_t size = 0;
  while (size < word.size && word.at[size] && strchr(allowed, word.at[size]))
    size++;
  return size;
}

/* -1: it is no number. */
static int64_t number(struct word word)
{
  int64_t value = 0;
  if (!word.size || word.size > 18 || span(word, "0123456789") != word.size)
    return -1;
  for (size_t i = 0; i < word.size; i++)
    value = 10 * value + (word.at[i] - '0');
  return value;
}

static int is_nonce(struct word word)
{
  return is(word, "-") || (word.size == NONCE_SIZE && span(word, "0123456789abcdef") == NONCE_SIZE);
}

static int read_servers(struct servers *servers, struct rlk_field text)
{
  for (servers->count = 0; text.size > 0; servers->count++) {
    struct server server = {.nonce = take(&text)};
    server.name = take(&text);
    if (servers->count == RLK_NODES_MAX || !is_nonce(server.nonce) || !server.name.size)
      return 0;
    servers->at[servers->count] = server;
  }
  return 1;
}

/* 0 if no program has written them within an hour: a node lets old ones go when a new one comes. */
static int read_program(struct program *p, struct rlk_field field, struct rlk_field value, int64_t now_s)
{
  struct word form = take(&value);
  int64_t seen_s = number(take(&value));
  p->pid = number(take(&value));
  p->version = take(&value);
  p->max_ttl_ms = number(take(&value));
  p->digest = take(&field);
  p->host = take(&field);
  p->name = (struct word){field.bytes, field.size};
  p->ago_s = now_s > seen_s ? now_s - seen_s : 0;
  return is(form, "v1") && p->digest.size && p->host.size && p->name.size && p->version.size && seen_s >= 0 &&
         p->pid >= 0 && p->max_ttl_ms >= 0 && llabs(now_s - seen_s) <= HOUR_S && read_servers(&p->servers, value);
}

/* The next field and its value. */
static int next(struct rlk_field *rest, struct rlk_field *field, struct rlk_field *value)
{
  return rlk_field_take(rest, field) && rlk_field_take(rest, value);
}

/* What a node has told, and its time by now in s. */
static struct rlk_field told_by(const redlock_client *c, int node, int64_t now_ns, int64_t *now_s)
{
  const struct rlk_programs *programs = &c->engine.peers[node].programs;
  struct rlk_field rest = {programs->text, programs->size}, at = {NULL, 0};
  *now_s = 0;
  if (rest.size && rlk_field_take(&rest, &at))
    *now_s = rlk_field_number(&at) + (now_ns - programs->told_ns) / (1000 * RLK_NS_PER_MS);
  return rest;
}

/* ---- what several nodes tell of one program: each has seen its own marker at least ---- */

static void merge(struct program *known, const struct program *more)
{
  if (more->ago_s < known->ago_s) {
    known->ago_s = more->ago_s;
    known->pid = more->pid;
  }
  for (int i = 0; i < known->servers.count && i < more->servers.count; i++)
    if (is(known->servers.at[i].nonce, "-"))
      known->servers.at[i].nonce = more->servers.at[i].nonce;
}

/* Merges what the nodes from that one on tell; 0 if an earlier one has told it. */
static int gather(const redlock_client *c, int node, struct rlk_field field, struct program *p, int64_t now_ns)
{
  for (int i = 0; i < c->engine.net.node_count; i++) {
    int64_t now_s;
    struct rlk_field rest = told_by(c, i, now_ns, &now_s), other, value;
    struct program more;
    while (i != node && next(&rest, &other, &value)) {
      if (other.size != field.size || memcmp(other.bytes, field.bytes, field.size) != 0 ||
          !read_program(&more, other, value, now_s))
        continue;
      if (i < node)
        return 0;
      merge(p, &more);
    }
  }
  return 1;
}

/* ---- comparing ---- */

static int is_reached(const struct server *server)
{
  return !is(server->nonce, "-");
}

/* The same marker, or the same name: its server may have been replaced, or be down for one of them. */
static int has(const struct servers *list, const struct server *server)
{
  for (int i = 0; i < list->count; i++)
    if (is_same(list->at[i].name, server->name) || (is_reached(server) && is_same(list->at[i].nonce, server->nonce)))
      return 1;
  return 0;
}

/* The servers of the list that are not in the other one; how many of them were reached is added. */
static struct servers beyond(const struct servers *list, const struct servers *other, int *reached)
{
  struct servers found = {.count = 0};
  for (int i = 0; i < list->count; i++) {
    if (has(other, &list->at[i]))
      continue;
    found.at[found.count++] = list->at[i];
    *reached += is_reached(&list->at[i]);
  }
  return found;
}

static struct servers ours(const redlock_client *c)
{
  struct servers list = {.count = 0};
  for (int i = 0; i < c->engine.net.node_count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    const char *nonce = n->state == RLK_NODE_READY && n->voter->mark.nodes ? n->voter->mark.nonce : "-";
    list.at[list.count++] = (struct server){{nonce, strlen(nonce)}, {n->url.name, strlen(n->url.name)}};
  }
  return list;
}

/* ---- JSON ---- */

static void text(struct rlk_text *out, const char *key, struct word word)
{
  rlk_text_format(out, "\"%s\":", key);
  rlk_text_json(out, word.at, word.size, SIZE_MAX);
}

static void names(struct rlk_text *out, const char *key, const struct servers *list)
{
  rlk_text_format(out, "\"%s\":[", key);
  for (int i = 0; i < list->count; i++) {
    rlk_text_add(out, i ? "," : "");
    rlk_text_json(out, list->at[i].name.at, list->at[i].name.size, SIZE_MAX);
  }
  rlk_text_add(out, "]");
}

/* Of nodes that were not reached nobody knows whether they are the same under another name: lists of one length differ
 * if there are more servers than places. */
static void difference(struct rlk_text *out, const struct servers *theirs, const struct servers *mine)
{
  int reached = 0;
  struct servers more = beyond(theirs, mine, &reached), less = beyond(mine, theirs, &reached);
  int places = more.count > less.count ? more.count : less.count;
  if (reached <= places && theirs->count == mine->count)
    return;
  rlk_text_add(out, ",\"differs\":{");
  names(out, "has", &more);
  rlk_text_add(out, ",");
  names(out, "lacks", &less);
  rlk_text_add(out, "}");
}

static void program(struct rlk_text *out, const struct program *p, const struct servers *mine)
{
  text(out, "host", p->host);
  rlk_text_add(out, ",");
  text(out, "program", p->name);
  rlk_text_add(out, ",");
  text(out, "version", p->version);
  rlk_text_format(out, ",\"pid\":%lld,\"max_ttl_ms\":%lld,\"seen_s_ago\":%lld,", (long long)p->pid,
                  (long long)p->max_ttl_ms, (long long)p->ago_s);
  names(out, "nodes", &p->servers);
  difference(out, &p->servers, mine);
}

void rlk_neighbours(const redlock_client *c, struct rlk_text *out, int64_t now_ns)
{
  struct servers mine = ours(c);
  const char *open = "{";
  for (int i = 0; i < c->engine.net.node_count; i++) {
    int64_t now_s;
    struct rlk_field rest = told_by(c, i, now_ns, &now_s), field, value;
    struct program p;
    while (next(&rest, &field, &value)) {
      if (!read_program(&p, field, value, now_s) || !gather(c, i, field, &p, now_ns))
        continue;
      rlk_text_add(out, open);
      program(out, &p, &mine);
      rlk_text_add(out, "}");
      open = ",{";
    }
  }
}

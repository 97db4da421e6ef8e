#include "neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "../lock/listing.h"

enum { NONCE_SIZE = 16, HOUR_S = 3600 };

struct server {
  struct rlk_field nonce, name;
};

struct servers {
  int count;
  struct server at[RLK_NODES_MAX];
};

/* A field of libredlock:c:programs, whose first word is its digest, and its value. */
struct program {
  struct rlk_field field, host, name, version;
  int64_t pid, max_ttl_ms, ago_s;
  struct servers servers;
};

struct programs {
  struct program *all;
  size_t count;
};

/* ---- reading ---- */

/* Takes a word off the text; its size is 0 if there is none. */
static struct rlk_field take(struct rlk_field *text)
{
  struct rlk_field word = {text->bytes, 0};
  while (word.size < text->size && text->bytes[word.size] != ' ')
    word.size++;
  size_t used = word.size < text->size ? word.size + 1 : word.size;
  text->bytes += used;
  text->size -= used;
  return word;
}

static int is_same(struct rlk_field a, struct rlk_field b)
{
  return a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0;
}

static struct rlk_field field_of(const char *text)
{
  return (struct rlk_field){text, strlen(text)};
}

/* It consists of these; a NUL ends all that a node has told. */
static int has_only(struct rlk_field word, const char *allowed)
{
  return word.size && strspn(word.bytes, allowed) >= word.size;
}

/* -1: it is no number. */
static int64_t number(struct rlk_field word)
{
  return has_only(word, "0123456789") && word.size <= 18 ? rlk_field_number(&word) : -1;
}

static int is_reached(const struct server *server)
{
  return !is_same(server->nonce, field_of("-"));
}

static int read_servers(struct servers *servers, struct rlk_field text)
{
  for (servers->count = 0; text.size > 0; servers->count++) {
    struct server server = {.nonce = take(&text)};
    int is_nonce = server.nonce.size == NONCE_SIZE && has_only(server.nonce, "0123456789abcdef");
    server.name = take(&text);
    if (servers->count == RLK_NODES_MAX || (!is_nonce && is_reached(&server)) || !server.name.size)
      return 0;
    servers->at[servers->count] = server;
  }
  return 1;
}

/* 0 if no program has written them within an hour: a node lets old ones go when a new one comes. */
static int read_program(struct program *p, struct rlk_field field, struct rlk_field value, int64_t now_s)
{
  struct rlk_field form = take(&value);
  int64_t seen_s = number(take(&value));
  p->pid = number(take(&value));
  p->version = take(&value);
  p->max_ttl_ms = number(take(&value));
  p->field = field;
  take(&field);
  p->host = take(&field);
  p->name = field;
  p->ago_s = now_s > seen_s ? now_s - seen_s : 0;
  return is_same(form, field_of("v1")) && p->field.bytes[0] != ' ' && p->host.size && p->name.size && p->version.size &&
         seen_s >= 0 && p->pid >= 0 && p->max_ttl_ms >= 0 && llabs(now_s - seen_s) <= HOUR_S &&
         read_servers(&p->servers, value);
}

/* Of what several nodes tell of one program: each has seen its own marker at least. */
static void merge(struct program *known, const struct program *more)
{
  if (more->ago_s < known->ago_s) {
    known->ago_s = more->ago_s;
    known->pid = more->pid;
  }
  for (int i = 0; i < known->servers.count && i < more->servers.count; i++)
    if (!is_reached(&known->servers.at[i]))
      known->servers.at[i].nonce = more->servers.at[i].nonce;
}

/* Without memory it is left out. */
static void add(struct programs *known, const struct program *more)
{
  struct program *all;
  for (size_t i = 0; i < known->count; i++)
    if (is_same(known->all[i].field, more->field)) {
      merge(&known->all[i], more);
      return;
    }
  all = realloc(known->all, (known->count + 1) * sizeof *all);
  if (!all)
    return;
  all[known->count++] = *more;
  known->all = all;
}

static void read_all(struct programs *known, const struct rlk_programs *told, int64_t now_ns)
{
  struct rlk_field rest = {told->text, told->size}, field, value;
  struct program p;
  int64_t now_s;
  if (!rlk_field_take(&rest, &field))
    return;
  now_s = rlk_field_number(&field) + (now_ns - told->told_ns) / (1000 * RLK_NS_PER_MS);
  while (rlk_field_take(&rest, &field) && rlk_field_take(&rest, &value))
    if (read_program(&p, field, value, now_s))
      add(known, &p);
}

/* ---- comparing ---- */

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
    list.at[list.count++] = (struct server){field_of(nonce), field_of(n->url.name)};
  }
  return list;
}

/* ---- JSON ---- */

static void text(struct rlk_text *out, const char *before, struct rlk_field field)
{
  rlk_text_add(out, before);
  rlk_text_json(out, field.bytes, field.size, SIZE_MAX);
}

static void names(struct rlk_text *out, const char *before, const struct servers *list)
{
  rlk_text_add(out, before);
  for (int i = 0; i < list->count; i++)
    text(out, i ? "," : "", list->at[i].name);
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
  names(out, ",\"differs\":{\"has\":[", &more);
  names(out, ",\"lacks\":[", &less);
  rlk_text_add(out, "}");
}

void rlk_neighbours(const redlock_client *c, struct rlk_text *out, int64_t now_ns)
{
  struct servers mine = ours(c);
  struct programs known = {NULL, 0};
  for (int i = 0; i < c->engine.net.node_count; i++)
    read_all(&known, &c->engine.peers[i].programs, now_ns);
  for (size_t i = 0; i < known.count; i++) {
    const struct program *p = &known.all[i];
    text(out, i ? ",{\"host\":" : "{\"host\":", p->host);
    text(out, ",\"program\":", p->name);
    text(out, ",\"version\":", p->version);
    rlk_text_format(out, ",\"pid\":%lld,\"max_ttl_ms\":%lld,\"seen_s_ago\":%lld", (long long)p->pid,
                    (long long)p->max_ttl_ms, (long long)p->ago_s);
    names(out, ",\"nodes\":[", &p->servers);
    difference(out, &p->servers, &mine);
    rlk_text_add(out, "}");
  }
  free(known.all);
}

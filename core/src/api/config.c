/* The options of a client and its list of nodes, until it is opened. */
#include <stdlib.h>
#include <string.h>

#include "../rules/marker.h"
#include "../client/life.h"
#include "api.h"
#include "config.h"

static struct rlk_text message_of(redlock_client *c)
{
  return rlk_text_in(c->message, sizeof c->message);
}

static int check_twice(redlock_client *c, const struct rlk_url *url, struct rlk_text *why)
{
  for (int i = 0; i < c->engine.net.node_count; i++)
    if (rlk_url_same(&c->engine.net.nodes[i].url, url)) {
      rlk_text_format(why, "nodes: %.200s is listed twice; every node must be a different server", url->name);
      return REDLOCK_INVALID;
    }
  return REDLOCK_OK;
}

/* The default of ttl_ms is at most max_ttl_ms. */
static void cap_ttl(redlock_client *c)
{
  struct rlk_numbers *numbers = &c->engine.net.options;
  struct rlk_text nowhere = rlk_text_in(NULL, 0);
  if (c->ttl_is_given)
    return;
  rlk_option_parse(numbers, RLK_OPT_TTL_MS, redlock_option_at(RLK_OPT_TTL_MS, REDLOCK_OPTION_DEFAULT), &nowhere);
  RLK_INT(numbers, TTL_MS) = rlk_smaller(RLK_INT(numbers, TTL_MS), RLK_INT(numbers, MAX_TTL_MS));
}

static void apply_max_ttl(redlock_client *c)
{
  for (int i = RLK_BY_DEFAULT; i <= RLK_BY_OPTION; i++)
    if (c->max_ttl_ms[i])
      RLK_INT(&c->engine.net.options, MAX_TTL_MS) = c->max_ttl_ms[i];
  cap_ttl(c);
}

enum { ENTRY_SHOWN_MAX = 100 };

int rlk_client_check_max_ttl(const redlock_client *c, struct rlk_text *why)
{
  int64_t by_nodes = c->max_ttl_ms[RLK_BY_NODES], by_option = c->max_ttl_ms[RLK_BY_OPTION];
  if (!by_nodes || !by_option || by_nodes == by_option)
    return REDLOCK_OK;
  rlk_text_format(why,
                  RLK_NAMED("max_ttl_ms") " is " RLK_MS ", and the list of nodes ends in max_ttl=%lldms: give it once",
                  (long long)by_option, (long long)by_nodes);
  return REDLOCK_INVALID;
}

/* Its number in the list, and what it is unless the list may hold a password. */
static void name_entry(const redlock_client *c, const char *list, const char *text, size_t size, struct rlk_text *why)
{
  rlk_text_format(why, "nodes: entry %d", c->engine.net.node_count + 1);
  if (!rlk_url_list_is_public(list) || size > ENTRY_SHOWN_MAX)
    return;
  rlk_text_add(why, ", \"");
  rlk_text_escaped(why, text, size);
  rlk_text_add(why, "\"");
}

static int add_node(redlock_client *c, const char *list, const char *text, size_t size, struct rlk_text *why)
{
  struct rlk_url url;
  char words[RLK_URL_WHY_SIZE];
  struct rlk_text reason = rlk_text_in(words, sizeof words);
  int status;
  if (size == 0) {
    rlk_text_format(why, "nodes: entry %d is empty; allowed: %s", c->engine.net.node_count + 1,
                    redlock_option_at(RLK_OPT_NODES, REDLOCK_OPTION_RANGE));
    return REDLOCK_INVALID;
  }
  status = rlk_url_parse(&url, text, size, &reason);
  if (status == REDLOCK_INVALID) {
    name_entry(c, list, text, size, why);
    rlk_text_format(why, ": %s", words);
  }
  if (status != REDLOCK_OK)
    return status;
  status = check_twice(c, &url, why);
  if (status == REDLOCK_OK && c->max_ttl_ms[RLK_BY_NODES])
    status = rlk_refuse(why, "nodes: max_ttl belongs at the end of the list, after the last URL");
  if (status == REDLOCK_OK && c->engine.net.node_count == RLK_NODES_MAX) {
    rlk_text_format(why, "nodes: more than %d; allowed: 1 to %d", RLK_NODES_MAX, RLK_NODES_MAX);
    status = REDLOCK_INVALID;
  }
  if (status != REDLOCK_OK) {
    rlk_url_free(&url);
    return status;
  }
  rlk_client_add_node(c, &url);
  c->max_ttl_ms[RLK_BY_NODES] = url.max_ttl_ms;
  return REDLOCK_OK;
}

#define SPACES " \t\r\n"

/* Spaces around the commas are allowed; an empty entry is not: it would make the quorum another one. */
static int read_nodes(redlock_client *c, const char *value, struct rlk_text *why)
{
  const char *list = value;
  int status = REDLOCK_OK;
  value += strspn(value, SPACES);
  for (int more = *value != 0; more && status == REDLOCK_OK;) {
    size_t size = strcspn(value, ",");
    size_t used = size;
    while (used && strchr(SPACES, value[used - 1]))
      used--;
    more = value[size] == ',';
    status = add_node(c, list, value, used, why);
    value += size + (size_t)more;
    value += strspn(value, SPACES);
  }
  return status;
}

/* Room for all that the list may name: a node is large. */
static struct rlk_node *new_nodes(const char *list)
{
  size_t count = 1;
  for (; *list && count < RLK_NODES_MAX; list++)
    count += *list == ',';
  return calloc(count, sizeof(struct rlk_node));
}

static int set_nodes(redlock_client *c, const char *value, struct rlk_text *why)
{
  struct rlk_net *net = &c->engine.net;
  struct rlk_node *old = net->nodes;
  int64_t old_max_ttl_ms = c->max_ttl_ms[RLK_BY_NODES];
  int old_count = net->node_count, status = REDLOCK_NO_MEMORY;
  c->max_ttl_ms[RLK_BY_NODES] = 0;
  net->node_count = 0;
  net->nodes = new_nodes(value);
  if (net->nodes)
    status = read_nodes(c, value, why);
  if (status == REDLOCK_OK) {
    rlk_client_free_nodes(c, old, old_count);
    return REDLOCK_OK;
  }
  rlk_client_free_nodes(c, net->nodes, net->node_count);
  net->nodes = old;
  net->node_count = old_count;
  c->max_ttl_ms[RLK_BY_NODES] = old_max_ttl_ms;
  return status;
}

static int set_number(redlock_client *c, int option, const char *value, enum rlk_source source, struct rlk_text *why)
{
  struct rlk_numbers *numbers = &c->engine.net.options;
  int status = rlk_option_parse(numbers, option, value, why);
  if (status != REDLOCK_OK)
    return status;
  c->ttl_is_given |= option == RLK_OPT_TTL_MS;
  if (option == RLK_OPT_MAX_TTL_MS) {
    c->max_ttl_ms[source] = RLK_INT(numbers, MAX_TTL_MS);
    apply_max_ttl(c);
  }
  return REDLOCK_OK;
}

static const struct {
  const char *name;
  int option;
} variables[] = {{"REDLOCK_GUARD", RLK_OPT_GUARD}, {"REDLOCK_MAX_TTL_MS", RLK_OPT_MAX_TTL_MS}};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

/* redlock_client_new cannot report errors; redlock_client_open does. */
void rlk_client_read_environment(redlock_client *c)
{
  for (int i = 0; i < VARIABLES; i++) {
    const char *value = rlk_variable(variables[i].name);
    struct rlk_text nowhere = rlk_text_in(NULL, 0);
    struct rlk_text why = rlk_text_in(c->wrong_environment[i], sizeof c->wrong_environment[i]);
    if (value && *value && set_number(c, variables[i].option, value, RLK_BY_DEFAULT, &nowhere) != REDLOCK_OK)
      rlk_option_refuse(variables[i].option, variables[i].name, value, &why);
  }
}

static void forget_environment(redlock_client *c, int option)
{
  for (int i = 0; i < VARIABLES; i++)
    if (variables[i].option == option)
      c->wrong_environment[i][0] = 0;
}

static int set_text(redlock_client *c, int option, const char *name, const char *value, struct rlk_text *why)
{
  char *copy, **to = &c->engine.net.texts[option];
  size_t size = strlen(value);
  int ok = size <= rlk_option_size_max(option);
  for (size_t i = 0; option == RLK_OPT_CLIENT_NAME && i < size; i++)
    ok = ok && (unsigned char)value[i] > 0x20 && (unsigned char)value[i] < 0x7f;
  ok = ok && (option != RLK_OPT_CLUSTER || rlk_cluster_is_valid(value));
  if (!ok)
    return rlk_option_refuse(option, name, value, why);
  copy = strdup(value);
  if (!copy)
    return REDLOCK_NO_MEMORY;
  free(*to);
  *to = copy;
  return REDLOCK_OK;
}

int rlk_client_init_texts(redlock_client *c)
{
  for (int i = 0; i < RLK_OPTION_COUNT; i++) {
    if (i == RLK_OPT_NODES || !rlk_option_is_text(i))
      continue;
    c->engine.net.texts[i] = strdup(redlock_option_at(i, REDLOCK_OPTION_DEFAULT));
    if (!c->engine.net.texts[i])
      return -1;
  }
  return 0;
}

/* Reads the TLS files, before the first connection. */
int rlk_client_init_tls(redlock_client *c, struct rlk_text *why)
{
  struct rlk_net *net = &c->engine.net;
  const struct rlk_tls_settings settings = {.ca_file = RLK_STRING(net, TLS_CA_FILE),
                                            .ca_path = RLK_STRING(net, TLS_CA_PATH),
                                            .cert_file = RLK_STRING(net, TLS_CERT_FILE),
                                            .key_file = RLK_STRING(net, TLS_KEY_FILE),
                                            .is_verified = (int)RLK_INT(&net->options, TLS_VERIFY)};
  const char *name = RLK_STRING(net, TLS_SERVER_NAME);
  rlk_tls_free(net->tls); /* of an earlier try to open it */
  net->tls = NULL;
  for (int i = 0; i < net->node_count; i++) {
    struct rlk_node *n = &net->nodes[i];
    int status = n->url.is_tls && !net->tls ? rlk_tls_new(&net->tls, &settings, why) : REDLOCK_OK;
    if (status == REDLOCK_NO_MEMORY)
      rlk_text_add(why, "out of memory");
    if (status != REDLOCK_OK)
      return status;
    if (n->url.is_tls)
      n->tls = (struct rlk_tls_peer){.tls = net->tls, .name = *name ? name : n->url.host};
  }
  return REDLOCK_OK;
}

static int set_option(redlock_client *c, int option, const char *name, const char *value, struct rlk_text *why)
{
  int status;
  if (option != RLK_OPT_NODES)
    return rlk_option_is_text(option) ? set_text(c, option, name, value, why)
                                      : set_number(c, option, value, RLK_BY_OPTION, why);
  status = set_nodes(c, value, why);
  if (!c->max_ttl_ms[RLK_BY_OPTION])
    rlk_option_parse(&c->engine.net.options, RLK_OPT_MAX_TTL_MS,
                     redlock_option_at(RLK_OPT_MAX_TTL_MS, REDLOCK_OPTION_DEFAULT), why);
  apply_max_ttl(c);
  return status;
}

int redlock_client_set(redlock_client *c, const char *name, const char *value)
{
  struct rlk_text why;
  int option, status = REDLOCK_INVALID;
  if (!rlk_enter(c))
    return REDLOCK_INVALID;
  why = message_of(c);
  option = name ? rlk_option_find(name, 0) : -1;
  if (!name || !value)
    rlk_text_add(&why, "name and value must not be NULL");
  else if (c->engine.net.state != RLK_NET_NEW)
    rlk_text_format(&why, RLK_NAMED("%.64s") ": options of a client are set before it is opened", name);
  else if (option < 0)
    rlk_option_unknown(name, 0, &why);
  else
    status = set_option(c, option, name, value, &why);
  if (status == REDLOCK_OK)
    forget_environment(c, option);
  if (c->bootstrap)
    c->bootstrap->mode = 0; /* what was shown may be of other nodes */
  if (status == REDLOCK_NO_MEMORY)
    rlk_text_add(&why, "out of memory");
  return rlk_leave(c, status);
}

static void format_nodes(redlock_client *c, struct rlk_text *out)
{
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rlk_text_add(out, i ? "," : "");
    rlk_url_format(&c->engine.net.nodes[i].url, out);
  }
}

int64_t redlock_client_get(redlock_client *c, const char *name, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  int option = name ? rlk_option_find(name, 0) : -1;
  if (option < 0 || !rlk_enter(c))
    return -REDLOCK_INVALID;
  if (option == RLK_OPT_NODES)
    format_nodes(c, &out);
  else if (rlk_option_is_text(option))
    rlk_text_add(&out, c->engine.net.texts[option]);
  else
    rlk_option_format(&c->engine.net.options, option, &out);
  return rlk_leave_text(c, &out);
}

static int64_t read_message(redlock_client *c, char *buf, size_t size, int is_plain)
{
  struct rlk_text out = rlk_text_in(buf, size);
  out.is_plain = is_plain;
  if (rlk_enter(c))
    rlk_text_add(&out, c->message);
  return rlk_leave_text(c, &out);
}

int64_t redlock_client_message(redlock_client *c, char *buf, size_t size)
{
  return read_message(c, buf, size, 1);
}

int64_t redlock_client_message_parts(redlock_client *c, char *buf, size_t size)
{
  return read_message(c, buf, size, 0);
}

int redlock_client_node_count(redlock_client *c)
{
  return rlk_enter(c) ? rlk_leave(c, c->engine.net.node_count) : 0;
}

int64_t redlock_client_node_name(redlock_client *c, int node, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  if (!rlk_enter(c))
    return -REDLOCK_INVALID;
  if (node < 0 || node >= c->engine.net.node_count)
    return rlk_leave(c, -REDLOCK_INVALID);
  rlk_text_add(&out, c->engine.net.nodes[node].url.name);
  return rlk_leave_text(c, &out);
}

/* The options of a client and its list of nodes, until it is opened. */
#include <stdlib.h>
#include <string.h>

#include "client.h"

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

static int add_node(redlock_client *c, const char *text, size_t size, struct rlk_text *why)
{
  struct rlk_url url;
  int status;
  if (size == 0) {
    rlk_text_format(why, "nodes: entry %d is empty; allowed: %s", c->engine.net.node_count + 1,
                    redlock_option_at(RLK_OPT_NODES, REDLOCK_OPTION_RANGE));
    return REDLOCK_INVALID;
  }
  status = rlk_url_parse(&url, text, size, why);
  if (status != REDLOCK_OK)
    return status;
  status = check_twice(c, &url, why);
  if (status == REDLOCK_OK && c->engine.net.node_count == RLK_NODES_MAX) {
    rlk_text_format(why, "nodes: more than %d; allowed: 1 to %d", RLK_NODES_MAX, RLK_NODES_MAX);
    status = REDLOCK_INVALID;
  }
  if (status != REDLOCK_OK) {
    rlk_url_free(&url);
    return status;
  }
  rlk_node_init(&c->engine.net.nodes[c->engine.net.node_count], &c->engine.net, c->engine.net.node_count);
  c->engine.net.nodes[c->engine.net.node_count++].url = url;
  return REDLOCK_OK;
}

#define SPACES " \t\r\n"

/* Spaces around the commas are allowed; an empty entry is not: it would make the quorum another one. */
static int set_nodes(redlock_client *c, const char *value, struct rlk_text *why)
{
  int status = REDLOCK_OK;
  rlk_client_free_nodes(c);
  c->engine.net.nodes = calloc(RLK_NODES_MAX, sizeof *c->engine.net.nodes);
  if (!c->engine.net.nodes)
    return REDLOCK_NO_MEMORY;
  value += strspn(value, SPACES);
  for (int more = *value != 0; more && status == REDLOCK_OK;) {
    size_t size = strcspn(value, ",");
    size_t used = size;
    while (used && strchr(SPACES, value[used - 1]))
      used--;
    more = value[size] == ',';
    status = add_node(c, value, used, why);
    value += size + (size_t)more;
    value += strspn(value, SPACES);
  }
  if (status != REDLOCK_OK)
    rlk_client_free_nodes(c);
  return status;
}

static int refuse(struct rlk_text *why, const char *name, const char *value, int option)
{
  rlk_text_format(why, "%s is \"", name);
  rlk_text_escaped(why, value, strlen(value));
  rlk_text_format(why, "\"; allowed: %s", redlock_option_at(option, REDLOCK_OPTION_RANGE));
  return REDLOCK_INVALID;
}

/* A client cannot be refused before it is there: what is wrong is told when it is opened. */
void rlk_client_read_environment(redlock_client *c)
{
  const char *value = getenv("REDLOCK_GUARD");
  struct rlk_text nowhere = rlk_text_in(NULL, 0), why = rlk_text_in(c->wrong_guard, sizeof c->wrong_guard);
  if (value && *value && rlk_option_parse(&c->engine.net.options, RLK_OPT_GUARD, value, &nowhere) != REDLOCK_OK)
    refuse(&why, "REDLOCK_GUARD", value, RLK_OPT_GUARD);
}

static int set_text(redlock_client *c, int option, const char *name, const char *value, struct rlk_text *why)
{
  char *copy, **to = &c->engine.net.texts[option];
  size_t size = strlen(value);
  int ok = size <= rlk_option_size_max(option);
  for (size_t i = 0; option == RLK_OPT_CLIENT_NAME && i < size; i++)
    ok = ok && (unsigned char)value[i] > 0x20 && (unsigned char)value[i] < 0x7f;
  if (!ok)
    return refuse(why, name, value, option);
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

void rlk_client_free_texts(redlock_client *c)
{
  for (int i = 0; i < RLK_OPTION_COUNT; i++)
    free(c->engine.net.texts[i]);
}

/* What the nodes with TLS need, before the first connection. */
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
  if (option == RLK_OPT_NODES)
    return set_nodes(c, value, why);
  return rlk_option_is_text(option) ? set_text(c, option, name, value, why)
                                    : rlk_option_parse(&c->engine.net.options, option, value, why);
}

int redlock_client_set(redlock_client *c, const char *name, const char *value)
{
  struct rlk_text why;
  int option, status = REDLOCK_INVALID;
  if (!c)
    return REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  why = message_of(c);
  option = name ? rlk_option_find(name, 0) : -1;
  if (!name || !value)
    rlk_text_add(&why, "name and value must not be NULL");
  else if (c->engine.net.state != RLK_NET_NEW)
    rlk_text_format(&why, "%.64s: options of a client are set before it is opened", name);
  else if (option < 0)
    rlk_option_unknown(name, 0, &why);
  else
    status = set_option(c, option, name, value, &why);
  if (status == REDLOCK_OK && option == RLK_OPT_GUARD)
    c->wrong_guard[0] = 0;
  if (status == REDLOCK_NO_MEMORY)
    rlk_text_add(&why, "out of memory");
  pthread_mutex_unlock(&c->mutex);
  return status;
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
  if (!c || option < 0)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  if (option == RLK_OPT_NODES)
    format_nodes(c, &out);
  else if (rlk_option_is_text(option))
    rlk_text_add(&out, c->engine.net.texts[option]);
  else
    rlk_option_format(&c->engine.net.options, option, &out);
  pthread_mutex_unlock(&c->mutex);
  return (int64_t)out.length;
}

int64_t redlock_client_message(redlock_client *c, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rlk_text_add(&out, c->message);
  pthread_mutex_unlock(&c->mutex);
  return (int64_t)out.length;
}

int redlock_client_node_count(redlock_client *c)
{
  int count;
  if (!c)
    return 0;
  pthread_mutex_lock(&c->mutex);
  count = c->engine.net.node_count;
  pthread_mutex_unlock(&c->mutex);
  return count;
}

int64_t redlock_client_node_name(redlock_client *c, int node, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  if (node >= 0 && node < c->engine.net.node_count)
    rlk_text_add(&out, c->engine.net.nodes[node].url.name);
  else
    node = -1;
  pthread_mutex_unlock(&c->mutex);
  return node < 0 ? -REDLOCK_INVALID : (int64_t)out.length;
}

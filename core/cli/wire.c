/* wire.c - a connection of the command's own to one node. */
#include "wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "node/line.h"
#include "node/login.h"
#include "node/net.h"
#include "node/poller.h"
#include "node/tls.h"
#include "rules/url.h"

enum { ADDRESSES_MAX = 8 };

struct wires {
  struct session *session;
  struct rlk_net net; /* of which the core reads the texts of options */
  struct rlk_node *nodes[RLK_NODES_MAX];
  int count;
  int64_t limit_ms;                            /* for a connection, and for each reply */
  struct rlk_address addresses[ADDRESSES_MAX]; /* of the node that was looked at last */
  struct rlk_reason why;
};

struct wire {
  struct wires *wires;
  struct rlk_link link;
  struct rlk_tls_peer peer;
  redisReader *reader;
};

const char *wires_why(const struct wires *wires)
{
  return wires->why.words;
}

int wires_count(const struct wires *wires)
{
  return wires->count;
}

/* ---- shared by connections ---- */

/* The client has read the list already, and found nothing wrong with it. */
static bool read_nodes(struct wires *wires, const char *list)
{
  static const char spaces[] = " \t\r\n";
  struct rlk_text why = rlk_text_in(wires->why.words, sizeof wires->why.words);
  while (*(list += strspn(list, ", \t\r\n")) != '\0' && wires->count < RLK_NODES_MAX) {
    size_t size = strcspn(list, ","), used = size;
    while (used > 0 && strchr(spaces, list[used - 1]) != NULL)
      used--;
    struct rlk_node *node = must(calloc(1, sizeof *node));
    node->net = &wires->net;
    wires->nodes[wires->count++] = node;
    if (rlk_url_parse(&node->url, list, used, &why) != REDLOCK_OK)
      return false;
    list += size;
  }
  return true;
}

static bool prepare_tls(struct wires *wires)
{
  struct rlk_net *net = &wires->net;
  struct rlk_text why = rlk_text_in(wires->why.words, sizeof wires->why.words);
  char *verify = client_option(wires->session->client, "tls_verify");
  const struct rlk_tls_settings settings = {.ca_file = RLK_STRING(net, TLS_CA_FILE),
                                            .ca_path = RLK_STRING(net, TLS_CA_PATH),
                                            .cert_file = RLK_STRING(net, TLS_CERT_FILE),
                                            .key_file = RLK_STRING(net, TLS_KEY_FILE),
                                            .is_verified = strcmp(verify, "true") == 0};
  bool is_needed = false;
  for (int i = 0; i < wires->count; i++)
    is_needed = is_needed || wires->nodes[i]->url.is_tls;
  free(verify);
  return !is_needed || rlk_tls_new(&net->tls, &settings, &why) == REDLOCK_OK;
}

struct wires *wires_new(struct session *session)
{
  struct wires *wires = must(calloc(1, sizeof *wires));
  const char *where;
  wires->session = session;
  wires->limit_ms = session_option_ms(session, "connect_timeout_ms");
  wires->net.poller = RLK_NO_POLLER;
  for (int i = 0; i < RLK_OPTION_COUNT; i++)
    if (option_is(i, REDLOCK_OPTION_TYPE, "string"))
      wires->net.texts[i] = client_option(session->client, redlock_option_at(i, REDLOCK_OPTION_NAME));
  int failed = rlk_poller_open(&wires->net.poller);
  if (failed != 0)
    rlk_error_words(-failed, wires->why.words);
  if (failed == 0 && read_nodes(wires, nodes_given(session->args, &where)) && prepare_tls(wires))
    return wires;
  fail(failed ? EXIT_INTERNAL : EXIT_USAGE, "%s", wires->why.words);
  wires_free(wires);
  return NULL;
}

void wires_free(struct wires *wires)
{
  if (wires == NULL)
    return;
  for (int i = 0; i < wires->count; i++) {
    rlk_url_free(&wires->nodes[i]->url);
    free(wires->nodes[i]);
  }
  for (int i = 0; i < RLK_OPTION_COUNT; i++)
    free(wires->net.texts[i]);
  rlk_tls_free(wires->net.tls);
  rlk_poller_close(&wires->net.poller);
  free(wires);
}

/* ---- bytes ---- */

static void say_error(struct wire *wire, int error)
{
  const struct rlk_link *link = &wire->link;
  struct rlk_reason *why = &wire->wires->why;
  char words[RLK_WHY_SIZE];
  if (wire->wires->session->caught != 0)
    return;
  if (link->ops->why != NULL && link->ops->why(link, error == ETIMEDOUT ? 0 : error, why) != RLK_WHY_NONE)
    return;
  rlk_because_of(why, RLK_WHY_SYSTEM, error == ETIMEDOUT ? "no reply in time" : rlk_error_words(error, words));
}

/* False after the time, or a signal. */
static bool wait_for(struct wire *wire, short events, int64_t end_ms)
{
  struct session *session = wire->wires->session;
  struct pollfd wanted[] = {{.fd = wire->link.fd, .events = (short)(events | (wire->link.writing ? POLLOUT : 0))},
                            {.fd = session->signal_fd, .events = POLLIN}};
  int64_t left_ms = end_ms - now_ms();
  int ready = left_ms > 0 ? poll(wanted, 2, (int)left_ms) : 0;
  session->caught = session_signal(session);
  if (ready <= 0 || session->caught != 0)
    say_error(wire, ETIMEDOUT);
  return ready > 0 && session->caught == 0;
}

static bool write_all(struct wire *wire, const char *data, size_t size)
{
  int64_t end_ms = now_ms() + wire->wires->limit_ms;
  while (size > 0) {
    ssize_t n = wire->link.ops->write(&wire->link, data, size);
    if (n >= 0) {
      data += n;
      size -= (size_t)n;
    } else if (n != -EAGAIN) {
      say_error(wire, (int)-n);
      return false;
    } else if (!wait_for(wire, POLLIN | POLLOUT, end_ms)) {
      return false;
    }
  }
  return true;
}

static bool read_some(struct wire *wire, int64_t end_ms)
{
  char bytes[16384];
  ssize_t n;
  while ((n = wire->link.ops->read(&wire->link, bytes, sizeof bytes)) == -EAGAIN)
    if (!wait_for(wire, POLLIN, end_ms))
      return false;
  if (n > 0)
    return redisReaderFeed(wire->reader, bytes, (size_t)n) == REDIS_OK;
  say_error(wire, n == 0 ? ECONNRESET : (int)-n);
  return false;
}

bool wire_send(struct wire *wire, int count, const char *const *words, const size_t *sizes)
{
  char *text = NULL;
  int64_t size = redisFormatCommandArgv(&text, count, (const char **)words, sizes);
  bool is_sent = size > 0 && write_all(wire, must(text), (size_t)size);
  if (text != NULL)
    rlk_wipe(text, (size_t)size); /* it may have a password */
  redisFreeCommand(text);
  return is_sent;
}

redisReply *wire_reply(struct wire *wire)
{
  void *reply = NULL;
  int64_t end_ms = now_ms() + wire->wires->limit_ms;
  while (redisReaderGetReply(wire->reader, &reply) == REDIS_OK && reply == NULL)
    if (!read_some(wire, end_ms))
      return NULL;
  if (reply == NULL)
    snprintf(wire->wires->why.words, sizeof wire->wires->why.words, "it does not speak Redis' protocol");
  return reply;
}

/* ---- connecting ---- */

static bool connect_to(struct wire *wire, const struct rlk_address *address)
{
  int64_t end_ms = now_ms() + wire->wires->limit_ms;
  int status = wire->link.ops->open(&wire->link, address);
  while (status == -EINPROGRESS) {
    if (!wait_for(wire, POLLIN, end_ms))
      return false;
    status = wire->link.ops->finish(&wire->link);
  }
  if (status != 0)
    say_error(wire, -status);
  return status == 0;
}

static struct rlk_address address_of(const struct addrinfo *found)
{
  struct rlk_address address;
  memset(&address, 0, sizeof address); /* to be compared */
  address.family = found->ai_family;
  if (found->ai_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)found->ai_addr;
    address.port = ntohs(in6->sin6_port);
    memcpy(address.ip, &in6->sin6_addr, sizeof address.ip);
  } else {
    const struct sockaddr_in *in = (const struct sockaddr_in *)found->ai_addr;
    address.port = ntohs(in->sin_port);
    memcpy(address.ip, &in->sin_addr, 4);
  }
  return address;
}

static struct addrinfo *look_up(struct wires *wires, const struct rlk_url *url)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  char port[8];
  snprintf(port, sizeof port, "%u", (unsigned)url->port);
  int failed = getaddrinfo(url->host, port, &hints, &found);
  if (failed != 0)
    snprintf(wires->why.words, sizeof wires->why.words, "name not resolved: %s", gai_strerror(failed));
  return found;
}

int wires_addresses(struct wires *wires, int index)
{
  struct rlk_address *addresses = wires->addresses;
  const struct rlk_url *url = &wires->nodes[index]->url;
  int count = 0, of_family[2] = {0, 0};
  if (url->is_unix)
    return 0;
  struct addrinfo *found = look_up(wires, url);
  for (struct addrinfo *at = found; at != NULL && count < ADDRESSES_MAX; at = at->ai_next) {
    addresses[count] = address_of(at);
    bool is_known = false;
    for (int i = 0; i < count; i++)
      is_known = is_known || memcmp(&addresses[i], &addresses[count], sizeof *addresses) == 0;
    if (is_known)
      continue;
    of_family[addresses[count++].family == AF_INET6]++;
  }
  if (found != NULL)
    freeaddrinfo(found);
  return of_family[0] > 1 || of_family[1] > 1 ? count : 0;
}

static bool connect_by_name(struct wire *wire, const struct rlk_url *url)
{
  struct addrinfo *found = look_up(wire->wires, url);
  bool is_connected = false;
  for (struct addrinfo *at = found; at != NULL && !is_connected && wire->wires->session->caught == 0;
       at = at->ai_next) {
    struct rlk_address address = address_of(at);
    wire->link.ops->close(&wire->link);
    is_connected = connect_to(wire, &address);
  }
  if (found != NULL)
    freeaddrinfo(found);
  return is_connected;
}

static bool connect_node(struct wire *wire, const struct rlk_url *url)
{
  struct rlk_address address = {.family = AF_UNIX};
  if (!url->is_unix)
    return connect_by_name(wire, url);
  memcpy(address.path, url->host, strlen(url->host));
  return connect_to(wire, &address);
}

static bool is_accepted(struct wire *wire, int count, const char *const *words)
{
  redisReply *reply = wire_send(wire, count, words, NULL) ? wire_reply(wire) : NULL;
  bool is_ok = reply != NULL && reply->type != REDIS_REPLY_ERROR;
  bool is_login = strcmp(words[0], "AUTH") == 0; /* to which a server may answer with what it was sent */
  if (reply != NULL && !is_ok && is_login)
    rlk_because(&wire->wires->why, rlk_why_of(reply->str), "the login failed");
  else if (reply != NULL && !is_ok)
    rlk_because_of(&wire->wires->why, rlk_why_of(reply->str), reply->str);
  freeReplyObject(reply);
  return is_ok;
}

static bool log_in(struct wire *wire, const struct rlk_node *node)
{
  struct rlk_login *login = must(calloc(1, sizeof *login));
  char database[16];
  snprintf(database, sizeof database, "%d", node->url.database);
  bool is_in = rlk_login_read(login, node, &wire->wires->why) == RLK_WHY_NONE;
  if (is_in && login->password != NULL && login->user != NULL)
    is_in = is_accepted(wire, 3, (const char *[]){"AUTH", login->user, login->password});
  else if (is_in && login->password != NULL)
    is_in = is_accepted(wire, 2, (const char *[]){"AUTH", login->password});
  rlk_login_wipe(login);
  free(login);
  return is_in && (node->url.database == 0 || is_accepted(wire, 2, (const char *[]){"SELECT", database}));
}

/* address NULL: the first that answers. */
static struct wire *open_wire(struct wires *wires, int index, const struct rlk_address *address)
{
  struct rlk_node *node = wires->nodes[index];
  const char *name = RLK_STRING(&wires->net, TLS_SERVER_NAME);
  struct wire *wire = must(calloc(1, sizeof *wire));
  wires->why.words[0] = '\0';
  wire->wires = wires;
  wire->reader = must(redisReaderCreate());
  wire->peer = (struct rlk_tls_peer){.tls = wires->net.tls, .name = *name != '\0' ? name : node->url.host};
  wire->link = (struct rlk_link){.ops = node->url.is_tls ? &rlk_link_tls : &rlk_link_sockets,
                                 .poller = &wires->net.poller,
                                 .node = index,
                                 .fd = -1,
                                 .peer = node->url.is_tls ? &wire->peer : NULL};
  bool is_connected = address != NULL ? connect_to(wire, address) : connect_node(wire, &node->url);
  if (is_connected && log_in(wire, node))
    return wire;
  wire_close(wire);
  return NULL;
}

struct wire *wire_open(struct wires *wires, int index)
{
  return open_wire(wires, index, NULL);
}

struct wire *wire_open_at(struct wires *wires, int index, int address)
{
  return open_wire(wires, index, &wires->addresses[address]);
}

void wire_close(struct wire *wire)
{
  if (wire == NULL)
    return;
  wire->link.ops->close(&wire->link);
  rlk_tls_forget(&wire->peer);
  redisReaderFree(wire->reader);
  free(wire);
}

char *wire_escaped(const char *bytes, size_t size)
{
  size_t room = 4 * size + 1; /* \xHH for each byte */
  char *shown = must(calloc(1, room));
  struct rlk_text text = rlk_text_in(shown, room);
  if (memchr(bytes, '\0', size) == NULL)
    rlk_text_clean(&text, bytes);
  else
    rlk_text_escaped(&text, bytes, size);
  return shown;
}

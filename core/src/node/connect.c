#include "connect.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "session.h"
#include "state.h"

#define MS RLK_NS_PER_MS
#define BACKOFF_MIN_NS (10 * MS)

int64_t rlk_connect_timeout_ns(const struct rlk_node *n)
{
  return RLK_INT(&n->net->options, CONNECT_TIMEOUT_MS) * MS;
}

int64_t rlk_connect_backoff_ns(struct rlk_node *n, int failures)
{
  int shift = failures < 8 ? failures : 8;
  int64_t top = rlk_smaller(BACKOFF_MIN_NS << shift, RLK_BACKOFF_MAX_NS);
  return BACKOFF_MIN_NS + (int64_t)(rlk_random(n->net) % (uint64_t)(top - BACKOFF_MIN_NS + 1));
}

enum rlk_why rlk_connect_timed_out(const struct rlk_line *l, struct rlk_reason *why)
{
  if (l->link.ops->why && l->state == RLK_NODE_CONNECTING && l->link.ops->why(&l->link, 0, why))
    return why->why;
  switch (l->state) {
  case RLK_NODE_RESOLVING: return rlk_because(why, RLK_WHY_NAME, "no answer in time");
  case RLK_NODE_CONNECTING: return rlk_because(why, RLK_WHY_CONNECT_TIMEOUT, NULL);
  default: return rlk_because(why, RLK_WHY_SETUP_TIMEOUT, NULL);
  }
}

/* Sets the deadline of the current connection step. */
static void expect(struct rlk_line *l, int64_t until_ns)
{
  struct rlk_node *n = l->node;
  if (l != n->second)
    rlk_timer_set(&n->net->timers, &n->timer, until_ns);
  else
    n->second_ns = until_ns;
}

static enum rlk_why connected(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  rlk_node_be(l, RLK_NODE_SETUP);
  if (rlk_line_begin(l) != 0)
    return rlk_because(why, RLK_WHY_MEMORY, NULL);
  if (rlk_session_begin(l, why))
    return why->why;
  if (l != l->node->second && rlk_session_is_joinable(l))
    rlk_node_tell(l->node, RLK_OUTCOME_JOINABLE);
  expect(l, now + rlk_connect_timeout_ns(l->node));
  return RLK_WHY_NONE;
}

/* Tries the addresses that are left, one after the other; the time is shared among them. why is the reason so far. */
static enum rlk_why try_addresses(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *n = l->node;
  while (n->address_next < n->address_count) {
    int status, left = n->address_count - n->address_next;
    rlk_node_be(l, RLK_NODE_CONNECTING);
    status = rlk_line_open(l, &n->addresses[n->address_next++]);
    if (status == 0)
      return connected(l, why, now);
    if (status == -EINPROGRESS) {
      expect(l, now + rlk_connect_timeout_ns(n) / left);
      return RLK_WHY_NONE;
    }
    rlk_line_reason(l, -status, why);
  }
  return why->why;
}

enum rlk_why rlk_connect_next_address(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  l->link.ops->close(&l->link);
  return try_addresses(l, why, now);
}

enum rlk_why rlk_connect_finish(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  int status = l->link.ops->finish(&l->link);
  if (status == 0)
    return connected(l, why, now);
  if (status == -EINPROGRESS)
    return RLK_WHY_NONE;
  rlk_line_reason(l, -status, why);
  return rlk_connect_next_address(l, why, now);
}

/* ---- names ---- */

struct rlk_line *rlk_connect_resolving(struct rlk_node *n)
{
  if (n->second && n->second->state == RLK_NODE_RESOLVING)
    return n->second;
  return n->state == RLK_NODE_RESOLVING ? n->line : NULL;
}

/* Two programs may then ask different servers under one name. */
static void warn_of_several(struct rlk_node *n)
{
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  int count = rlk_resolve_several(n->resolve);
  if (!count || n->is_warned)
    return;
  n->is_warned = 1;
  rlk_text_format(&text, "its name has %d addresses: if they lead to several servers, name each (redlock doctor)",
                  count);
  rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index, words);
}

enum rlk_why rlk_connect_look_at_name(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *n = l->node;
  int count = rlk_resolve_result(n->resolve, n->addresses, why);
  if (count == -EAGAIN)
    return RLK_WHY_NONE;
  warn_of_several(n);
  rlk_resolve_drop(n->resolve);
  n->resolve = NULL;
  n->address_count = count > 0 ? count : 0;
  return try_addresses(l, why, now);
}

/* One look-up per node at a time: one that took too long is still awaited, since its thread cannot be ended. */
static enum rlk_why look_up(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *n = l->node;
  rlk_node_be(l, RLK_NODE_RESOLVING);
  if (!n->resolve)
    n->resolve = rlk_resolve_start(n->url.host, n->url.port, &n->used, n->net->poller.wake.ringer);
  if (!n->resolve)
    return rlk_because(why, RLK_WHY_NAME, "no thread could be started");
  expect(l, now + rlk_connect_timeout_ns(n));
  return rlk_connect_look_at_name(l, why, now);
}

static void unix_address(struct rlk_node *n)
{
  struct rlk_address *a = &n->addresses[0];
  memset(a, 0, sizeof *a);
  a->family = AF_UNIX;
  memcpy(a->path, n->url.host, strlen(n->url.host));
}

/* Certificates are rotated by replacing their files. */
static void refresh_tls(struct rlk_node *n)
{
  char words[RLK_WHY_SIZE] = "";
  struct rlk_text why = rlk_text_in(words, sizeof words);
  if (n->tls.tls && rlk_tls_refresh(n->tls.tls, &why) != 0) {
    rlk_text_mark_cut(&why);
    rlk_event_add(&n->net->events, RLK_EVENT_WARNING, -1, words[0] ? words : "out of memory");
  }
}

enum rlk_why rlk_connect(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *n = l->node;
  n->connects++;
  refresh_tls(n);
  n->address_next = 0;
  n->address_count = 1;
  if (n->url.is_unix)
    unix_address(n);
  else if (!rlk_address_numeric(n->url.host, n->url.port, &n->addresses[0]))
    return look_up(l, why, now);
  return try_addresses(l, why, now);
}

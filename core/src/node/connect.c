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
  int64_t top = BACKOFF_MIN_NS << shift;
  if (top > RLK_BACKOFF_MAX_NS)
    top = RLK_BACKOFF_MAX_NS;
  return BACKOFF_MIN_NS + (int64_t)(rlk_random(n->net) % (uint64_t)(top - BACKOFF_MIN_NS + 1));
}

const char *rlk_connect_timed_out(const struct rlk_line *l)
{
  const char *own = l->link.ops->why && l->state == RLK_NODE_CONNECTING ? l->link.ops->why(&l->link, 0) : NULL;
  if (own)
    return own;
  switch (l->state) {
  case RLK_NODE_RESOLVING: return "name not resolved in time";
  case RLK_NODE_CONNECTING: return "connecting timed out";
  default: return "no reply to the session set-up in time";
  }
}

/* What the connection waits for has to come by then. */
static void expect(struct rlk_line *l, int64_t until_ns)
{
  struct rlk_node *n = l->node;
  if (l != n->second)
    rlk_timer_set(&n->net->timers, &n->timer, until_ns);
  else
    n->second_ns = until_ns;
}

static const char *connected(struct rlk_line *l, char *words, int64_t now)
{
  const char *why;
  rlk_node_be(l, RLK_NODE_SETUP);
  why = rlk_line_begin(l) != 0 ? "out of memory" : rlk_session_begin(l, words);
  if (why)
    return why;
  if (l != l->node->second && rlk_session_is_joinable(l))
    rlk_node_tell(l->node, RLK_OUTCOME_JOINABLE);
  expect(l, now + rlk_connect_timeout_ns(l->node));
  return NULL;
}

/* Tries the addresses that are left, one after the other; the time is shared among them. */
static const char *try_addresses(struct rlk_line *l, const char *why, char *words, int64_t now)
{
  struct rlk_node *n = l->node;
  while (n->address_next < n->address_count) {
    int status, left = n->address_count - n->address_next;
    rlk_node_be(l, RLK_NODE_CONNECTING);
    status = rlk_line_open(l, &n->addresses[n->address_next++]);
    if (status == 0)
      return connected(l, words, now);
    if (status == -EINPROGRESS) {
      expect(l, now + rlk_connect_timeout_ns(n) / left);
      return NULL;
    }
    why = rlk_line_words(l, -status, words);
  }
  return why;
}

const char *rlk_connect_next_address(struct rlk_line *l, const char *why, char *words, int64_t now)
{
  l->link.ops->close(&l->link);
  return try_addresses(l, why, words, now);
}

const char *rlk_connect_finish(struct rlk_line *l, char *words, int64_t now)
{
  int status = l->link.ops->finish(&l->link);
  if (status == 0)
    return connected(l, words, now);
  return status == -EINPROGRESS ? NULL : rlk_connect_next_address(l, rlk_line_words(l, -status, words), words, now);
}

/* ---- names ---- */

struct rlk_line *rlk_connect_resolving(struct rlk_node *n)
{
  if (n->second && n->second->state == RLK_NODE_RESOLVING)
    return n->second;
  return n->state == RLK_NODE_RESOLVING ? n->line : NULL;
}

const char *rlk_connect_look_at_name(struct rlk_line *l, char *words, int64_t now)
{
  struct rlk_node *n = l->node;
  struct rlk_text text = rlk_text_in(words, RLK_WHY_SIZE);
  int count = rlk_resolve_result(n->resolve, n->addresses, &text);
  if (count == -EAGAIN)
    return NULL;
  rlk_resolve_drop(n->resolve);
  n->resolve = NULL;
  n->address_count = count > 0 ? count : 0;
  return try_addresses(l, words, words, now);
}

/* One look-up per node at a time: one that took too long is still waited for, since its thread cannot be ended. */
static const char *look_up(struct rlk_line *l, char *words, int64_t now)
{
  struct rlk_node *n = l->node;
  rlk_node_be(l, RLK_NODE_RESOLVING);
  if (!n->resolve)
    n->resolve = rlk_resolve_start(n->url.host, n->url.port, n->net->poller.wake.ringer);
  if (!n->resolve)
    return "name not resolved: no thread could be started";
  expect(l, now + rlk_connect_timeout_ns(n));
  return rlk_connect_look_at_name(l, words, now);
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

const char *rlk_connect(struct rlk_line *l, char *words, int64_t now)
{
  struct rlk_node *n = l->node;
  n->connects++;
  refresh_tls(n);
  n->address_next = 0;
  n->address_count = 1;
  if (n->url.is_unix)
    unix_address(n);
  else if (!rlk_address_numeric(n->url.host, n->url.port, &n->addresses[0]))
    return look_up(l, words, now);
  return try_addresses(l, "no address", words, now);
}

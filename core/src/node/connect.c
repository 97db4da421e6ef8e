#include "connect.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "session.h"

#define MS RL_NS_PER_MS
#define BACKOFF_MIN_NS (10 * MS)

int64_t rl_connect_timeout_ns(const struct rl_node *n)
{
  return RL_INT(&n->net->options, CONNECT_TIMEOUT_MS) * MS;
}

int64_t rl_connect_backoff_ns(struct rl_node *n, int failures)
{
  int shift = failures < 8 ? failures : 8;
  int64_t top = BACKOFF_MIN_NS << shift;
  if (top > RL_BACKOFF_MAX_NS)
    top = RL_BACKOFF_MAX_NS;
  return BACKOFF_MIN_NS + (int64_t)(rl_random(n->net) % (uint64_t)(top - BACKOFF_MIN_NS + 1));
}

const char *rl_connect_timed_out(const struct rl_line *l)
{
  switch (l->state) {
  case RL_NODE_RESOLVING: return "name not resolved in time";
  case RL_NODE_CONNECTING: return "connecting timed out";
  default: return "no reply to the session set-up in time";
  }
}

/* What the connection waits for has to come by then. */
static void expect(struct rl_line *l, int64_t until_ns)
{
  struct rl_node *n = l->node;
  if (l != n->second)
    rl_timer_set(&n->net->timers, &n->timer, until_ns);
  else
    n->second_ns = until_ns;
}

static void connected(struct rl_line *l, int64_t now)
{
  rl_node_be(l, RL_NODE_SETUP);
  if (rl_line_begin(l) != 0 || rl_session_begin(l) != 0) {
    rl_node_line_failed(l, 0, "out of memory", now);
    return;
  }
  if (l != l->node->second && rl_session_is_joinable(l))
    rl_node_tell(l->node, RL_OUTCOME_JOINABLE);
  expect(l, now + rl_connect_timeout_ns(l->node));
}

/* Tries the addresses that are left, one after the other; the time is shared among them. */
static void try_addresses(struct rl_line *l, const char *why, int64_t now)
{
  struct rl_node *n = l->node;
  char words[RL_WHY_SIZE];
  while (n->address_next < n->address_count) {
    int status, left = n->address_count - n->address_next;
    rl_node_be(l, RL_NODE_CONNECTING);
    status = rl_line_open(l, &n->addresses[n->address_next++]);
    if (status == 0) {
      connected(l, now);
      return;
    }
    if (status == -EINPROGRESS) {
      expect(l, now + rl_connect_timeout_ns(n) / left);
      return;
    }
    why = rl_error_words(-status, words);
  }
  rl_node_line_failed(l, 0, why, now);
}

void rl_connect_next_address(struct rl_line *l, const char *why, int64_t now)
{
  l->link.ops->close(&l->link);
  try_addresses(l, why, now);
}

void rl_connect_finish(struct rl_line *l, int64_t now)
{
  char words[RL_WHY_SIZE];
  int status = l->link.ops->finish(&l->link);
  if (status == 0)
    connected(l, now);
  else if (status != -EINPROGRESS)
    rl_connect_next_address(l, rl_error_words(-status, words), now);
}

/* ---- names ---- */

/* The line for which a name is looked up, or NULL. */
static struct rl_line *resolving(struct rl_node *n)
{
  if (n->second && n->second->state == RL_NODE_RESOLVING)
    return n->second;
  return n->state == RL_NODE_RESOLVING ? n->line : NULL;
}

void rl_connect_look_at_name(struct rl_node *n, int64_t now)
{
  struct rl_line *l = resolving(n);
  char why[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(why, sizeof why);
  int count = l ? rl_resolve_result(n->resolve, n->addresses, &text) : -EAGAIN;
  if (count == -EAGAIN)
    return;
  rl_resolve_drop(n->resolve);
  n->resolve = NULL;
  n->address_count = count > 0 ? count : 0;
  try_addresses(l, why, now);
}

/* One look-up per node at a time: one that took too long is still waited for, since its thread cannot be ended. */
static void look_up(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  rl_node_be(l, RL_NODE_RESOLVING);
  if (!n->resolve)
    n->resolve = rl_resolve_start(n->url.host, n->url.port, n->net->poller.wake);
  if (!n->resolve) {
    rl_node_line_failed(l, 0, "name not resolved: no thread could be started", now);
    return;
  }
  expect(l, now + rl_connect_timeout_ns(n));
  rl_connect_look_at_name(n, now);
}

static void unix_address(struct rl_node *n)
{
  struct rl_address *a = &n->addresses[0];
  memset(a, 0, sizeof *a);
  a->family = AF_UNIX;
  memcpy(a->path, n->url.host, strlen(n->url.host));
}

void rl_connect(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  n->connects++;
  n->address_next = 0;
  n->address_count = 1;
  if (n->url.is_unix) {
    unix_address(n);
  } else if (!rl_address_numeric(n->url.host, n->url.port, &n->addresses[0])) {
    look_up(l, now);
    return;
  }
  try_addresses(l, "no address", now);
}

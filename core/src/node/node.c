/* One server: connecting to it, backing off, what becomes of the requests on a connection that broke. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../lock/claim.h"
#include "../lock/operation.h"
#include "../lock/renewal.h"
#include "session.h"
#include "silence.h"

#define MS RL_NS_PER_MS
#define BACKOFF_MIN_NS (10 * MS)
#define BACKOFF_MAX_NS (1000 * MS)

/* The system's words, which begin with a capital, for the middle of a line. */
const char *rl_error_words(int error, char *out, size_t size)
{
  struct rl_text text = rl_text_in(out, size);
  rl_text_add(&text, strerror(error)); /* thread-safe in glibc and musl for the numbers that exist */
  if (out[0] >= 'A' && out[0] <= 'Z')
    out[0] = (char)(out[0] + 32);
  return out;
}

/* ---- life ---- */

void rl_node_init(struct rl_node *n, struct rl_net *net, int index)
{
  n->net = net;
  n->index = index;
  n->timer.kind = RL_TIMER_NODE;
  n->line = &n->lines[0];
  for (int i = 0; i < 2; i++)
    rl_line_init(&n->lines[i], n);
}

void rl_node_free(struct rl_node *n)
{
  for (int i = 0; i < 2; i++)
    rl_line_free(&n->lines[i]);
  rl_resolve_drop(n->resolve);
  rl_url_free(&n->url);
}

/* In a forked child: nothing is written, and nothing that is shared with the parent is changed. */
void rl_node_abandon(struct rl_node *n)
{
  for (int i = 0; i < 2; i++)
    rl_line_abandon(&n->lines[i]);
  rl_silence_forget(n);
  rl_resolve_forked(n->resolve);
  n->resolve = NULL;
  n->dirty = 0;
  n->failures = 0;
  n->run_id[0] = 0;
  rl_timer_set(&n->net->timers, &n->timer, 0);
}

static void say_why(struct rl_node *n, const char *why)
{
  struct rl_text text = rl_text_in(n->why, sizeof n->why);
  rl_text_add(&text, why);
}

/* ---- connecting ---- */

static int64_t connect_timeout_ns(const struct rl_node *n)
{
  return RL_INT(&n->net->options, CONNECT_TIMEOUT_MS) * MS;
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

void rl_node_connected(struct rl_line *l, int64_t now)
{
  if (rl_line_begin(l) != 0 || rl_session_begin(l, now) != 0) {
    rl_line_drop(l, 0, "out of memory", now);
    return;
  }
  expect(l, now + connect_timeout_ns(l->node));
}

/* Tries the addresses that are left, one after the other; the time is shared among them. */
static void try_addresses(struct rl_line *l, const char *why, int64_t now)
{
  struct rl_node *n = l->node;
  char words[RL_WHY_SIZE];
  while (n->address_next < n->address_count) {
    int left = n->address_count - n->address_next;
    int status = rl_line_open(l, &n->addresses[n->address_next++]);
    if (status == 0) {
      rl_node_connected(l, now);
      return;
    }
    if (status == -EINPROGRESS) {
      expect(l, now + connect_timeout_ns(n) / left);
      return;
    }
    why = rl_error_words(-status, words, sizeof words);
  }
  rl_line_drop(l, 0, why, now);
}

void rl_node_unconnected(struct rl_line *l, const char *why, int64_t now)
{
  l->link.ops->close(&l->link);
  try_addresses(l, why, now);
}

/* The line for which a name is looked up, or NULL. */
static struct rl_line *resolving(struct rl_node *n)
{
  if (n->second && n->second->state == RL_NODE_RESOLVING)
    return n->second;
  return n->state == RL_NODE_RESOLVING ? n->line : NULL;
}

void rl_node_look_at_name(struct rl_node *n, int64_t now)
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

/* One look-up per node at a time: one that took too long is still waited for, since its thread can not be ended. */
static void look_up(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  rl_line_be(l, RL_NODE_RESOLVING);
  if (!n->resolve)
    n->resolve = rl_resolve_start(n->url.host, n->url.port, n->net->poller.wake);
  if (!n->resolve) {
    rl_line_drop(l, 0, "name not resolved: no thread could be started", now);
    return;
  }
  expect(l, now + connect_timeout_ns(n));
  rl_node_look_at_name(n, now);
}

static void unix_address(struct rl_node *n)
{
  struct rl_address *a = &n->addresses[0];
  memset(a, 0, sizeof *a);
  a->family = AF_UNIX;
  memcpy(a->path, n->url.host, strlen(n->url.host));
}

void rl_node_connect_line(struct rl_line *l, int64_t now)
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

void rl_node_connect(struct rl_node *n, int64_t now)
{
  rl_node_connect_line(n->line, now);
}

int64_t rl_node_backoff_ns(struct rl_node *n, int failures)
{
  int shift = failures < 8 ? failures : 8;
  int64_t top = BACKOFF_MIN_NS << shift;
  if (top > BACKOFF_MAX_NS)
    top = BACKOFF_MAX_NS;
  return BACKOFF_MIN_NS + (int64_t)(rl_random(n->net) % (uint64_t)(top - BACKOFF_MIN_NS + 1));
}

/* What was asked on a connection that broke is unknown: the tokens may be there. Where the node is connected again at
 * once, its requests are only put off. */
void rl_node_fail_owed(struct rl_line *l, int again, int64_t now)
{
  struct rl_node *n = l->node;
  struct rl_owed *owed = l->owed;
  uint32_t size = l->owed_size, first = l->owed_first, count = l->owed_count;
  l->owed = NULL;
  l->owed_size = l->owed_first = l->owed_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct rl_owed *o = &owed[(first + i) & (size - 1)];
    if (o->batch)
      rl_batch_drop(rl_engine_of(n->net), o->batch);
    if (!o->claim)
      continue;
    uint8_t *flags = &o->claim->node[n->index].flags;
    if (o->kind == RL_OWED_SET)
      *flags = (uint8_t)((*flags & ~RL_SET_OWED) | RL_SET_LOST);
    if (o->kind == RL_OWED_DELETE)
      *flags = (uint8_t)((*flags & ~RL_DELETE_OWED) | RL_DELETE_LOST);
    if (o->kind == RL_OWED_EXPIRE)
      o->claim->node[n->index].shortenings |= RL_SHORTENING_LOST;
    rl_operation_answer(n, o, again ? RL_WAITING : RL_DROPPED, now);
    o->claim->owed--;
    rl_claim_settle(rl_engine_of(n->net), o->claim);
  }
  free(owed);
}

static void shut_down(struct rl_node *n)
{
  rl_silence_forget(n);
  rl_line_close(n->line);
}

/* A node that was refused long ago, in a client that nobody has looked after since: the reason may have passed. */
static int is_refusal_old(const struct rl_node *n, int64_t now)
{
  return n->state == RL_NODE_REFUSED && now - n->refused_ns > connect_timeout_ns(n) + BACKOFF_MAX_NS;
}

/* Nodes that were refused because their server voted as this node: it may vote as theirs now. */
static void free_shared(struct rl_node *n, int64_t now)
{
  for (int i = 0; i < n->net->node_count; i++) {
    struct rl_node *other = &n->net->nodes[i];
    if (!other->refused || other->line->shared != n)
      continue;
    other->refused = 0;
    if (other->state == RL_NODE_OFF && n->net->state == RL_NET_OPEN)
      rl_timer_set(&n->net->timers, &other->timer, now);
  }
}

void rl_node_drop(struct rl_node *n, int at_once, const char *why, int64_t now)
{
  int was_ready = n->state == RL_NODE_READY;
  int was_refused = n->refused;
  /* at once only after it has answered: a server that closes right away is no reason to spin */
  int again = at_once && n->failures == 0 && n->net->state == RL_NET_OPEN;
  char reason[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(reason, sizeof reason);
  if (is_refusal_old(n, now)) {
    n->refused = n->failures = 0;
    again = n->net->state == RL_NET_OPEN;
  }
  rl_text_add(&text, why); /* why may be a text of the connection that is about to go */
  shut_down(n);
  n->drops++;
  if (!n->refused || was_ready)
    say_why(n, reason);
  if (n->net->state == RL_NET_OPEN && (was_ready || (!was_refused && n->failures == 0))) /* leaving: no alarm */
    rl_event_add(&n->net->events, RL_EVENT_NODE_DOWN, n->index, reason);
  if (n->net->state != RL_NET_OPEN)
    rl_timer_clear(&n->net->timers, &n->timer);
  else
    rl_timer_set(&n->net->timers, &n->timer, again ? now : now + rl_node_backoff_ns(n, n->failures));
  n->failures++;
  if (was_ready)
    free_shared(n, now);
  rl_node_fail_owed(n->line, again, now);
  if (!again)
    rl_operation_node_down(n, now);
}

void rl_node_refuse(struct rl_node *n, const char *why, int64_t now)
{
  if (!n->refused || strcmp(n->why, why) != 0)
    rl_event_add(&n->net->events, RL_EVENT_NODE_REFUSED, n->index, why);
  n->refused = 1;
  n->refused_ns = now;
  rl_silence_forget(n);
  say_why(n, why);
  rl_line_be(n->line, RL_NODE_REFUSED);
  rl_timer_set(&n->net->timers, &n->timer, now + connect_timeout_ns(n));
  rl_operation_node_down(n, now);
  if (n->state == RL_NODE_REFUSED && n->line->owed_count == 0)
    rl_node_drop(n, 0, why, now);
}

/* ---- timers ---- */

const char *rl_node_timed_out(const struct rl_line *l)
{
  switch (l->state) {
  case RL_NODE_RESOLVING: return "name not resolved in time";
  case RL_NODE_CONNECTING: return "connecting timed out";
  default: return "no reply to the session set-up in time";
  }
}

void rl_node_timer(struct rl_node *n, int64_t now)
{
  switch (n->state) {
  case RL_NODE_OFF:
    if (n->net->state == RL_NET_OPEN)
      rl_node_connect(n, now);
    break;
  case RL_NODE_RESOLVING:
    rl_node_look_at_name(n, now);
    if (n->state == RL_NODE_RESOLVING)
      rl_node_drop(n, 0, rl_node_timed_out(n->line), now);
    break;
  case RL_NODE_CONNECTING: rl_node_unconnected(n->line, rl_node_timed_out(n->line), now); break;
  case RL_NODE_SETUP: rl_node_drop(n, 0, rl_node_timed_out(n->line), now); break;
  case RL_NODE_REFUSED: rl_node_drop(n, 0, n->why, now); break;
  case RL_NODE_READY: rl_silence_timer(n, now); break;
  }
}

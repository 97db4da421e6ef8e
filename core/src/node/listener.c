#include "listener.h"

#include <errno.h>

#include "out.h"
#include "session.h"
#include "state.h"

#define MS RLK_NS_PER_MS
#define IDLE_NS (10000 * MS)
#define AGAIN_NS (1000 * MS) /* doubled by each failure in a row */
#define FAILURES_MAX 6

static int is_wanted(const struct rlk_node *n)
{
  return RLK_INT(&n->net->options, WAKE) != RLK_WAKE_POLL && n->net->state == RLK_NET_OPEN;
}

void rlk_listener_close(struct rlk_node *n)
{
  struct rlk_line *l = rlk_listener_line(n);
  rlk_line_close(l);
  rlk_node_be(l, RLK_NODE_OFF);
  l->requests.count = l->requests.first = 0; /* only of its set-up */
  rlk_timer_clear(&n->net->timers, &n->listener_timer);
}

void rlk_listener_failed(struct rlk_node *n, int64_t now)
{
  if (rlk_listener_is_ready(n))
    rlk_node_tell(n, RLK_OUTCOME_DEAF);
  rlk_listener_close(n);
  if (n->listener_failures < FAILURES_MAX)
    n->listener_failures++;
  n->listener_again_ns = now + (AGAIN_NS << n->listener_failures);
}

static int subscribe(struct rlk_line *l)
{
  const char *words[] = {"SUBSCRIBE", l->node->net->channel};
  struct rlk_reason why;
  return rlk_session_login(l, &why) ? -1 : rlk_session_send(l, 2, words);
}

static void connected(struct rlk_line *l, int64_t now)
{
  rlk_node_be(l, RLK_NODE_SETUP);
  l->setup_left = 0;
  if (rlk_line_begin(l) != 0 || subscribe(l) != 0)
    rlk_listener_failed(l->node, now);
}

static void open_line(struct rlk_node *n, int64_t now)
{
  struct rlk_line *l = rlk_listener_line(n);
  int status;
  rlk_timer_set(&n->net->timers, &n->listener_timer, now + RLK_INT(&n->net->options, CONNECT_TIMEOUT_MS) * MS);
  rlk_node_be(l, RLK_NODE_CONNECTING);
  status = rlk_line_open(l, &n->used);
  if (status == 0)
    connected(l, now);
  else if (status != -EINPROGRESS)
    rlk_listener_failed(n, now);
}

void rlk_listener_want(struct rlk_node *n, int64_t now)
{
  struct rlk_line *l = rlk_listener_line(n);
  n->listener_wanted_ns = now;
  if (l->state == RLK_NODE_OFF && is_wanted(n) && n->state == RLK_NODE_READY && now >= n->listener_again_ns)
    open_line(n, now);
}

void rlk_listener_event(struct rlk_node *n, int what, int64_t now)
{
  struct rlk_line *l = rlk_listener_line(n);
  if (l->state == RLK_NODE_CONNECTING) {
    int status = l->link.ops->finish(&l->link);
    if (status == 0)
      connected(l, now);
    else if (status != -EINPROGRESS)
      rlk_listener_failed(n, now);
    return;
  }
  if (what & RLK_WRITABLE)
    rlk_node_mark_dirty(n);
  if ((what & RLK_READABLE) && l->reader) {
    l->reads_left = 1;
    n->is_awake = 1;
  }
}

/* The set-up took too long, or no lock has waited for a while. */
void rlk_listener_timer(struct rlk_node *n, int64_t now)
{
  struct rlk_line *l = rlk_listener_line(n);
  if (l->state != RLK_NODE_READY)
    rlk_listener_failed(n, now);
  else if (now - n->listener_wanted_ns >= IDLE_NS)
    rlk_listener_close(n);
  else
    rlk_timer_set(&n->net->timers, &n->listener_timer, n->listener_wanted_ns + IDLE_NS);
}

static void ready(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  rlk_node_be(l, RLK_NODE_READY);
  n->listener_failures = 0;
  rlk_timer_set(&n->net->timers, &n->listener_timer, now + IDLE_NS);
}

/* Logging in once more, or pub/sub, is forbidden; or the server runs a script that does not end. */
static void refused(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  int passes = rlk_fault_of(l->reply.text.data) == RLK_FAULT_PAUSE;
  rlk_text_add(&text, "no wake-ups from this node, waiters poll instead: ");
  rlk_text_clean(&text, l->reply.text.data);
  rlk_text_mark_cut(&text);
  if (!n->listener_refused && !passes)
    rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index, words);
  n->listener_refused |= !passes;
  rlk_listener_failed(n, now);
}

int rlk_listener_reply(struct rlk_line *l, struct rlk_outcome *out, int64_t now)
{
  struct rlk_request r;
  if (l->requests.count > 0) {
    rlk_requests_take(&l->requests, &r);
    if (l->requests.count == 0 && l->reply.type == RLK_REPLY_ERROR)
      refused(l, now);
    else if (l->requests.count == 0)
      ready(l, now);
    return 0;
  }
  if (l->reply.type != RLK_REPLY_ARRAY || !l->reply.is_message)
    return 0;
  out->kind = RLK_OUTCOME_WOKEN;
  out->fault = RLK_FAULT_NONE;
  out->error = NULL;
  out->reply = &l->reply;
  out->request = (struct rlk_request){.ask = &rlk_row_nothing};
  return 1;
}

#include "admit.h"

#include <string.h>

#include "connect.h"
#include "listener.h"
#include "silence.h"
#include "state.h"

/* Still reported although the node was dropped since. */
#define KEPT_NEWS                                                                                                      \
  (UINT32_C(1) << RLK_OUTCOME_SERVER | UINT32_C(1) << RLK_OUTCOME_FORGOTTEN | UINT32_C(1) << RLK_OUTCOME_STEPPED)

int rlk_node_is_set_up(struct rlk_line *l)
{
  struct rlk_request request;
  while (l->is_fed && l->requests.count > 0 && rlk_line_oldest(l)->ask == &rlk_row_setup && rlk_line_parse(l)) {
    rlk_requests_take(&l->requests, &request);
    rlk_session_reply(l, &request, &l->reply);
  }
  return l->setup_done;
}

/* The facts of a set-up that is over count even if the connection is then discarded. */
static void keep_facts(struct rlk_line *l)
{
  if (!rlk_node_is_set_up(l))
    return;
  l->node->heard = l;
  rlk_node_tell(l->node, RLK_OUTCOME_SERVER);
}

static void shut_down(struct rlk_node *n, int again)
{
  if (n->second)
    keep_facts(n->second);
  rlk_silence_forget(n);
  rlk_listener_close(n);
  rlk_line_close(n->line);
  rlk_node_be(n->line, RLK_NODE_OFF);
  n->line->lost_again = again;
  n->fault = RLK_FAULT_NONE;
  n->news &= KEPT_NEWS;
  rlk_node_hurry(n);
}

/* A node that was refused long ago, in a client that has not run since: the reason may have passed. */
static int is_refusal_old(const struct rlk_node *n, int64_t now)
{
  return n->state == RLK_NODE_REFUSED && now - n->refused_ns > rlk_connect_timeout_ns(n) + RLK_BACKOFF_MAX_NS;
}

/* Nodes that were refused because their server voted as this node: it may vote as theirs now. */
static void free_shared(struct rlk_node *n, int64_t now)
{
  for (int i = 0; i < n->net->node_count; i++) {
    struct rlk_node *other = &n->net->nodes[i];
    if (!other->refused || other->refused_for != n)
      continue;
    other->refused = 0;
    if (other->state == RLK_NODE_OFF && n->net->state == RLK_NET_OPEN)
      rlk_timer_set(&n->net->timers, &other->timer, now);
  }
}

RLK_COLD void rlk_node_drop(struct rlk_node *n, int again, const struct rlk_reason *why, int64_t now)
{
  int was_ready = n->state == RLK_NODE_READY, was_refused = n->refused, is_open = n->net->state == RLK_NET_OPEN;
  struct rlk_reason reason = *why; /* it may be one of the connection that is about to go */
  if (was_ready && now - n->role_asked_ns >= RLK_BACKOFF_MAX_NS)
    n->failures = 0; /* it was closed while it was idle, and is made again at once (rule A.3.0) */
  again = again && n->failures == 0 && is_open; /* a server that closes right away is no reason to spin */
  if (is_refusal_old(n, now)) {
    n->refused = n->failures = 0;
    again = is_open;
  }
  shut_down(n, again);
  n->drops += (uint64_t)was_ready;
  if (!n->refused || was_ready)
    n->why = reason;
  if (is_open && (was_ready || (!was_refused && n->failures == 0))) /* leaving: no alarm */
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_DOWN, n->index, reason.words);
  if (is_open)
    rlk_timer_set(&n->net->timers, &n->timer, again ? now : now + rlk_connect_backoff_ns(n, n->failures));
  else
    rlk_timer_clear(&n->net->timers, &n->timer);
  n->failures++;
  if (was_ready)
    free_shared(n, now);
  if (!again)
    rlk_node_tell(n, RLK_OUTCOME_DOWN);
}

RLK_COLD void rlk_node_drop_because(struct rlk_node *n, enum rlk_why why, int64_t now)
{
  struct rlk_reason reason;
  rlk_because(&reason, why, NULL);
  rlk_node_drop(n, 0, &reason, now);
}

RLK_COLD void rlk_node_line_failed(struct rlk_line *l, int again, const struct rlk_reason *why, int64_t now)
{
  if (l == rlk_listener_line(l->node)) {
    rlk_listener_failed(l->node, now);
  } else if (l == l->node->second) {
    keep_facts(l);
    rlk_silence_second_failed(l->node, why, now);
  } else {
    rlk_node_drop(l->node, again, why, now);
  }
}

void rlk_node_refuse(struct rlk_node *n, const struct rlk_reason *why, int64_t now)
{
  if (!n->refused || strcmp(n->why.words, why->words) != 0)
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_REFUSED, n->index, why->words);
  n->refused = 1;
  n->used.family = 0;
  n->refused_for = n->line->shared;
  n->refused_ns = now;
  rlk_silence_forget(n);
  n->why = *why;
  rlk_node_be(n->line, RLK_NODE_REFUSED);
  rlk_timer_set(&n->net->timers, &n->timer, now + rlk_connect_timeout_ns(n));
  rlk_node_tell(n, RLK_OUTCOME_DOWN);
}

static void ready(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  rlk_event_add(&n->net->events, RLK_EVENT_NODE_UP, n->index, n->facts.version);
  rlk_node_be(l, RLK_NODE_READY);
  if (n->address_next > 0)
    n->used = n->addresses[n->address_next - 1];
  n->refused = 0;
  n->was_ever_ready = 1;
  n->refused_set_ns = n->wrote_ns = 0;
  n->session_proved = 1;
  rlk_because(&n->why, RLK_WHY_NONE, NULL);
  n->busy_until_ns = n->deletes_retry_ns = 0;
  n->look_again_ns = now + rlk_session_pause_ns(n);
  n->role_asked_ns = now;
  rlk_timer_clear(&n->net->timers, &n->timer);
  if (rlk_session_complete(l) != 0) {
    rlk_node_drop_because(n, RLK_WHY_MEMORY, now);
    return;
  }
  rlk_node_tell(n, RLK_OUTCOME_READY);
}

static void object(struct rlk_node *n, const struct rlk_reason *why, int64_t now)
{
  if (n->line->shared)
    rlk_node_tell(n, RLK_OUTCOME_SHARED);
  rlk_node_tell(n, RLK_OUTCOME_PAYABLE); /* it is ineligible to vote, but deletes */
  rlk_node_refuse(n, why, now);
}

void rlk_node_admit(struct rlk_line *l, enum rlk_session_verdict verdict, const struct rlk_reason *why, int64_t now)
{
  switch (verdict) {
  case RLK_SESSION_CONTINUE: break;
  case RLK_SESSION_READY: ready(l, now); break;
  case RLK_SESSION_DROP: rlk_node_line_failed(l, 0, why, now); break;
  case RLK_SESSION_REJECT:
    l->node->session_proved = 0;
    rlk_node_refuse(l->node, why, now);
    break;
  case RLK_SESSION_REFUSE: object(l->node, why, now); break;
  }
}

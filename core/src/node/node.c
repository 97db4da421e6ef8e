/* The states of a node: the outcomes of its connections, and when it is connected, refused or given up. */
#include "node.h"

#include <string.h>

#include "admit.h"
#include "connect.h"
#include "listener.h"
#include "silence.h"
#include "state.h"

#define MS RLK_NS_PER_MS
#define READS_MAX 16 /* of an event; the poller reports again if there is more */

/* ---- life ---- */

void rlk_node_init(struct rlk_node *n, struct rlk_net *net, int index)
{
  n->net = net;
  n->index = index;
  n->timer.kind = RLK_TIMER_NODE;
  n->line = &n->lines[0];
  n->listener_timer.kind = RLK_TIMER_LISTENER;
  for (int i = 0; i < RLK_NODE_LINES; i++)
    rlk_line_init(&n->lines[i], n);
}

void rlk_node_free(struct rlk_node *n)
{
  for (int i = 0; i < RLK_NODE_LINES; i++)
    rlk_line_free(&n->lines[i]);
  rlk_resolve_drop(n->resolve);
  rlk_tls_forget(&n->tls);
  rlk_url_free(&n->url);
}

/* Nothing is written, and nothing that is shared with the parent is changed. */
void rlk_node_abandon(struct rlk_node *n)
{
  for (int i = 0; i < RLK_NODE_LINES; i++) {
    rlk_line_abandon(&n->lines[i]);
    rlk_node_be(&n->lines[i], RLK_NODE_OFF);
  }
  rlk_silence_forget(n);
  rlk_listener_close(n);
  n->listener_failures = 0;
  n->listener_again_ns = 0;
  rlk_resolve_forked(n->resolve);
  n->resolve = NULL;
  n->dirty = 0;
  n->failures = 0;
  n->news = 0;
  n->fault = RLK_FAULT_NONE;
  rlk_timer_set(&n->net->timers, &n->timer, 0);
}

/* ---- whether a node can be asked ---- */

/* The answer time-out of this node: a few of its round trips (rule A.2). */
int64_t rlk_node_patience_ns(const struct rlk_node *n, const struct rlk_terms *terms)
{
  return rlk_smaller(rlk_larger(4 * n->rtt_ns, terms->patience_min_ns), terms->patience_max_ns);
}

int rlk_node_is_late(const struct rlk_node *n, int64_t node_timeout_ns, int64_t now)
{
  const struct rlk_request *oldest = rlk_line_oldest(n->line);
  return oldest && now - oldest->sent_ns >= node_timeout_ns;
}

int rlk_node_can_ask(const struct rlk_node *n, int64_t node_timeout_ns, int64_t now)
{
  uint32_t limit = RLK_REQUESTS_MAX;
  if (n->state == RLK_NODE_RESOLVING || n->state == RLK_NODE_CONNECTING || n->state == RLK_NODE_SETUP)
    return n->failures == 0 ? RLK_WAITING : RLK_RETRYING;
  if (n->refused && n->state != RLK_NODE_READY)
    return RLK_REFUSED;
  if (n->state != RLK_NODE_READY)
    return RLK_DOWN;
  if (n->silent_ns) /* no more is added to its backlog; the connection that speaks first is asked */
    return n->second && n->second_failures == 0 ? RLK_WAITING : RLK_DOWN;
  if (now < n->busy_until_ns)
    return RLK_ERROR;
  if (rlk_node_is_late(n, node_timeout_ns, now))
    limit = RLK_REQUESTS_LATE_MAX;
  return n->line->requests.count < limit ? RLK_ASKED : RLK_OVERLOADED;
}

void rlk_node_retry_deletes(struct rlk_node *n, int64_t pause_ns, int64_t now)
{
  if (n->state != RLK_NODE_READY)
    return;
  if (!n->deletes_retry_ns || now + pause_ns < n->deletes_retry_ns)
    n->deletes_retry_ns = now + pause_ns;
  rlk_timer_set(&n->net->timers, &n->timer, n->deletes_retry_ns);
}

/* ---- outcomes ---- */

/* A single quick answer proves that the node is quick; slow ones prove little, and those to requests that were in
 * flight together no more than one. */
static void note_quickest(struct rlk_node *n, int64_t sent_ns, int64_t now)
{
  int64_t more_ns = now - sent_ns - n->quick_rtt_ns;
  if (n->quick_rtt_ns && more_ns > 0 && sent_ns < n->quick_noted_ns)
    return;
  n->quick_rtt_ns += n->quick_rtt_ns && more_ns > 0 ? more_ns / 16 : more_ns;
  n->quick_noted_ns = now;
}

int rlk_node_take_lost(struct rlk_node *n, struct rlk_request *request, int *again)
{
  for (int i = 0; i < 2; i++) {
    struct rlk_line *l = &n->lines[i];
    if (l->state != RLK_NODE_OFF || l->requests.count == 0)
      continue;
    rlk_requests_take(&l->requests, request);
    *again = l->lost_again;
    return 1;
  }
  return 0;
}

static int next_lost(struct rlk_node *n, struct rlk_outcome *out)
{
  int again;
  while (rlk_node_take_lost(n, &out->request, &again)) {
    if (!out->request.claim && !out->request.ask->is_vote)
      continue;
    out->kind = RLK_OUTCOME_ANSWER;
    out->vote = again ? RLK_WAITING : RLK_DROPPED;
    out->fault = RLK_FAULT_LOST;
    out->error = NULL;
    return 1;
  }
  return 0;
}

static int next_news(struct rlk_node *n, struct rlk_outcome *out)
{
  int kind = RLK_OUTCOME_SET_UP;
  if (!n->news)
    return 0;
  while (!(n->news >> kind & 1))
    kind++;
  n->news &= ~(UINT32_C(1) << kind);
  out->kind = (enum rlk_outcome_kind)kind;
  out->reason = n->forgotten;
  out->step_ns = n->stepped_ns;
  if (kind == RLK_OUTCOME_STEPPED)
    n->stepped_ns = 0;
  return 1;
}

/* The effect of the last reply on the node itself, after its request has been served. */
static void react(struct rlk_node *n, int64_t now)
{
  enum rlk_fault fault = n->fault;
  struct rlk_reason why;
  n->fault = RLK_FAULT_NONE;
  if (fault != RLK_FAULT_MISFIT && n->state == RLK_NODE_REFUSED)
    return; /* the reason is known; its connection is only cleaned up on */
  if (fault == RLK_FAULT_CONFIG && n->state == RLK_NODE_SETUP)
    return; /* it came before a login that is sent again */
  switch (fault) {
  case RLK_FAULT_MISFIT:
    rlk_because_of(&why, RLK_WHY_MISFIT, n->error);
    rlk_node_drop(n, 0, &why, now);
    break;
  case RLK_FAULT_ROLE:
  case RLK_FAULT_LOADING: rlk_node_end_line(n->line, rlk_why_of(n->error), n->error); break;
  case RLK_FAULT_CONFIG:
    rlk_because_of(&why, rlk_why_of(n->error), n->error);
    rlk_node_refuse(n, &why, now);
    break;
  case RLK_FAULT_PAUSE: n->busy_until_ns = now + RLK_PAUSE_NS; break;
  default: break;
  }
}

/* Its last reply has come. */
static void end_setup(struct rlk_line *l, int64_t now)
{
  struct rlk_reason why;
  if (l == l->node->second && !l->setup_again) {
    rlk_silence_replace(l); /* then it is reported; requests in flight on the old one end first */
    return;
  }
  l->setup_done = 0;
  if (!l->setup_again)
    rlk_node_tell(l->node, RLK_OUTCOME_SET_UP);
  else if (rlk_session_begin(l, &why))
    rlk_node_line_failed(l, 0, &why, now);
}

/* The work of the line beside reading: 1 if there was any. */
static int settle_line(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  int is_answered = l == n->line && n->state == RLK_NODE_REFUSED && l->requests.count == 0;
  if (is_answered || (l->end.why && !l->is_fed)) {
    rlk_node_line_failed(l, 0, l->end.why ? &l->end : &n->why, now);
    return 1;
  }
  if (!l->setup_done || (l == n->second && (n->line->is_fed || n->line->reads_left)))
    return 0; /* the old connection is read first: it may have spoken meanwhile */
  end_setup(l, now);
  return 1;
}

/* The work before reading: 1 with an outcome. */
RLK_COLD static int next_urgent(struct rlk_node *n, struct rlk_outcome *out, int64_t now)
{
  int is_waiting;
  do {
    if (n->fault)
      react(n, now);
    if (next_lost(n, out) || next_news(n, out))
      return 1;
  } while (settle_line(n->line, now) || (n->second && settle_line(n->second, now)));
  is_waiting = n->line->end.why || n->state == RLK_NODE_REFUSED || n->second;
  n->is_urgent = is_waiting;
  return 0;
}

RLK_COLD static void note_fault(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_text text = rlk_text_in(n->misfit, sizeof n->misfit);
  rlk_text_add(&text, "an unexpected reply to ");
  rlk_text_add(&text, out->request.ask->name);
  out->error = out->fault == RLK_FAULT_MISFIT ? n->misfit : out->reply->text.data;
  n->fault = out->fault;
  n->error = out->error;
  rlk_node_hurry(n);
}

/* Reasons of the server as a whole; others concern the key alone. */
static int refuses_all(enum rlk_fault fault, const char *text)
{
  return fault == RLK_FAULT_FULL || fault == RLK_FAULT_UNWRITABLE || fault == RLK_FAULT_UNKNOWN ||
         (fault == RLK_FAULT_PERMISSION && !strstr(text, " key"));
}

RLK_COLD static void note_refused_set(struct rlk_node *n, struct rlk_meaning meaning, const char *text, int64_t now)
{
  if (!refuses_all((enum rlk_fault)meaning.fault, text))
    return;
  n->refused_set_ns = now;
  n->wrote_ns = 0;
  rlk_because_of(&n->refused_set_why, rlk_why_of(text), text);
}

/* A reply to SET shows whether it accepts writes. A script that finds the lock taken writes nothing. */
static void note_set(struct rlk_line *l, struct rlk_meaning meaning)
{
  if (l->reply.type == RLK_REPLY_ERROR) {
    note_refused_set(l->node, meaning, l->reply.text.data, l->read_ns);
  } else if (meaning.vote == RLK_GRANTED || l->reply.type == RLK_REPLY_NIL) {
    l->node->wrote_ns = l->read_ns;
    l->node->refused_set_ns = 0;
  }
}

static struct rlk_meaning proof(const struct rlk_line *l, uint8_t role, struct rlk_meaning meaning,
                                struct rlk_outcome *out)
{
  if (l->state == RLK_NODE_SETUP) /* it had joined the set-up */
    return (struct rlk_meaning){RLK_NOT_ASKED, RLK_FAULT_NONE};
  if (l->state == RLK_NODE_REFUSED && role == RLK_ASK_MARKER) /* it has no vote, but its deletes count */
    return (struct rlk_meaning){RLK_REFUSED, RLK_FAULT_NONE};
  out->kind = RLK_OUTCOME_PROOF;
  return meaning;
}

static void answer(struct rlk_line *l, struct rlk_outcome *out)
{
  struct rlk_node *n = l->node;
  struct rlk_meaning meaning = rlk_meaning_of(&out->request, &l->reply);
  uint8_t role = out->request.ask->role;
  out->kind = RLK_OUTCOME_ANSWER;
  if (role == RLK_ASK_MARKER || role == RLK_ASK_CLOCK)
    meaning = proof(l, role, meaning, out);
  if (l->reply.type != RLK_REPLY_ERROR)
    n->failures = 0;
  if (role == RLK_ASK_TAKE || role == RLK_ASK_QUICK)
    note_quickest(n, out->request.sent_ns, l->read_ns);
  if (role == RLK_ASK_TAKE) {
    int64_t sample_ns = l->read_ns - out->request.sent_ns;
    n->rtt_ns += n->rtt_ns ? (sample_ns - n->rtt_ns) / 8 : sample_ns;
  }
  if (role == RLK_ASK_TAKE || meaning.fault == RLK_FAULT_UNWRITABLE)
    note_set(l, meaning);
  out->vote = meaning.vote;
  out->fault = (enum rlk_fault)meaning.fault;
  out->error = NULL;
  out->reply = &l->reply;
  if (meaning.fault)
    note_fault(n, out);
}

RLK_COLD static void reply_to_nothing(struct rlk_line *l, int64_t now)
{
  if (l->reply.type == RLK_REPLY_ERROR)                         /* "-ERR max number of clients reached" comes unasked */
    rlk_node_end_line(l, rlk_why_of(l->reply.text.data), NULL); /* its text may repeat what the login had */
  else
    rlk_node_line_failed(l, 0, &(struct rlk_reason){RLK_WHY_MISFIT, "a reply to no request"}, now);
}

/* A reply to the node's own request: 1 with an outcome. */
RLK_COLD static int reply_to_node(struct rlk_line *l, struct rlk_outcome *out)
{
  if (out->request.ask->role == RLK_ASK_LOOK) {
    if (out->request.of.step == RLK_LOOK_INFO && l->reply.type == RLK_REPLY_STRING)
      rlk_session_read_info(l, l->reply.text.data);
    out->kind = RLK_OUTCOME_LOOKED;
    return 1;
  }
  rlk_session_reply(l, &out->request, &l->reply);
  note_quickest(l->node, out->request.sent_ns, l->read_ns);
  if (l->setup_done)
    rlk_node_hurry(l->node);
  if (l->setup_done && l == l->node->second)
    l->node->line->reads_left = READS_MAX;
  return 0;
}

/* A reply that was parsed: 1 with an outcome. */
static int take_reply(struct rlk_line *l, struct rlk_outcome *out, int64_t now)
{
  if (l == rlk_listener_line(l->node))
    return rlk_listener_reply(l, out, now);
  if (l->requests.count == 0) {
    reply_to_nothing(l, now);
    return 0;
  }
  rlk_requests_take(&l->requests, &out->request);
  if (out->request.ask->role >= RLK_ASK_SETUP)
    return reply_to_node(l, out);
  answer(l, out);
  return 1;
}

/* Answers from before another server took its place, or before it became a replica, do not count. */
static void speak_again(struct rlk_node *n)
{
  struct rlk_line *second = n->second;
  enum rlk_why why = second && rlk_node_is_set_up(second) ? rlk_session_change(second) : RLK_WHY_NONE;
  struct rlk_reason reason;
  if (!why) {
    rlk_silence_broken(n);
    return;
  }
  rlk_because(&reason, why, NULL);
  rlk_node_line_failed(n->line, 1, &reason, n->line->read_ns);
}

static void read_more(struct rlk_line *l)
{
  struct rlk_node *n = l->node;
  struct rlk_reason why;
  switch (rlk_line_read(l, &why)) {
  case RLK_LINE_BYTES:
    if (n->silent_ns && l == n->line)
      speak_again(n);
    break;
  case RLK_LINE_BROKEN:
    if (rlk_session_error(l)) /* the server may have said it before it closed */
      why = *rlk_session_error(l);
    rlk_node_line_failed(l, l->state == RLK_NODE_READY, &why, l->read_ns);
    break;
  default: break;
  }
}

RLK_COLD static void no_reply(struct rlk_line *l, int64_t now)
{
  struct rlk_reason why;
  if (rlk_line_unparsed(l, &why))
    rlk_node_line_failed(l, 0, &why, now);
}

/* The next reply of the bytes read: 1 with an outcome. */
static int next_reply(struct rlk_line *l, struct rlk_outcome *out, int64_t now)
{
  if (rlk_line_parse(l))
    return take_reply(l, out, now);
  no_reply(l, now);
  return 0;
}

int rlk_node_next(struct rlk_node *n, struct rlk_outcome *out, int64_t now)
{
  struct rlk_line *l = n->line;
  while (n->is_awake) {
    now = rlk_larger(now, l->read_ns);
    out->now_ns = now;
    if (n->is_urgent && next_urgent(n, out, now))
      return 1;
    l = n->line;
    if (!l->is_fed && !l->reads_left && n->second)
      l = n->second;
    if (!l->is_fed && !l->reads_left)
      l = rlk_listener_line(n);
    if (l->is_fed) {
      if (next_reply(l, out, now)) {
        n->is_awake = n->is_urgent || l->is_fed || l->reads_left || n->second || rlk_listener_line(n)->reads_left;
        return 1;
      }
    } else if (l->reads_left) {
      read_more(l);
    } else {
      n->is_awake = 0;
    }
  }
  return 0;
}

/* ---- events and timers ---- */

static void flush(struct rlk_line *l, int64_t now)
{
  struct rlk_reason why;
  if (rlk_line_flush(l, &why))
    rlk_node_line_failed(l, l->state == RLK_NODE_READY, &why, now);
}

void rlk_node_flush(struct rlk_node *n, int64_t now)
{
  if (n->second)
    flush(n->second, now);
  if (rlk_listener_line(n)->state == RLK_NODE_SETUP)
    flush(rlk_listener_line(n), now);
  flush(n->line, now);
  if (n->state == RLK_NODE_READY)
    rlk_silence_flushed(n, now);
}

/* Getting a connection goes on, or has failed. */
static void check(struct rlk_line *l, enum rlk_why failed, const struct rlk_reason *why, int64_t now)
{
  if (failed)
    rlk_node_line_failed(l, 0, why, now);
}

void rlk_node_event(struct rlk_node *n, uint32_t generation, int what, int64_t now)
{
  struct rlk_reason why;
  struct rlk_line *l = n->second && n->second->link.generation == generation ? n->second : n->line;
  if (rlk_listener_line(n)->link.fd >= 0 && rlk_listener_line(n)->link.generation == generation) {
    rlk_listener_event(n, what, now);
    return;
  }
  if (l->link.generation != generation || l->link.fd < 0)
    return; /* of an earlier connection */
  if (l->state == RLK_NODE_CONNECTING) {
    check(l, rlk_connect_finish(l, &why, now), &why, now);
    return;
  }
  if (what & RLK_WRITABLE)
    flush(l, now);
  if ((what & RLK_READABLE) && l->reader) {
    l->reads_left = READS_MAX;
    n->is_awake = 1;
  }
}

void rlk_node_connect(struct rlk_node *n, int64_t now)
{
  struct rlk_reason why;
  check(n->line, rlk_connect(n->line, &why, now), &why, now);
}

void rlk_node_look_at_name(struct rlk_node *n, int64_t now)
{
  struct rlk_line *l = rlk_connect_resolving(n);
  struct rlk_reason why;
  if (n->resolve && l)
    check(l, rlk_connect_look_at_name(l, &why, now), &why, now);
}

void rlk_node_close(struct rlk_node *n, int64_t now)
{
  rlk_listener_close(n);
  if (n->state != RLK_NODE_OFF)
    rlk_node_drop_because(n, RLK_WHY_LEAVING, now);
}

static void drop_timed_out(struct rlk_node *n, int64_t now)
{
  struct rlk_reason why;
  rlk_connect_timed_out(n->line, &why);
  rlk_node_drop(n, 0, &why, now);
}

void rlk_node_timer(struct rlk_node *n, int64_t now)
{
  struct rlk_reason why;
  switch (n->state) {
  case RLK_NODE_OFF:
    if (n->net->state == RLK_NET_OPEN)
      rlk_node_connect(n, now);
    break;
  case RLK_NODE_RESOLVING:
    rlk_node_look_at_name(n, now);
    if (n->state == RLK_NODE_RESOLVING)
      drop_timed_out(n, now);
    break;
  case RLK_NODE_CONNECTING:
    rlk_connect_timed_out(n->line, &why);
    check(n->line, rlk_connect_next_address(n->line, &why, now), &why, now);
    break;
  case RLK_NODE_SETUP: drop_timed_out(n, now); break;
  case RLK_NODE_REFUSED: rlk_node_drop(n, 0, &n->why, now); break;
  case RLK_NODE_READY:
    if (rlk_silence_timer(n, &why, now))
      rlk_node_drop(n, 1, &why, now);
    break;
  }
}

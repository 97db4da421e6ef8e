#include "guard.h"

#include <string.h>

#include "../base/mutant.h"
#include "../rules/quorum.h"
#include "../node/state.h"

#define MS RLK_NS_PER_MS

void rlk_guard_init(struct rlk_net *net)
{
  struct rlk_text key = rlk_text_in(net->marker_key, sizeof net->marker_key);
  rlk_text_format(&key, "$%zu\r\n%s%s\r\n", strlen(RLK_STRING(net, KEY_PREFIX)) + sizeof RLK_MARKER_NAME - 1,
                  RLK_STRING(net, KEY_PREFIX), RLK_MARKER_NAME);
  net->marker_key_size = strlen(net->marker_key);
  for (int i = 0; i < net->node_count; i++)
    net->nodes[i].voter->ttl_limit_ms = RLK_INT(&net->options, MAX_TTL_MS);
}

/* ---- the findings of a set-up ---- */

static struct rlk_marker new_marker(const struct rlk_line *l)
{
  struct rlk_net *net = l->node->net;
  struct rlk_marker marker = {
      .nodes = net->node_count, .database = l->node->url.database, .max_ttl_ms = RLK_INT(&net->options, MAX_TTL_MS)};
  struct rlk_text nonce = rlk_text_in(marker.nonce, sizeof marker.nonce);
  struct rlk_text cluster = rlk_text_in(marker.cluster, sizeof marker.cluster);
  memcpy(marker.run_id, l->facts.run_id, sizeof marker.run_id);
  memcpy(marker.replid2, l->facts.replid2[0] ? l->facts.replid2 : RLK_REPLID2_NONE, sizeof marker.replid2);
  rlk_text_format(&nonce, "%016llx", (unsigned long long)rlk_random(net));
  rlk_text_add(&cluster, RLK_STRING(net, CLUSTER));
  return marker;
}

/* Keys that were written since are gone with a marker that was followed by another one. */
static int is_superseded(const struct rlk_voter *v, const struct rlk_marker *m)
{
  for (int i = 1; i < RLK_NONCES; i++)
    if (strcmp(v->nonces[i], m->nonce) == 0)
      return 1;
  return 0;
}

static void note_nonce(struct rlk_voter *v)
{
  if (strcmp(v->nonces[0], v->mark.nonce) == 0)
    return;
  memmove(v->nonces[1], v->nonces[0], sizeof v->nonces - sizeof v->nonces[0]);
  memcpy(v->nonces[0], v->mark.nonce, sizeof v->nonces[0]);
}

static struct rlk_sight sight_of(const struct rlk_line *l)
{
  return (struct rlk_sight){l->marker, l->facts.run_id, l->facts.replid2, l->node->url.database,
                            l->time.server_us / 1000};
}

static enum rlk_finding find(const struct rlk_line *l, const struct rlk_sight *sight)
{
  struct rlk_voter *v = l->node->voter;
  struct rlk_common common = rlk_plan_common(l->node->net);
  enum rlk_finding finding = rlk_find(sight, &common, &v->mark);
  if (v->mark.nodes && is_superseded(v, &v->mark) && !RLK_MUTANT(SUPERSEDED_MARKER)) {
    v->mark = (struct rlk_marker){.nodes = 0};
    return RLK_FOUND_NONE;
  }
  return finding;
}

enum rlk_why rlk_guard_finding(const struct rlk_node *n, struct rlk_reason *why)
{
  const struct rlk_net *net = n->net;
  char detail[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(detail, sizeof detail);
  switch (n->voter->finding) {
  case RLK_FOUND_LARGER:
    rlk_text_duration(&text, n->voter->mark.max_ttl_ms);
    rlk_text_add(&text, ", and max_ttl_ms is ");
    rlk_text_duration(&text, RLK_INT(&net->options, MAX_TTL_MS));
    rlk_text_add(&text, " here");
    return rlk_because(why, RLK_WHY_ALLOWS_MORE, detail);
  case RLK_FOUND_OTHER_NODES:
    rlk_text_format(&text, "%d", n->voter->mark.nodes);
    return rlk_because(why, RLK_WHY_OTHER_NODES, detail);
  case RLK_FOUND_OTHER_CLUSTER: return rlk_because(why, RLK_WHY_OTHER_CLUSTER, n->voter->mark.cluster);
  case RLK_FOUND_FOREIGN:
    rlk_text_format(&text, "%s%s", RLK_STRING(net, KEY_PREFIX), RLK_MARKER_NAME);
    return rlk_because(why, RLK_WHY_FOREIGN_MARKER, detail);
  default: return RLK_WHY_NONE;
  }
}

static void set_finding(struct rlk_node *n, enum rlk_finding finding)
{
  enum rlk_finding before = n->voter->finding;
  struct rlk_reason why;
  n->voter->finding = finding;
  if (finding == RLK_FOUND_LARGER) /* no lease begins there */
    n->voter->ttl_limit_ms = 0;
  else if (finding == RLK_FOUND_OURS || finding == RLK_FOUND_SMALLER)
    n->voter->ttl_limit_ms = n->voter->mark.max_ttl_ms;
  if (finding == RLK_FOUND_LARGER && before != RLK_FOUND_LARGER && rlk_guard_finding(n, &why))
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_REFUSED, n->index, why.words);
}

enum rlk_why rlk_guard_limit(const struct rlk_node *n, int64_t ttl_ms, struct rlk_reason *why)
{
  int64_t max_ttl_ms = RLK_INT(&n->net->options, MAX_TTL_MS);
  char detail[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(detail, sizeof detail);
  if (n->voter->finding == RLK_FOUND_LARGER)
    return rlk_guard_finding(n, why);
  rlk_text_duration(&text, n->voter->ttl_limit_ms);
  rlk_text_format(&text, ": redlock bootstrap --replace, when all programs have max_ttl_ms = %lld",
                  (long long)(ttl_ms > max_ttl_ms ? ttl_ms : max_ttl_ms));
  return rlk_because(why, RLK_WHY_ALLOWS_LESS, detail);
}

/* ---- writing ---- */

static enum rlk_session_verdict write_text(struct rlk_line *l, const struct rlk_marker *marker, const char *since,
                                           struct rlk_reason *why)
{
  char words[2][RLK_MARKER_SIZE];
  struct rlk_text head = rlk_text_in(words[0], sizeof words[0]), tail = rlk_text_in(words[1], sizeof words[1]);
  rlk_marker_head(marker, &head);
  rlk_marker_tail(marker, &tail);
  rlk_because(why, RLK_WHY_MEMORY, NULL);
  return rlk_session_register(l, words[0], since, words[1]) == 0 ? RLK_SESSION_CONTINUE : RLK_SESSION_DROP;
}

static enum rlk_session_verdict write_new(struct rlk_line *l, struct rlk_reason *why)
{
  struct rlk_marker marker = new_marker(l);
  if (!l->is_registered)
    return write_text(l, &marker, "", why);
  rlk_because(why, RLK_WHY_MARKER_RACE, NULL);
  return RLK_SESSION_DROP;
}

/* The marker that an operator wants, unless the server shows another one than the operator was shown. */
static struct rlk_planned *planned_for(const struct rlk_line *l, const struct rlk_sight *sight)
{
  struct rlk_planned *planned = l->node->net->planned ? &l->node->net->planned[l->node->index] : NULL;
  return planned && !l->is_registered && rlk_plan_stands(planned, sight) ? planned : NULL;
}

static enum rlk_session_verdict write_planned(struct rlk_line *l, struct rlk_planned *planned, struct rlk_reason *why)
{
  struct rlk_marker marker = planned->wanted.run_id[0] ? planned->wanted : new_marker(l);
  struct rlk_text text = rlk_text_in(planned->written, sizeof planned->written);
  char since[24];
  struct rlk_text number = rlk_text_in(since, sizeof since);
  rlk_text_format(&number, "%lld", (long long)planned->wanted.since_ms);
  rlk_marker_head(&marker, &text);
  rlk_text_add(&text, since);
  rlk_marker_tail(&marker, &text);
  return write_text(l, &marker, since, why);
}

/* ---- judging ---- */

/* Has a SET with a TTL above the marker's number joined the set-up? */
static int has_joined_above(const struct rlk_line *l, int64_t limit_ms)
{
  for (uint32_t i = 0; i < l->requests.count; i++) {
    const struct rlk_request *r = rlk_request_at(&l->requests, i);
    if (r->ask->role == RLK_ASK_TAKE && r->ttl_ms > limit_ms)
      return 1;
  }
  return 0;
}

static enum rlk_session_verdict take(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *n = l->node;
  note_nonce(n->voter);
  rlk_guard_quarantine(n, now);
  if (n->voter->finding == RLK_FOUND_OURS || !has_joined_above(l, n->voter->ttl_limit_ms))
    return RLK_SESSION_READY;
  rlk_because(why, RLK_WHY_SHORTER_LEASES, NULL);
  return RLK_SESSION_DROP;
}

/* An operator has said that no lock is live since this process last read the marker: the loss that it has seen is over.
 * When a clock was stepped is not known so well. */
static void heed_operator(struct rlk_node *n, const char *text)
{
  if (n->voter->mark.nodes && !n->voter->mark.since_ms && !rlk_guard_is_stepped(n->voter) &&
      strcmp(n->voter->marker, text) != 0)
    n->voter->changed_ns = 0;
}

enum rlk_session_verdict rlk_guard_judge(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *n = l->node;
  struct rlk_sight sight = sight_of(l);
  struct rlk_planned *planned = planned_for(l, &sight);
  if (!rlk_net_has_markers(n->net))
    return RLK_SESSION_READY;
  if (!l->time.read_ns) {
    rlk_because(why, RLK_WHY_NO_TIME, NULL);
    return RLK_SESSION_DROP;
  }
  rlk_clocks_note(n, &l->time);
  if (planned)
    return write_planned(l, planned, why);
  set_finding(n, find(l, &sight));
  heed_operator(n, l->marker);
  memcpy(n->voter->marker, l->marker, sizeof n->voter->marker);
  n->voter->marker_read_ns = now;
  n->voter->since_ns = now - (l->time.server_us / 1000 - n->voter->mark.since_ms) * MS;
  switch (n->voter->finding) {
  case RLK_FOUND_OURS:
  case RLK_FOUND_SMALLER:
  case RLK_FOUND_LARGER: return take(l, why, now);
  case RLK_FOUND_NONE:
    if (!n->net->looks)
      return write_new(l, why);
    n->voter->quarantined_until_ns = RLK_NEVER;
    return RLK_SESSION_READY;
  default: rlk_guard_finding(n, why); return RLK_SESSION_REFUSE;
  }
}

/* The observation of this process. If it has not seen the server with its keys for longer than any lease, what it has
 * just seen says nothing of when they were lost: the marker alone does, as for a process that has just started. */
static void note_change(struct rlk_node *n)
{
  int64_t now = rlk_now(n->net);
  if (now - n->voter->marker_read_ns >= rlk_guard_time_ns(n->net) && !RLK_MUTANT(IDLE_OWN_LOOK))
    return;
  n->voter->changed_ns = now;
  n->voter->step = (struct rlk_step){0, 0, 0, 0};
}

void rlk_guard_note_loss(struct rlk_node *n)
{
  note_change(n);
  n->voter->quarantined_until_ns = RLK_MUTANT(NO_GUARD) ? 0 : RLK_NEVER;
}

int rlk_guard_note_restart(struct rlk_node *n)
{
  note_change(n);
  if (RLK_INT(&n->net->options, GUARD) == RLK_GUARD_OFF)
    return 0;
  if (!n->voter->has_voted)
    return 1; /* votes that count there were granted by the server before */
  if (n->voter->former_until_ns > rlk_now(n->net))
    return 0; /* only one former server is remembered, lest it vote under another address */
  memcpy(n->voter->former_run_id, n->run_id, sizeof n->voter->former_run_id);
  n->voter->former_until_ns = n->voter->leases_until_ns;
  return 1;
}

/* ---- replies ---- */

/* An operator has changed it. The connection stays: a short lease might end before another one is ready. */
static void take_change(struct rlk_node *n, const char *text, const struct rlk_marker *m, int64_t now)
{
  if (m->since_ms != n->voter->mark.since_ms) { /* no lock is live: whatever this process has seen is over */
    n->voter->changed_ns = 0;
    n->voter->step = (struct rlk_step){0, 0, 0, 0};
  }
  n->voter->mark = *m;
  set_finding(n, rlk_find_number(&n->voter->mark, RLK_INT(&n->net->options, MAX_TTL_MS)));
  memcpy(n->voter->marker, text, strlen(text) + 1);
  rlk_guard_quarantine(n, now);
}

static int has_marker(struct rlk_node *n, const struct rlk_reply *reply, int64_t now)
{
  struct rlk_marker m;
  if (reply->type != RLK_REPLY_STRING || reply->text.end >= sizeof n->voter->marker)
    return 0;
  if (strcmp(reply->text.data, n->voter->marker) == 0)
    return 1;
  if (!rlk_marker_read(reply->text.data, &m) || !rlk_marker_is_same(&n->voter->mark, &m))
    return 0;
  take_change(n, reply->text.data, &m, now);
  return 1;
}

/* A marker that is another one now, or none: the server has lost keys. The set-up of a new connection finds out. 1 if
 * it is the same one. */
static int note_marker(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  if (RLK_MUTANT(MARKER_NOT_CHECKED))
    return 1;
  if (has_marker(n, &l->reply, now)) {
    n->voter->marker_read_ns = now;
    return 1;
  }
  rlk_guard_note_loss(n);
  rlk_node_end_line(l, RLK_WHY_MARKER_CHANGED, NULL);
  return RLK_MUTANT(NO_GUARD);
}

void rlk_guard_looked(struct rlk_line *l, int64_t now)
{
  int is_none = l->reply.type == RLK_REPLY_NIL && !l->node->voter->marker[0];
  if (l->reply.type != RLK_REPLY_ERROR && !is_none && !note_marker(l, now))
    return; /* the set-up of a new connection reports it */
  rlk_node_tell(l->node, RLK_OUTCOME_SPOKE);
}

static struct rlk_meaning marker_meaning(struct rlk_line *l, const struct rlk_outcome *out)
{
  struct rlk_meaning meaning = {(uint8_t)out->vote, (uint8_t)out->fault};
  if (rlk_fault_forbids(meaning.fault)) { /* the set-up of a new connection reports it */
    rlk_node_end_line(l, rlk_why_of(l->reply.text.data), l->reply.text.data);
    return (struct rlk_meaning){RLK_DROPPED, RLK_FAULT_NONE};
  }
  if (l->reply.type == RLK_REPLY_ERROR && meaning.fault != RLK_FAULT_TYPE) /* a key of that type is no marker */
    return meaning;
  return (struct rlk_meaning){note_marker(l, out->now_ns) ? RLK_GRANTED : RLK_QUARANTINED, RLK_FAULT_NONE};
}

/* A clock that cannot be read any more: the same. */
static void note_time(struct rlk_line *l, const struct rlk_request *request, int fault)
{
  struct rlk_clock_sample sample = {0, request->sent_ns, l->read_ns};
  int was_waiting = rlk_guard_waits(l->node, l->read_ns);
  if (rlk_reply_is_time(&l->reply, &sample.server_us))
    rlk_clocks_note(l->node, &sample);
  else if (rlk_fault_forbids(fault))
    rlk_node_end_line(l, rlk_why_of(l->reply.text.data), l->reply.text.data);
  if (!was_waiting && rlk_guard_waits(l->node, l->read_ns))
    rlk_guard_tell(l->node, l->read_ns);
}

int64_t rlk_guard_cap_ms(const struct rlk_node *n, int64_t ttl_ms)
{
  int is_capped = n->voter->finding == RLK_FOUND_SMALLER && ttl_ms > n->voter->ttl_limit_ms;
  return is_capped && !RLK_MUTANT(EXTENDED_ABOVE) ? n->voter->ttl_limit_ms : ttl_ms;
}

int rlk_guard_vote(const struct rlk_node *n, int64_t ttl_ms, int64_t now)
{
  if (rlk_guard_waits(n, now))
    return RLK_QUARANTINED;
  return ttl_ms > n->voter->ttl_limit_ms && !RLK_MUTANT(NUMBER_IGNORED) ? RLK_REFUSED : RLK_GRANTED;
}

void rlk_guard_proof(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_meaning meaning;
  out->kind = RLK_OUTCOME_ANSWER;
  if (out->request.ask->role == RLK_ASK_CLOCK) {
    note_time(n->line, &out->request, out->fault);
    return;
  }
  meaning = marker_meaning(n->line, out);
  out->vote = meaning.vote;
  out->fault = (enum rlk_fault)meaning.fault;
  if (!meaning.fault)
    out->error = NULL;
}

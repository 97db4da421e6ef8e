#include "guard.h"

#include <string.h>
#include <time.h>

#include "../base/mutant.h"
#include "../rules/quorum.h"
#include "growth.h"

#define MS RLK_NS_PER_MS
#define STEP_MIN_NS (50 * MS)
#define AHEAD_NS (1000 * MS)
#define NO_MARKER "quarantined: it is new or has lost its keys"
#define UNSURE_NS (500 * MS) /* a clock that took longer to read says too little */

void rlk_guard_init(struct rlk_net *net)
{
  struct rlk_text key = rlk_text_in(net->marker_key, sizeof net->marker_key);
  rlk_text_format(&key, "$%zu\r\n%s%s\r\n", strlen(RLK_STRING(net, KEY_PREFIX)) + sizeof RLK_MARKER_NAME - 1,
                  RLK_STRING(net, KEY_PREFIX), RLK_MARKER_NAME);
  net->marker_key_size = strlen(net->marker_key);
  for (int i = 0; i < net->node_count; i++)
    net->nodes[i].ttl_limit_ms = rlk_guard_has_markers(net) ? rlk_growth_floor_ms(net) : RLK_NEVER;
}

/* Every lease that it may have granted is over after that. */
static int64_t guard_time_ns(const struct rlk_node *n, int64_t max_ttl_ms)
{
  return max_ttl_ms * MS + rlk_drift_ns(max_ttl_ms, RLK_FLOAT(&n->net->options, DRIFT_FACTOR));
}

/* The longest lease that the server may have granted, as far as is known. */
static int64_t longest_ttl_ms(const struct rlk_node *n)
{
  int64_t floor_ms = rlk_growth_floor_ms(n->net);
  return n->mark.max_ttl_ms > floor_ms ? n->mark.max_ttl_ms : floor_ms;
}

static void quarantine(struct rlk_node *n, int64_t until_ns, int64_t now)
{
  if (RLK_MUTANT(GUARD_TOO_SHORT) && until_ns > now)
    until_ns = now + (until_ns - now) / 10;
  n->quarantined_until_ns = until_ns <= now || RLK_MUTANT(NO_GUARD) ? 0 : until_ns;
}

/* From when its marker was written, by the server's clock; and from what this process has seen, since that clock may
 * have been stepped. */
static void quarantine_by_marker(struct rlk_node *n, int64_t now)
{
  int64_t until_ns = n->mark.since_ms ? n->since_ns + guard_time_ns(n, n->mark.quarantine_ms) : 0;
  int64_t changed_until_ns;
  if (!rlk_marker_is_complete(&n->mark)) {
    quarantine(n, RLK_NEVER, now);
    return;
  }
  if (!n->changed_ttl_ms)
    n->changed_ttl_ms = n->mark.quarantine_ms;
  if (n->is_stepped && n->changed_ttl_ms < n->mark.max_ttl_ms)
    n->changed_ttl_ms = n->mark.max_ttl_ms;
  n->is_stepped = 0;
  changed_until_ns = n->changed_ns ? n->changed_ns + guard_time_ns(n, n->changed_ttl_ms) : 0;
  quarantine(n, changed_until_ns > until_ns ? changed_until_ns : until_ns, now);
}

/* ---- clocks ---- */

static void note_clock(struct rlk_node *n, const struct rlk_clock_sample *sample)
{
  const struct rlk_numbers *options = &n->net->options;
  double drift_factor = RLK_FLOAT(options, DRIFT_FACTOR);
  int64_t limit_ns = rlk_drift_ns(RLK_INT(options, TTL_MS), drift_factor), until_ns;
  int64_t step_ns = rlk_clock_note(&n->clock, sample, drift_factor, limit_ns < STEP_MIN_NS ? STEP_MIN_NS : limit_ns);
  if (!step_ns || RLK_MUTANT(CLOCK_STEP_IGNORED))
    return;
  n->changed_ns = rlk_now(n->net);
  n->changed_ttl_ms = longest_ttl_ms(n);
  n->is_stepped = 1;
  n->step_ns = step_ns;
  n->stepped_ns += step_ns;
  until_ns = n->changed_ns + guard_time_ns(n, n->changed_ttl_ms);
  if (n->quarantined_until_ns < until_ns)
    n->quarantined_until_ns = until_ns;
  rlk_node_tell(n, RLK_OUTCOME_STEPPED);
}

static int is_ahead(const struct rlk_node *n, int64_t now)
{
  const struct rlk_net *net = n->net;
  const struct rlk_clock *clocks[RLK_NODES_MAX];
  int wrong = net->node_count - rlk_quorum(net->node_count);
  for (int i = 0; i < net->node_count; i++)
    clocks[i] = &net->nodes[i].clock;
  return rlk_clock_ahead_ns(&n->clock, clocks, net->node_count, wrong, now, RLK_FLOAT(&net->options, DRIFT_FACTOR)) >
         AHEAD_NS;
}

static int note_those_ahead(struct rlk_net *net, int64_t now)
{
  int is_news = 0;
  for (int i = 0; i < net->node_count && !RLK_MUTANT(CLOCK_STEP_IGNORED); i++) {
    struct rlk_node *n = &net->nodes[i];
    int64_t until_ns = is_ahead(n, now) ? n->clock_since_ns + guard_time_ns(n, longest_ttl_ms(n)) : 0;
    is_news |= !n->ahead_until_ns && now < until_ns;
    n->ahead_until_ns = until_ns;
  }
  return is_news;
}

static enum rlk_session_verdict judge_clock(struct rlk_line *l, struct rlk_text *why)
{
  struct rlk_node *n = l->node;
  if (!l->time.read_ns || l->time.read_ns - l->time.sent_ns > UNSURE_NS) {
    rlk_text_add(why, "its clock could not be read fast enough");
    return RLK_SESSION_DROP;
  }
  if (!n->clock.at_ns)
    n->clock_since_ns = l->time.read_ns;
  note_clock(n, &l->time);
  return RLK_SESSION_READY;
}

/* ---- markers ---- */

static struct rlk_marker new_marker(struct rlk_net *net)
{
  struct rlk_marker marker = {.nodes = net->node_count};
  struct rlk_text nonce = rlk_text_in(marker.nonce, sizeof marker.nonce);
  int64_t setting_ms = RLK_INT(&net->options, MAX_TTL_MS);
  int is_known = setting_ms != RLK_AUTO || rlk_guard_of(net) == RLK_GUARD_BOOTSTRAP;
  rlk_text_format(&nonce, "%016llx", (unsigned long long)rlk_random(net));
  marker.setting_ms = setting_ms == RLK_AUTO ? 0 : setting_ms;
  marker.quarantine_ms = is_known ? rlk_growth_floor_ms(net) : 0; /* else the markers of other nodes tell */
  marker.max_ttl_ms = marker.agreed_ms = marker.quarantine_ms;
  return marker;
}

static enum rlk_session_verdict write_marker(struct rlk_line *l, struct rlk_text *why)
{
  struct rlk_net *net = l->node->net;
  struct rlk_marker marker = new_marker(net);
  char tail[RLK_MARKER_SIZE];
  struct rlk_text text = rlk_text_in(tail, sizeof tail);
  rlk_marker_tail(&marker, &text);
  if (l->is_registered) {
    rlk_text_add(why, "its marker was written by somebody else at the same time");
    return RLK_SESSION_DROP;
  }
  rlk_text_add(why, "out of memory");
  return rlk_session_register(l, tail, rlk_guard_of(net) == RLK_GUARD_BOOTSTRAP) == 0 ? RLK_SESSION_CONTINUE
                                                                                      : RLK_SESSION_DROP;
}

static void format_setting(int64_t setting_ms, struct rlk_text *out)
{
  if (setting_ms)
    rlk_text_format(out, "%lld", (long long)setting_ms);
  else
    rlk_text_add(out, "auto");
}

/* Whether it is a marker of clients that are set as this one. */
static int is_ours(const struct rlk_net *net, const char *text, struct rlk_marker *m, struct rlk_text *why)
{
  int64_t setting_ms = RLK_INT(&net->options, MAX_TTL_MS);
  setting_ms = setting_ms == RLK_AUTO ? 0 : setting_ms;
  if (!rlk_marker_read(text, m)) {
    rlk_text_format(why, "the key %s%s is not a marker of this library", RLK_STRING(net, KEY_PREFIX), RLK_MARKER_NAME);
    return 0;
  }
  if (rlk_guard_of(net) == RLK_GUARD_BOOTSTRAP)
    return 1;
  if (m->nodes != net->node_count) {
    rlk_text_format(why, "its marker is of %d nodes, and this client has %d", m->nodes, net->node_count);
    return 0;
  }
  if (m->setting_ms == setting_ms)
    return 1;
  rlk_text_add(why, "its marker says max_ttl_ms ");
  format_setting(m->setting_ms, why);
  rlk_text_add(why, ", and this client's is ");
  format_setting(setting_ms, why);
  return 0;
}

static void take_marker(struct rlk_node *n, const char *text, const struct rlk_marker *marker, uint64_t order)
{
  int64_t floor_ms = rlk_growth_floor_ms(n->net);
  rlk_growth_note(n, marker, order);
  memcpy(n->marker, text, strlen(text) + 1);
  n->ttl_limit_ms = marker->agreed_ms > floor_ms ? marker->agreed_ms : floor_ms;
}

static int is_of_this_run(const struct rlk_line *l, const struct rlk_marker *marker)
{
  return strcmp(marker->run_id, l->run_id) == 0 || RLK_MUTANT(MARKER_OF_ANYBODY);
}

/* A client that only looks writes nothing. */
static enum rlk_session_verdict do_without_vote(struct rlk_node *n)
{
  n->mark = (struct rlk_marker){.nodes = 0};
  n->marker[0] = 0;
  n->quarantined_until_ns = RLK_NEVER;
  return RLK_SESSION_READY;
}

static enum rlk_session_verdict judge_marker(struct rlk_line *l, struct rlk_text *why, int64_t now)
{
  struct rlk_node *n = l->node;
  int bootstraps = rlk_guard_of(n->net) == RLK_GUARD_BOOTSTRAP;
  int64_t limit_ms = n->ttl_limit_ms;
  struct rlk_marker m = {.nodes = 0};
  if (l->marker[0] && !is_ours(n->net, l->marker, &m, why))
    return RLK_SESSION_REFUSE;
  if (!l->marker[0] || !is_of_this_run(l, &m) || (bootstraps && !l->is_registered))
    return rlk_guard_of(n->net) == RLK_GUARD_LOOK ? do_without_vote(n) : write_marker(l, why);
  take_marker(n, l->marker, &m, l->marker_order);
  n->is_growing = 0;
  n->since_ns = now - (l->time.server_us / 1000 - m.since_ms) * MS;
  quarantine_by_marker(n, now);
  if (n->ttl_limit_ms >= limit_ms)
    return RLK_SESSION_READY;
  rlk_text_add(why, RLK_GUARD_LOSS); /* what joined the set-up may have a longer TTL */
  return RLK_SESSION_DROP;
}

static int is_unchanged(struct rlk_node *n, const struct rlk_reply *reply, uint64_t order, int64_t now)
{
  struct rlk_marker m;
  if (RLK_MUTANT(MARKER_NOT_CHECKED) && RLK_INT(&n->net->options, MAX_TTL_MS) != RLK_AUTO) /* else nodes never agree */
    return 1;
  if (reply->type != RLK_REPLY_STRING || reply->text.end >= sizeof n->marker)
    return 0;
  n->read_order = order > n->read_order ? order : n->read_order;
  if (!n->is_stepped && strcmp(reply->text.data, n->marker) == 0)
    return 1;
  if (!rlk_marker_read(reply->text.data, &m) || !rlk_marker_is_same(&n->mark, &m))
    return 0;
  if (m.max_ttl_ms < n->mark.max_ttl_ms)
    return 1; /* it was read before the last change */
  if (m.agreed_ms > n->ttl_limit_ms)
    rlk_node_tell(n, RLK_OUTCOME_AGREED);
  take_marker(n, reply->text.data, &m, n->read_order);
  quarantine_by_marker(n, now);
  return 1;
}

/* Uptime is in whole seconds, and up to one more than the truth. */
static void judge_uptime(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  int64_t whole_ns = guard_time_ns(n, rlk_ttl_limit_ms(&n->net->options));
  int64_t until_ns = now + whole_ns - (l->uptime_s - 1) * 1000 * MS;
  int64_t changed_until_ns = n->changed_ns ? n->changed_ns + whole_ns : 0;
  quarantine(n, changed_until_ns > until_ns ? changed_until_ns : until_ns, now);
}

/* A guard that notices less is better than none, and than a node that does not vote. */
static void do_without_marker(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  if (!n->is_unmarked)
    rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index,
                  "it forbids the marker of the guard (TIME, GET, EVAL on libredlock:m): only restarts are noticed");
  n->is_unmarked = 1;
  n->mark = (struct rlk_marker){.nodes = 0};
  n->ttl_limit_ms = RLK_NEVER;
  judge_uptime(l, now);
}

enum rlk_session_verdict rlk_guard_judge(struct rlk_line *l, struct rlk_text *why, int64_t now)
{
  enum rlk_session_verdict clock;
  switch (rlk_guard_of(l->node->net)) {
  case RLK_GUARD_UPTIME: judge_uptime(l, now); return RLK_SESSION_READY;
  case RLK_GUARD_MARKER:
  case RLK_GUARD_LOOK:
    if (l->is_forbidden) {
      do_without_marker(l, now);
      return RLK_SESSION_READY;
    }
    l->node->is_unmarked = 0;
    clock = judge_clock(l, why);
    return clock == RLK_SESSION_READY ? judge_marker(l, why, now) : clock;
  case RLK_GUARD_BOOTSTRAP: {
    enum rlk_session_verdict verdict = judge_marker(l, why, now);
    l->node->quarantined_until_ns = RLK_NEVER;
    return verdict;
  }
  default: return RLK_SESSION_READY;
  }
}

void rlk_guard_note_loss(struct rlk_node *n)
{
  n->changed_ns = rlk_now(n->net);
  n->changed_ttl_ms = n->is_stepped = 0;
  n->step_ns = 0;
  n->quarantined_until_ns = RLK_MUTANT(NO_GUARD) ? 0 : RLK_NEVER;
}

int rlk_guard_note_restart(struct rlk_node *n)
{
  n->changed_ns = rlk_now(n->net);
  n->changed_ttl_ms = n->is_stepped = 0;
  n->step_ns = 0;
  if (rlk_guard_of(n->net) == RLK_GUARD_OFF)
    return 0;
  if (!n->has_voted)
    return 1; /* what is counted on there was granted by the server before */
  if (n->former_until_ns > n->changed_ns)
    return 0; /* only one former server is remembered, lest it vote under another address */
  memcpy(n->former_run_id, n->run_id, sizeof n->former_run_id);
  n->former_until_ns = n->leases_until_ns;
  return 1;
}

void rlk_guard_words(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  char date[32] = "";
  time_t since = (time_t)(n->mark.since_ms / 1000);
  int is_ahead = now < n->ahead_until_ns;
  int64_t until_ns = n->quarantined_until_ns > n->ahead_until_ns ? n->quarantined_until_ns : n->ahead_until_ns;
  struct rlk_text nowhere = rlk_text_in(NULL, 0);
  int64_t tenths = (until_ns - now + 99 * MS) / (100 * MS);
  struct tm utc;
  if (rlk_guard_of(n->net) == RLK_GUARD_BOOTSTRAP) {
    rlk_text_add(out, "this client only writes markers (guard is bootstrap)");
    return;
  }
  if (n->quarantined_until_ns == RLK_NEVER) {
    rlk_text_add(out, n->state == RLK_NODE_READY && !rlk_marker_is_complete(&n->mark) ? NO_MARKER : RLK_GUARD_LOSS);
    if (n->state == RLK_NODE_READY && rlk_guard_of(n->net) == RLK_GUARD_MARKER &&
        rlk_growth_blockers(n->net, &nowhere)) {
      rlk_text_add(out, "; the markers of the others are needed: ");
      rlk_growth_blockers(n->net, out);
    }
    return;
  }
  rlk_text_format(out, "quarantined for another %lld.%lld s", (long long)(tenths / 10), (long long)(tenths % 10));
  if (is_ahead)
    rlk_text_add(out, ": its clock is more than 1 s ahead of the other nodes'");
  else if (n->step_ns)
    rlk_text_format(out, ": its clock was stepped forward by %lld.%lld s", (long long)(n->step_ns / (1000 * MS)),
                    (long long)(n->step_ns / (100 * MS) % 10));
  else if (rlk_guard_has_markers(n->net) && n->mark.since_ms && gmtime_r(&since, &utc) &&
           strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
    rlk_text_format(out, ": new, or without its keys, since %s; redlock bootstrap ends it if no lock is live", date);
  else
    rlk_text_add(out, ": it was started a short time ago");
}

void rlk_guard_tell(struct rlk_node *n, int64_t now)
{
  char words[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  rlk_guard_words(n, &text, now);
  rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index, words);
}

/* ---- replies ---- */

void rlk_guard_compare_clocks(struct rlk_node *n, int64_t now)
{
  if (!rlk_guard_checks_votes(n) || !note_those_ahead(n->net, now))
    return;
  for (int i = 0; i < n->net->node_count; i++)
    if (i != n->index && now < n->net->nodes[i].ahead_until_ns)
      rlk_guard_tell(&n->net->nodes[i], now);
  rlk_node_tell(n, RLK_OUTCOME_AHEAD);
}

/* A marker that is another one now, or none: the server has lost keys. The set-up of a new connection finds out. */
static void note_marker(struct rlk_line *l, uint64_t order, int64_t now)
{
  if (is_unchanged(l->node, &l->reply, order, now))
    return;
  rlk_guard_note_loss(l->node);
  rlk_node_end_line(l, RLK_GUARD_LOSS);
}

static int is_forbidden(int fault)
{
  return fault == RLK_FAULT_PERMISSION || fault == RLK_FAULT_UNKNOWN;
}

static struct rlk_meaning marker_meaning(struct rlk_line *l, struct rlk_meaning meaning, int64_t now)
{
  if (is_forbidden(meaning.fault)) { /* the set-up of a new connection finds another way */
    rlk_node_end_line(l, l->reply.text.data);
    return (struct rlk_meaning){RLK_OUTCOME_VOTE, RLK_DROPPED, RLK_FAULT_NONE};
  }
  if (l->reply.type == RLK_REPLY_ERROR && meaning.fault != RLK_FAULT_TYPE) /* a key of that type is no marker */
    return meaning;
  note_marker(l, 0, now);
  return (struct rlk_meaning){RLK_OUTCOME_VOTE, rlk_guard_waits(l->node, now) ? RLK_QUARANTINED : RLK_GRANTED,
                              RLK_FAULT_NONE};
}

/* A clock that cannot be read any more: the same. */
static void note_time(struct rlk_line *l, const struct rlk_request *request, enum rlk_fault fault)
{
  struct rlk_clock_sample sample = {0, request->sent_ns, l->read_ns};
  int was_waiting = rlk_guard_waits(l->node, l->read_ns);
  if (rlk_reply_is_time(&l->reply, &sample.server_us))
    note_clock(l->node, &sample);
  else if (is_forbidden(fault))
    rlk_node_end_line(l, l->reply.text.data);
  if (!was_waiting && rlk_guard_waits(l->node, l->read_ns))
    rlk_guard_tell(l->node, l->read_ns);
}

struct rlk_meaning rlk_guard_meaning(struct rlk_line *l, const struct rlk_request *request, struct rlk_meaning meaning,
                                     int64_t now)
{
  if (l->node->is_unmarked || l->state == RLK_NODE_SETUP) /* it had joined the set-up */
    return (struct rlk_meaning){RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE};
  if (request->kind == RLK_REQUEST_MARKER)
    return marker_meaning(l, meaning, now);
  note_time(l, request, meaning.fault);
  return meaning;
}

void rlk_guard_growth_replied(struct rlk_line *l, const struct rlk_request *request, int64_t now)
{
  struct rlk_node *n = l->node;
  int was_complete = rlk_marker_is_complete(&n->mark);
  if (l->state != RLK_NODE_READY)
    return;
  n->is_growing = 0;
  if (l->reply.type == RLK_REPLY_ERROR)
    rlk_node_end_line(l, l->reply.text.data);
  else
    note_marker(l, (uint64_t)request->lease_ns, now);
  if (!was_complete && rlk_guard_waits(n, now) && n->quarantined_until_ns != RLK_NEVER)
    rlk_guard_tell(n, now);
  rlk_growth_go_on(n->net, now);
}

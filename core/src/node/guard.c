#include "guard.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../base/mutant.h"
#include "../rules/quorum.h"

#define MS RLK_NS_PER_MS
#define STEP_MIN_NS (50 * MS)
#define AHEAD_NS (1000 * MS)
#define UNSURE_NS (500 * MS) /* a clock that took longer to read says too little */

/* "v1 <run_id> <since> <max_ttl> <nodes> <nonce>": since is when the server was first seen, by its own clock; 0 means
 * that an operator has said that no lock is live there. */
struct marker {
  char run_id[41];
  long long since_ms, max_ttl_ms;
  int nodes;
};

static int read_marker(const char *text, struct marker *m)
{
  int end = 0;
  int fields = sscanf(text, "v1 %40[0-9a-zA-Z] %15lld %15lld %5d %*16[0-9a-f]%n", m->run_id, &m->since_ms,
                      &m->max_ttl_ms, &m->nodes, &end);
  return fields == 4 && end > 0 && !text[end] && m->since_ms >= 0 && m->max_ttl_ms > 0;
}

void rlk_guard_init(struct rlk_net *net)
{
  static const char name[] = "libredlock:m";
  struct rlk_text key = rlk_text_in(net->marker_key, sizeof net->marker_key);
  rlk_text_format(&key, "$%zu\r\n%s%s\r\n", strlen(net->key_prefix) + sizeof name - 1, net->key_prefix, name);
  net->marker_key_size = strlen(net->marker_key);
}

static enum rlk_session_verdict write_marker(struct rlk_line *l, struct rlk_text *why)
{
  struct rlk_net *net = l->node->net;
  char tail[64];
  struct rlk_text text = rlk_text_in(tail, sizeof tail);
  rlk_text_format(&text, "%lld %d %016llx", (long long)RLK_INT(&net->options, MAX_TTL_MS), net->node_count,
                  (unsigned long long)rlk_random(net));
  if (l->is_registered) {
    rlk_text_add(why, "its marker was written by somebody else at the same time");
    return RLK_SESSION_DROP;
  }
  rlk_text_add(why, "out of memory");
  return rlk_session_register(l, tail, rlk_guard_of(net) == RLK_GUARD_BOOTSTRAP) == 0 ? RLK_SESSION_CONTINUE
                                                                                      : RLK_SESSION_DROP;
}

/* Every lease that it may have granted is over after that. */
static int64_t guard_time_ns(const struct rlk_node *n, int64_t max_ttl_ms)
{
  return max_ttl_ms * MS + rlk_drift_ns(max_ttl_ms, RLK_FLOAT(&n->net->options, DRIFT_FACTOR));
}

static void quarantine(struct rlk_node *n, int64_t age_ms, int64_t max_ttl_ms, int64_t now)
{
  int64_t whole_ns = guard_time_ns(n, max_ttl_ms);
  int64_t until_ns = age_ms >= max_ttl_ms ? 0 : now + whole_ns - (age_ms > 0 ? age_ms : 0) * MS;
  if (n->changed_ns && n->changed_ns + whole_ns > until_ns)
    until_ns = n->changed_ns + whole_ns; /* a server's clock may have been stepped; ours counts from what we saw */
  if (RLK_MUTANT(GUARD_TOO_SHORT) && until_ns)
    until_ns -= whole_ns * 9 / 10;
  n->quarantined_until_ns = RLK_MUTANT(NO_GUARD) ? 0 : until_ns;
}

/* ---- clocks ---- */

void rlk_guard_note_time(struct rlk_node *n, const struct rlk_clock_sample *sample)
{
  const struct rlk_numbers *options = &n->net->options;
  double drift_factor = RLK_FLOAT(options, DRIFT_FACTOR);
  int64_t limit_ns = rlk_drift_ns(RLK_INT(options, TTL_MS), drift_factor), until_ns;
  int64_t step_ns = rlk_clock_note(&n->clock, sample, drift_factor, limit_ns < STEP_MIN_NS ? STEP_MIN_NS : limit_ns);
  if (!step_ns || RLK_MUTANT(CLOCK_STEP_IGNORED))
    return;
  n->changed_ns = rlk_now(n->net);
  n->step_ns = step_ns;
  n->stepped_ns += step_ns;
  until_ns = n->changed_ns + guard_time_ns(n, n->max_ttl_ms);
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

int rlk_guard_compare_clocks(struct rlk_net *net, int64_t now)
{
  int is_news = 0;
  for (int i = 0; i < net->node_count && !RLK_MUTANT(CLOCK_STEP_IGNORED); i++) {
    struct rlk_node *n = &net->nodes[i];
    int64_t until_ns = is_ahead(n, now) ? n->clock_since_ns + guard_time_ns(n, n->max_ttl_ms) : 0;
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
  rlk_guard_note_time(n, &l->time);
  return RLK_SESSION_READY;
}

/* ---- markers ---- */

static enum rlk_session_verdict judge_marker(struct rlk_line *l, struct rlk_text *why, int64_t now)
{
  struct rlk_node *n = l->node;
  int bootstraps = rlk_guard_of(n->net) == RLK_GUARD_BOOTSTRAP;
  int64_t max_ttl_ms = RLK_INT(&n->net->options, MAX_TTL_MS);
  struct marker m = {.nodes = 0};
  if (l->marker[0] && !read_marker(l->marker, &m)) {
    rlk_text_format(why, "the key %slibredlock:m is not a marker of this library", n->net->key_prefix);
    return RLK_SESSION_REFUSE;
  }
  if (l->marker[0] && !bootstraps && m.nodes != n->net->node_count) {
    rlk_text_format(why, "its marker is of %d nodes, and this client has %d", m.nodes, n->net->node_count);
    return RLK_SESSION_REFUSE;
  }
  if (l->marker[0] && !bootstraps && m.max_ttl_ms < max_ttl_ms) {
    rlk_text_format(why, "its marker says max_ttl_ms %lld, and this client's is %lld", m.max_ttl_ms,
                    (long long)max_ttl_ms);
    return RLK_SESSION_REFUSE;
  }
  if (!l->marker[0] || strcmp(m.run_id, l->run_id) != 0 || (bootstraps && !l->is_registered))
    return write_marker(l, why);
  memcpy(n->marker, l->marker, sizeof n->marker);
  n->marker_ms = m.since_ms;
  n->max_ttl_ms = m.max_ttl_ms;
  quarantine(n, m.since_ms ? l->time.server_us / 1000 - m.since_ms : m.max_ttl_ms, m.max_ttl_ms, now);
  return RLK_SESSION_READY;
}

/* Uptime is in whole seconds, and up to one more than the truth. */
static void judge_uptime(struct rlk_line *l, int64_t now)
{
  quarantine(l->node, (l->uptime_s - 1) * 1000, RLK_INT(&l->node->net->options, MAX_TTL_MS), now);
}

enum rlk_session_verdict rlk_guard_judge(struct rlk_line *l, struct rlk_text *why, int64_t now)
{
  enum rlk_session_verdict clock;
  switch (rlk_guard_of(l->node->net)) {
  case RLK_GUARD_UPTIME: judge_uptime(l, now); return RLK_SESSION_READY;
  case RLK_GUARD_MARKER:
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
  n->step_ns = 0;
  n->quarantined_until_ns = RLK_MUTANT(NO_GUARD) ? 0 : RLK_NEVER;
}

int rlk_guard_note_restart(struct rlk_node *n)
{
  n->changed_ns = rlk_now(n->net);
  n->step_ns = 0;
  if (rlk_guard_of(n->net) == RLK_GUARD_OFF || n->former_until_ns > n->changed_ns)
    return 0; /* only one former server is remembered, lest it vote under another address */
  memcpy(n->former_run_id, n->run_id, sizeof n->former_run_id);
  n->former_until_ns = n->leases_until_ns;
  return 1;
}

int rlk_guard_is_unchanged(const struct rlk_node *n, const struct rlk_reply *reply)
{
  if (RLK_MUTANT(MARKER_NOT_CHECKED))
    return 1;
  return reply->type == RLK_REPLY_STRING && strcmp(reply->text.data, n->marker) == 0;
}

void rlk_guard_words(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  char date[32] = "";
  time_t since = (time_t)(n->marker_ms / 1000);
  int is_ahead = now < n->ahead_until_ns;
  int64_t until_ns = n->quarantined_until_ns > n->ahead_until_ns ? n->quarantined_until_ns : n->ahead_until_ns;
  int64_t tenths = (until_ns - now + 99 * MS) / (100 * MS);
  struct tm utc;
  if (rlk_guard_of(n->net) == RLK_GUARD_BOOTSTRAP) {
    rlk_text_add(out, "this client only writes markers (guard is bootstrap)");
    return;
  }
  if (n->quarantined_until_ns == RLK_NEVER) {
    rlk_text_add(out, RLK_GUARD_LOSS);
    return;
  }
  rlk_text_format(out, "quarantined for another %lld.%lld s", (long long)(tenths / 10), (long long)(tenths % 10));
  if (is_ahead)
    rlk_text_add(out, ": its clock is more than 1 s ahead of the other nodes'");
  else if (n->step_ns)
    rlk_text_format(out, ": its clock was stepped forward by %lld.%lld s", (long long)(n->step_ns / (1000 * MS)),
                    (long long)(n->step_ns / (100 * MS) % 10));
  else if (rlk_guard_of(n->net) == RLK_GUARD_MARKER && n->marker_ms && gmtime_r(&since, &utc) &&
           strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
    rlk_text_format(out, ": a new server, or one that has lost its keys, was first seen there at %s", date);
  else
    rlk_text_add(out, ": it was started a short time ago");
}

/* A client in JSON, for people and tools. */
#include <string.h>

#include "../lock/lease.h"
#include "../wait/room.h"
#include "../vote/eligible.h"
#include "api.h"
#include "neighbours.h"

static const char *state_name(const struct rlk_node *n)
{
  int is_outnumbered = n->state == RLK_NODE_READY && n->voter->finding == RLK_FOUND_LARGER; /* it extends what counts */
  if ((n->refused && n->state != RLK_NODE_READY) || is_outnumbered)
    return "refused";
  switch (n->state) {
  case RLK_NODE_RESOLVING: return "resolving";
  case RLK_NODE_CONNECTING: return "connecting";
  case RLK_NODE_SETUP: return "setup";
  case RLK_NODE_READY: return n->silent_ns ? "silent" : "ready";
  default: return "down";
  }
}

static void key(struct rlk_text *out, const char *name)
{
  rlk_text_format(out, "\"%s\":", name);
}

static void string(struct rlk_text *out, const char *name, const char *value)
{
  key(out, name);
  rlk_text_json(out, value, strlen(value), SIZE_MAX);
}

static int is_word(const char *type, const char *value)
{
  return strcmp(type, "string") == 0 || (strcmp(type, "int") == 0 && strcmp(value, "auto") == 0);
}

static void options(redlock_client *c, struct rlk_text *out)
{
  int first = 1;
  key(out, "options");
  rlk_text_add(out, "{");
  for (int i = 0; i < RLK_OPTION_COUNT; i++) {
    const char *type = redlock_option_at(i, REDLOCK_OPTION_TYPE);
    char value[64];
    struct rlk_text text = rlk_text_in(value, sizeof value);
    if (i == RLK_OPT_NODES)
      continue;
    rlk_text_add(out, first ? "" : ",");
    first = 0;
    if (rlk_option_is_text(i)) {
      string(out, redlock_option_at(i, REDLOCK_OPTION_NAME), c->engine.net.texts[i]);
      continue;
    }
    rlk_option_format(&c->engine.net.options, i, &text);
    key(out, redlock_option_at(i, REDLOCK_OPTION_NAME));
    rlk_text_format(out, is_word(type, value) ? "\"%s\"" : "%s", value);
  }
  rlk_text_add(out, "}");
}

static void more(struct rlk_text *out, const char *name, const char *value)
{
  rlk_text_add(out, ",");
  string(out, name, value);
}

static void number(struct rlk_text *out, const char *name, int is_known, int64_t value)
{
  rlk_text_format(out, is_known ? ",\"%s\":%lld" : ",\"%s\":null", name, (long long)value);
}

/* Why the node does not vote or would not grant a lock, and the advice. */
static void reason(struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  struct rlk_reason why = {RLK_WHY_NONE, ""};
  struct rlk_text text = rlk_text_in(why.words, sizeof why.words);
  int votes = rlk_may_vote(n, now), waits = !votes && n->state == RLK_NODE_READY && rlk_guard_waits(n, now);
  if (waits && rlk_guard_until_ns(n) == RLK_NEVER && rlk_refusal(n, &why, now)) {
    /* it has no marker because nothing can be written there */
  } else if (waits) {
    why.why = rlk_guard_why(n, now);
    rlk_guard_words(n, &text, now);
  } else if (!votes) {
    if (n->state != RLK_NODE_READY || !rlk_guard_finding(n, &why))
      why = n->why;
  } else {
    rlk_refusal(n, &why, now);
  }
  rlk_text_add(out, ",\"why\":");
  rlk_text_json_clean(out, why.words, strlen(why.words));
  more(out, "reason", rlk_why_name(why.why));
  more(out, "advice", rlk_advice(n->net, why.why, now));
}

/* Against the clock of this machine; null where the guard does not ask for the time. */
static void clock_offset(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  const struct rlk_env *env = &n->net->env;
  int64_t middle_ns = n->voter->clock.low_ns + (n->voter->clock.high_ns - n->voter->clock.low_ns) / 2;
  number(out, "clock_offset_ms", n->voter->clock.at_ns && n->state == RLK_NODE_READY,
         (middle_ns + now - env->platform->wall_ns(env->context)) / RLK_NS_PER_MS);
}

/* How it is known that the server has lost no keys. */
static const char *guard_state(const struct rlk_node *n, int64_t now)
{
  int64_t guard = RLK_INT(&n->net->options, GUARD);
  if (guard != RLK_GUARD_MARKER)
    return guard == RLK_GUARD_OFF ? "off" : "external";
  if (n->state != RLK_NODE_READY)
    return "";
  return rlk_guard_waits(n, now) ? "quarantine" : "marker";
}

/* The number in its marker, and whether, why and until when it is quarantined. */
static void quarantine(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  const char *reason = n->state == RLK_NODE_READY ? rlk_guard_reason(n, now) : "";
  int64_t until_ns = rlk_guard_until_ns(n), left_ns = until_ns == RLK_NEVER ? 0 : until_ns - now;
  number(out, "max_ttl_ms", n->voter->mark.max_ttl_ms > 0, n->voter->mark.max_ttl_ms);
  rlk_text_format(out, ",\"marker_history\":%s",
                  !n->voter->mark.nodes       ? "null"
                  : n->voter->mark.replid2[0] ? "true"
                                              : "false");
  rlk_text_format(out, ",\"quarantined\":%s", *reason ? "true" : "false");
  more(out, "quarantine_reason", reason);
  number(out, "quarantine_left_ms", *reason && until_ns != RLK_NEVER, (left_ns + RLK_NS_PER_MS - 1) / RLK_NS_PER_MS);
}

static void answer(struct rlk_text *out, const char *name, enum rlk_answer answer)
{
  static const char *const words[] = {[RLK_UNKNOWN] = "null", [RLK_YES] = "true", [RLK_NO] = "false"};
  rlk_text_add(out, ",");
  key(out, name);
  rlk_text_add(out, words[answer]);
}

/* Of a certificate, in seconds since 1970. */
static void expiry(struct rlk_text *out, int64_t at_s)
{
  number(out, "certificate_expires", at_s != 0, at_s);
}

/* A node that is refused is connected to again and again: meanwhile it is what it was. */
static const struct rlk_facts *facts_of(const struct rlk_node *n)
{
  static const struct rlk_facts unknown = {.scripts = RLK_UNKNOWN};
  if (n->line->state == RLK_NODE_READY)
    return &n->line->facts;
  return n->refused ? &n->facts : &unknown;
}

static void server(const struct rlk_node *n, struct rlk_text *out)
{
  const struct rlk_link *link = &n->line->link;
  const struct rlk_facts *facts = facts_of(n);
  const char *security = link->fd >= 0 && link->ops->security ? link->ops->security(link) : NULL;
  more(out, "server", !facts->version[0] ? "" : facts->server[0] ? facts->server : "redis");
  more(out, "version", n->facts.version);
  more(out, "run_id", n->run_id);
  more(out, "tls", security ? security : "");
  expiry(out, n->tls.expires_s);
  more(out, "role", facts->role);
  more(out, "mode", facts->mode);
  more(out, "maxmemory_policy", facts->policy);
  more(out, "persistence", !facts->aof[0] ? "" : facts->aof[0] == '1' ? "aof" : "no aof");
  answer(out, "scripts", facts->scripts);
}

/* Its answers to SET. */
static void answers(const struct rlk_node *n, struct rlk_text *out)
{
  const struct rlk_peer *peer = rlk_peer_of(n);
  rlk_text_format(out, ",\"answers\":{\"granted\":%llu,\"busy\":%llu,\"other\":%llu,\"late\":%llu}",
                  (unsigned long long)peer->granted, (unsigned long long)peer->busy, (unsigned long long)peer->other,
                  (unsigned long long)peer->late);
}

static void node(struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  int64_t rtt_ns = n->rtt_ns ? n->rtt_ns : n->looked_rtt_ns;
  rlk_text_add(out, "{");
  string(out, "node", n->url.name);
  more(out, "state", state_name(n));
  rlk_text_format(out, ",\"votes\":%s", rlk_would_grant(n, now) ? "true" : "false");
  reason(n, out, now);
  server(n, out);
  more(out, "guard", guard_state(n, now));
  quarantine(n, out, now);
  clock_offset(n, out, now);
  rlk_text_format(out, ",\"rtt_us\":%lld,\"owed\":%u,\"connects\":%llu,\"drops\":%llu", (long long)(rtt_ns / 1000),
                  n->line->requests.count, (unsigned long long)n->connects, (unsigned long long)n->drops);
  answers(n, out);
  rlk_text_add(out, "}");
}

static int voters(const redlock_client *c, int64_t now)
{
  int count = 0;
  for (int i = 0; i < c->engine.net.node_count; i++)
    count += rlk_would_grant(&c->engine.net.nodes[i], now);
  return count;
}

static int held(const redlock_client *c)
{
  int count = 0;
  for (const redlock_lock *lock = c->engine.locks; lock; lock = lock->next)
    count += lock->state == REDLOCK_STATE_HELD;
  return count;
}

static void counters(redlock_client *c, struct rlk_text *out)
{
  const struct rlk_engine *e = &c->engine;
  int longest, waiting = rlk_rooms_count(e, &longest);
  rlk_text_format(out,
                  "\"held\":%d,\"renewing\":%d,\"waiting\":%d,\"longest_queue\":%d,\"debts\":%d,\"commands\":%llu,"
                  "\"attempts\":%llu,\"acquired\":%llu,\"renewals\":%llu,\"lost\":%llu",
                  held(c), e->renewing, waiting, longest, e->pending_deletes, (unsigned long long)e->net.commands,
                  (unsigned long long)e->attempts, (unsigned long long)e->acquired, (unsigned long long)e->renewals,
                  (unsigned long long)e->lost);
}

/* The counted nodes, by name. */
static void counted(struct rlk_text *out, const char *name, const uint64_t *counts, int count,
                    const char *(*name_of)(int))
{
  const char *comma = "";
  rlk_text_format(out, ",\"%s\":{", name);
  for (int i = 0; i < count; i++) {
    if (!counts[i])
      continue;
    rlk_text_format(out, "%s\"%s\":%llu", comma, name_of(i), (unsigned long long)counts[i]);
    comma = ",";
  }
  rlk_text_add(out, "}");
}

/* Cumulative, as in OpenMetrics. */
static void histogram(struct rlk_text *out, const char *name, const struct rlk_histogram *h, const int64_t *bounds)
{
  uint64_t below = 0;
  rlk_text_format(out, ",\"%s\":{\"le\":{", name);
  for (int i = 0; i < RLK_BOUNDS; i++) {
    below += h->counts[i];
    rlk_text_format(out, "\"%lld\":%llu,", (long long)bounds[i], (unsigned long long)below);
  }
  below += h->counts[RLK_BOUNDS];
  rlk_text_format(out, "\"+Inf\":%llu},\"sum\":%lld,\"count\":%llu}", (unsigned long long)below, (long long)h->sum,
                  (unsigned long long)below);
}

static void figures(const struct rlk_figures *f, struct rlk_text *out)
{
  counted(out, "acquisitions", f->acquisitions, RLK_COUNTED_STATUSES, redlock_status_name);
  counted(out, "losses", f->losses, RLK_COUNTED_LOSSES, rlk_loss_name);
  histogram(out, "wait_us", &f->wait_us, rlk_time_bounds_us);
  histogram(out, "hold_us", &f->hold_us, rlk_time_bounds_us);
  histogram(out, "attempts_per_acquisition", &f->attempts, rlk_attempt_bounds);
}

int64_t redlock_client_describe(redlock_client *c, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  int64_t now;
  if (!rlk_enter(c))
    return -REDLOCK_INVALID;
  rlk_text_add(&out, "{");
  string(&out, "version", redlock_version());
  now = rlk_client_now(c);
  rlk_text_format(&out, ",\"open\":%s,\"quorum\":%d,\"voting\":%d,",
                  c->engine.net.state == RLK_NET_OPEN ? "true" : "false", rlk_quorum(c->engine.net.node_count),
                  voters(c, now));
  counters(c, &out);
  figures(&c->engine.figures, &out);
  rlk_text_add(&out, ",");
  options(c, &out);
  expiry(&out, c->engine.net.tls ? rlk_tls_expires_s(c->engine.net.tls) : 0);
  rlk_text_add(&out, ",\"nodes\":[");
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rlk_text_add(&out, i ? "," : "");
    node(&c->engine.net.nodes[i], &out, now);
  }
  rlk_text_add(&out, "],\"programs\":[");
  rlk_neighbours(c, &out, now);
  rlk_text_add(&out, "]}");
  return rlk_leave_text(c, &out);
}

/* The figures of a client as OpenMetrics text, for Prometheus. */
#include <string.h>

#include "../lock/lease.h"
#include "../wait/room.h"
#include "api.h"
#include "../vote/eligible.h"

enum { MS_PER_S = 1000, US_PER_S = 1000000, NS_PER_S = 1000000000 };

static void family(struct rlk_text *out, const char *name, const char *type, const char *help)
{
  rlk_text_format(out, "# TYPE redlock_%s %s\n# HELP redlock_%s %s\n", name, type, name, help);
}

static void number(struct rlk_text *out, const char *name, const char *type, const char *help, uint64_t value)
{
  family(out, name, type, help);
  rlk_text_format(out, "redlock_%s%s %llu\n", name, strcmp(type, "counter") == 0 ? "_total" : "",
                  (unsigned long long)value);
}

/* ---- locks ---- */

static void acquisitions(const struct rlk_engine *e, struct rlk_text *out)
{
  family(out, "acquisitions", "counter", "Acquisitions that have ended, by status.");
  for (int i = 0; i < RLK_COUNTED_STATUSES; i++)
    if (i == REDLOCK_OK || i == REDLOCK_BUSY || i == REDLOCK_NO_QUORUM || e->figures.acquisitions[i])
      rlk_text_format(out, "redlock_acquisitions_total{status=\"%s\"} %llu\n", redlock_status_name(i),
                      (unsigned long long)e->figures.acquisitions[i]);
}

static void losses(const struct rlk_engine *e, struct rlk_text *out)
{
  family(out, "losses", "counter", "Locks that were lost while they were held, by reason.");
  for (int i = REDLOCK_LOSS_EXPIRED; i <= REDLOCK_LOSS_CLOCK; i++)
    rlk_text_format(out, "redlock_losses_total{reason=\"%s\"} %llu\n", rlk_loss_name(i),
                    (unsigned long long)e->figures.losses[i]);
}

/* A number of units, each a power of ten. By hand: the program's locale may write a comma. */
static void decimal(struct rlk_text *out, int64_t number, int64_t unit)
{
  rlk_text_format(out, "%lld.", (long long)(number / unit));
  do {
    number = number % unit * 10;
    rlk_text_format(out, "%lld", (long long)(number / unit));
  } while (number % unit);
}

static void histogram(const struct rlk_histogram *h, const char *name, const int64_t *bounds, int64_t unit,
                      const char *help, struct rlk_text *out)
{
  uint64_t below = 0;
  family(out, name, "histogram", help);
  for (int i = 0; i < RLK_BOUNDS; i++) {
    below += h->counts[i];
    rlk_text_format(out, "redlock_%s_bucket{le=\"", name);
    decimal(out, bounds[i], unit);
    rlk_text_format(out, "\"} %llu\n", (unsigned long long)below);
  }
  below += h->counts[RLK_BOUNDS];
  rlk_text_format(out, "redlock_%s_bucket{le=\"+Inf\"} %llu\nredlock_%s_sum ", name, (unsigned long long)below, name);
  decimal(out, (int64_t)h->sum, unit);
  rlk_text_format(out, "\nredlock_%s_count %llu\n", name, (unsigned long long)below);
}

static void waiting(const struct rlk_engine *e, struct rlk_text *out)
{
  int longest, count = rlk_rooms_count(e, &longest);
  number(out, "acquisitions_waiting", "gauge", "Acquisitions that wait for a lock that others hold.", (uint64_t)count);
  number(out, "longest_queue", "gauge", "The most acquisitions that wait for the same resource.", (uint64_t)longest);
}

static void locks(const struct rlk_engine *e, struct rlk_text *out, int64_t now)
{
  uint64_t held = 0, in_flight = 0;
  int64_t longest_ns = 0;
  for (const redlock_lock *lock = e->locks; lock; lock = lock->next) {
    if (lock->state == REDLOCK_STATE_HELD)
      longest_ns = rlk_larger(longest_ns, now - lock->hold.acquired_ns);
    held += lock->state == REDLOCK_STATE_HELD;
    in_flight += lock->op.status == REDLOCK_PENDING;
  }
  number(out, "locks_held", "gauge", "Locks that are held.", held);
  number(out, "longest_hold_seconds", "gauge", "How long the lock that was acquired first has been held.",
         (uint64_t)(longest_ns / 1000000000));
  number(out, "locks_renewing", "gauge", "Locks that are renewed in the background.", (uint64_t)e->renewing);
  number(out, "operations_in_flight", "gauge", "Operations that have not ended.", in_flight);
  number(out, "pending_deletes", "gauge", "Tokens that were given up and are not deleted everywhere yet.",
         (uint64_t)e->pending_deletes);
  waiting(e, out);
  acquisitions(e, out);
  losses(e, out);
  number(out, "attempts", "counter", "Attempts of acquisitions.", e->attempts);
  number(out, "renewals", "counter", "Renewals that were confirmed by a majority.", e->renewals);
  number(out, "commands", "counter", "Commands that were sent.", e->net.commands);
  histogram(&e->figures.wait_us, "wait_seconds", rlk_time_bounds_us, US_PER_S,
            "Time from the call of acquire to the lock, of acquisitions that were granted.", out);
  histogram(&e->figures.hold_us, "hold_seconds", rlk_time_bounds_us, US_PER_S,
            "Time from the lock to its release or loss.", out);
  histogram(&e->figures.attempts, "attempts_per_acquisition", rlk_attempt_bounds, 1,
            "Attempts of an acquisition that was granted.", out);
}

/* ---- nodes ---- */

/* A label's value: names of nodes have no line ends. */
static void node_label(struct rlk_text *out, const struct rlk_node *n)
{
  for (const char *c = n->url.name; *c; c++)
    rlk_text_format(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
}

static void of_node(struct rlk_text *out, const char *name, const struct rlk_node *n, const char *more, int64_t value,
                    int64_t unit)
{
  rlk_text_format(out, "redlock_node_%s{node=\"", name);
  node_label(out, n);
  rlk_text_format(out, "\"%s} ", more);
  if (value == RLK_NEVER)
    rlk_text_add(out, "+Inf");
  else if (value % unit)
    decimal(out, value, unit);
  else
    rlk_text_format(out, "%lld", (long long)(value / unit));
  rlk_text_add(out, "\n");
}

static void node_votes(const struct rlk_engine *e, struct rlk_text *out)
{
  family(out, "node_votes", "counter", "Answers to SET, by meaning; late: the acquisition had ended.");
  for (int i = 0; i < e->net.node_count; i++) {
    const struct rlk_node *n = &e->net.nodes[i];
    of_node(out, "votes_total", n, ",vote=\"granted\"", (int64_t)rlk_peer_of(n)->granted, 1);
    of_node(out, "votes_total", n, ",vote=\"busy\"", (int64_t)rlk_peer_of(n)->busy, 1);
    of_node(out, "votes_total", n, ",vote=\"other\"", (int64_t)rlk_peer_of(n)->other, 1);
    of_node(out, "votes_total", n, ",vote=\"late\"", (int64_t)rlk_peer_of(n)->late, 1);
  }
}

enum { READY, VOTES_NOW, RTT, OWED, CONNECTS, DROPS, NODE_FAMILIES };

static int64_t value_of(const struct rlk_node *n, int which, int64_t now)
{
  switch (which) {
  case READY: return n->state == RLK_NODE_READY;
  case VOTES_NOW: return rlk_would_grant(n, now);
  case RTT: return n->state != RLK_NODE_READY ? 0 : n->rtt_ns ? n->rtt_ns : n->looked_rtt_ns;
  case OWED: return (int64_t)n->line->requests.count;
  case CONNECTS: return (int64_t)n->connects;
  default: return (int64_t)n->drops;
  }
}

/* The number in each marker, and which nodes are quarantined, why, and for how much longer. */
static void guarded(const struct rlk_engine *e, struct rlk_text *out, int64_t now)
{
  if (!rlk_net_has_markers(&e->net))
    return;
  family(out, "node_max_ttl_seconds", "gauge", "The longest lease that the node's marker allows.");
  for (int i = 0; i < e->net.node_count; i++)
    if (e->net.nodes[i].voter->mark.max_ttl_ms)
      of_node(out, "max_ttl_seconds", &e->net.nodes[i], "", e->net.nodes[i].voter->mark.max_ttl_ms, MS_PER_S);
  family(out, "node_quarantine_seconds", "gauge",
         "How much longer the node does not vote since it may have lost keys, by reason; 0: it is not quarantined.");
  for (int i = 0; i < e->net.node_count; i++) {
    const struct rlk_node *n = &e->net.nodes[i];
    const char *reason = n->state == RLK_NODE_READY ? rlk_guard_reason(n, now) : "";
    int64_t end_ns = rlk_guard_until_ns(n);
    char label[64];
    struct rlk_text text = rlk_text_in(label, sizeof label);
    rlk_text_format(&text, ",reason=\"%s\"", reason);
    of_node(out, "quarantine_seconds", n, label,
            !*reason              ? 0
            : end_ns == RLK_NEVER ? RLK_NEVER
                                  : end_ns - now,
            NS_PER_S);
  }
}

/* Only of clients with TLS. */
static void certificates(const struct rlk_engine *e, struct rlk_text *out)
{
  int64_t own_s;
  if (!e->net.tls)
    return;
  own_s = rlk_tls_expires_s(e->net.tls);
  family(out, "certificate_expiry_timestamp_seconds", "gauge", "When the client's certificate expires.");
  if (own_s)
    rlk_text_format(out, "redlock_certificate_expiry_timestamp_seconds %lld\n", (long long)own_s);
  family(out, "node_certificate_expiry_timestamp_seconds", "gauge", "When the node's certificate expires.");
  for (int i = 0; i < e->net.node_count; i++)
    if (e->net.nodes[i].tls.expires_s)
      of_node(out, "certificate_expiry_timestamp_seconds", &e->net.nodes[i], "", e->net.nodes[i].tls.expires_s, 1);
}

static void nodes(const struct rlk_engine *e, struct rlk_text *out, int64_t now)
{
  static const struct {
    const char *name, *type, *sample, *help;
  } families[NODE_FAMILIES] = {
      [READY] = {"node_ready", "gauge", "ready", "1 if the node is connected and set up."},
      [VOTES_NOW] = {"node_votes_now", "gauge", "votes_now", "1 if the node would grant a lock."},
      [RTT] = {"node_rtt_seconds", "gauge", "rtt_seconds", "Round trip, smoothed."},
      [OWED] = {"node_owed_replies", "gauge", "owed_replies", "Replies that the node still owes."},
      [CONNECTS] = {"node_connects", "counter", "connects_total", "Connections that were started."},
      [DROPS] = {"node_drops", "counter", "drops_total", "Connections that ended after their set-up."},
  };
  for (int f = 0; f < NODE_FAMILIES; f++) {
    family(out, families[f].name, families[f].type, families[f].help);
    for (int i = 0; i < e->net.node_count; i++) {
      int64_t value = value_of(&e->net.nodes[i], f, now);
      if (f != RTT || value) /* no round trip is known of a node that is down */
        of_node(out, families[f].sample, &e->net.nodes[i], "", value, f == RTT ? NS_PER_S : 1);
    }
  }
  node_votes(e, out);
  guarded(e, out, now);
  certificates(e, out);
}

int64_t redlock_client_metrics(redlock_client *c, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  if (!rlk_enter(c))
    return -REDLOCK_INVALID;
  family(&out, "library", "info", "The library.");
  rlk_text_format(&out, "redlock_library_info{version=\"%s\"} 1\n", redlock_version());
  locks(&c->engine, &out, rlk_client_now(c));
  nodes(&c->engine, &out, rlk_client_now(c));
  rlk_text_add(&out, "# EOF\n");
  return rlk_leave_text(c, &out);
}

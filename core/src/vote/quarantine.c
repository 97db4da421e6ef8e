#include "quarantine.h"

#include <time.h>

#include "../base/mutant.h"
#include "../rules/quorum.h"

#define MS RLK_NS_PER_MS

int64_t rlk_guard_time_ns(const struct rlk_net *net)
{
  int64_t max_ttl_ms = RLK_INT(&net->options, MAX_TTL_MS);
  return max_ttl_ms * MS + rlk_drift_ns(max_ttl_ms, RLK_FLOAT(&net->options, DRIFT_FACTOR));
}

/* Since its marker was written, by the server's clock; since this process first saw it, as that clock may have been
 * stepped; and since it was. */
void rlk_guard_quarantine(struct rlk_node *n, int64_t now)
{
  struct rlk_voter *v = n->voter;
  int64_t begun_ns = v->mark.since_ms ? v->since_ns : INT64_MIN, until_ns;
  if (v->changed_ns && !RLK_MUTANT(OWN_LOOK_IGNORED))
    begun_ns = rlk_larger(begun_ns, v->changed_ns);
  if (rlk_guard_is_stepped(v))
    begun_ns = rlk_larger(begun_ns, v->step.to_ns);
  until_ns = begun_ns == INT64_MIN ? 0 : begun_ns + rlk_guard_time_ns(n->net);
  if (RLK_MUTANT(GUARD_TOO_SHORT) && until_ns > now)
    until_ns = now + (until_ns - now) / 10;
  v->quarantined_until_ns = until_ns <= now || RLK_MUTANT(NO_GUARD) ? 0 : until_ns;
}

/* ---- words ---- */

int64_t rlk_guard_until_ns(const struct rlk_node *n)
{
  return rlk_larger(n->voter->quarantined_until_ns, n->voter->ahead_until_ns);
}

const char *rlk_guard_reason(const struct rlk_node *n, int64_t now)
{
  if (!rlk_guard_waits(n, now))
    return "";
  if (rlk_guard_until_ns(n) == RLK_NEVER)
    return n->net->looks ? "not_registered" : "lost_keys";
  if (now < n->voter->ahead_until_ns)
    return "clock_ahead";
  return rlk_guard_is_stepped(n->voter) ? "clock_stepped" : n->voter->changed_ns ? "lost_keys" : "new";
}

enum rlk_why rlk_guard_why(const struct rlk_node *n, int64_t now)
{
  if (!rlk_guard_waits(n, now))
    return RLK_WHY_NONE;
  if (rlk_guard_until_ns(n) == RLK_NEVER)
    return n->net->looks ? RLK_WHY_NOT_REGISTERED : RLK_WHY_MARKER_CHANGED;
  if (now < n->voter->ahead_until_ns)
    return RLK_WHY_CLOCK_AHEAD;
  return rlk_guard_is_stepped(n->voter) ? RLK_WHY_CLOCK_STEPPED
         : n->voter->mark.since_ms      ? RLK_WHY_NEW
                                        : RLK_WHY_LOST_KEYS;
}

static void left_words(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  int64_t tenths = (rlk_guard_until_ns(n) - now + 99 * MS) / (100 * MS);
  rlk_text_format(out, "for another %lld.%lld s", (long long)(tenths / 10), (long long)(tenths % 10));
}

static void detail_words(const struct rlk_node *n, enum rlk_why why, struct rlk_text *out)
{
  char date[32] = "";
  time_t since = (time_t)(n->voter->mark.since_ms / 1000);
  struct tm utc;
  if (why == RLK_WHY_CLOCK_STEPPED)
    rlk_text_format(out, " by %lld.%lld s", (long long)(n->voter->step.high_ns / (1000 * MS)),
                    (long long)(n->voter->step.high_ns / (100 * MS) % 10));
  else if (why == RLK_WHY_NEW && gmtime_r(&since, &utc) && strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
    rlk_text_format(out, ", since %s", date);
}

void rlk_guard_left_words(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  enum rlk_why why = rlk_guard_why(n, now);
  if (rlk_guard_until_ns(n) == RLK_NEVER)
    return;
  left_words(n, out, now);
  if (why == RLK_WHY_CLOCK_STEPPED)
    rlk_text_add(out, ",");
  detail_words(n, why, out);
}

void rlk_guard_words(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  static const char head[] = "quarantined";
  enum rlk_why why = rlk_guard_why(n, now);
  if (rlk_guard_until_ns(n) == RLK_NEVER) {
    rlk_text_add(out, rlk_why_words(why));
    return;
  }
  rlk_text_format(out, "%s ", head);
  left_words(n, out, now);
  rlk_text_add(out, rlk_why_words(why) + sizeof head - 1);
  detail_words(n, why, out);
}

void rlk_guard_tell(struct rlk_node *n, int64_t now)
{
  char words[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  rlk_guard_words(n, &text, now);
  rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index, words);
}

void rlk_guard_tell_ready(struct rlk_node *ready, int64_t now)
{
  struct rlk_net *net = ready->net;
  int votes = 0;
  ready->voter->quarantine_untold = rlk_guard_waits(ready, now) && ready->voter->quarantined_until_ns != RLK_NEVER;
  for (int i = 0; i < net->node_count; i++)
    votes += net->nodes[i].state == RLK_NODE_READY && rlk_guard_lets_vote(&net->nodes[i], now);
  for (int i = 0; i < net->node_count && votes >= rlk_quorum(net->node_count); i++) {
    struct rlk_node *n = &net->nodes[i];
    if (n->voter->quarantine_untold && rlk_guard_waits(n, now))
      rlk_guard_tell(n, now);
    n->voter->quarantine_untold = 0;
  }
}

#include "plan.h"

#include <string.h>

#include "../base/mutant.h"
#include "../rules/quorum.h"

#define FUTURE_MS 1000 /* a marker that was written so much later than now is from before the clock was set back */

enum { MODES = REDLOCK_BOOTSTRAP_DRY - 1 };

/* ---- finding ---- */

/* The marker is lost together with other keys; one left by a restart, a failover, SWAPDB or a clock set back is not
 * valid for the server as it is now. */
static int is_of_this_server(const struct rlk_sight *sight, const struct rlk_marker *m)
{
  if (strcmp(m->run_id, sight->run_id) != 0 && !RLK_MUTANT(MARKER_OF_ANYBODY))
    return 0;
  if (!rlk_replid2_is_same(m->replid2, sight->replid2) && !RLK_MUTANT(HISTORY_IGNORED))
    return 0;
  if (m->database != sight->database && !RLK_MUTANT(DATABASE_IGNORED))
    return 0;
  return m->since_ms <= sight->clock_ms + FUTURE_MS || RLK_MUTANT(FUTURE_MARKER);
}

enum rlk_finding rlk_find_number(struct rlk_marker *m, int64_t max_ttl_ms)
{
  if (RLK_MUTANT(NUMBER_IGNORED))
    m->max_ttl_ms = max_ttl_ms;
  if (m->max_ttl_ms > max_ttl_ms)
    return RLK_FOUND_LARGER;
  return m->max_ttl_ms < max_ttl_ms ? RLK_FOUND_SMALLER : RLK_FOUND_OURS;
}

enum rlk_finding rlk_find(const struct rlk_sight *sight, const struct rlk_common *common, struct rlk_marker *m)
{
  int is_read = rlk_marker_read(sight->marker, m);
  int is_gone = !sight->marker[0] || (is_read && !is_of_this_server(sight, m));
  if (!is_read || is_gone)
    *m = (struct rlk_marker){.nodes = 0};
  if (is_gone)
    return RLK_FOUND_NONE;
  if (!is_read)
    return RLK_FOUND_FOREIGN;
  if (m->nodes != common->nodes)
    return RLK_FOUND_OTHER_NODES;
  if (strcmp(m->cluster, common->cluster) != 0)
    return RLK_FOUND_OTHER_CLUSTER;
  return rlk_find_number(m, common->max_ttl_ms);
}

static int found(enum rlk_finding finding, int64_t left_ms)
{
  switch (finding) {
  case RLK_FOUND_OURS: return left_ms ? REDLOCK_FOUND_QUARANTINED : REDLOCK_FOUND_VOTES;
  case RLK_FOUND_NONE: return REDLOCK_FOUND_NEW;
  case RLK_FOUND_SMALLER:
  case RLK_FOUND_LARGER: return REDLOCK_FOUND_OTHER_NUMBER;
  case RLK_FOUND_OTHER_NODES:
  case RLK_FOUND_OTHER_CLUSTER: return REDLOCK_FOUND_OTHER_LIST;
  case RLK_FOUND_FOREIGN: return REDLOCK_FOUND_FOREIGN;
  default: return REDLOCK_FOUND_NOTHING;
  }
}

static int64_t left_ms(const struct rlk_marker *m, const struct rlk_sight *sight, double drift_factor)
{
  int64_t drift_ms = rlk_drift_ns(m->max_ttl_ms, drift_factor) / RLK_NS_PER_MS;
  int64_t left = m->since_ms ? m->since_ms + m->max_ttl_ms + drift_ms - sight->clock_ms : 0;
  return left > 0 ? left : 0;
}

static void found_words(const struct rlk_planned *p, enum rlk_finding finding, int mode, struct rlk_text *out)
{
  const char *left = (mode & MODES) == REDLOCK_BOOTSTRAP_NEW ? "votes in " : "is quarantined for another ";
  switch (finding) {
  case RLK_FOUND_OURS: rlk_text_add(out, p->left_ms ? left : "votes"); break;
  case RLK_FOUND_NONE: rlk_text_add(out, "is new or may have lost keys"); break;
  case RLK_FOUND_SMALLER:
  case RLK_FOUND_LARGER:
    rlk_text_add(out, "allows ");
    rlk_text_duration(out, p->mark.max_ttl_ms);
    break;
  case RLK_FOUND_OTHER_NODES: rlk_text_format(out, "is registered for %d nodes", p->mark.nodes); break;
  case RLK_FOUND_OTHER_CLUSTER: rlk_text_format(out, "is registered for cluster %s", p->mark.cluster); break;
  default: break; /* the node's own */
  }
  if (!p->left_ms)
    return;
  rlk_text_add(out, finding != RLK_FOUND_OURS ? " and is quarantined for another " : "");
  rlk_text_duration(out, (p->left_ms + 999) / 1000 * 1000);
}

void rlk_plan_look(struct rlk_planned *p, const struct rlk_sight *sight, const struct rlk_common *common, int mode)
{
  struct rlk_text words = rlk_text_in(p->words, sizeof p->words);
  enum rlk_finding finding = rlk_find(sight, common, &p->mark);
  p->left_ms = left_ms(&p->mark, sight, common->drift_factor);
  p->found = found(finding, p->left_ms);
  memcpy(p->replid2, sight->replid2, strlen(sight->replid2) + 1);
  found_words(p, finding, mode, &words);
}

/* ---- planning ---- */

/* No lock is live: the node is registered, or what its marker says remains but for the time. */
static void want_vote(struct rlk_planned *p, const struct rlk_common *common)
{
  p->wanted = p->mark;
  p->wanted.since_ms = 0;
  if (p->found == REDLOCK_FOUND_NEW)
    p->wanted.nodes = common->nodes;
  p->will = REDLOCK_DID_REGISTERED;
}

/* The number and the list alone, so no quarantine ends earlier. */
static void want_terms(struct rlk_planned *p, const struct rlk_common *common)
{
  struct rlk_text cluster;
  if (p->left_ms && p->mark.max_ttl_ms > common->max_ttl_ms && !RLK_MUTANT(REPLACE_ENDS_QUARANTINE))
    return;
  p->wanted = p->mark;
  p->wanted.nodes = common->nodes;
  p->wanted.max_ttl_ms = common->max_ttl_ms;
  cluster = rlk_text_in(p->wanted.cluster, sizeof p->wanted.cluster);
  rlk_text_add(&cluster, common->cluster);
  if (!p->mark.replid2[0])
    memcpy(p->wanted.replid2, p->replid2, sizeof p->replid2);
  if (p->left_ms && RLK_MUTANT(REPLACE_ENDS_QUARANTINE))
    p->wanted.since_ms = 0;
  p->will = REDLOCK_DID_REPLACED;
}

static void want(struct rlk_planned *p, const struct rlk_common *common, int mode, int all_are_new)
{
  int lacks_history = p->found == REDLOCK_FOUND_VOTES && !p->mark.replid2[0] && p->replid2[0];
  int differs = p->found == REDLOCK_FOUND_OTHER_NUMBER || p->found == REDLOCK_FOUND_OTHER_LIST || lacks_history;
  int waits = p->found == REDLOCK_FOUND_NEW || (p->left_ms && p->found != REDLOCK_FOUND_OTHER_LIST);
  if (mode == REDLOCK_BOOTSTRAP_REPLACE && differs)
    want_terms(p, common);
  else if (mode != REDLOCK_BOOTSTRAP_REPLACE && waits && (mode == REDLOCK_BOOTSTRAP_YES || all_are_new))
    want_vote(p, common);
}

/* What one question asks: whether all programs have a larger number, a smaller one, or are stopped; last, to add
 * what a marker lacks. */
static int subject_of(const struct rlk_planned *p)
{
  if (p->found == REDLOCK_FOUND_VOTES)
    return 4;
  if (p->found == REDLOCK_FOUND_OTHER_LIST)
    return 3;
  return p->mark.max_ttl_ms > p->wanted.max_ttl_ms ? 2 : 1;
}

static void keep_one_subject(struct rlk_plan *plan, int count)
{
  int first = 0;
  for (int i = 0; i < count; i++)
    if (plan->nodes[i].wanted.nodes && (!first || subject_of(&plan->nodes[i]) < first))
      first = subject_of(&plan->nodes[i]);
  for (int i = 0; i < count; i++)
    if (subject_of(&plan->nodes[i]) != first)
      plan->nodes[i].wanted.nodes = 0;
}

int rlk_plan_make(struct rlk_plan *plan, int count, const struct rlk_common *common, int mode)
{
  int all_are_new = 1, writes = 0;
  plan->mode = mode;
  for (int i = 0; i < count; i++)
    all_are_new &= plan->nodes[i].found == REDLOCK_FOUND_NEW && !plan->nodes[i].seen[0];
  for (int i = 0; i < count; i++) {
    plan->nodes[i].wanted = (struct rlk_marker){.nodes = 0};
    want(&plan->nodes[i], common, mode & MODES, all_are_new);
  }
  if (mode == (REDLOCK_BOOTSTRAP_REPLACE | REDLOCK_BOOTSTRAP_DRY))
    keep_one_subject(plan, count);
  for (int i = 0; i < count; i++) {
    writes |= plan->nodes[i].wanted.nodes > 0;
    if (plan->nodes[i].wanted.nodes)
      plan->nodes[i].did = plan->nodes[i].will;
  }
  return writes;
}

int rlk_plan_was_shown(const struct rlk_plan *plan, int mode)
{
  return plan && plan->mode == (mode | REDLOCK_BOOTSTRAP_DRY) && plan->mode != mode && !RLK_MUTANT(PLAN_FORGOTTEN);
}

int rlk_plan_stands(const struct rlk_planned *p, const struct rlk_sight *sight)
{
  return p->wanted.nodes && strcmp(sight->run_id, p->run_id) == 0 && strcmp(sight->marker, p->seen) == 0;
}

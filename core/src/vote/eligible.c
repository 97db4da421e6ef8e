#include "eligible.h"

#include <string.h>

#include "../../include/redlock.h"
#include "../base/mutant.h"
#include "../node/state.h"
#include "../rules/quorum.h"
#include "guard.h"

#define KNOWN_NS (60000 * RLK_NS_PER_MS) /* how long a node's answer to a SET predicts the next one */

static void forget(struct rlk_node *n, enum redlock_loss why)
{
  n->forgotten = why;
  rlk_node_tell(n, RLK_OUTCOME_FORGOTTEN);
}

static void become(struct rlk_node *n, const struct rlk_line *l)
{
  n->facts = l->facts;
  if (l->facts.run_id[0])
    memcpy(n->run_id, l->facts.run_id, sizeof n->run_id);
  if (l->facts.replid2[0])
    memcpy(n->replid2, l->facts.replid2, sizeof n->replid2);
}

/* With a guard the leases there go on to count until they end: nobody is granted anything by a replica, or by another
 * server before that. */
void rlk_eligible_note_server(struct rlk_line *l)
{
  struct rlk_node *n = l->node;
  int is_other = rlk_session_is_other(l), restarted = is_other && n->run_id[0];
  int keeps_leases = restarted && rlk_guard_note_restart(n);
  const char *event = strcmp(n->run_id, l->facts.run_id) != 0 ? "a new run_id" : "a new master_replid2";
  n->net->servers += is_other;
  if (is_other)
    n->voter->clock.at_ns = n->voter->has_voted = 0;
  become(n, l);
  if (restarted && !keeps_leases && !RLK_MUTANT(RESTART_IGNORED)) {
    char words[64];
    struct rlk_text text = rlk_text_in(words, sizeof words);
    rlk_text_format(&text, "%s: leases there no longer count", event);
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_RESTARTED, n->index, words);
    forget(n, REDLOCK_LOSS_RESTARTED);
    return;
  }
  if (restarted && keeps_leases)
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_RESTARTED, n->index, event);
  if (rlk_session_is_demoted(l) && RLK_INT(&n->net->options, GUARD) == RLK_GUARD_OFF && !RLK_MUTANT(DEMOTION_IGNORED))
    forget(n, REDLOCK_LOSS_REFUSED);
}

/* Another node that leads to the same server and votes, or did so for a lease that still counts: no server counts
 * twice for one lock (rule A.8). */
static int has_voted_as(const struct rlk_node *n, const char *run_id, int64_t now)
{
  if (strcmp(n->run_id, run_id) == 0 && (n->state == RLK_NODE_READY || n->voter->leases_until_ns > now))
    return 1;
  return strcmp(n->voter->former_run_id, run_id) == 0 && n->voter->former_until_ns > now;
}

static struct rlk_node *same_server(const struct rlk_line *l, int64_t now)
{
  for (int i = 0; i < l->node->net->node_count; i++) {
    struct rlk_node *other = &l->node->net->nodes[i];
    if (other != l->node && has_voted_as(other, l->facts.run_id, now) && !RLK_MUTANT(COUNTED_TWICE))
      return other;
  }
  return NULL;
}

enum rlk_why rlk_eligible_objection(const struct rlk_line *l, struct rlk_reason *why)
{
  if (strcmp(l->facts.mode, "cluster") == 0)
    return rlk_because(why, RLK_WHY_CLUSTER, NULL);
  if (l->facts.mode[0] && strcmp(l->facts.mode, "standalone") != 0)
    return rlk_because(why, RLK_WHY_MODE, l->facts.mode);
  if (!l->facts.run_id[0] || !l->facts.role[0])
    return rlk_because(why, RLK_WHY_NO_IDENTITY, NULL);
  if (rlk_session_is_demoted(l))
    return rlk_because(why, RLK_WHY_REPLICA, NULL);
  if (l->facts.maxmemory > 0 && l->facts.policy[0] && strcmp(l->facts.policy, "noeviction") != 0)
    return rlk_because(why, RLK_WHY_EVICTS, l->facts.policy);
  return RLK_WHY_NONE;
}

static enum rlk_why second_address(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  struct rlk_node *other = same_server(l, now);
  char name[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(name, sizeof name);
  if (!other)
    return RLK_WHY_NONE;
  l->shared = other;
  rlk_text_add(&text, other->url.name);
  rlk_text_add(&text, other->state == RLK_NODE_READY ? "" : ", which is not connected but whose leases still count");
  return rlk_because(why, RLK_WHY_SAME_SERVER, name);
}

static enum rlk_session_verdict fault_verdict(const struct rlk_line *l)
{
  switch (l->setup_fault) {
  case RLK_FAULT_CONFIG:
  case RLK_FAULT_PERMISSION:
  case RLK_FAULT_UNKNOWN: return RLK_SESSION_REJECT;
  default: return RLK_SESSION_DROP; /* it may pass */
  }
}

/* What INFO tells comes first: a Sentinel, or a server of another kind, also lacks commands. */
static enum rlk_session_verdict judge_fault(const struct rlk_line *l, struct rlk_reason *why)
{
  enum rlk_session_verdict verdict = fault_verdict(l);
  if (verdict == RLK_SESSION_DROP || !l->is_informed || !rlk_eligible_objection(l, why))
    *why = l->setup_error;
  return verdict;
}

enum rlk_session_verdict rlk_eligible_judge(struct rlk_line *l, struct rlk_reason *why, int64_t now)
{
  if (l->setup_fault != RLK_FAULT_NONE)
    return judge_fault(l, why);
  if (rlk_eligible_objection(l, why) || second_address(l, why, now))
    return RLK_SESSION_REFUSE;
  return rlk_guard_judge(l, why, now);
}

/* ---- would it grant ---- */

static int is_recent(int64_t moment_ns, int64_t now)
{
  return moment_ns && now - moment_ns < KNOWN_NS;
}

static int is_full(const struct rlk_line *l)
{
  return l->facts.maxmemory > 0 && l->facts.used_memory >= l->facts.maxmemory;
}

/* The state in INFO counts unless a SET was answered later. A failed snapshot need not keep the server from writing. */
enum rlk_why rlk_refusal(const struct rlk_node *n, struct rlk_reason *why, int64_t now)
{
  const struct rlk_line *l = n->line;
  int has_written_since = n->wrote_ns > n->informed_ns;
  char detail[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(detail, sizeof detail);
  if (is_full(l) && !has_written_since) {
    rlk_text_format(&text, "used_memory %lld, maxmemory %lld", (long long)l->facts.used_memory,
                    (long long)l->facts.maxmemory);
    return rlk_because(why, RLK_WHY_FULL, detail);
  }
  if (is_recent(n->refused_set_ns, now)) {
    rlk_because(why, RLK_WHY_STORES_NO_KEY, n->refused_set_why.words);
    return why->why = n->refused_set_why.why == RLK_WHY_ERROR ? RLK_WHY_STORES_NO_KEY : n->refused_set_why.why;
  }
  if (strcmp(l->facts.aof_write, "err") == 0 && !has_written_since)
    return rlk_because(why, RLK_WHY_AOF, NULL);
  if (strcmp(l->facts.snapshot, "err") == 0 && !is_recent(n->wrote_ns, now))
    return rlk_because(why, RLK_WHY_SNAPSHOT, NULL);
  return RLK_WHY_NONE;
}

int rlk_would_grant(const struct rlk_node *n, int64_t now)
{
  struct rlk_reason why;
  return rlk_may_vote(n, now) && !rlk_refusal(n, &why, now);
}

/* ---- what to do ---- */

static int majority_votes(const struct rlk_net *net, int64_t now)
{
  int votes = 0;
  for (int i = 0; i < net->node_count; i++)
    votes += rlk_may_vote(&net->nodes[i], now);
  return votes >= rlk_quorum(net->node_count);
}

const char *rlk_advice(const struct rlk_net *net, enum rlk_why why, int64_t now)
{
  int is_new = why == RLK_WHY_NEW || why == RLK_WHY_NOT_REGISTERED;
  if (!is_new || !majority_votes(net, now))
    return rlk_why_advice(why);
  return why == RLK_WHY_NEW ? "wait: it votes by itself" : "wait: a program that acquires locks registers it";
}

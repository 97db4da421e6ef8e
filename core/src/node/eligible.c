#include "eligible.h"

#include <stdio.h>
#include <string.h>

#include "../../include/redlock.h"
#include "../base/mutant.h"
#include "guard.h"

#define A_REPLICA "a replica; only masters are eligible to vote"

static int is_demoted(const struct rlk_line *l)
{
  return l->role[0] && strcmp(l->role, "master") != 0;
}

static int is_other_server(const struct rlk_line *l)
{
  return l->run_id[0] && strcmp(l->node->run_id, l->run_id) != 0;
}

const char *rlk_eligible_change(const struct rlk_line *l)
{
  if (is_other_server(l))
    return "another server answers there now";
  return is_demoted(l) ? A_REPLICA : NULL;
}

int rlk_eligible_note_server(struct rlk_line *l)
{
  struct rlk_node *n = l->node;
  int is_other = is_other_server(l), restarted = is_other && n->run_id[0];
  int keeps_leases = restarted && rlk_guard_note_restart(n);
  n->net->servers += is_other;
  if (is_other)
    n->clock.at_ns = n->has_voted = 0;
  if (l->run_id[0])
    memcpy(n->run_id, l->run_id, sizeof n->run_id);
  if (l->version[0])
    memcpy(n->version, l->version, sizeof n->version);
  if (restarted && !keeps_leases && !RLK_MUTANT(RESTART_IGNORED)) {
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_RESTARTED, n->index, "a new run_id: leases there no longer count");
    return REDLOCK_LOSS_RESTARTED;
  }
  if (restarted && keeps_leases)
    rlk_event_add(&n->net->events, RLK_EVENT_NODE_RESTARTED, n->index, "a new run_id");
  return is_demoted(l) && !RLK_MUTANT(DEMOTION_IGNORED) ? REDLOCK_LOSS_REFUSED : REDLOCK_LOSS_NONE;
}

/* Another node that leads to the same server and votes, or did so for a lease that still counts: no server counts
 * twice for one lock (rule A.8). */
static int has_voted_as(const struct rlk_node *n, const char *run_id, int64_t now)
{
  if (strcmp(n->run_id, run_id) == 0 && (n->state == RLK_NODE_READY || n->leases_until_ns > now))
    return 1;
  return strcmp(n->former_run_id, run_id) == 0 && n->former_until_ns > now;
}

static struct rlk_node *same_server(const struct rlk_line *l, int64_t now)
{
  for (int i = 0; i < l->node->net->node_count; i++) {
    struct rlk_node *other = &l->node->net->nodes[i];
    if (other != l->node && has_voted_as(other, l->run_id, now) && !RLK_MUTANT(COUNTED_TWICE))
      return other;
  }
  return NULL;
}

/* Why the node is ineligible to vote, or NULL; size bytes of room are in why. */
static const char *objection(const struct rlk_line *l, char *why, size_t size)
{
  if (!l->run_id[0] || !l->role[0])
    return "INFO names no run_id or no role";
  if (strcmp(l->mode, "cluster") == 0)
    return "a cluster node; nodes must be independent masters";
  if (l->mode[0] && strcmp(l->mode, "standalone") != 0) {
    snprintf(why, size, "runs in mode %s; nodes must be independent masters", l->mode);
    return why;
  }
  if (is_demoted(l))
    return A_REPLICA;
  if (l->maxmemory > 0 && l->policy[0] && strcmp(l->policy, "noeviction") != 0) {
    snprintf(why, size, "evicts keys (maxmemory-policy %s); set it to noeviction", l->policy);
    return why;
  }
  return NULL;
}

static const char *second_address(struct rlk_line *l, char *why, size_t size, int64_t now)
{
  struct rlk_node *other = same_server(l, now);
  if (!other)
    return NULL;
  l->shared = other;
  snprintf(why, size, "the same server as %s%s", other->url.name,
           other->state == RLK_NODE_READY ? "" : ", which is not connected but whose leases still count");
  return why;
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

enum rlk_session_verdict rlk_eligible_judge(struct rlk_line *l, char *why, int64_t now)
{
  struct rlk_text text = rlk_text_in(why, RLK_WHY_SIZE);
  const char *objects;
  char room[RLK_WHY_SIZE];
  if (l->setup_again) {
    objects = rlk_session_begin(l, room);
    rlk_text_add(&text, objects ? objects : "");
    return objects ? RLK_SESSION_DROP : RLK_SESSION_CONTINUE;
  }
  if (l->setup_fault != RLK_FAULT_NONE) {
    rlk_text_add(&text, l->setup_error);
    return fault_verdict(l);
  }
  objects = objection(l, room, sizeof room);
  if (!objects)
    objects = second_address(l, room, sizeof room, now);
  if (!objects)
    return rlk_guard_judge(l, &text, now);
  rlk_text_add(&text, objects);
  return RLK_SESSION_REFUSE;
}

enum rlk_session_verdict rlk_eligible_looked(struct rlk_line *l, enum rlk_look look, const struct rlk_reply *reply,
                                             char *why, int64_t now)
{
  struct rlk_text text = rlk_text_in(why, RLK_WHY_SIZE);
  char room[RLK_WHY_SIZE];
  const char *objects;
  if (look == RLK_LOOK_MARKER)
    rlk_guard_looked(l, now);
  else if (reply->type == RLK_REPLY_STRING)
    rlk_session_read_info(l, reply->text.data);
  objects = look == RLK_LOOK_POLICY ? objection(l, room, sizeof room) : NULL;
  if (!objects)
    return RLK_SESSION_CONTINUE;
  rlk_text_add(&text, objects);
  return RLK_SESSION_REFUSE;
}

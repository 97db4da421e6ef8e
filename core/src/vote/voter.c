#include "voter.h"

#include "../node/admit.h"
#include "../node/state.h"
#include "eligible.h"
#include "guard.h"

static void judge(struct rlk_line *l, int64_t now)
{
  struct rlk_node *n = l->node;
  struct rlk_reason why;
  enum rlk_session_verdict verdict;
  rlk_eligible_note_server(l);
  verdict = rlk_eligible_judge(l, &why, now);
  if (verdict == RLK_SESSION_READY) {
    rlk_clocks_compare(n->net, now - RLK_CLOCK_OLD_NS, now);
    n->voter->has_voted = 1;
  }
  rlk_node_admit(l, verdict, &why, now);
  if (verdict == RLK_SESSION_READY)
    rlk_guard_tell_ready(n, now);
}

/* A server that was a replica meanwhile, on the same connection: the answers behind this one do not count. */
static void note_change(struct rlk_line *l)
{
  if (!rlk_net_has_markers(l->node->net)) {
    rlk_eligible_note_server(l);
    return;
  }
  rlk_guard_note_loss(l->node);
  rlk_node_end_line(l, RLK_WHY_OTHER_SERVER, NULL);
}

static void looked(struct rlk_line *l, enum rlk_look look, int64_t now)
{
  struct rlk_reason why;
  if (look == RLK_LOOK_MARKER)
    rlk_guard_looked(l, now);
  if (look == RLK_LOOK_MARKER || l->state != RLK_NODE_READY)
    return;
  if (rlk_eligible_objection(l, &why)) {
    rlk_eligible_note_server(l);
    rlk_node_admit(l, RLK_SESSION_REFUSE, &why, now);
  } else if (rlk_session_is_other(l)) {
    note_change(l);
  }
}

int rlk_voter_take(struct rlk_node *n, const struct rlk_outcome *out)
{
  switch (out->kind) {
  case RLK_OUTCOME_SET_UP: judge(n->line, out->now_ns); return 1;
  case RLK_OUTCOME_SERVER: rlk_eligible_note_server(n->heard); return 1;
  case RLK_OUTCOME_LOOKED: looked(n->line, (enum rlk_look)out->request.of.step, out->now_ns); return 1;
  default: return 0;
  }
}

/* An operator may change the marker of a node that waits, or that allows shorter leases than this client. */
static int may_change(const struct rlk_node *n, int64_t now)
{
  return rlk_net_has_markers(n->net) &&
         (rlk_guard_waits(n, now) || n->voter->ttl_limit_ms < RLK_INT(&n->net->options, MAX_TTL_MS));
}

void rlk_voter_look_again(struct rlk_node *n, int64_t now)
{
  if (n->state == RLK_NODE_READY && n->net->state == RLK_NET_OPEN)
    rlk_session_look_again(n->line, may_change(n, now), now);
}

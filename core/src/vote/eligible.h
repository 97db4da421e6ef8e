/* Whether a server may vote, from the replies to its set-up (rule C.3), and whether it would grant a lock now. */
#ifndef RLK_ELIGIBLE_H
#define RLK_ELIGIBLE_H

#include "guard.h"

/* Notes the server's identity. Leases granted before may not count any more (FORGOTTEN). */
void rlk_eligible_note_server(struct rlk_line *line);
/* Why the node is ineligible to vote, or NONE. */
enum rlk_why rlk_eligible_objection(const struct rlk_line *line, struct rlk_reason *why);
/* Judges a set-up whose last reply has come. */
enum rlk_session_verdict rlk_eligible_judge(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);

static inline int rlk_may_vote(const struct rlk_node *n, int64_t now_ns)
{
  return n->state == RLK_NODE_READY && !n->silent_ns && rlk_guard_lets_vote(n, now_ns);
}

/* It may vote, and nothing is known that would keep it from storing a key. */
int rlk_would_grant(const struct rlk_node *node, int64_t now_ns);
/* Why a node that may vote would not grant; NONE if it would. */
enum rlk_why rlk_refusal(const struct rlk_node *node, struct rlk_reason *why, int64_t now_ns);
/* What to do about it: nobody has to end a quarantine where a majority votes. */
const char *rlk_advice(const struct rlk_net *net, enum rlk_why why, int64_t now_ns);

#endif

/* Would a node grant a lock at this moment, as far as is known without asking it? */
#ifndef RLK_ELIGIBILITY_H
#define RLK_ELIGIBILITY_H

#include "../vote/guard.h"

static inline int rlk_may_vote(const struct rlk_node *n, int64_t now_ns)
{
  return n->state == RLK_NODE_READY && !n->silent_ns && !rlk_guard_waits(n, now_ns);
}

/* It may vote, and nothing is known that would keep it from storing a key. */
int rlk_would_grant(const struct rlk_node *node, int64_t now_ns);
/* Why a node that may vote would not grant; NONE if it would. */
enum rlk_why rlk_refusal(const struct rlk_node *node, struct rlk_reason *why, int64_t now_ns);

#endif

/* May a node vote at this moment, as far as is known without asking it? */
#ifndef RLK_ELIGIBILITY_H
#define RLK_ELIGIBILITY_H

#include "../node/guard.h"

static inline int rlk_may_vote(const struct rlk_node *n, int64_t now_ns)
{
  return n->state == RLK_NODE_READY && !n->silent_ns && !rlk_guard_waits(n, now_ns);
}

#endif

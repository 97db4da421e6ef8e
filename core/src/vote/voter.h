/* A node as a voter: whether its server may vote, from its replies. Only this floor pulls outcomes from a node
 * itself. */
#ifndef RLK_VOTER_H
#define RLK_VOTER_H

#include "guard.h"

/* Takes an outcome that concerns voting alone: 1, or 0 if it concerns locks. */
int rlk_voter_take(struct rlk_node *node, const struct rlk_outcome *outcome);
void rlk_voter_look_again(struct rlk_node *node, int64_t now_ns);

/* The next outcome that concerns locks: 1, or 0 if there is no more for now. */
static inline int rlk_voter_next(struct rlk_node *node, struct rlk_outcome *outcome, int64_t now_ns)
{
  while (rlk_node_next(node, outcome, now_ns)) {
    if (outcome->kind == RLK_OUTCOME_PROOF)
      rlk_guard_proof(node, outcome);
    if (outcome->kind == RLK_OUTCOME_ANSWER || !rlk_voter_take(node, outcome))
      return 1;
    now_ns = outcome->now_ns;
  }
  return 0;
}

/* Writes the queued bytes; before that checks from time to time whether the node is still eligible. */
static inline void rlk_voter_flush(struct rlk_node *node, int64_t now_ns)
{
  if (now_ns >= node->look_again_ns)
    rlk_voter_look_again(node, now_ns);
  rlk_node_flush(node, now_ns);
}

#endif

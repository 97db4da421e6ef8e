/* A node as a voter: whether its server may vote, from what it tells. Nothing above this floor pulls outcomes from a
 * node itself. */
#ifndef RLK_VOTER_H
#define RLK_VOTER_H

#include "guard.h"

/* An outcome that may concern voting: it, or the next that concerns locks; 0 if there is none. */
int rlk_voter_take(struct rlk_node *node, struct rlk_outcome *outcome, int64_t now_ns);
void rlk_voter_look_again(struct rlk_node *node, int64_t now_ns);

/* The next outcome that concerns locks: 1, or 0 if there is no more for now. */
static inline int rlk_voter_next(struct rlk_node *node, struct rlk_outcome *outcome, int64_t now_ns)
{
  if (!rlk_node_next(node, outcome, now_ns))
    return 0;
  if (outcome->kind == RLK_OUTCOME_ANSWER)
    return 1;
  if (outcome->kind != RLK_OUTCOME_PROOF)
    return rlk_voter_take(node, outcome, now_ns);
  rlk_guard_proof(node, outcome);
  return 1;
}

/* Writes what is queued; first asks a node, from time to time, whether it is still eligible. */
static inline void rlk_voter_flush(struct rlk_node *node, int64_t now_ns)
{
  if (now_ns >= node->look_again_ns)
    rlk_voter_look_again(node, now_ns);
  rlk_node_flush(node, now_ns);
}

#endif

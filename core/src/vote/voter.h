/* A node as a voter: whether its server may vote, from what it tells. Nothing above this floor pulls outcomes from a
 * node itself. */
#ifndef RLK_VOTER_H
#define RLK_VOTER_H

#include "../node/node.h"

/* The next outcome that concerns locks: 1, or 0 if there is no more for now. */
int rlk_voter_next(struct rlk_node *node, struct rlk_outcome *outcome, int64_t now_ns);
/* Writes what is queued; first asks a node, from time to time, whether it is still eligible. */
void rlk_voter_flush(struct rlk_node *node, int64_t now_ns);

#endif

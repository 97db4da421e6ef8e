/* Cleaning up: tokens that were given up are deleted wherever they may be. A delete is pending while a node cannot
 * be reached. */
#ifndef RLK_CLEANUP_H
#define RLK_CLEANUP_H

#include "../node/node.h"
#include "claim.h"
#include "engine.h"

/* Gives the token up: deletes go to every node where it may be, now or when the node can be reached again. */
void rlk_claim_give_up(struct rlk_engine *engine, struct rlk_claim *claim, uint32_t round, int64_t now_ns);
/* The same of the lock's last token, if it has one that is not given up. */
void rlk_lock_give_up(redlock_lock *lock, int64_t now_ns);
/* Queues the deletes of given-up tokens that may still be on the node. */
void rlk_claims_pay(struct rlk_engine *engine, struct rlk_node *node, int64_t now_ns);
/* Whether that would send anything to the node. */
int rlk_claims_are_owed(const struct rlk_engine *engine, int node);
/* Forgets tokens that have ended by their TTL. */
void rlk_claims_expire(struct rlk_engine *engine, int64_t now_ns);

#endif

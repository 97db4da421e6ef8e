/* What a vote does to a lock: its round, its claim and its lease. */
#ifndef RLK_VOTE_H
#define RLK_VOTE_H

#include "../node/node.h"
#include "lock.h"

/* The lock that a request was for, as long as neither it nor its claim has gone on without the other; else NULL. */
redlock_lock *rlk_vote_lock(const struct rlk_request *request);
/* Whether the user has named the lease that it asks for. */
int rlk_vote_sets_the_end(enum rlk_request_kind kind);
void rlk_vote_set(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
void rlk_vote_delete(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
void rlk_vote_extend(redlock_lock *lock, int node, const struct rlk_request *request, int vote, int64_t now_ns);
/* A vote of any other kind. */
void rlk_vote(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);

#endif

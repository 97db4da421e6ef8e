/* The effect of a vote on a lock: its round, its claim and its lease. */
#ifndef RLK_VOTE_H
#define RLK_VOTE_H

#include "../node/node.h"
#include "lock.h"

/* The lock that a request was for, as long as neither it nor its claim has gone on without the other; else NULL. */
redlock_lock *rlk_vote_lock(const struct rlk_request *request);
/* The lock whose operation waits for the answer still, or NULL. */
redlock_lock *rlk_vote_wanted(const struct rlk_request *request);
void rlk_vote_set(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
/* A node that was counted does not have the token any more. */
void rlk_vote_denied(const struct rlk_node *node, const struct rlk_request *request, int64_t now_ns);
/* Of a SET that may have met its own token. */
void rlk_vote_confirm(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
void rlk_vote_delete(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
/* Of an extension or a shortening, or of one lock in a batch of renewals, which has no round; and by the marker behind
 * it. */
void rlk_vote_extend(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
void rlk_vote_proved(struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
/* Whole answers: the lease was shortened; the key was removed; the reply to an inspect. */
void rlk_vote_expired(struct rlk_node *node, struct rlk_outcome *outcome);
void rlk_vote_removed(struct rlk_node *node, struct rlk_outcome *outcome);
void rlk_vote_seen(struct rlk_node *node, struct rlk_outcome *outcome);
/* Notes a vote in the lock's last operation; that moves it on if it is in flight still. */
void rlk_vote_note(redlock_lock *lock, int node, const struct rlk_request *request, int vote, int64_t now_ns);
/* A node that did not count for the lock begins to only if it may vote (rule C.3.1): the value of its vote. */
int rlk_vote_checked(const struct rlk_node *node, const struct rlk_request *request, int vote, int64_t now_ns);
/* An error is shown in the node's answer. */
void rlk_vote_note_error(struct rlk_node *node, const struct rlk_outcome *outcome);
void rlk_vote_error(redlock_lock *lock, int node, const char *words); /* the same of one lock; NULL: of none */

#endif

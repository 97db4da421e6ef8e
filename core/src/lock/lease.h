/* The local knowledge of a lease. */
#ifndef RLK_LEASE_H
#define RLK_LEASE_H

#include "../node/node.h"
#include "lock.h"

/* Notices that the lease has run out (sticky): 1 if the lock is held at now. */
int rlk_lock_is_held(redlock_lock *lock, int64_t now_ns);
/* reason is an enum redlock_loss. */
void rlk_lock_lost(redlock_lock *lock, int reason);
void rlk_lock_end_renewal_round(redlock_lock *lock);
void rlk_lock_end_renewal(redlock_lock *lock); /* the keeper looks after it no longer */
/* No hold goes on: the lock is in that state now. A lost one is released as often as it was acquired. */
void rlk_lock_end_hold(redlock_lock *lock, enum redlock_state state);
void rlk_lock_note_loss(redlock_lock *lock, int reason); /* of a lock that is being released */
/* Until when the leases that are counted on make a majority. */
int64_t rlk_lock_counts_until(const redlock_lock *lock);
/* The lock is held from now on, on the terms that were asked for. */
void rlk_lock_hold(redlock_lock *lock, int64_t until_ns, int64_t now_ns);
/* The lease there changed: recounts how long the lock is valid. */
void rlk_lock_recount(redlock_lock *lock, int64_t now_ns);
/* The node counts no longer than until then, 0: not any more. */
void rlk_lock_cut(redlock_lock *lock, int node, int64_t until_ns, int reason, int64_t now_ns);
/* The same of all locks, earlier by so much. */
void rlk_leases_cut(struct rlk_engine *engine, const struct rlk_node *node, int64_t by_ns, int reason, int64_t now_ns);
/* Why a call was refused; NULL: it was not. REDLOCK_INVALID. */
int rlk_lock_refuse(redlock_lock *lock, const char *text);
/* An adopted token that cannot be shared. */
int rlk_lock_refuse_token(redlock_lock *lock);
void rlk_lock_name_is_reserved(const char *resource, size_t size, struct rlk_text *why);
int rlk_lock_refuse_name(redlock_lock *lock); /* it is reserved */

void rlk_lock_count_hold(redlock_lock *lock, int64_t now_ns); /* it ends */

const char *rlk_loss_name(int reason); /* in one word */
/* Why the lock was lost, with the number of nodes where they are the reason. */
void rlk_loss_words(const redlock_lock *lock, struct rlk_text *out);
void rlk_lock_tell(redlock_lock *lock, enum rlk_event_kind kind, const char *detail);

/* When a lock that is extended by ttl_ms must have ended at the latest (max_hold_ms). Its own ttl_ms may be above
 * max_hold_ms, as for the acquisition: then an extension may begin until max_hold_ms has passed. */
int64_t rlk_hold_end_ns(const redlock_lock *lock, int64_t ttl_ms);

#endif

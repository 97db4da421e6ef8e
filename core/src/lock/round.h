/* A round: one request to every node that can be asked, and the time that the answers have. */
#ifndef RLK_ROUND_H
#define RLK_ROUND_H

#include "../node/node.h"
#include "lock.h"

void rlk_round_clear(redlock_lock *lock);
void rlk_round_ask(redlock_lock *lock, struct rlk_node *node, int64_t now_ns);
/* RLK_ASKED, or why a node that could be asked is not, because of the restart guard. */
int rlk_round_guard(const redlock_lock *lock, struct rlk_node *node, int64_t now_ns);
void rlk_round_ask_or_note(redlock_lock *lock, int node, int64_t now_ns);
void rlk_round_ask_all(redlock_lock *lock, int but, int64_t now_ns);
/* Some node has not been asked for so long that a leftover there might hide a free majority. */
int rlk_round_is_overdue(const redlock_lock *lock, int64_t now_ns);
void rlk_round_set_timer(redlock_lock *lock, int64_t at_ns); /* not beyond the operation's deadlines */
void rlk_round_time(redlock_lock *lock, int64_t now_ns);
void rlk_round_time_answers(redlock_lock *lock, int64_t now_ns);
void rlk_round_written(redlock_lock *lock, int64_t now_ns);
int rlk_round_has_time(redlock_lock *lock, int64_t now_ns); /* its timer has fired: 1 if it goes on, for slow nodes */
void rlk_round_hurry(redlock_lock *lock, const struct rlk_tally *tally, int64_t now_ns);
int rlk_round_awaits(const redlock_lock *lock, int node);
void rlk_round_close(redlock_lock *lock);
/* Takes over what the nodes have said to another lock, which has asked for both. */
void rlk_round_learn(redlock_lock *lock, const redlock_lock *other);
int rlk_round_hope(redlock_lock *lock, int64_t now_ns); /* the time is over, but some may still come: 1 */
int rlk_round_is_open(const redlock_lock *lock);
/* Why a node's vote is RLK_REFUSED; NONE: that has passed meanwhile, and it was not asked again. */
enum rlk_why rlk_round_refusal(const redlock_lock *lock, int node);
/* So many refuse for good that no wait helps. */
int rlk_round_is_final(const redlock_lock *lock);

/* Too few nodes have voted, for whatever reason: outage_wait_ms runs. */
static inline int rlk_is_outage(int verdict)
{
  return verdict == REDLOCK_NO_QUORUM || verdict == REDLOCK_REFUSED_CONFIG;
}
/* An outage has begun or goes on, or is over. */
void rlk_note_outage(redlock_lock *lock, int is_outage, int64_t now_ns);

#endif

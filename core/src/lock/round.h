/* A round: one request to every node that can be asked, and the time that the answers have. */
#ifndef RL_ROUND_H
#define RL_ROUND_H

#include "../node/node.h"
#include "lock.h"

void rl_round_clear(redlock_lock *lock);
void rl_round_ask(redlock_lock *lock, struct rl_node *node, int64_t now_ns);
void rl_round_ask_or_note(redlock_lock *lock, int node, int64_t now_ns);
void rl_round_ask_all(redlock_lock *lock, int but, int64_t now_ns);
void rl_round_set_timer(redlock_lock *lock, int64_t at_ns); /* not beyond the operation's deadlines */
void rl_round_time(redlock_lock *lock, int64_t now_ns);
void rl_round_time_answers(redlock_lock *lock, int64_t now_ns);
void rl_round_written(redlock_lock *lock, int64_t now_ns);
int rl_round_has_time(redlock_lock *lock, int64_t now_ns); /* its timer has fired: 1 if it goes on, for slow nodes */
void rl_round_hurry(redlock_lock *lock, const struct rl_tally *tally);
int rl_round_awaits(const redlock_lock *lock, int node);
void rl_round_close(redlock_lock *lock);
int rl_round_hope(redlock_lock *lock, int64_t now_ns); /* the time is over, but some may still come: 1 */
int rl_round_is_open(const redlock_lock *lock);

#endif

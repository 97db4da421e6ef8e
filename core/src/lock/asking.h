/* What is asked of a node about a claim. Each function queues one command: 0, or -1 when memory is out. */
#ifndef RL_ASKING_H
#define RL_ASKING_H

#include "../node/node.h"
#include "lock.h"
#include "renewal.h"

int rl_ask_set(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_ask_hint(struct rl_node *node, struct rl_claim *claim, uint32_t round, int64_t now_ns);
int rl_ask_delete(struct rl_node *node, struct rl_claim *claim, int whole, uint32_t round, int64_t now_ns);
int rl_ask_extend(struct rl_node *node, redlock_lock *lock, int whole, int64_t now_ns);
/* The same for a SET of the lock's attempt that met a key which may be its own. */
int rl_ask_confirm(struct rl_node *node, redlock_lock *lock, int whole, int64_t now_ns);
/* Sets what is left of the lease to lock->asked. From here on the node counts no longer than that, for the request may
 * be executed at any time; as long as its answer is not read, nothing that is confirmed counts for longer. */
int rl_ask_expire(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_ask_renewal(struct rl_node *node, struct rl_batch *batch, int whole, int64_t now_ns);
int rl_ask_inspect(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_ask_remove(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
/* Takes back the SET of a finished attempt if not one byte of it was written (rule A.3.2). */
void rl_ask_not(struct rl_node *node, struct rl_claim *claim);

#endif

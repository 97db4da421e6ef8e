/* What becomes of the outcomes that nodes yield: the only caller of the operations for them. It appends requests, and
 * never closes a connection. */
#ifndef RL_DISPATCH_H
#define RL_DISPATCH_H

#include "../node/node.h"
#include "engine.h"

void rl_dispatch(struct rl_engine *engine, struct rl_node *node, struct rl_outcome *outcome);
/* In a forked child: what was in flight on connections of the parent is nobody's. */
void rl_dispatch_abandoned(struct rl_engine *engine, struct rl_node *node);

#endif

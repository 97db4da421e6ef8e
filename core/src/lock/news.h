/* The effect of a node's news on all locks: it can be asked, it is gone, or votes it gave no longer count. */
#ifndef RLK_NEWS_H
#define RLK_NEWS_H

#include "../node/node.h"
#include "engine.h"

void rlk_news(struct rlk_engine *engine, struct rlk_node *node, const struct rlk_outcome *outcome);

#endif

/* Routes the outcomes of nodes to the locks; only this file calls operations for them. It appends requests, and never
 * closes a connection. */
#ifndef RLK_DISPATCH_H
#define RLK_DISPATCH_H

#include "../node/node.h"
#include "engine.h"

void rlk_dispatch(struct rlk_engine *engine, struct rlk_node *node, struct rlk_outcome *outcome);
/* A take of an attempt is asked for again; the answer to a take, of any kind of lock. */
int rlk_take_again(struct rlk_node *node, const struct rlk_request *request, int64_t now_ns);
void rlk_take_arrived(struct rlk_node *node, struct rlk_outcome *outcome);
/* Parts of rows: an extension, a renewal of several locks or a delete is asked for again, or has its answer. */
int rlk_extend_again(struct rlk_node *node, const struct rlk_request *request, int64_t now_ns);
void rlk_extend_arrived(struct rlk_node *node, struct rlk_outcome *outcome);
int rlk_renew_again(struct rlk_node *node, const struct rlk_request *request, int64_t now_ns);
void rlk_renew_arrived(struct rlk_node *node, struct rlk_outcome *outcome);
int rlk_delete_again(struct rlk_node *node, const struct rlk_request *request, int64_t now_ns);
void rlk_delete_arrived(struct rlk_node *node, struct rlk_outcome *outcome);
/* Notes when the key ends there. */
void rlk_end_arrived(struct rlk_node *node, struct rlk_outcome *outcome);
/* In a forked child: drops what was in flight on the parent's connections. */
void rlk_dispatch_abandoned(struct rlk_engine *engine, struct rlk_node *node);

#endif

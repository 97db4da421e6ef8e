/* The connection beside a node's own on which its server publishes whose turn it is in a queue. It exists while
 * locks wait. Without it waiters only ask more often. */
#ifndef RLK_LISTENER_H
#define RLK_LISTENER_H

#include "node.h"

/* A lock waits there. */
void rlk_listener_want(struct rlk_node *node, int64_t now_ns);
void rlk_listener_event(struct rlk_node *node, int what, int64_t now_ns);
void rlk_listener_timer(struct rlk_node *node, int64_t now_ns);
/* A reply on it: 1 with an outcome. */
int rlk_listener_reply(struct rlk_line *line, struct rlk_outcome *outcome, int64_t now_ns);
void rlk_listener_failed(struct rlk_node *node, int64_t now_ns);
void rlk_listener_close(struct rlk_node *node);

static inline int rlk_listener_is_ready(const struct rlk_node *node)
{
  return node->lines[2].state == RLK_NODE_READY;
}

static inline struct rlk_line *rlk_listener_line(struct rlk_node *node)
{
  return &node->lines[2];
}

#endif

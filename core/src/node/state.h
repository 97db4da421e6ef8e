/* The changes of a node that its files share: its state and its outcomes. */
#ifndef RLK_STATE_H
#define RLK_STATE_H

#include "node.h"

void rlk_node_be(struct rlk_line *line, enum rlk_node_state state); /* the only way to change a state */
void rlk_node_tell(struct rlk_node *node, enum rlk_outcome_kind kind);
void rlk_node_hurry(struct rlk_node *node); /* work or a report must precede further reading */
/* It is closed once the replies that have come are taken. error: the server's words, or NULL. */
RLK_COLD void rlk_node_end_line(struct rlk_line *line, enum rlk_why why, const char *error);

#endif

/* The end of a set-up: the node is admitted, refused, or given up. */
#ifndef RLK_ADMIT_H
#define RLK_ADMIT_H

#include "session.h"

/* The verdict on the set-up of its connection, or on another look: why is the reason if it may not vote. */
void rlk_node_admit(struct rlk_line *line, enum rlk_session_verdict verdict, const struct rlk_reason *why,
                    int64_t now_ns);
/* Its configuration, or ours, is the reason. */
void rlk_node_refuse(struct rlk_node *node, const struct rlk_reason *why, int64_t now_ns);
/* again: it can be asked again at once. */
RLK_COLD void rlk_node_drop(struct rlk_node *node, int again, const struct rlk_reason *why, int64_t now_ns);
RLK_COLD void rlk_node_drop_because(struct rlk_node *node, enum rlk_why why, int64_t now_ns);
/* One of its connections has failed. */
RLK_COLD void rlk_node_line_failed(struct rlk_line *line, int again, const struct rlk_reason *why, int64_t now_ns);
/* Whether a set-up is over; its replies count even before it is judged. */
int rlk_node_is_set_up(struct rlk_line *line);

#endif

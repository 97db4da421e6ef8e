/* A second connection beside one that has gone silent. */
#ifndef RLK_SILENCE_H
#define RLK_SILENCE_H

#include "node.h"

void rlk_silence_flushed(struct rlk_node *node, int64_t now_ns); /* something may be in flight from now on */
/* Why the connection is given up, or NONE. */
enum rlk_why rlk_silence_timer(struct rlk_node *node, struct rlk_reason *why, int64_t now_ns);
void rlk_silence_broken(struct rlk_node *node); /* the connection has spoken */
void rlk_silence_forget(struct rlk_node *node); /* the connection is gone, and the second with it */
/* The second has been set up: it is the node's connection from now on. */
void rlk_silence_replace(struct rlk_line *line);
void rlk_silence_second_failed(struct rlk_node *node, const struct rlk_reason *why, int64_t now_ns);
/* Whether a node that has not answered in time may answer yet, over a second connection. Only of one that had been idle
 * before is that expected if the time was chosen by the user (is_patient 0). */
int rlk_silence_hope(const struct rlk_node *node, int is_patient);

#endif

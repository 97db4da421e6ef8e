/* A second connection beside one that has gone silent. */
#ifndef RL_SILENCE_H
#define RL_SILENCE_H

#include "node.h"

void rl_silence_flushed(struct rl_node *node, int64_t now_ns); /* something may be in flight from now on */
void rl_silence_timer(struct rl_node *node, int64_t now_ns);
void rl_silence_broken(struct rl_node *node); /* the connection has spoken */
void rl_silence_forget(struct rl_node *node); /* the connection is gone, and the second with it */
/* The second has been set up: it is the node's connection from now on. */
void rl_silence_replace(struct rl_line *line);
void rl_silence_second_failed(struct rl_node *node, const char *why, int64_t now_ns);
/* Whether a node that has not answered in time may answer yet, over a second connection. Only of one that had been idle
 * before is that expected if the time was chosen by the user (is_patient 0). */
int rl_silence_hope(const struct rl_node *node, int is_patient);

#endif

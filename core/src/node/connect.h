/* Getting a connection: addresses, names, and the pauses between tries. */
#ifndef RL_CONNECT_H
#define RL_CONNECT_H

#include "node.h"

#define RL_BACKOFF_MAX_NS (1000 * RL_NS_PER_MS)

void rl_connect(struct rl_line *line, int64_t now_ns);
/* An event of a link that is being connected. */
void rl_connect_finish(struct rl_line *line, int64_t now_ns);
/* This address did not answer in time: tries those that are left. */
void rl_connect_next_address(struct rl_line *line, const char *why, int64_t now_ns);
void rl_connect_look_at_name(struct rl_node *node, int64_t now_ns);
int64_t rl_connect_timeout_ns(const struct rl_node *node);
int64_t rl_connect_backoff_ns(struct rl_node *node, int failures);
const char *rl_connect_timed_out(const struct rl_line *line); /* what has taken too long */

#endif

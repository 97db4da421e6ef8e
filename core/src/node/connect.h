/* Getting a connection: addresses, names, and the pauses between tries. These functions return NONE, or the reason
 * of a failure. */
#ifndef RLK_CONNECT_H
#define RLK_CONNECT_H

#include "node.h"

#define RLK_BACKOFF_MAX_NS (1000 * RLK_NS_PER_MS)

enum rlk_why rlk_connect(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);
/* An event of a link that is being connected. */
enum rlk_why rlk_connect_finish(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);
/* This address did not answer in time: tries the remaining ones. */
enum rlk_why rlk_connect_next_address(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);
/* The line for which a name is looked up, or NULL. */
struct rlk_line *rlk_connect_resolving(struct rlk_node *node);
enum rlk_why rlk_connect_look_at_name(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);
int64_t rlk_connect_timeout_ns(const struct rlk_node *node);
int64_t rlk_connect_backoff_ns(struct rlk_node *node, int failures);
enum rlk_why rlk_connect_timed_out(const struct rlk_line *line, struct rlk_reason *why); /* the cause of the time-out */

#endif

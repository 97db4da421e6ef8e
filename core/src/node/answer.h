/* A reply to what was owed; and what an error means for the node itself. */
#ifndef RL_ANSWER_H
#define RL_ANSWER_H

#include "session.h"

#define RL_PAUSE_NS (100 * RL_NS_PER_MS) /* for a server that can not do just now what is asked */

void rl_answer(struct rl_line *line, struct rl_owed *owed, const struct rl_reply *reply, int64_t now_ns);
/* A key may still be there: the node is told again a little later, as far as the TTL lets the key live. */
void rl_answer_keep_debt(struct rl_node *node, int64_t pause_ns, int64_t now_ns);
void rl_answer_fault(struct rl_node *node, enum rl_fault fault, const char *text, int64_t now_ns);

#endif

/* Which programs use the nodes: under libredlock:c:programs each node keeps a field for every program of every host,
 * with its version, its max_ttl_ms, and the nonces of the markers that it has seen. People read it; no decision about a
 * lock depends on it. */
#ifndef RLK_PROGRAMS_H
#define RLK_PROGRAMS_H

#include "../node/out.h"

#define RLK_PROGRAMS_KEY "libredlock:c:programs"

/* Writes the field of this client, if that has not been done for ten minutes. The node then tells which programs have
 * other fields, unless it has had this one before and it is the first time. */
void rlk_programs_publish(struct rlk_node *node, int64_t now_ns);
/* Begins the command that asks for all fields: 0, or -1 when memory is out. */
int rlk_programs_put(struct rlk_out *out, struct rlk_node *node);
/* The node's reply to either. */
void rlk_programs_keep(struct rlk_node *node, const struct rlk_outcome *outcome);

#endif

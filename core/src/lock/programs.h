/* Which programs use the nodes: under libredlock:c:programs each node keeps a field for every program of every host,
 * with its version, its max_ttl_ms, and the nonces of the markers that it has seen. People read it; no decision about a
 * lock depends on it. */
#ifndef RLK_PROGRAMS_H
#define RLK_PROGRAMS_H

#include "../node/node.h"

/* Writes the field of this client, if that has not been done for ten minutes. */
void rlk_programs_publish(struct rlk_node *node, int64_t now_ns);

#endif

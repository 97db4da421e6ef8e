/* The clocks of the nodes: one that was stepped forward, and one that is ahead of the others (rule C.3.2). */
#ifndef RLK_CLOCKS_H
#define RLK_CLOCKS_H

#include "quarantine.h"

/* A reading of the node's clock. If it was stepped forward, leases there end earlier (STEPPED), and the node is
 * quarantined, unless all nodes were stepped alike. */
void rlk_clocks_note(struct rlk_node *node, const struct rlk_clock_sample *sample);
/* A node whose clock is ahead of the others may have been stepped before this process could see it, so it does not vote
 * for the longest TTL. What counts there goes on counting. Readings before from_ns do not matter. */
void rlk_clocks_compare(struct rlk_net *net, int64_t from_ns, int64_t now_ns);

#endif

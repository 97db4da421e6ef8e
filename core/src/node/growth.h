/* A max_ttl that nobody has to configure (rule C.3.3): the markers of the restart guard keep the longest TTL that has
 * been used, and the nodes agree on a longer one before it is used. Nothing here waits: each reply moves it on. */
#ifndef RLK_GROWTH_H
#define RLK_GROWTH_H

#include "node.h"

/* The marker of the node was read: the request was sent at that place in the order of what this client does. */
void rlk_growth_note(struct rlk_node *node, const struct rlk_marker *marker, uint64_t order);
/* The place of what is sent now. */
uint64_t rlk_growth_order(struct rlk_net *net);
/* Asks for what is missing: to complete markers, or to agree on a longer TTL. */
void rlk_growth_go_on(struct rlk_net *net, int64_t now_ns);
/* A lease of that TTL is wanted, which is longer than what the node has agreed on: RLK_WAITING while the nodes agree,
 * RLK_QUARANTINED where one of them cannot be asked. */
int rlk_growth_want(struct rlk_node *node, int64_t ttl_ms, int64_t now_ns);
/* Which nodes keep it from going on, for the middle of a line; 0 if none does. */
int rlk_growth_blockers(const struct rlk_net *net, struct rlk_text *out);
int64_t rlk_growth_floor_ms(const struct rlk_net *net);

#endif

/* The restart guard: a server that may have lost keys does not vote for max_ttl_ms, since no lease is longer than that
 * (rule C.3.1). Each server keeps a marker: it is gone where keys are gone, and it names another server on a replica
 * that was promoted. It is read when a connection is set up, and behind every SET. */
#ifndef RLK_GUARD_H
#define RLK_GUARD_H

#include "clocks.h"
#include "quarantine.h"

void rlk_guard_init(struct rlk_net *net); /* when the options stand */

/* The server's past by its set-up: READY, perhaps with a quarantine; CONTINUE while the marker is being written;
 * REFUSE or DROP with the reason in why. */
enum rlk_session_verdict rlk_guard_judge(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);

/* This process has seen that the server has lost keys: it does not vote until it has been set up and judged again. */
void rlk_guard_note_loss(struct rlk_node *node);
/* The server was restarted, or is another one: 1 if leases there continue to count, since no other client is granted
 * them. Then node->run_id is still that of the former server. */
int rlk_guard_note_restart(struct rlk_node *node);
/* The replies to CLOCK and MARKER: has the server lost no keys since it was judged (rules C.3.1, C.3.2)? Then the vote
 * is GRANTED, whether or not it may vote. A clock stepped forward ends leases there earlier (STEPPED). */
void rlk_guard_proof(struct rlk_node *node, struct rlk_outcome *outcome);
/* The lease there that an extension by ttl_ms may give: no longer than its marker's number. */
int64_t rlk_guard_cap_ms(const struct rlk_node *node, int64_t ttl_ms);
/* Does a lease of ttl_ms that does not count yet begin to? GRANTED, QUARANTINED, or REFUSED by the marker's number. */
int rlk_guard_vote(const struct rlk_node *node, int64_t ttl_ms, int64_t now_ns);
/* The marker of a node that is quarantined was read again: an operator may have ended that. */
void rlk_guard_looked(struct rlk_line *line, int64_t now_ns);
/* The reason if its marker keeps this client, or a lease of ttl_ms, out; else NONE. */
enum rlk_why rlk_guard_finding(const struct rlk_node *node, struct rlk_reason *why);
enum rlk_why rlk_guard_limit(const struct rlk_node *node, int64_t ttl_ms, struct rlk_reason *why);

#endif

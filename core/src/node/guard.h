/* The restart guard: a server that may have lost keys does not vote before every lease that it may have granted is over
 * (rule C.3.1). Each server keeps a marker: it is gone where keys are gone, and it names another server on a replica
 * that was promoted. It is read when a connection is set up, and behind every SET. */
#ifndef RLK_GUARD_H
#define RLK_GUARD_H

#include "../base/mutant.h"
#include "command.h"
#include "session.h"

void rlk_guard_init(struct rlk_net *net); /* when the options stand */

static inline int rlk_guard_of(const struct rlk_net *net)
{
  return (int)RLK_INT(&net->options, GUARD);
}

/* Does the guard go by markers? */
static inline int rlk_guard_has_markers(const struct rlk_net *net)
{
  int guard = rlk_guard_of(net);
  return guard == RLK_GUARD_MARKER || guard == RLK_GUARD_LOOK || guard == RLK_GUARD_BOOTSTRAP;
}

/* Is the marker asked for behind every SET, and the time behind every SET and extension? */
static inline int rlk_guard_checks_votes(const struct rlk_node *node)
{
  int guard = rlk_guard_of(node->net);
  return (guard == RLK_GUARD_MARKER || guard == RLK_GUARD_LOOK) && !node->is_unmarked;
}

/* Where INFO is forbidden, servers are known by their markers, so the name of one may change at any moment. No lease
 * may then be extended there under the old name: the scripts compare the marker first (rule C.3.4). */
static inline struct rlk_identity rlk_guard_identity(const struct rlk_node *node)
{
  const struct rlk_net *net = node->net;
  if (!net->no_info || !rlk_guard_checks_votes(node) || RLK_MUTANT(IDENTITY_TRUSTED))
    return (struct rlk_identity){.key = NULL};
  return (struct rlk_identity){net->marker_key, net->marker_key_size, node->marker, rlk_marker_beginning(node->marker)};
}

/* May the server have lost keys whose leases still count? Then it does not vote. */
static inline int rlk_guard_waits(const struct rlk_node *node, int64_t now_ns)
{
  return now_ns < node->quarantined_until_ns || now_ns < node->ahead_until_ns;
}

/* What a set-up has told of the server's past: READY, perhaps with a quarantine; CONTINUE while the marker is being
 * written; REFUSE or DROP with the reason in why. */
enum rlk_session_verdict rlk_guard_judge(struct rlk_line *line, struct rlk_text *why, int64_t now_ns);
#define RLK_GUARD_LOSS "its marker has changed: it may have lost keys"

/* This process has seen that the server has lost keys: it does not vote until it has been set up and judged again. */
void rlk_guard_note_loss(struct rlk_node *node);
/* It has seen that it was started anew, or is another one: 1 if leases there go on to count, since nobody else is
 * granted them. Then node->run_id is still that of the former server. */
int rlk_guard_note_restart(struct rlk_node *node);
/* What the node has told of the time in a set-up may show that another one is ahead, or is not: one that is ahead of
 * the others may have been stepped before this process could see it, so it does not vote for the longest TTL (AHEAD).
 */
void rlk_guard_compare_clocks(struct rlk_node *node, int64_t now_ns);
/* What the replies to CLOCK and MARKER mean: has the server lost no keys since it was judged (rules C.3.1, C.3.2)? A
 * clock that was stepped forward ends leases there earlier (STEPPED). */
struct rlk_meaning rlk_guard_meaning(struct rlk_line *line, const struct rlk_request *request,
                                     struct rlk_meaning meaning, int64_t now_ns);
void rlk_guard_growth_replied(struct rlk_line *line, const struct rlk_request *request, int64_t now_ns);
void rlk_guard_tell(struct rlk_node *node, int64_t now_ns); /* that it is quarantined, as an event */
/* How long it will not vote, and why. */
void rlk_guard_words(const struct rlk_node *node, struct rlk_text *out, int64_t now_ns);

#endif

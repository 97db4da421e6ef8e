/* What an operator finds on the nodes, and what is written there: decided from what each server shows, without I/O and
 * without a clock, so that the simulator's operator decides by the same lines (rule C.3.1). */
#ifndef RLK_PLAN_H
#define RLK_PLAN_H

#include "../../include/redlock.h"
#include "../node/node.h"
#include "../rules/marker.h"

/* The marker of a server in the eyes of a client. */
enum rlk_finding {
  RLK_FOUND_NOTHING, /* it was not read */
  RLK_FOUND_OURS,
  RLK_FOUND_NONE,    /* there is none, or it is not of this server: the server is new, or has lost keys */
  RLK_FOUND_SMALLER, /* it allows shorter leases than this client */
  RLK_FOUND_LARGER,
  RLK_FOUND_OTHER_NODES,
  RLK_FOUND_OTHER_CLUSTER,
  RLK_FOUND_FOREIGN
};

/* What a server shows of itself. */
struct rlk_sight {
  const char *marker, *run_id, *replid2; /* "": it has none, or does not show it */
  int database;
  int64_t clock_ms;
};

/* What all programs of the nodes have in common. */
struct rlk_common {
  int nodes;
  const char *cluster;
  int64_t max_ttl_ms;
  double drift_factor;
};

/* A node as an operator sees it, and what is to be written there. */
struct rlk_planned {
  int found; /* enum redlock_bootstrap_found */
  int did;   /* enum redlock_bootstrap_did: what was done, or would be */
  int votes;
  char words[RLK_WHY_SIZE];
  struct rlk_marker mark;
  char replid2[RLK_REPLID2_DIGITS + 1];
  int64_t left_ms; /* of its quarantine, by the number that its marker names */
  /* as it was shown; only if it still is so, its marker is written */
  char run_id[41], seen[RLK_MARKER_SIZE];
  struct rlk_marker wanted; /* nodes 0: nothing; without a run id: a new one, quarantined unless since_ms is 0 */
  int will;                 /* enum redlock_bootstrap_did, once it is written */
  char written[RLK_MARKER_SIZE];
};

struct rlk_plan {
  int mode; /* in which it was made; 0: it is used up */
  struct rlk_planned nodes[RLK_NODES_MAX];
};

static inline struct rlk_common rlk_plan_common(const struct rlk_net *net)
{
  return (struct rlk_common){net->node_count, RLK_STRING(net, CLUSTER), RLK_INT(&net->options, MAX_TTL_MS),
                             RLK_FLOAT(&net->options, DRIFT_FACTOR)};
}

/* What the number of a marker means to a client with that max_ttl_ms. */
enum rlk_finding rlk_find_number(struct rlk_marker *marker, int64_t max_ttl_ms);
enum rlk_finding rlk_find(const struct rlk_sight *sight, const struct rlk_common *common, struct rlk_marker *marker);
/* Sets found, words (unless these are the node's own), mark and left_ms. */
void rlk_plan_look(struct rlk_planned *node, const struct rlk_sight *sight, const struct rlk_common *common, int mode);
/* Decides what a call of that mode writes; a dry one shows only what one question can ask. 1 if something is written.
 */
int rlk_plan_make(struct rlk_plan *plan, int count, const struct rlk_common *common, int mode);
/* A call carries out the plan that a dry one of its mode has shown before. */
int rlk_plan_was_shown(const struct rlk_plan *plan, int mode);
/* Is something to be written there, and does the server still show what was shown? */
int rlk_plan_stands(const struct rlk_planned *node, const struct rlk_sight *sight);

#endif

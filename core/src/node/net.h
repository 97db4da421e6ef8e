/* The nodes of a client and what they share. */
#ifndef RLK_NET_H
#define RLK_NET_H

#include <stdint.h>

#include "../base/event.h"
#include "../base/timer.h"
#include "../rules/options.h"
#include "env.h"
#include "../rules/marker.h"
#include "poller.h"

struct rlk_planned;

enum rlk_net_state {
  RLK_NET_NEW,
  RLK_NET_OPEN,
  RLK_NET_DRAINING, /* takes no new work; others may still be driving */
  RLK_NET_CLOSED
};

struct rlk_net {
  enum rlk_net_state state;
  struct rlk_env env;
  struct rlk_numbers options;
  char *texts[RLK_OPTION_COUNT]; /* the options that are texts, but for the nodes; NULL elsewhere */
  struct rlk_tls *tls;           /* NULL: no node has TLS */
  char marker_key[320];          /* of the restart guard, as a bulk string */
  size_t marker_key_size;
  char channel[320]; /* announces whose turn it is in a queue */
  struct rlk_node *nodes;
  int node_count;
  struct rlk_poller poller;
  struct rlk_node *dirty_nodes; /* with bytes to write */
  struct rlk_timers timers;
  struct rlk_events events;
  uint64_t random_state;
  uint64_t commands;           /* sent */
  int looks;                   /* it registers no server: new ones do not vote */
  struct rlk_planned *planned; /* what an operator writes, by node; NULL elsewhere */
  int has_own_step;            /* all clocks were stepped alike a short time ago */
  uint64_t servers;            /* how often a node turned out to be another server than before */
};

/* The value of an option that is a text. */
#define RLK_STRING(net, symbol) ((net)->texts[RLK_OPT_##symbol])

/* Does every server keep a marker of the restart guard? It is asked for behind every SET, and the time behind every SET
 * and extension. */
static inline int rlk_net_has_markers(const struct rlk_net *net)
{
  return RLK_INT(&net->options, GUARD) == RLK_GUARD_MARKER;
}

int64_t rlk_now(const struct rlk_net *net);
uint64_t rlk_random(struct rlk_net *net);
uint64_t rlk_net_seed(struct rlk_net *net); /* new randomness: bits that make this process unlike all others */

#endif

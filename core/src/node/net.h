/* The nodes of a client and what they share. */
#ifndef RLK_NET_H
#define RLK_NET_H

#include <stdint.h>

#include "../base/event.h"
#include "../base/timer.h"
#include "../rules/options.h"
#include "env.h"
#include "poller.h"

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
  char channel[320]; /* on which it is told whose turn it is in a queue */
  struct rlk_node *nodes;
  int node_count;
  struct rlk_poller poller;
  struct rlk_node *dirty_nodes; /* with something to be written */
  struct rlk_timers timers;
  struct rlk_events events;
  uint64_t random_state;
  uint64_t commands; /* sent */
  /* a longer max_ttl, see growth.h */
  uint64_t order;        /* of what is sent and learnt of markers */
  int64_t wanted_ms;     /* the longest TTL that was asked for */
  int64_t raised_ms;     /* what all markers have as their max_ttl */
  uint64_t raised_order; /* since when that is known; 0: it is not so */
  int no_info;           /* a node forbids INFO: servers are not known by names of their own, see guard.h */
  uint64_t servers;      /* how often a node turned out to be another server than before */
};

/* The value of an option that is a text. */
#define RLK_STRING(net, symbol) ((net)->texts[RLK_OPT_##symbol])

int64_t rlk_now(const struct rlk_net *net);
uint64_t rlk_random(struct rlk_net *net);
uint64_t rlk_net_seed(struct rlk_net *net); /* new randomness: bits that make this process unlike all others */

#endif

/* The nodes of a client and what they share. */
#ifndef RL_NET_H
#define RL_NET_H

#include <stdint.h>

#include "../base/event.h"
#include "../base/timer.h"
#include "../rules/options.h"
#include "env.h"
#include "poller.h"

enum rl_net_state {
  RL_NET_NEW,
  RL_NET_OPEN,
  RL_NET_DRAINING, /* takes no new work; others may still be driving */
  RL_NET_LEAVING,  /* all deletes are queued: what is written is followed by a half-close */
  RL_NET_CLOSED
};

struct rl_net {
  enum rl_net_state state;
  struct rl_env env;
  struct rl_numbers options;
  char *client_name, *key_prefix;
  struct rl_node *nodes;
  int node_count;
  struct rl_poller poller;
  struct rl_node *dirty_nodes; /* with something to be written */
  struct rl_timers timers;
  struct rl_events events;
  uint64_t random_state;
  uint64_t commands; /* sent */
};

int64_t rl_now(const struct rl_net *net);
uint64_t rl_random(struct rl_net *net);
uint64_t rl_net_seed(struct rl_net *net); /* new randomness: bits that make this process unlike all others */

#endif

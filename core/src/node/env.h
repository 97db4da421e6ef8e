/* The surroundings of a client, which the simulator replaces. The rest of the core cannot tell. */
#ifndef RL_ENV_H
#define RL_ENV_H

#include "../base/platform.h"
#include "link.h"

struct rl_env {
  const struct rl_platform *platform;
  const struct rl_link_ops *link;
  void *context; /* handed to both tables */
  int stepped;   /* 1: no descriptors, no threads: the owner calls the functions of stepped.h and the started shape */
};

#endif

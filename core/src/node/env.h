/* The surroundings of a client, which the simulator replaces. The rest of the core sees no difference. */
#ifndef RLK_ENV_H
#define RLK_ENV_H

#include "../base/platform.h"
#include "link.h"

struct rlk_env {
  const struct rlk_platform *platform;
  const struct rlk_link_ops *link;
  void *context; /* handed to both tables */
  int stepped;   /* 1: no descriptors, no threads: the owner calls the functions of stepped.h and the started shape */
};

#endif

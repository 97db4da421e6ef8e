/* The seam for the simulator: a client whose surroundings are given. The rest of the core cannot tell. */
#ifndef RL_ENV_H
#define RL_ENV_H

#include "../include/redlock.h"
#include "link.h"
#include "platform.h"

struct rl_env {
  const struct rl_platform *platform;
  const struct rl_link_ops *link;
  void *context;     /* handed to both tables */
  int stepped;       /* 1: no descriptors, no threads: the owner calls the functions below and the started shape */
};

/* As redlock_client_new, in a given environment; env is copied, its tables must outlive the client. */
redlock_client *rl_client_new_in(const struct rl_env *env);

/* What an event on a node's link can be; several may be given at once. */
enum { RL_READABLE = 1, RL_WRITABLE = 2 };

/* For a stepped client: node's link (of that generation) has become readable or writable. redlock_client_process runs
 * the deadlines, as always. */
void rl_client_link_event(redlock_client *client, int node, uint32_t generation, int what);

/* When redlock_client_process has to run next at the latest, on the platform's clock; RL_NEVER if nothing is due.
 * A value in the past means at once. */
int64_t rl_client_next_deadline(redlock_client *client);

#endif

/* The seam for the simulator: a client whose surroundings are given, and that its owner steps. */
#ifndef RLK_STEPPED_H
#define RLK_STEPPED_H

#include "../../include/redlock.h"
#include "../node/env.h"
#include "../node/poller.h"

/* As redlock_client_new, in a given environment; env is copied, its tables must outlive the client. */
redlock_client *rlk_client_new_in(const struct rlk_env *env);

/* Node's link (of that generation) has become readable or writable. redlock_client_process runs the deadlines, as
 * always. */
void rlk_client_link_event(redlock_client *client, int node, uint32_t generation, int what);

/* When redlock_client_process has to run next at the latest, on the platform's clock; RLK_NEVER if nothing is due.
 * A value in the past means at once. */
int64_t rlk_client_next_deadline(redlock_client *client);

#endif

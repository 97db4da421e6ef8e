/* Leaving. */
#ifndef RLK_DRAIN_H
#define RLK_DRAIN_H

#include "client.h"

/* With the mutex held; -1: exit_drain_ms. */
int rlk_client_drain(redlock_client *client, int64_t limit_ms);

#endif

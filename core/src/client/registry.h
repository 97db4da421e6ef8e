/* The clients of the process, and what a fork makes of one (forking.c). */
#ifndef RLK_REGISTRY_H
#define RLK_REGISTRY_H

#include "client.h"

int rlk_registry_add(redlock_client *client); /* REDLOCK_OK or REDLOCK_INTERNAL; a second time: nothing happens */
void rlk_registry_remove(redlock_client *client);
redlock_client *rlk_registry_lock(void); /* the first of the clients; before any client's mutex */
void rlk_registry_unlock(void);

/* In a child: new descriptors, new randomness, nothing of the parent's. Runs in the fork handler, or at the first call
 * where a raw clone went past it. */
void rlk_client_forked(redlock_client *client);

#endif

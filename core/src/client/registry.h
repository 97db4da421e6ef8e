/* The clients of the process. */
#ifndef RL_REGISTRY_H
#define RL_REGISTRY_H

#include "client.h"

int rl_registry_add(redlock_client *client); /* REDLOCK_OK or REDLOCK_INTERNAL; a second time: nothing happens */
void rl_registry_remove(redlock_client *client);
redlock_client *rl_registry_lock(void); /* the first of the clients; before any client's mutex */
void rl_registry_unlock(void);

#endif

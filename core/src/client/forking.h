/* A client in the child of a fork. */
#ifndef RLK_FORKING_H
#define RLK_FORKING_H

#include "client.h"

/* In a child: new descriptors, new randomness, nothing of the parent's. Runs in the fork handler, or at the first call
 * where a raw clone went past it. */
void rlk_client_forked(redlock_client *client);

#endif

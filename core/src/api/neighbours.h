/* The programs that share the nodes of a client, in JSON. */
#ifndef RLK_NEIGHBOURS_H
#define RLK_NEIGHBOURS_H

#include "api.h"

/* An array of objects, from what the nodes have told (lock/programs.c). */
void rlk_neighbours(const redlock_client *client, struct rlk_text *out, int64_t now_ns);

#endif

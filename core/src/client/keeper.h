/* The one thread per process that sees to renewals. */
#ifndef RLK_KEEPER_H
#define RLK_KEEPER_H

#include "client.h"

void rlk_keeper_forked(void);
int rlk_keeper_ensure(void);
void rlk_keeper_schedule(redlock_client *client, int64_t at_ns);

#endif

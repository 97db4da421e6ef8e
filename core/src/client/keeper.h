/* The one thread per process that sees to renewals. */
#ifndef RL_KEEPER_H
#define RL_KEEPER_H

#include "client.h"

void rl_keeper_forked(void);
int rl_keeper_ensure(void);
void rl_keeper_schedule(redlock_client *client, int64_t at_ns);

#endif

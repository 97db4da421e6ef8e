/* The one thread per process that sees to renewals. */
#ifndef RLK_KEEPER_H
#define RLK_KEEPER_H

#include "client.h"

int rlk_keeper_ensure(void);

#endif

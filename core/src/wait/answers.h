/* What nodes say of queues. */
#ifndef RLK_ANSWERS_H
#define RLK_ANSWERS_H

#include "wait.h"

/* A message on the channel of the client: the turn of a waiter has come. */
void rlk_wait_woken(struct rlk_engine *engine, const struct rlk_node *node, const struct rlk_outcome *outcome);

#endif

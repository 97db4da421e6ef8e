/* A client lives as long as its owner or one of its locks; it leaves the nodes before (drain.c). */
#ifndef RLK_LIFE_H
#define RLK_LIFE_H

#include "client.h"

int rlk_client_drain(redlock_client *client, int64_t limit_ms); /* with the mutex held; -1: exit_drain_ms */
void rlk_client_unref(redlock_client *client);                  /* with the mutex held; releases it */
void rlk_client_add_node(redlock_client *client, const struct rlk_url *url); /* takes what url owns */
void rlk_client_free_nodes(redlock_client *client, struct rlk_node *nodes, int count);
void rlk_client_free_texts(redlock_client *client);

#endif

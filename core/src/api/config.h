/* The options of a client and its list of nodes. */
#ifndef RLK_CONFIG_H
#define RLK_CONFIG_H

#include "../client/client.h"

int rlk_client_init_texts(redlock_client *client); /* -1 when memory is out */
int rlk_client_init_tls(redlock_client *client, struct rlk_text *why);
void rlk_client_read_environment(redlock_client *client);
int rlk_client_check_max_ttl(const redlock_client *client, struct rlk_text *why);
int rlk_client_check(const redlock_client *client, struct rlk_text *why); /* needed for opening it */
int rlk_client_open(redlock_client *client, int looks);

#endif

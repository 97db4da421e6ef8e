/* Host names to numeric addresses, off the path of every attempt: a short-lived thread per look-up. */
#ifndef RL_RESOLVER_H
#define RL_RESOLVER_H

#include <stdint.h>

#include "../base/buffer.h"
#include "link.h"

enum { RL_ADDRESSES_MAX = 8 };

struct rl_resolve;

/* A numeric host: 1 and the address. 0: it is a name. */
int rl_address_numeric(const char *host, uint16_t port, struct rl_address *address);

/* Starts looking host up; wake_fd (an eventfd, duplicated) is written when it is done. NULL: no memory or no thread. */
struct rl_resolve *rl_resolve_start(const char *host, uint16_t port, int wake_fd);
/* -EAGAIN while it goes on; the number of addresses (at most RL_ADDRESSES_MAX); or -1 with the reason in why. */
int rl_resolve_result(struct rl_resolve *resolve, struct rl_address *addresses, struct rl_text *why);
/* Lets go of it, done or not; never waits. */
void rl_resolve_drop(struct rl_resolve *resolve);
/* In a forked child, where the thread does not exist. */
void rl_resolve_forked(struct rl_resolve *resolve);

#endif

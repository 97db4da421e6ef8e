/* Host names to numeric addresses, off the path of every attempt: a short-lived thread per look-up. */
#ifndef RLK_RESOLVER_H
#define RLK_RESOLVER_H

#include <stdint.h>

#include "../base/buffer.h"
#include "link.h"

enum { RLK_ADDRESSES_MAX = 8 };

struct rlk_resolve;

/* A numeric host: 1 and the address. 0: it is a name. */
int rlk_address_numeric(const char *host, uint16_t port, struct rlk_address *address);

/* Starts looking host up; the bell is rung, by a duplicate of ringer, when it is done. NULL: no memory or no thread.
 * The address used is the first of the result if it is one of them; family 0: there is none. */
struct rlk_resolve *rlk_resolve_start(const char *host, uint16_t port, const struct rlk_address *used, int ringer);
/* -EAGAIN while it goes on; the number of addresses (at most RLK_ADDRESSES_MAX); or -1 with the reason in why. */
int rlk_resolve_result(struct rlk_resolve *resolve, struct rlk_address *addresses, struct rlk_reason *why);
/* How many addresses of one family it has found, if there are several: each may lead to another server. */
int rlk_resolve_several(const struct rlk_resolve *resolve);
/* Lets go of it, done or not; never waits. */
void rlk_resolve_drop(struct rlk_resolve *resolve);
/* In a forked child, where the thread does not exist. */
void rlk_resolve_forked(struct rlk_resolve *resolve);

#endif

/* wire.h - a connection of the command's own to one node, for what the library does not ask: it blocks, and a signal
 * ends it. URL, credentials and TLS are read by the core's own code, so nothing is understood differently here. */
#ifndef REDLOCK_CLI_WIRE_H
#define REDLOCK_CLI_WIRE_H

#include <hiredis.h>

#include "cli.h"

struct wires; /* what the connections of a session share */
struct wire;  /* one connection */

/* NULL after a refusal was printed. The session must have been opened. */
struct wires *wires_new(struct session *session);
int wires_count(const struct wires *wires);
void wires_free(struct wires *wires);

/* Connects to a node and logs in; NULL: wires_why tells the reason. */
struct wire *wire_open(struct wires *wires, int node);
/* Sends a command; several may be sent before their replies are read. False: as wire_open. */
bool wire_send(struct wire *wire, int count, const char *const *words, const size_t *sizes);
/* The next reply, also one that is an error; freeReplyObject it. NULL: as wire_open. */
redisReply *wire_reply(struct wire *wire);
void wire_close(struct wire *wire);

/* Why the last call failed; "" after a signal. */
const char *wires_why(const struct wires *wires);

#endif

/* wire.h - a connection of the command's own to one node, for requests that the library does not make: it blocks,
 * and a signal ends it. wire.c alone reaches below the public header: the core's own code reads URL,
 * credentials and TLS, so they mean the same here. */
#ifndef REDLOCK_CLI_WIRE_H
#define REDLOCK_CLI_WIRE_H

#include <hiredis.h>

#include "cli.h"

struct wires; /* shared by the connections of a session */
struct wire;  /* one connection */

/* NULL after a refusal was printed. The session must have been opened. */
struct wires *wires_new(struct session *session);
int wires_count(const struct wires *wires);
void wires_free(struct wires *wires);

/* Connects to a node and logs in; NULL: wires_why has the reason. */
struct wire *wire_open(struct wires *wires, int node);
/* How many addresses a node has whose name has several of one family, at most 8; 0: it has one, or none. */
int wires_addresses(struct wires *wires, int node);
/* At one of these addresses, from 0. */
struct wire *wire_open_at(struct wires *wires, int node, int address);
/* Sends a command; several may be sent before their replies are read. False: as wire_open. */
bool wire_send(struct wire *wire, int count, const char *const *words, const size_t *sizes);
/* The next reply, also one that is an error; freeReplyObject it. NULL: as wire_open. */
redisReply *wire_reply(struct wire *wire);
void wire_close(struct wire *wire);

/* Why the last call failed; "" after a signal. */
const char *wires_why(const struct wires *wires);

/* A name as the library's messages show it, so that nothing in it is a command to a terminal; free it. */
char *wire_escaped(const char *bytes, size_t size);

#endif

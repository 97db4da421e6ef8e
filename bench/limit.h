/* The limit programs: what a Redlock cycle (acquire, then release) costs when only the bytes are moved. No time-outs,
 * no repair, no lease; any surprise ends the program. limit.c has the loop, limit_raw.c and limit_hiredis.c move the
 * bytes by the functions below. */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include <stdbool.h>

enum { MAX_NODES = 9, MAX_IN_FLIGHT = 1024, TOKEN_SIZE = 40 };
enum phase { ACQUIRE, RELEASE };

#define TTL_MS_TEXT "10000"
#define RELEASE_SCRIPT "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

/* Connects, loads RELEASE_SCRIPT and returns the descriptor, which does not block. */
int backend_open(int node, int port);

/* The slot's key, once; then the token of each of its cycles. The texts stay where they are. */
void backend_set_key(int slot, const char *key);
void backend_set_token(int slot, const char *token);

/* Before the keys are set: behind each SET the node's clock and marker are read, as for the restart guard, and the vote
 * counts when they are there. */
void backend_read_marker(void);

/* Appends the command to what is to be written to the node, and writes it all. */
void backend_queue(int node, int slot, enum phase phase);
void backend_flush(int node);

/* Reads once and calls limit_reply for each reply. */
void backend_read(int node);

void limit_reply(int node, bool granted);

#endif

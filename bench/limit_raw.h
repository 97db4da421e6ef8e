/* What limit_raw.c moves its bytes with. Any surprise ends the program. */
#ifndef BENCH_LIMIT_RAW_H
#define BENCH_LIMIT_RAW_H

#include <stddef.h>

/* The descriptor is connected, and blocks until the first functions have returned. */
void transport_begin(int node, int fd);
void transport_write(int node, const char *data, size_t size); /* all of it */
size_t transport_read(int node, char *data, size_t size);      /* what has come; the descriptor is readable */

#endif

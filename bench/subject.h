/* What the programs that measure the library share: an open client made from the command line. */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <argp.h>

#include "../core/include/redlock.h"

/* Options --nodes, --set and --wait-all; the parser's input is a redlock_client. */
extern const struct argp subject_argp;

/* A new lock on resource "bench:<number>". */
redlock_lock *subject_lock(redlock_client *client, unsigned number);

/* Commands that the client has sent so far. */
int64_t commands_of(redlock_client *client);

#endif

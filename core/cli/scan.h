/* scan.h - the names of locks that the nodes have. */
#ifndef REDLOCK_CLI_SCAN_H
#define REDLOCK_CLI_SCAN_H

#include "cli.h"

struct scan_name {
  int slot; /* of a permit; 0: the first, or a plain lock */
  size_t size;
  char bytes[]; /* of the resource, with a NUL behind them */
};

struct scan {
  struct session *session;
  struct scan_name **names; /* in order */
  size_t count;
  int limit;
  bool is_cut;    /* there are more */
  json_t *nodes;  /* of each: "node", "scanned", and "why" if it was not */
  int scanned;    /* nodes */
  int forbidden;  /* nodes that forbid SCAN or GETRANGE */
  void *tree;     /* of names, while it goes on */
  char *prefix;   /* of the resources */
  char *own_keys; /* the prefix of the library's own keys */
};

/* Asks the nodes one after the other; 0, or the exit code after a refusal was printed. */
int scan_run(struct scan *scan, struct session *session);
void scan_free(struct scan *scan);

#endif

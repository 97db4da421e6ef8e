/* The key of the restart guard on a server:
 * "v2 <run_id> <since> <nodes> <database> <nonce> <max_ttl_ms> <cluster> <replid2>". It is gone where keys are gone.
 * The first programs of this form wrote no replid2. Fields that a later version appends are tolerated. */
#ifndef RLK_MARKER_H
#define RLK_MARKER_H

#include <stdint.h>

#include "../base/buffer.h"

#define RLK_MARKER_NAME "libredlock:m"
enum { RLK_MARKER_SIZE = 256, RLK_CLUSTER_MAX = 32, RLK_REPLID2_DIGITS = 16 };
#define RLK_REPLID2_NONE "0000000000000000" /* no earlier history: as the server shows it, or does not */

struct rlk_marker {
  char run_id[41];    /* of the server that it was written on */
  int64_t since_ms;   /* when that was, by the server's clock; 0: an operator has said that no lock is live there */
  int nodes;          /* of the clients */
  int database;       /* that it was written to */
  char nonce[17];     /* no two markers are equal */
  int64_t max_ttl_ms; /* no lease there is longer */
  char cluster[RLK_CLUSTER_MAX + 1];
  char replid2[RLK_REPLID2_DIGITS + 1]; /* the beginning of the server's master_replid2; "": it is not named */
};

int rlk_marker_read(const char *text, struct rlk_marker *marker); /* 1, or 0: it is none */
/* The text before the time, and behind it: the registration script inserts that. */
void rlk_marker_head(const struct rlk_marker *marker, struct rlk_text *out);
void rlk_marker_tail(const struct rlk_marker *marker, struct rlk_text *out);
/* Was it written by the same registration? An operator may change max_ttl_ms, and since to 0. */
int rlk_marker_is_same(const struct rlk_marker *one, const struct rlk_marker *other);
/* Is the server that shows `replid2` the one that showed `before`? It is another one if it has become a master anew
 * since then. Zeros say nothing: the server has forgotten the history that it had before. */
int rlk_replid2_is_same(const char *before, const char *replid2);
int rlk_cluster_is_valid(const char *name);

#endif

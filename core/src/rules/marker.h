/* The key of the restart guard on a server: "v2 <run_id> <since> <nodes> <database> <nonce> <max_ttl_ms> <cluster>".
 * It is gone where keys are gone. Fields that a later version appends are tolerated. */
#ifndef RLK_MARKER_H
#define RLK_MARKER_H

#include <stdint.h>

#include "../base/buffer.h"

#define RLK_MARKER_NAME "libredlock:m"
enum { RLK_MARKER_SIZE = 256, RLK_CLUSTER_MAX = 32 };

struct rlk_marker {
  char run_id[41];    /* of the server that it was written on */
  int64_t since_ms;   /* when that was, by the server's clock; 0: an operator has said that no lock is live there */
  int nodes;          /* of the clients */
  int database;       /* that it was written to */
  char nonce[17];     /* no two markers are equal */
  int64_t max_ttl_ms; /* no lease there is longer */
  char cluster[RLK_CLUSTER_MAX + 1];
};

int rlk_marker_read(const char *text, struct rlk_marker *marker); /* 1, or 0: it is of another version */
int rlk_marker_is_old(const char *text);                          /* of version 0.1 */
/* The text before the time, and behind it: the registration script inserts that. */
void rlk_marker_head(const struct rlk_marker *marker, struct rlk_text *out);
void rlk_marker_tail(const struct rlk_marker *marker, struct rlk_text *out);
/* Was it written by the same registration? An operator may change max_ttl_ms, and since to 0. */
int rlk_marker_is_same(const struct rlk_marker *one, const struct rlk_marker *other);
int rlk_cluster_is_valid(const char *name);

#endif

/* The key of the restart guard on a server: "v1 <run_id> <since> <nodes> <nonce> <setting> <quarantine> <max_ttl>
 * <agreed>". What stands up to the nonce is written once and is gone where keys are gone. */
#ifndef RLK_MARKER_H
#define RLK_MARKER_H

#include <stdint.h>

#include "../base/buffer.h"

#define RLK_MARKER_NAME "libredlock:m"
enum { RLK_MARKER_SIZE = 128 };

struct rlk_marker {
  char run_id[41];       /* of the server that it was written on */
  int64_t since_ms;      /* when, by the server's clock; 0: an operator has said that no lock is live there */
  int nodes;             /* of the clients */
  char nonce[17];        /* no two markers are equal */
  int64_t setting_ms;    /* the option max_ttl_ms of the clients; 0: auto */
  int64_t quarantine_ms; /* how long the server does not vote; 0: that is not known yet */
  int64_t max_ttl_ms;    /* how long other servers are to be quarantined that lose their keys */
  int64_t agreed_ms;     /* leases up to this TTL are granted here: all nodes have had it as their max_ttl_ms */
};

int rlk_marker_read(const char *text, struct rlk_marker *marker); /* 1, or 0: it is none */
/* What the script of the registration puts behind the time; and all of it. */
void rlk_marker_tail(const struct rlk_marker *marker, struct rlk_text *out);
void rlk_marker_write(const struct rlk_marker *marker, struct rlk_text *out);
/* The length of what never changes in a marker: up to the nonce and the space behind it. */
size_t rlk_marker_beginning(const char *text);
/* Is it the same one, whatever has been raised in it since? */
int rlk_marker_is_same(const struct rlk_marker *one, const struct rlk_marker *other);

static inline int rlk_marker_is_complete(const struct rlk_marker *marker)
{
  return marker->quarantine_ms > 0;
}

#endif

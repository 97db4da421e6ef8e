/* TLS on a connected descriptor: a table of link.h on top of the sockets'. What is above the link cannot tell. */
#ifndef RLK_TLS_H
#define RLK_TLS_H

#include "../base/buffer.h"
#include "link.h"

struct rlk_tls; /* what the connections of a client share: who is trusted, and our own certificate */

/* NULL or "": not set. */
struct rlk_tls_settings {
  const char *ca_file, *ca_path; /* neither: the system's */
  const char *cert_file, *key_file;
  int is_verified; /* 0: any certificate will do */
};

/* What belongs to a node: the name in its certificate, and the session that a reconnection resumes. */
struct rlk_tls_peer {
  struct rlk_tls *tls; /* NULL: the node does without TLS */
  const char *name;    /* a host name or a numeric address */
  void *session;
};

/* Reads all files: REDLOCK_OK, or REDLOCK_INVALID or REDLOCK_NO_MEMORY with the reason in why. */
int rlk_tls_new(struct rlk_tls **tls, const struct rlk_tls_settings *settings, struct rlk_text *why);
void rlk_tls_free(struct rlk_tls *tls);
void rlk_tls_forget(struct rlk_tls_peer *peer);

extern const struct rlk_link_ops rlk_link_tls;

#endif

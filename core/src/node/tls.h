/* TLS on a connected descriptor: a table of link.h on top of the sockets'. The code above the link sees no
 * difference. */
#ifndef RLK_TLS_H
#define RLK_TLS_H

#include "../base/buffer.h"
#include "link.h"

struct rlk_tls; /* shared by the connections of a client: trusted authorities, and our own certificate */

/* NULL or "": not set. */
struct rlk_tls_settings {
  const char *ca_file, *ca_path; /* neither: the system's */
  const char *cert_file, *key_file;
  int is_verified; /* 0: any certificate will do */
};

/* The TLS state of a node: the name in its certificate, and the session that a reconnection resumes. */
struct rlk_tls_peer {
  struct rlk_tls *tls; /* NULL: the node does without TLS */
  const char *name;    /* a host name or a numeric address */
  void *session;
  unsigned session_era; /* the files that it was negotiated with */
  int64_t expires_s;    /* when the server's certificate does, in seconds since 1970; 0 unknown */
};

/* Reads all files: REDLOCK_OK, or REDLOCK_INVALID or REDLOCK_NO_MEMORY with the reason in why. The texts of the
 * settings are used until it is freed. */
int rlk_tls_new(struct rlk_tls **tls, const struct rlk_tls_settings *settings, struct rlk_text *why);
/* Before a connection is made: reads the files again if one has changed. If they are unusable, connections continue
 * with the former contents, and the reason is returned once for each change. */
int rlk_tls_refresh(struct rlk_tls *tls, struct rlk_text *why);
/* When our own certificate expires, in seconds since 1970; 0: there is none. */
int64_t rlk_tls_expires_s(const struct rlk_tls *tls);
void rlk_tls_free(struct rlk_tls *tls);
void rlk_tls_forget(struct rlk_tls_peer *peer);

/* OpenSSL's words on a connection that failed. */
struct rlk_tls_failure {
  const char *words, *name; /* of its last error; of the server, as its certificate should have it */
  long verdict;             /* on the certificate; 0: that is not the reason */
  const char *verdict_words;
  int is_at_end, is_set_up; /* the server has closed; the handshake is over */
};
enum rlk_why rlk_tls_because(struct rlk_reason *why, const struct rlk_tls_failure *failed);
enum rlk_why rlk_tls_silence(struct rlk_reason *why, int is_heard); /* no answer to the handshake, or a part of one */

extern const struct rlk_link_ops rlk_link_tls;

#endif

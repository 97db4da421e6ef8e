/* Node URLs. */
#ifndef RLK_URL_H
#define RLK_URL_H

#include <stdint.h>

#include "../base/buffer.h"

enum { RLK_URL_WHY_SIZE = 256 };

struct rlk_url {
  char *host;     /* a name or a numeric address without brackets; the path for a unix socket */
  char *user;     /* NULL: none */
  char *password; /* NULL: none */
  char *name;     /* as messages show it, without credentials */
  int database;
  int64_t max_ttl_ms; /* the client option, which may end the list of nodes; 0: it does not stand here */
  uint16_t port;
  int is_unix;
  int is_tls;
};

/* Reads one URL of size bytes: REDLOCK_OK, REDLOCK_NO_MEMORY, or REDLOCK_INVALID with the reason in why. It
 * repeats nothing of the URL: any part may be one of a password. On failure url is left empty. */
int rlk_url_parse(struct rlk_url *url, const char *text, size_t size, struct rlk_text *why);
int rlk_url_copy(struct rlk_url *url, const struct rlk_url *from); /* REDLOCK_OK or REDLOCK_NO_MEMORY */
void rlk_url_free(struct rlk_url *url);

/* The URL with the password as ***. */
void rlk_url_format(const struct rlk_url *url, struct rlk_text *out);

/* The same server by name; two databases of one server are still one server. */
/* Has the list no place for a password, not even a wrong one? Then its entries may be shown. */
int rlk_url_list_is_public(const char *list);
int rlk_url_same(const struct rlk_url *a, const struct rlk_url *b);

#endif

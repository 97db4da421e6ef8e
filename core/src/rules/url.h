/* Node URLs. */
#ifndef RL_URL_H
#define RL_URL_H

#include <stdint.h>

#include "../base/buffer.h"

struct rl_url {
  char *host;      /* a name or a numeric address without brackets; the path for a unix socket */
  char *user;      /* NULL: none */
  char *password;  /* NULL: none */
  char *name;      /* as messages show it, without credentials */
  int database;
  uint16_t port;
  int is_unix;
};

/* Reads one URL of size bytes: REDLOCK_OK, REDLOCK_NO_MEMORY, or REDLOCK_INVALID with the reason in why (credentials
 * are never repeated there). On failure url is left empty. */
int rl_url_parse(struct rl_url *url, const char *text, size_t size, struct rl_text *why);
void rl_url_free(struct rl_url *url);

/* The URL with the password as ***. */
void rl_url_format(const struct rl_url *url, struct rl_text *out);

/* The same server by name; two databases of one server are still one server. */
int rl_url_same(const struct rl_url *a, const struct rl_url *b);

#endif

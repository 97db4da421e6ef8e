/* The user and password that a connection shows, from the URL or from files that are read each time. */
#ifndef RLK_LOGIN_H
#define RLK_LOGIN_H

#include "node.h"

enum { RLK_SECRET_SIZE = 4096 };

struct rlk_login {
  const char *user, *password; /* NULL: none */
  char texts[2][RLK_SECRET_SIZE];
};

int rlk_login_is_needed(const struct rlk_node *node);
/* NONE, or the reason. Wipe it in either case. */
enum rlk_why rlk_login_read(struct rlk_login *login, const struct rlk_node *node, struct rlk_reason *why);
void rlk_login_wipe(struct rlk_login *login);

#endif

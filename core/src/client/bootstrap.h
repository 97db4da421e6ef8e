/* What redlock_client_bootstrap found on a node, and did. */
#ifndef RLK_BOOTSTRAP_H
#define RLK_BOOTSTRAP_H

#include "../node/line.h"

struct rlk_bootstrap_result {
  int found; /* enum redlock_bootstrap_found */
  int did;   /* enum redlock_bootstrap_did */
  int votes;
  int64_t max_ttl_ms; /* of its marker; 0 none */
  char words[RLK_WHY_SIZE];
};

#endif

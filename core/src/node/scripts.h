/* The scripts that servers run. Those of a kind of lock are in its file. */
#ifndef RLK_SCRIPTS_H
#define RLK_SCRIPTS_H

#include <stdint.h>

/* The scripts whose text a line has sent, as bits; the kinds of lock number theirs in kinds.h. */
enum {
  RLK_SCRIPT_RELEASE = 1,
  RLK_SCRIPT_EXTEND = 2,
  RLK_SCRIPT_ASK = 4,
  RLK_SCRIPT_HAND_OVER = 8,
  RLK_SCRIPT_LEAVE = 16,
  RLK_SCRIPT_OF_KIND = 32 /* the first script of the kinds */
};

struct rlk_script {
  const char *text;
  const char *hash; /* SHA-1; NULL: it is rare, so always sent in full */
  uint32_t bit;
};

/* Nobody promises to ask again later than in so many us, or is believed to: a waiter asks within 4 s and a few of its
 * round trips. */
#define RLK_PROMISE_MAX_US "1e7"

#define RLK_RELEASE_HASH "e949c6e37d7c2a84cc4c242883e566afe7adc5eb"

extern const struct rlk_script rlk_script_release, rlk_script_extend, rlk_script_ask, rlk_script_hand_over,
    rlk_script_leave, rlk_script_proof, rlk_script_register, rlk_script_expire;

#endif

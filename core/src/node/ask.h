/* One row per question: the meaning of its replies, and the function that gets them. The file that asks has the row. */
#ifndef RLK_ASK_H
#define RLK_ASK_H

#include <stdint.h>

#include "../rules/quorum.h"

struct rlk_node;
struct rlk_outcome;
struct rlk_reply;
struct rlk_request;

enum rlk_ask_role {
  RLK_ASK_PLAIN,
  RLK_ASK_TAKE,   /* the SET of a token: its time and its reply show the state of the server */
  RLK_ASK_QUICK,  /* its time shows how quickly the server answers */
  RLK_ASK_HINT,   /* asked behind a SET ... */
  RLK_ASK_CLOCK,  /* ... and the proofs of the guard: TIME, also behind an extension, */
  RLK_ASK_MARKER, /* and GET of the marker, after which the vote counts */
  RLK_ASK_SETUP,  /* the node asks for itself: in the set-up of a connection, */
  RLK_ASK_LOOK    /* and whether it is still eligible */
};

/* Of a form of reply: it is as it should be, without being a vote. */
enum { RLK_MISFIT = 0, RLK_FITS = RLK_VOTES };

struct rlk_ask {
  const char *name;           /* for "an unexpected reply to ..." */
  uint8_t role;               /* enum rlk_ask_role */
  uint8_t is_vote;            /* a round waits for it */
  uint8_t finds_own;          /* TAKE: it grants to the token that is there: no need to ask whose key that is */
  uint8_t ok, nil, odd, even; /* the vote, RLK_FITS or RLK_MISFIT per form of reply; 2 in an integer: others wait */
  uint8_t one, zero;          /* an array of one 1, or of one 0 */
  uint8_t rest;               /* any other reply but an error */
  uint8_t error;              /* RLK_FITS: no error but NOSCRIPT matters */
  uint8_t wrong_type;         /* the meaning of a key of another type; 0: an error like others */
  /* If the form is not enough: a vote as above; NULL: it is enough. */
  uint8_t (*read)(const struct rlk_request *request, const struct rlk_reply *reply);
  /* After NOSCRIPT: asks once more; 0, or -1: the answer is no longer wanted, or memory is out. NULL: it has no script.
   */
  int (*again)(struct rlk_node *node, const struct rlk_request *request, int64_t now_ns);
  /* Called by the step with the answer, or with RLK_FAULT_LOST; NULL: it does not matter. */
  void (*arrived)(struct rlk_node *node, struct rlk_outcome *outcome);
};

extern const struct rlk_ask rlk_row_nothing; /* an answer that does not matter */

#endif

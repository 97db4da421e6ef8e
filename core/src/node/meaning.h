/* What a reply means as the answer to a request, and what an error of a server means (rule A.7). No I/O, no clock. */
#ifndef RLK_MEANING_H
#define RLK_MEANING_H

#include "reply.h"
#include "request.h"

enum rlk_fault {
  RLK_FAULT_NONE,
  RLK_FAULT_OTHER,      /* no vote */
  RLK_FAULT_ROLE,       /* not a master any more: set up anew, back off */
  RLK_FAULT_LOADING,    /* set up anew, back off */
  RLK_FAULT_FULL,       /* no room for a key: no vote, but scripts still work */
  RLK_FAULT_PAUSE,      /* no votes for a moment; nothing was executed */
  RLK_FAULT_UNWRITABLE, /* writes and deletes are refused: deletes are tried again later */
  RLK_FAULT_CONFIG,     /* permanent for the node */
  RLK_FAULT_PERMISSION, /* permanent for this command or key */
  RLK_FAULT_NO_SCRIPT,
  RLK_FAULT_UNKNOWN, /* the server does not know the command */
  RLK_FAULT_TYPE,    /* a key of another kind: busy, or not ours */
  RLK_FAULT_MISFIT,  /* no server says that: nothing that follows on the connection can be trusted */
  RLK_FAULT_LOST     /* there is no reply: the connection broke */
};
enum rlk_fault rlk_fault_of(const char *text);
/* The server does not allow that, or does not know it. */
static inline int rlk_fault_forbids(int fault)
{
  return fault == RLK_FAULT_PERMISSION || fault == RLK_FAULT_UNKNOWN;
}

/* What comes of a request, or of a node. */
enum rlk_outcome_kind {
  RLK_OUTCOME_VOTE,      /* the request was answered, or never will be */
  RLK_OUTCOME_BATCH,     /* a renewal: one answer per lock in reply->integers, or an error */
  RLK_OUTCOME_VALUE,     /* what is under the key */
  RLK_OUTCOME_PTTL,      /* how long it lives; a vote, too, unless that is RLK_NOT_ASKED */
  RLK_OUTCOME_QUEUED,    /* how many queues of its resource there are: 1 or 0 */
  RLK_OUTCOME_PLACE,     /* the place in it, and how long the key lives, in reply->integers; or an error */
  RLK_OUTCOME_HOLDER,    /* the token of whoever holds the lock */
  RLK_OUTCOME_ENTRY,     /* the entry of the client that made it */
  RLK_OUTCOME_NO_ENTRY,  /* the server forbids to write or to read one */
  RLK_OUTCOME_WOKEN,     /* a push: the place in reply->text is the first of its queue */
  RLK_OUTCOME_NOTHING,   /* the request ended, and nothing comes of it */
  RLK_OUTCOME_FORGOTTEN, /* restarted or demoted: what was granted there does not count any more */
  RLK_OUTCOME_STEPPED,   /* its clock was stepped forward: what was granted there ends so much earlier */
  RLK_OUTCOME_AHEAD,     /* the clocks of some nodes turned out to be ahead: what was granted there does not count */
  RLK_OUTCOME_SHARED,    /* the server votes under the address of line->shared already */
  RLK_OUTCOME_JOINABLE,  /* a SET may join the session's set-up */
  RLK_OUTCOME_SPOKE,     /* a connection that was silent speaks again */
  RLK_OUTCOME_READY,     /* it may be asked */
  RLK_OUTCOME_PAYABLE,   /* pending deletes may be sent */
  RLK_OUTCOME_DOWN       /* it cannot be asked */
};

/* The first outcomes are what a reply can mean. */
struct rlk_meaning {
  uint8_t kind;  /* enum rlk_outcome_kind */
  uint8_t vote;  /* enum rlk_vote */
  uint8_t fault; /* enum rlk_fault */
};

struct rlk_meaning rlk_meaning_of(const struct rlk_request *request, const struct rlk_reply *reply);
/* When a key ends, by its PTTL: RLK_NEVER if it has none, or one of more than a hundred years; 0: it is not there. */
int64_t rlk_pttl_end_ns(int64_t pttl_ms, int64_t now_ns);
const char *rlk_misfit_words(enum rlk_request_kind kind);

#endif

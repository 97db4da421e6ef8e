/* What a reply means as the answer to a request, and what an error of a server means (rule A.7). No I/O, no clock. */
#ifndef RL_MEANING_H
#define RL_MEANING_H

#include "reply.h"
#include "request.h"

enum rl_fault {
  RL_FAULT_NONE,
  RL_FAULT_OTHER,       /* no vote */
  RL_FAULT_ROLE,        /* not a master any more: set up anew, back off */
  RL_FAULT_LOADING,     /* set up anew, back off */
  RL_FAULT_FULL,        /* no room for a key: no vote, but scripts still work */
  RL_FAULT_PAUSE,       /* no votes for a moment; nothing was executed */
  RL_FAULT_UNWRITABLE,  /* writes and deletes are refused: deletes are tried again later */
  RL_FAULT_CONFIG,      /* permanent for the node */
  RL_FAULT_PERMISSION,  /* permanent for this command or key */
  RL_FAULT_NO_SCRIPT,
  RL_FAULT_UNKNOWN,     /* the server does not know the command */
  RL_FAULT_TYPE,        /* a key of another kind: busy, or not ours */
  RL_FAULT_MISFIT,      /* no server says that: nothing that follows on the connection can be trusted */
  RL_FAULT_LOST         /* there is no reply: the connection broke */
};
enum rl_fault rl_fault_of(const char *text);

/* What comes of a request, or of a node. */
enum rl_outcome_kind {
  RL_OUTCOME_VOTE,      /* the request was answered, or never will be */
  RL_OUTCOME_BATCH,     /* a renewal: one answer per lock in reply->integers, or an error */
  RL_OUTCOME_VALUE,     /* what is under the key */
  RL_OUTCOME_PTTL,      /* how long it lives; a vote, too, unless that is RL_NOT_ASKED */
  RL_OUTCOME_NOTHING,   /* the request ended, and nothing comes of it */
  RL_OUTCOME_FORGOTTEN, /* restarted or demoted: what was granted there does not count any more */
  RL_OUTCOME_SHARED,    /* the server votes under the address of line->shared already */
  RL_OUTCOME_JOINABLE,  /* a SET may join the session's set-up */
  RL_OUTCOME_SPOKE,     /* a connection that was silent speaks again */
  RL_OUTCOME_READY,     /* it may be asked */
  RL_OUTCOME_PAYABLE,   /* pending deletes may be sent */
  RL_OUTCOME_DOWN       /* it can not be asked */
};

/* The first outcomes are what a reply can mean. */
struct rl_meaning {
  uint8_t kind;  /* enum rl_outcome_kind */
  uint8_t vote;  /* enum rl_answer */
  uint8_t fault; /* enum rl_fault */
};

struct rl_meaning rl_meaning_of(const struct rl_request *request, const struct rl_reply *reply);
const char *rl_misfit_words(enum rl_request_kind kind);

#endif

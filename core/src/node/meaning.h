/* The meaning of a reply to a request, and of an error of a server (rule A.7). No I/O, no clock. */
#ifndef RLK_MEANING_H
#define RLK_MEANING_H

#include "../rules/reason.h"
#include "reply.h"
#include "request.h"

enum rlk_fault {
  RLK_FAULT_NONE,
  RLK_FAULT_OTHER,      /* no vote */
  RLK_FAULT_ROLE,       /* not a master any more: set up again, back off */
  RLK_FAULT_LOADING,    /* set up again, back off */
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
enum rlk_why rlk_why_of(const char *text);    /* the reason, of an error of a server */
uint8_t rlk_error_vote(enum rlk_fault fault); /* what such an error is in a round: RLK_REFUSED or RLK_ERROR */
/* The error without where it happened, with which Redis before 7.0 begins those of a script. */
const char *rlk_cause_in(const char *text);
/* The server does not allow that, or does not know it. */
static inline int rlk_fault_forbids(int fault)
{
  return fault == RLK_FAULT_PERMISSION || fault == RLK_FAULT_UNKNOWN;
}

struct rlk_meaning {
  uint8_t vote;  /* enum rlk_vote; RLK_NOT_ASKED: it is none */
  uint8_t fault; /* enum rlk_fault */
};
/* By the row of its request; not for SETUP and LOOK. */
struct rlk_meaning rlk_meaning_of(const struct rlk_request *request, const struct rlk_reply *reply);
/* When a key ends, by its PTTL: RLK_NEVER if it has none, or one of more than a hundred years; 0: it is not there. */
int64_t rlk_pttl_end_ns(int64_t pttl_ms, int64_t now_ns);

#endif

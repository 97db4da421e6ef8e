/* Setting up a connection, and what an error of the server means. */
#ifndef RL_SESSION_H
#define RL_SESSION_H

#include "node.h"

int rl_session_begin(struct rl_line *line, int64_t now_ns);
void rl_session_reply(struct rl_line *line, int step, const struct rl_reply *reply, int64_t now_ns);
/* Asks a node that is ready for its role and policy again if that has not been done for a while (rule C.3). */
void rl_session_look_again(struct rl_line *line, int64_t now_ns);
void rl_session_looked(struct rl_line *line, int is_last, const struct rl_reply *reply, int64_t now_ns);
/* A connection that ends in the set-up: the server's own words for it, or NULL. */
const char *rl_session_error(const struct rl_line *line);
/* What an error reply means (rule A.7). */
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
  RL_FAULT_TYPE         /* a key of another kind: busy, or not ours */
};
enum rl_fault rl_fault_of(const char *text);

#endif

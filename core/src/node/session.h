/* Setting up a connection: who we are, what the server is, and whether it may vote (rule C.3). */
#ifndef RL_SESSION_H
#define RL_SESSION_H

#include "node.h"

enum rl_session_verdict {
  RL_SESSION_CONTINUE, /* replies are still to come */
  RL_SESSION_READY,
  RL_SESSION_DROP,     /* for the reason in why; it may be otherwise at the next try */
  RL_SESSION_REFUSE,   /* ineligible to vote for the reason in why */
  RL_SESSION_REJECT    /* refused by the server itself: nothing else can be asked of it */
};

int rl_session_begin(struct rl_line *line); /* -1 when memory is out */
/* The first SET may join the set-up only if nothing in front of it can redirect it. */
int rl_session_is_joinable(const struct rl_line *line);
/* Notes a reply to a step of the set-up; the last one sets line->setup_done. */
void rl_session_reply(struct rl_line *line, int step, const struct rl_reply *reply);
/* Why leases that were granted before do not count any more: enum redlock_loss; and what the server is from now on. */
int rl_session_note_server(struct rl_line *line);
/* Judges a set-up whose last reply has come; why has RL_WHY_SIZE bytes. */
enum rl_session_verdict rl_session_judge(struct rl_line *line, char *why, int64_t now_ns);
/* Asks a node that is ready for its role and policy again if that has not been done for a while (rule C.3). */
void rl_session_look_again(struct rl_line *line, int64_t now_ns);
/* A reply to that: REFUSE, with the reason in why, or CONTINUE. */
enum rl_session_verdict rl_session_looked(struct rl_line *line, int is_last, const struct rl_reply *reply, char *why);
/* A connection that ends in the set-up: the server's own words for it, or NULL. */
const char *rl_session_error(const struct rl_line *line);
/* What HELLO would have done on a server that turned out not to know it; -1 when memory is out. */
int rl_session_complete(struct rl_line *line);

#endif

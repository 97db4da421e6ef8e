/* Setting up a connection: authenticating, and identifying the server. */
#ifndef RLK_SESSION_H
#define RLK_SESSION_H

#include "node.h"

enum rlk_session_verdict {
  RLK_SESSION_CONTINUE, /* replies are still to come */
  RLK_SESSION_READY,
  RLK_SESSION_DROP,   /* for the reason in why; it may be otherwise at the next try */
  RLK_SESSION_REFUSE, /* ineligible to vote for the reason in why */
  RLK_SESSION_REJECT  /* refused by the server itself: nothing else can be asked of it */
};

extern const struct rlk_ask rlk_row_setup, rlk_row_look;

/* NONE, or why it cannot begin. */
enum rlk_why rlk_session_begin(struct rlk_line *line, struct rlk_reason *why);
/* The first SET may join the set-up only if nothing in front of it can redirect it. */
int rlk_session_is_joinable(const struct rlk_line *line);
/* For another connection than the one that votes. */
enum rlk_why rlk_session_login(struct rlk_line *line, struct rlk_reason *why);
int rlk_session_send(struct rlk_line *line, int count, const char *const *words);
/* Writes the marker of the restart guard, unless it is another one now than line->marker, and asks for the time; since
 * "": the server's time. -1 when memory is out. */
int rlk_session_register(struct rlk_line *line, const char *head, const char *since, const char *tail);
/* Notes a reply to a step of the set-up; the last one sets line->setup_done. */
void rlk_session_reply(struct rlk_line *line, const struct rlk_request *request, const struct rlk_reply *reply);
void rlk_session_read_info(struct rlk_line *line, const char *info);
/* The server's identity: it is no master; it is not the one that was set up before. */
int rlk_session_is_demoted(const struct rlk_line *line);
int rlk_session_is_other(const struct rlk_line *line);
/* Why answers of the previous connection no longer count, or NONE: one of those. */
enum rlk_why rlk_session_change(const struct rlk_line *line);
/* How long a ready node is assumed to be still eligible. */
int64_t rlk_session_pause_ns(const struct rlk_node *node);
/* Asks it for its role and policy again (rule C.3), and for its marker. */
void rlk_session_look_again(struct rlk_line *line, int with_marker, int64_t now_ns);
/* Asks for its role and history, which the next requests shall not outrun, unless that was done a short time ago. */
void rlk_session_look_first(struct rlk_line *line, int64_t now_ns);
enum rlk_look { RLK_LOOK_MARKER, RLK_LOOK_INFO };
/* A connection that ends in the set-up: the server's error, or NULL. */
const struct rlk_reason *rlk_session_error(const struct rlk_line *line);
/* The commands in place of HELLO, for a server that does not know it; -1 when memory is out. */
int rlk_session_complete(struct rlk_line *line);

#endif

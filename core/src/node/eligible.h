/* Whether a server may vote, from what its set-up has told (rule C.3). */
#ifndef RLK_ELIGIBLE_H
#define RLK_ELIGIBLE_H

#include "session.h"

/* Why answers of the previous connection no longer count, or NONE: the set-up has met another server, or a replica. */
enum rlk_why rlk_eligible_change(const struct rlk_line *line);
/* Why leases that were granted before do not count any more: enum redlock_loss; and what the server is from now on. */
int rlk_eligible_note_server(struct rlk_line *line);
/* Judges a set-up whose last reply has come. */
enum rlk_session_verdict rlk_eligible_judge(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);
/* A reply to another look: REFUSE, with the reason in why, or CONTINUE. */
enum rlk_session_verdict rlk_eligible_looked(struct rlk_line *line, enum rlk_look look, const struct rlk_reply *reply,
                                             struct rlk_reason *why, int64_t now_ns);

#endif

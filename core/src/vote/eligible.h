/* Whether a server may vote, from what its set-up has told (rule C.3). */
#ifndef RLK_ELIGIBLE_H
#define RLK_ELIGIBLE_H

#include "../node/session.h"

/* Notes what the server is from now on. Leases that were granted before may not count any more (FORGOTTEN). */
void rlk_eligible_note_server(struct rlk_line *line);
/* Why the node is ineligible to vote, or NONE. */
enum rlk_why rlk_eligible_objection(const struct rlk_line *line, struct rlk_reason *why);
/* Judges a set-up whose last reply has come. */
enum rlk_session_verdict rlk_eligible_judge(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);

#endif

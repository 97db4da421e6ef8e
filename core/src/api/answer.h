/* What a node replied to the last operation of a lock, in words. */
#ifndef RLK_ANSWER_H
#define RLK_ANSWER_H

#include "../lock/lock.h"

struct rlk_said {
  enum rlk_why why; /* NONE: there is nothing to advise */
  char words[200];  /* what nodes may have in common */
  char detail[64];  /* what only this node has in its reply; "" for nothing */
};

void rlk_answer_said(const redlock_lock *lock, int node, struct rlk_said *said, int64_t now_ns);
/* Both in one. */
void rlk_answer_words(const redlock_lock *lock, int node, struct rlk_text *out, int64_t now_ns);

#endif

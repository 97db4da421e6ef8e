/* The places of a lock of several resources in the queues of others of them than the one of lock->wait: of each in
 * which it was refused (rule F.3). They have the same number, and go when the lock is won. */
#ifndef RLK_FURTHER_H
#define RLK_FURTHER_H

#include "lock.h"

/* The last attempt has failed: the resource in whose queue it stands first, if it has no room yet. */
void rlk_further_choose(redlock_lock *lock);
/* Notes the other resources in which it was refused. */
void rlk_further_note(redlock_lock *lock);
/* Asks for the places that are new or to be kept, for a lock that has its first place. */
void rlk_further_ask(redlock_lock *lock, int64_t now_ns);
/* The answer to one, or an error (rank -1): 0: it is not wanted any more. */
int rlk_further_placed(redlock_lock *lock, int part, int node, int64_t rank, int64_t now_ns);
/* The first in a queue on that node is asked whether it has heard. */
void rlk_further_question(redlock_lock *lock, int node);
int64_t rlk_further_due_ns(const redlock_lock *lock); /* when one is to be asked for again; RLK_NEVER */
void rlk_further_leave(redlock_lock *lock);           /* all of them */
void rlk_further_free(redlock_lock *lock);

#endif

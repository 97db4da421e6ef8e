/* A lock of several resources that waits: it has a place in the queues of all of them (rule F.3). */
#ifndef RLK_SEVERAL_H
#define RLK_SEVERAL_H

#include "place.h"

/* An attempt has failed because others hold some of them. */
enum rlk_turn rlk_several_wait(redlock_lock *lock, int64_t now_ns);
/* Its timer. */
enum rlk_turn rlk_several_step(redlock_lock *lock, int64_t now_ns);
/* The answer to a place: rank and end of the key, 0 if there is none; an error is taken for a free resource without a
 * queue. */
enum rlk_turn rlk_several_placed(redlock_lock *lock, int part, int node, int64_t rank, int64_t until_ns,
                                 int64_t now_ns);
/* The connection broke before the answer: it is asked for anew as soon as something happens. */
void rlk_several_lost(redlock_lock *lock, int part);
/* A resource whose home the node is may have been released, or an asker has found it free. */
enum rlk_turn rlk_several_woken(redlock_lock *lock, int node, int is_release, int64_t now_ns);
void rlk_several_leave(redlock_lock *lock); /* all queues */

#endif

/* Waiting in order: the room of a client, where its waiters for one resource stand, and the queue on the home node,
 * where the first of each room has a place (rule F). Both decide who asks, never who holds. */
#ifndef RLK_QUEUE_H
#define RLK_QUEUE_H

#include "place.h"

/* Whether this acquisition waits in order. */
int rlk_queue_is_used(const redlock_lock *lock);
/* Begins an acquisition, which may have to wait behind others. */
enum rlk_turn rlk_queue_begin(redlock_lock *lock, int64_t now_ns);
/* An attempt has failed. */
enum rlk_turn rlk_queue_wait(redlock_lock *lock, int64_t now_ns);
/* Its attempt has failed: waiters behind it on the same terms learn the reason. */
void rlk_queue_tell(const redlock_lock *leader, int64_t now_ns);
/* The waiter's timer. */
enum rlk_turn rlk_queue_timer(redlock_lock *lock, int64_t now_ns);
/* The operation has ended. */
void rlk_queue_leave(redlock_lock *lock);
/* The token is handed to another process, which does not know its place. */
void rlk_queue_forget(redlock_lock *lock);
/* The answer to a place that was asked for: rank and end of the key (0: there is none), or an error, or none. */
enum rlk_turn rlk_queue_placed(redlock_lock *lock, int64_t rank, int64_t until_ns, int64_t now_ns);
enum rlk_turn rlk_queue_refused(redlock_lock *lock, int node, enum rlk_fault fault, int64_t now_ns);
/* A push: the turn of that place has come. The lock that is to make an attempt now, or NULL. */
redlock_lock *rlk_queue_woken(struct rlk_engine *engine, const char *place, int node, int64_t now_ns);
void rlk_queue_init(struct rlk_engine *engine); /* a name of its own, in a child, too */
/* What a lock has of this floor; NULL when memory is out. */
struct rlk_wait *rlk_wait_new(void);
void rlk_wait_forget_parts(struct rlk_wait *wait); /* it has other resources */
void rlk_wait_free(struct rlk_wait *wait);         /* NULL does nothing */

#endif

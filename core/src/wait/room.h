/* A room: the waiters of one client for one resource. */
#ifndef RLK_ROOM_H
#define RLK_ROOM_H

#include "wait.h"

/* The waiters of one client for one resource, in order of arrival. Among those on the same terms only the first,
 * their leader, asks the nodes. */
struct rlk_room {
  struct rlk_room *next; /* in its bucket of engine->waits->rooms */
  struct rlk_key *key;
  redlock_lock *first, *last;
  int length;
  int64_t ours_until_ns;  /* a lock of this client has just won it: no place is taken before, unless others wait */
  int64_t queue_again_ns; /* the queue of this resource is not used before: it was refused */
};

/* That of the key's resource; it also frees rooms that are no longer needed. */
struct rlk_room *rlk_room_find(struct rlk_engine *engine, const struct rlk_key *key, int64_t now_ns);
/* The home node of one of the lock's resources, if its queue can be used; else -1. */
int rlk_room_home(const redlock_lock *lock, struct rlk_key *key, int64_t now_ns);
/* The node denies the keys of queues: for a while it is not asked for them. */
void rlk_room_denied(struct rlk_node *node, int64_t now_ns);
/* ... or it does not have the queue of the lock's resource, or of all. */
void rlk_room_refused(const redlock_lock *lock, struct rlk_node *node, enum rlk_fault fault, int64_t now_ns);
struct rlk_room *rlk_room_make(struct rlk_engine *engine, struct rlk_key *key, int64_t now_ns); /* NULL: no memory */
void rlk_room_enter(struct rlk_room *room, redlock_lock *lock); /* in the order in which they began */
void rlk_room_leave(redlock_lock *lock);
/* An attempt is under way: its lock keeps its place. */
static inline int rlk_room_is_trying(const redlock_lock *lock)
{
  return lock->op.phase == RLK_ASKING_ALL || lock->op.phase == RLK_ASKING_HOME;
}
/* Whether what one learns from the nodes also holds for the other. */
int rlk_room_are_alike(const redlock_lock *one, const redlock_lock *other);
/* The first from there on that is like the lock, or NULL. */
redlock_lock *rlk_room_alike(redlock_lock *from, const redlock_lock *lock);
/* The one that asks the nodes for this lock, too. */
redlock_lock *rlk_room_leader(const redlock_lock *lock);
int rlk_room_leads(const redlock_lock *lock);
/* How many wait behind the lock on its terms, up to so many. */
int rlk_room_behind(const redlock_lock *lock, int most);
/* What a release, or a wait that has ended, has heard: whether others wait for the resources. If they do, a lock asks
 * the queue before the nodes for so long. */
#define RLK_CONTENDED_NS (2000 * RLK_NS_PER_MS)
void rlk_heard_note(struct rlk_engine *engine, struct rlk_key *key, int others_wait, int64_t now_ns);
void rlk_heard_forget_alone(struct rlk_engine *engine, struct rlk_key *key); /* that nobody does */
int rlk_heard(const redlock_lock *lock, int others_wait, int64_t within_ns, int64_t now_ns);
/* How many acquisitions wait for a busy lock, and the most of them for the same resource; for operators. */
int rlk_rooms_count(const struct rlk_engine *engine, int *longest);
struct rlk_waits *rlk_waits_new(void);        /* what the waiters of a client share; NULL when memory is out */
void rlk_waits_free(struct rlk_waits *waits); /* NULL does nothing */

#endif

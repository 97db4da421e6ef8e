/* Who holds a resource, in words and in JSON. */
#ifndef RLK_HELD_BY_H
#define RLK_HELD_BY_H

#include "../lock/lock.h"

/* "worker-7 (pid 812 on web-3) for 4.2 s"; nothing if it is not known: 0. */
int rlk_held_by_words(const redlock_lock *lock, struct rlk_text *out);
/* A node that has the key of the holder that an inspect has found, or -1. */
int rlk_verdict_node(const redlock_lock *lock);

/* After an inspect: how many hold the lock together; 0: it is not shared. */
int64_t rlk_verdict_readers(const redlock_lock *lock);

#endif

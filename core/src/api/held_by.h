/* Who holds a resource, in words and in JSON. */
#ifndef RLK_HELD_BY_H
#define RLK_HELD_BY_H

#include "../lock/lock.h"

/* "worker-7 (pid 812 on web-3) for 4.2 s"; nothing if it is not known: 0. */
int rlk_held_by_words(const redlock_lock *lock, struct rlk_text *out);
/* An entry as JSON without its closing brace, with a time of that name; nothing if it is none: 0. */
int rlk_entry_json(const char *entry, const char *time, int64_t ms, struct rlk_text *out);
/* For how long a token of this library has been held. */
int64_t rlk_held_ms(const redlock_lock *lock, const char *token);
/* How much longer a majority keeps the holder's key, which ends on each node at that time: in ms, or ENDLESS. */
int64_t rlk_holder_left_ms(const redlock_lock *lock, const int64_t *ends_ns, int64_t now_ns);
/* A node that has the key of the holder that an inspect has found, or -1. */
int rlk_verdict_node(const redlock_lock *lock);

/* After an inspect: how many hold the lock together; 0: it is not shared. */
int64_t rlk_verdict_readers(const redlock_lock *lock);

#endif

/* One eventcount for all threads that wait in a client: a ring wakes a set of them with one system call. A condition
 * per thread costs a call and two switches for each of them. */
#ifndef RLK_EVENTCOUNT_H
#define RLK_EVENTCOUNT_H

#include <stdatomic.h>
#include <stdint.h>

#include "system.h"
#ifndef RLK_LINUX
#include <pthread.h>
#endif

struct rlk_eventcount {
  _Atomic uint32_t rings;
#ifndef RLK_LINUX
  pthread_mutex_t mutex;
  pthread_cond_t condition;
#endif
};

int rlk_eventcount_init(struct rlk_eventcount *eventcount); /* 0, or -1 */
void rlk_eventcount_free(struct rlk_eventcount *eventcount);
void rlk_eventcount_forked(struct rlk_eventcount *eventcount); /* in a child: no thread waits or rings here */

/* Call it under the mutex that guards the awaited condition, both for waiting and for ringing. */
uint32_t rlk_eventcount_rings(struct rlk_eventcount *eventcount);
void rlk_eventcount_announce(struct rlk_eventcount *eventcount);

/* Both without that mutex. Waits until there was an announcement after `rings` for a set with this bit, or until
 * timeout_ns (RLK_NEVER: no limit) has passed; may return for no reason. */
void rlk_eventcount_wait(struct rlk_eventcount *eventcount, uint32_t rings, uint32_t bit, int64_t timeout_ns);
void rlk_eventcount_ring(struct rlk_eventcount *eventcount, uint32_t bits);

#endif

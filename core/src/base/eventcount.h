/* One eventcount for all threads that wait in a client: a ring wakes a set of them with one system call for each word
 * of the set. A condition per thread costs a call and two switches for each of them; with one word
 * for 1,000 threads, each wake-up would wake 30 others. */
#ifndef RLK_EVENTCOUNT_H
#define RLK_EVENTCOUNT_H

#include <stdatomic.h>
#include <stdint.h>

#include "system.h"
#ifndef RLK_LINUX
#include <pthread.h>
#endif

enum { RLK_EVENTCOUNT_WORDS = 32, RLK_EVENTCOUNT_BITS = 32 };

/* The waiters to be woken, by number: each has a bit of a word. */
struct rlk_eventcount_set {
  int any; /* 0: it is empty */
  uint32_t bits[RLK_EVENTCOUNT_WORDS];
};

/* The numbers of those who wait. */
struct rlk_eventcount_numbers {
  uint32_t taken[RLK_EVENTCOUNT_WORDS];
  uint32_t shared; /* how often all were taken */
};

struct rlk_eventcount {
  _Atomic uint32_t rings[RLK_EVENTCOUNT_WORDS];
#ifndef RLK_LINUX
  pthread_mutex_t mutex;
  pthread_cond_t condition;
#endif
};

int rlk_eventcount_init(struct rlk_eventcount *eventcount); /* 0, or -1 */
void rlk_eventcount_free(struct rlk_eventcount *eventcount);
void rlk_eventcount_forked(struct rlk_eventcount *eventcount); /* in a child: no thread waits or rings here */

/* The lowest number that is free, since a ring makes a system call for each word. If all are taken, waiters share
 * numbers, and a ring wakes those who share one. */
uint32_t rlk_eventcount_take(struct rlk_eventcount_numbers *numbers);

/* Call it under the mutex that guards the awaited condition, both for waiting and for ringing. */
uint32_t rlk_eventcount_rings(struct rlk_eventcount *eventcount, uint32_t waiter);
void rlk_eventcount_announce(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set);

/* Both without that mutex. Waits until a set with this waiter, a number, has been announced after `rings` was read, or
 * until timeout_ns (RLK_NEVER: no limit) has passed; may return for no reason. */
void rlk_eventcount_wait(struct rlk_eventcount *eventcount, uint32_t rings, uint32_t waiter, int64_t timeout_ns);
void rlk_eventcount_ring(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set);

static inline uint32_t rlk_eventcount_word(uint32_t waiter)
{
  return waiter / RLK_EVENTCOUNT_BITS % RLK_EVENTCOUNT_WORDS;
}

static inline uint32_t rlk_eventcount_bit(uint32_t waiter)
{
  return UINT32_C(1) << waiter % RLK_EVENTCOUNT_BITS;
}

static inline void rlk_eventcount_add(struct rlk_eventcount_set *set, uint32_t waiter)
{
  set->any = 1;
  set->bits[rlk_eventcount_word(waiter)] |= rlk_eventcount_bit(waiter);
}

static inline void rlk_eventcount_give(struct rlk_eventcount_numbers *numbers, uint32_t waiter)
{
  numbers->taken[rlk_eventcount_word(waiter)] &= ~rlk_eventcount_bit(waiter);
}

#endif

#include "eventcount.h"

#include <limits.h>
#include <stddef.h>
#include <time.h>

#include "platform.h"

uint32_t rlk_eventcount_take(struct rlk_eventcount_numbers *numbers)
{
  for (uint32_t word = 0; word < RLK_EVENTCOUNT_WORDS; word++) {
    uint32_t is_free = ~numbers->taken[word];
    if (is_free) {
      numbers->taken[word] |= is_free & -is_free;
      return word * RLK_EVENTCOUNT_BITS + (uint32_t)__builtin_ctz(is_free);
    }
  }
  return numbers->shared++ % (RLK_EVENTCOUNT_WORDS * RLK_EVENTCOUNT_BITS);
}

uint32_t rlk_eventcount_rings(struct rlk_eventcount *eventcount, uint32_t waiter)
{
  return atomic_load_explicit(&eventcount->rings[rlk_eventcount_word(waiter)], memory_order_relaxed);
}

void rlk_eventcount_announce(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set)
{
  for (int i = 0; i < RLK_EVENTCOUNT_WORDS; i++)
    if (set->bits[i])
      atomic_fetch_add_explicit(&eventcount->rings[i], 1, memory_order_relaxed);
}

static void forget_rings(struct rlk_eventcount *eventcount)
{
  for (int i = 0; i < RLK_EVENTCOUNT_WORDS; i++)
    atomic_init(&eventcount->rings[i], 0);
}

#ifdef RLK_LINUX

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct timespec after(int64_t timeout_ns)
{
  struct timespec at;
  int64_t ns;
  clock_gettime(CLOCK_MONOTONIC, &at);
  ns = at.tv_nsec + timeout_ns % 1000000000;
  at.tv_sec += timeout_ns / 1000000000 + ns / 1000000000;
  at.tv_nsec = ns % 1000000000;
  return at;
}

int rlk_eventcount_init(struct rlk_eventcount *eventcount)
{
  forget_rings(eventcount);
  return 0;
}

void rlk_eventcount_free(struct rlk_eventcount *eventcount)
{
  (void)eventcount;
}

void rlk_eventcount_forked(struct rlk_eventcount *eventcount)
{
  (void)eventcount;
}

void rlk_eventcount_wait(struct rlk_eventcount *eventcount, uint32_t rings, uint32_t waiter, int64_t timeout_ns)
{
  struct timespec at = after(timeout_ns == RLK_NEVER ? 0 : timeout_ns > 0 ? timeout_ns : 0);
  syscall(SYS_futex, &eventcount->rings[rlk_eventcount_word(waiter)], FUTEX_WAIT_BITSET_PRIVATE, rings,
          timeout_ns == RLK_NEVER ? NULL : &at, NULL, rlk_eventcount_bit(waiter));
}

void rlk_eventcount_ring(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set)
{
  for (int i = 0; i < RLK_EVENTCOUNT_WORDS; i++)
    if (set->bits[i])
      syscall(SYS_futex, &eventcount->rings[i], FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, set->bits[i]);
}

#else

#define WAIT_MAX_NS INT64_C(3600000000000)

static int init_condition(pthread_cond_t *condition)
{
  int error;
#ifdef __APPLE__ /* its clock is chosen by the call that waits */
  error = pthread_cond_init(condition, NULL);
#else
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0)
    return -1;
  error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  if (error == 0)
    error = pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
#endif
  return error;
}

int rlk_eventcount_init(struct rlk_eventcount *eventcount)
{
  forget_rings(eventcount);
  if (pthread_mutex_init(&eventcount->mutex, NULL) != 0)
    return -1;
  if (init_condition(&eventcount->condition) == 0)
    return 0;
  pthread_mutex_destroy(&eventcount->mutex);
  return -1;
}

void rlk_eventcount_free(struct rlk_eventcount *eventcount)
{
  pthread_cond_destroy(&eventcount->condition);
  pthread_mutex_destroy(&eventcount->mutex);
}

void rlk_eventcount_forked(struct rlk_eventcount *eventcount)
{
  rlk_eventcount_init(eventcount);
}

static void wait_for(struct rlk_eventcount *eventcount, int64_t timeout_ns)
{
  struct timespec limit = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
#ifdef __APPLE__
  pthread_cond_timedwait_relative_np(&eventcount->condition, &eventcount->mutex, &limit);
#else
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_sec += limit.tv_sec + (at.tv_nsec + limit.tv_nsec) / 1000000000;
  at.tv_nsec = (at.tv_nsec + limit.tv_nsec) % 1000000000;
  pthread_cond_timedwait(&eventcount->condition, &eventcount->mutex, &at);
#endif
}

void rlk_eventcount_wait(struct rlk_eventcount *eventcount, uint32_t rings, uint32_t waiter, int64_t timeout_ns)
{
  pthread_mutex_lock(&eventcount->mutex);
  if (timeout_ns > 0 && rlk_eventcount_rings(eventcount, waiter) == rings)
    wait_for(eventcount, timeout_ns < WAIT_MAX_NS ? timeout_ns : WAIT_MAX_NS);
  pthread_mutex_unlock(&eventcount->mutex);
}

void rlk_eventcount_ring(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set)
{
  (void)set;
  pthread_mutex_lock(&eventcount->mutex);
  pthread_cond_broadcast(&eventcount->condition);
  pthread_mutex_unlock(&eventcount->mutex);
}

#endif

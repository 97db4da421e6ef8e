/* Who is woken by a ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/eventcount.h"
#include "base/platform.h"

enum { WAITERS = 320 }; /* ten for each bit of a word */

#ifdef RLK_LINUX
enum { WAKE_UPS_MAX = 3 * WAITERS };
#else /* each ring wakes all */
enum { WAKE_UPS_MAX = WAITERS * WAITERS };
#endif

struct waiter {
  pthread_t thread;
  uint32_t number;
  int is_released, wake_ups; /* under the mutex */
  int waits;
};

static struct rlk_eventcount eventcount;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct waiter waiters[WAITERS];

static void *wait_for_release(void *argument)
{
  struct waiter *w = argument;
  pthread_mutex_lock(&mutex);
  while (!w->is_released) {
    uint32_t rings = rlk_eventcount_rings(&eventcount, w->number);
    w->waits = 1;
    pthread_mutex_unlock(&mutex);
    rlk_eventcount_wait(&eventcount, rings, w->number, RLK_NEVER);
    pthread_mutex_lock(&mutex);
    w->wake_ups++;
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void release(struct waiter *w)
{
  struct rlk_eventcount_set set = {0};
  rlk_eventcount_add(&set, w->number);
  pthread_mutex_lock(&mutex);
  w->is_released = 1;
  rlk_eventcount_announce(&eventcount, &set);
  pthread_mutex_unlock(&mutex);
  rlk_eventcount_ring(&eventcount, &set);
}

static int all_wait(void)
{
  int count = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < WAITERS; i++)
    count += waiters[i].waits;
  pthread_mutex_unlock(&mutex);
  return count == WAITERS;
}

static int begin(void **state)
{
  (void)state;
  memset(waiters, 0, sizeof waiters);
  assert_int_equal(rlk_eventcount_init(&eventcount), 0);
  for (int i = 0; i < WAITERS; i++) {
    waiters[i].number = (uint32_t)i;
    assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_for_release, &waiters[i]), 0);
  }
  while (!all_wait())
    sched_yield();
  return 0;
}

static int end(void **state)
{
  (void)state;
  rlk_eventcount_free(&eventcount);
  return 0;
}

static void test_a_ring_wakes_all_of_its_set(void **state)
{
  struct rlk_eventcount_set set = {0};
  (void)state;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < WAITERS; i++) {
    waiters[i].is_released = 1;
    rlk_eventcount_add(&set, waiters[i].number);
  }
  rlk_eventcount_announce(&eventcount, &set);
  pthread_mutex_unlock(&mutex);
  rlk_eventcount_ring(&eventcount, &set);
  for (int i = 0; i < WAITERS; i++)
    assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
}

/* A thread that has read the count but does not sleep yet returns at the next announcement for its word. Few do so more
 * than once. With one word for all threads, 1,440 would wake in vain. */
static void test_a_ring_for_one_wakes_few_others(void **state)
{
  int wake_ups = 0;
  (void)state;
  for (int i = 0; i < WAITERS; i++) {
    release(&waiters[i]);
    assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
    wake_ups += waiters[i].wake_ups;
  }
  assert_in_range(wake_ups, 0, WAKE_UPS_MAX);
}

static void test_no_two_have_a_number_while_one_is_free(void **state)
{
  enum { NUMBERS = RLK_EVENTCOUNT_WORDS * RLK_EVENTCOUNT_BITS };
  struct rlk_eventcount_numbers numbers = {0};
  (void)state;
  for (uint32_t i = 0; i < NUMBERS; i++)
    assert_int_equal(rlk_eventcount_take(&numbers), i);
  assert_int_not_equal(rlk_eventcount_take(&numbers), rlk_eventcount_take(&numbers)); /* shared, but not by all */
  rlk_eventcount_give(&numbers, 700);
  rlk_eventcount_give(&numbers, 33);
  assert_int_equal(rlk_eventcount_take(&numbers), 33);
  assert_int_equal(rlk_eventcount_take(&numbers), 700);
}

int main(void)
{
  const struct CMUnitTest cases[] = {
      cmocka_unit_test_setup_teardown(test_a_ring_wakes_all_of_its_set, begin, end),
      cmocka_unit_test_setup_teardown(test_a_ring_for_one_wakes_few_others, begin, end),
      cmocka_unit_test(test_no_two_have_a_number_while_one_is_free),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

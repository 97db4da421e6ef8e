/* The heap against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "base/timer.h"

#define COUNT 200

static int64_t least(const int64_t *at)
{
  int64_t min = RLK_NEVER;
  for (int i = 0; i < COUNT; i++)
    if (at[i] && at[i] < min)
      min = at[i];
  return min;
}

static void the_heap_gives_the_earliest(void **state)
{
  struct rlk_timers timers = {0};
  struct rlk_timer timer[COUNT];
  int64_t at[COUNT] = {0};
  unsigned seed = 3;
  (void)state;
  memset(timer, 0, sizeof timer);
  assert_int_equal(rlk_timers_reserve(&timers, COUNT), 0);
  for (int round = 0; round < 100000; round++) {
    int i = rand_r(&seed) % COUNT;
    if (rand_r(&seed) % 3) {
      at[i] = 1 + rand_r(&seed) % 1000;
      rlk_timer_set(&timers, &timer[i], at[i]);
    } else {
      at[i] = 0;
      rlk_timer_clear(&timers, &timer[i]);
    }
    assert_int_equal(rlk_timers_next(&timers), least(at));
    if (round % 7 == 0) {
      int64_t now = rand_r(&seed) % 1000;
      struct rlk_timer *due;
      while ((due = rlk_timers_pop(&timers, now)) != NULL) {
        assert_int_equal(due->at_ns, least(at));
        at[due - timer] = 0;
      }
      assert_true(least(at) > now);
    }
  }
  rlk_timers_free(&timers);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_heap_gives_the_earliest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

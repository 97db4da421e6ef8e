/* The heap and the wheel against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "base/timer.h"
#include "base/wheel.h"

#define COUNT 200
#define MS RLK_NS_PER_MS

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

static void the_wheel_gives_all_that_is_due_and_nothing_else(void **state)
{
  static struct rlk_wheel wheel;
  struct rlk_wheel_entry entry[COUNT];
  int64_t at[COUNT] = {0}, now = 5000 * MS;
  unsigned seed = 11;
  (void)state;
  memset(entry, 0, sizeof entry);
  rlk_wheel_init(&wheel, now);
  for (int round = 0; round < 100000; round++) {
    int i = rand_r(&seed) % COUNT;
    struct rlk_wheel_entry *due;
    if (rand_r(&seed) % 4 == 0) {
      rlk_wheel_clear(&wheel, &entry[i]);
      at[i] = 0;
    } else {
      static const int64_t reach[] = {3, 60, 70, 5000, 300000, 20000000, 86400000};
      at[i] = now / MS + rand_r(&seed) % reach[rand_r(&seed) % 7];
      rlk_wheel_set(&wheel, &entry[i], at[i] * MS);
    }
    if (least(at) != RLK_NEVER)
      assert_true(rlk_wheel_next(&wheel) <= (least(at) > now / MS ? least(at) : now / MS) * MS);
    now += (int64_t)(rand_r(&seed) % 100 ? rand_r(&seed) % 5 : rand_r(&seed) % 400000) * MS;
    while ((due = rlk_wheel_pop(&wheel, now)) != NULL) {
      assert_true(at[due - entry] != 0);
      assert_true(at[due - entry] <= now / MS);
      at[due - entry] = 0;
    }
    assert_true(least(at) > now / MS);
  }
}

static void the_wheel_sleeps_until_the_next_one(void **state)
{
  static struct rlk_wheel wheel;
  struct rlk_wheel_entry entry = {0};
  int looks = 0;
  (void)state;
  rlk_wheel_init(&wheel, 123456789 * MS);
  assert_int_equal(rlk_wheel_next(&wheel), RLK_NEVER);
  rlk_wheel_set(&wheel, &entry, (123456789 + 10000) * MS);
  for (;;) { /* a coarse slot may have to be spread on the way, at most once per level */
    int64_t next = rlk_wheel_next(&wheel);
    looks++;
    if (rlk_wheel_pop(&wheel, next) == &entry) {
      assert_int_equal(next, (123456789 + 10000) * MS);
      break;
    }
  }
  assert_true(looks <= 3);
  assert_int_equal(rlk_wheel_next(&wheel), RLK_NEVER);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_heap_gives_the_earliest),
      cmocka_unit_test(the_wheel_gives_all_that_is_due_and_nothing_else),
      cmocka_unit_test(the_wheel_sleeps_until_the_next_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

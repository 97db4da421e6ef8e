/* The clock of a server against ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules/clock.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)
#define DRIFT 0.01
#define EPOCH_US INT64_C(1800000000000000)

/* It is read at so many ms of ours, the request and the reply each take so many, and it was stepped by so many before
 * that. */
static struct rlk_step step_of(struct rlk_clock *clock, int64_t at_ms, int64_t way_ms, int64_t stepped_ms)
{
  struct rlk_clock_sample sample = {EPOCH_US + (at_ms + stepped_ms) * 1000, (at_ms - way_ms) * MS,
                                    (at_ms + way_ms) * MS};
  return rlk_clock_note(clock, &sample, DRIFT);
}

static int64_t note(struct rlk_clock *clock, int64_t at_ms, int64_t way_ms, int64_t stepped_ms)
{
  return step_of(clock, at_ms, way_ms, stepped_ms).high_ns;
}

static void a_clock_that_only_runs_is_not_stepped(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  for (int64_t at_ms = 1000; at_ms < 100000; at_ms += 777)
    assert_int_equal(note(&clock, at_ms, at_ms % 13, 0), 0);
}

static void a_step_forward_is_reported_with_its_size(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  assert_int_equal(note(&clock, 1000, 1, 0), 0);
  assert_in_range(note(&clock, 1100, 1, 5000), 5 * S, 5 * S + 10 * MS);
  assert_int_equal(note(&clock, 1200, 1, 5000), 0);
}

static void the_first_time_says_nothing(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  assert_int_equal(note(&clock, 1000, 1, 99999999), 0);
}

static void a_step_back_is_none_and_is_the_new_reference(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  note(&clock, 1000, 1, 0);
  assert_int_equal(note(&clock, 1100, 1, -60000), 0);
  assert_true(note(&clock, 1200, 1, -59000) >= 1 * S);
}

static void a_step_within_the_limit_is_none(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  note(&clock, 1000, 1, 0);
  assert_int_equal(note(&clock, 1100, 1, 45), 0);
}

static void a_reading_of_15_minutes_ago_says_nothing(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  note(&clock, 1000, 1, 0);
  assert_in_range(note(&clock, 1000 + 899000, 1, 1900), 1900 * MS, 3 * S);
  clock.at_ns = 0;
  note(&clock, 1000, 1, 0);
  assert_int_equal(note(&clock, 1000 + 901000, 1, 9000), 0);
  assert_true(rlk_clock_is_known(&clock, (1000 + 901000) * MS, 0.01));
  assert_false(rlk_clock_is_known(&clock, (1000 + 901000 + 901000) * MS, 0.01));
}

/* Drift of a tenth could hide as much within 11 s as the comparison of the nodes with each other does. */
static void a_reading_behind_which_drift_hides_a_second_says_nothing(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  note(&clock, 1000, 0, 0);
  assert_true(rlk_clock_is_known(&clock, (1000 + 11000) * MS, 0.1));
  assert_false(rlk_clock_is_known(&clock, (1000 + 11100) * MS, 0.1));
  assert_true(rlk_clock_is_known(&clock, (1000 + 11100) * MS, 0.01));
}

/* Between these readings of two clocks, so many ms each. */
static int may_be_same(int64_t one_ms, int64_t one_at_ms, int64_t other_ms, int64_t other_at_ms)
{
  struct rlk_clock clocks[2] = {{0, 0, 0}, {0, 0, 0}};
  struct rlk_step one, other;
  note(&clocks[0], 1000, 1, 0);
  note(&clocks[1], other_at_ms - 500, 1, 0);
  one = step_of(&clocks[0], one_at_ms, 1, one_ms);
  other = step_of(&clocks[1], other_at_ms, 1, other_ms);
  return rlk_step_may_be_same(&one, &other);
}

static void steps_of_one_size_at_one_moment_are_the_same(void **state)
{
  (void)state;
  assert_true(may_be_same(200, 1600, 200, 1500));
  assert_false(may_be_same(200, 1600, 400, 1500));
  assert_false(may_be_same(200, 1600, 200, 2500));
  assert_false(may_be_same(200, 1600, 0, 1500));
}

static void many_small_steps_are_a_large_one(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  int64_t step_ns = 0;
  (void)state;
  note(&clock, 1000, 1, 0);
  for (int i = 1; i <= 5 && !step_ns; i++)
    step_ns = note(&clock, 1000 + 100 * i, 1, 20 * i);
  assert_in_range(step_ns, 60 * MS, 100 * MS);
}

static void a_clock_may_run_faster_by_the_drift(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  for (int64_t at_ms = 1000; at_ms < 200000; at_ms += 1000)
    assert_int_equal(note(&clock, at_ms, 1, at_ms / 100), 0);
}

static void a_slow_reply_hides_no_more_than_it_took(void **state)
{
  struct rlk_clock clock = {0, 0, 0};
  (void)state;
  note(&clock, 1000, 1, 0);
  assert_int_equal(note(&clock, 2000, 500, 400), 0);
  clock.at_ns = 0;
  note(&clock, 1000, 1, 0);
  assert_true(note(&clock, 2000, 500, 700) >= 700 * MS);
}

static int64_t ahead_ns(const int64_t *offsets_ms, int count, int wrong)
{
  struct rlk_clock clocks[7];
  const struct rlk_clock *known[7];
  for (int i = 0; i < count; i++) {
    clocks[i] = (struct rlk_clock){0, 0, 0};
    if (offsets_ms[i] != INT64_MIN)
      note(&clocks[i], 1000, 1, offsets_ms[i]);
    known[i] = &clocks[i];
  }
  return rlk_clock_ahead_ns(&clocks[0], known, count, wrong, 1000 * MS, DRIFT);
}

#define AHEAD(wrong, ...)                                                                                              \
  ahead_ns((const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), wrong)
#define NEVER_READ INT64_MIN

static void a_clock_ahead_of_the_trusted_ones_is_ahead(void **state)
{
  (void)state;
  assert_in_range(AHEAD(1, 60000, 0, 0), 59900 * MS, 60 * S);
  assert_true(AHEAD(1, 0, 60000, 0) <= 0);
  assert_true(AHEAD(1, 0, -60000, 0) <= 0);
  assert_true(AHEAD(2, 60000, 60000, 0, 0, 0) >= 59 * S);
  assert_true(AHEAD(1, 60000, 60000, 0) <= 0); /* most of them say so */
}

static void few_that_are_known_may_all_be_wrong_but_one(void **state)
{
  (void)state;
  assert_true(AHEAD(1, 60000, 0, NEVER_READ) >= 59 * S);
  assert_true(AHEAD(2, 60000, 60000, 0, NEVER_READ, NEVER_READ) >= 59 * S);
  assert_true(AHEAD(1, 60000, NEVER_READ, NEVER_READ) <= 0); /* there is nothing to compare it with */
  assert_true(AHEAD(1, NEVER_READ, 0, 0) <= 0);
  assert_true(AHEAD(0, 60000) <= 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_clock_that_only_runs_is_not_stepped),
      cmocka_unit_test(a_step_forward_is_reported_with_its_size),
      cmocka_unit_test(the_first_time_says_nothing),
      cmocka_unit_test(a_step_back_is_none_and_is_the_new_reference),
      cmocka_unit_test(a_step_within_the_limit_is_none),
      cmocka_unit_test(a_reading_of_15_minutes_ago_says_nothing),
      cmocka_unit_test(a_reading_behind_which_drift_hides_a_second_says_nothing),
      cmocka_unit_test(steps_of_one_size_at_one_moment_are_the_same),
      cmocka_unit_test(many_small_steps_are_a_large_one),
      cmocka_unit_test(a_clock_may_run_faster_by_the_drift),
      cmocka_unit_test(a_slow_reply_hides_no_more_than_it_took),
      cmocka_unit_test(a_clock_ahead_of_the_trusted_ones_is_ahead),
      cmocka_unit_test(few_that_are_known_may_all_be_wrong_but_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

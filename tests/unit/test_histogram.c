/* The times of `redlock bench`: exact up to 127 us, then to within 2 %. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../core/cli/histogram.h"

static struct histogram *histogram_of(const int64_t *us, size_t count)
{
  struct histogram *histogram = calloc(1, sizeof *histogram);
  assert_non_null(histogram);
  for (size_t i = 0; i < count; i++)
    histogram_add(histogram, us[i] * 1000);
  return histogram;
}

static void every_time_is_below_the_end_of_its_bucket(void **state)
{
  (void)state;
  for (int64_t us = 0; us < 50000000000; us = us < 300 ? us + 1 : us + us / 77) {
    struct histogram *histogram = histogram_of((const int64_t[]){us, us * 2}, 2);
    uint64_t half_us = histogram_percentile_us(histogram, 50);
    assert_true(half_us >= (uint64_t)us && half_us <= (uint64_t)us + (uint64_t)us / 50);
    assert_int_equal(histogram->max_us, us * 2);
    free(histogram);
  }
}

static void percentiles_are_of_the_sorted_times(void **state)
{
  struct histogram *histogram = calloc(1, sizeof *histogram), *other = calloc(1, sizeof *other);
  (void)state;
  for (int64_t us = 100; us > 50; us--)
    histogram_add(histogram, us * 1000 + 999);
  for (int64_t us = 1; us <= 50; us++)
    histogram_add(other, us * 1000);
  histogram_merge(histogram, other);
  assert_int_equal(histogram_percentile_us(histogram, 50), 50);
  assert_int_equal(histogram_percentile_us(histogram, 90), 90);
  assert_int_equal(histogram_percentile_us(histogram, 99.9), 100);
  assert_int_equal(histogram_percentile_us(histogram, 1), 1);
  assert_int_equal(histogram->count, 100);
  assert_int_equal(histogram->sum_us, 5050);
  free(histogram);
  free(other);
}

static void times_beyond_the_range_count_at_its_ends(void **state)
{
  struct histogram *histogram = calloc(1, sizeof *histogram);
  (void)state;
  assert_int_equal(histogram_percentile_us(histogram, 99), 0);
  histogram_add(histogram, -5);
  assert_int_equal(histogram_percentile_us(histogram, 100), 0);
  histogram_add(histogram, INT64_MAX);
  assert_int_equal(histogram_percentile_us(histogram, 100), INT64_MAX / 1000);
  free(histogram);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_time_is_below_the_end_of_its_bucket),
      cmocka_unit_test(percentiles_are_of_the_sorted_times),
      cmocka_unit_test(times_beyond_the_range_count_at_its_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

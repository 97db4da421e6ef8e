/* times.c - a histogram for people and in JSON. */
#include "cli.h"
#include "histogram.h"

#include <stdio.h>
#include <stdlib.h>

json_t *times_json(const struct histogram *histogram)
{
  uint64_t mean_us = histogram->count > 0 ? histogram->sum_us / histogram->count : 0;
  return must(json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "count", (json_int_t)histogram->count, "mean_us",
                        (json_int_t)mean_us, "p50_us", (json_int_t)histogram_percentile_us(histogram, 50), "p90_us",
                        (json_int_t)histogram_percentile_us(histogram, 90), "p99_us",
                        (json_int_t)histogram_percentile_us(histogram, 99), "p999_us",
                        (json_int_t)histogram_percentile_us(histogram, 99.9), "max_us", (json_int_t)histogram->max_us));
}

static char *us_words(uint64_t us)
{
  if (us < 1000)
    return format("%llu us", (unsigned long long)us);
  return us < 1000000 ? format("%.3g ms", (double)us / 1e3) : format("%.3g s", (double)us / 1e6);
}

static void print_bar(uint64_t upper, uint64_t count, uint64_t most)
{
  enum { WIDTH = 50 };
  static const char marks[] = "##################################################";
  char *words = us_words(upper);
  int length = (int)((count * WIDTH + most - 1) / most);
  printf("  < %8s  %10llu  %.*s\n", words, (unsigned long long)count, length, marks);
  free(words);
}

void times_print(const struct histogram *histogram)
{
  uint64_t powers[48] = {0}, most = 1;
  int first = 47, last = 0;
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    int power = 0;
    while (UINT64_C(1) << power <= histogram_upper_us(i))
      power++;
    powers[power] += histogram->buckets[i];
  }
  for (int i = 0; i < 48; i++) {
    most = powers[i] > most ? powers[i] : most;
    first = powers[i] > 0 && i < first ? i : first;
    last = powers[i] > 0 ? i : last;
  }
  for (int i = first; i <= last; i++)
    print_bar(UINT64_C(1) << i, powers[i], most);
}

#include "histogram.h"

#include <stdio.h>
#include <string.h>

/* Up to 63 us each has a bucket of its own; above, each power of two has 64. */
enum { STEPS = 64, STEPS_BITS = 6 };

static int log2_of(uint64_t us)
{
  return 63 - __builtin_clzll(us);
}

static size_t bucket_of(uint64_t us)
{
  if (us < STEPS)
    return us;
  int shift = log2_of(us) - STEPS_BITS;
  size_t bucket = (size_t)shift * STEPS + (us >> shift);
  return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static uint64_t upper_us(size_t bucket)
{
  if (bucket < 2 * STEPS)
    return bucket;
  size_t shift = bucket / STEPS - 1;
  return ((bucket % STEPS + STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, int64_t ns)
{
  uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
  histogram->count++;
  histogram->sum_us += us;
  histogram->max_us = us > histogram->max_us ? us : histogram->max_us;
  histogram->buckets[bucket_of(us)]++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
  into->count += from->count;
  into->sum_us += from->sum_us;
  into->max_us = from->max_us > into->max_us ? from->max_us : into->max_us;
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
    into->buckets[i] += from->buckets[i];
}

uint64_t histogram_percentile_us(const struct histogram *histogram, double percent)
{
  uint64_t below = 0, wanted = (uint64_t)((double)histogram->count * percent / 100 + 0.999999);
  for (size_t i = 0; i < HISTOGRAM_BUCKETS && histogram->count > 0; i++) {
    below += histogram->buckets[i];
    if (below >= wanted)
      return upper_us(i) < histogram->max_us ? upper_us(i) : histogram->max_us;
  }
  return histogram->max_us;
}

json_t *histogram_json(const struct histogram *histogram)
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

void histogram_print(const struct histogram *histogram)
{
  uint64_t powers[48] = {0}, most = 1;
  int first = 47, last = 0;
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
    uint64_t upper = upper_us(i);
    int power = upper == 0 ? 0 : log2_of(upper) + 1;
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

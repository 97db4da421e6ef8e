#include "histogram.h"

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

uint64_t histogram_upper_us(size_t bucket)
{
  if (bucket < 2 * STEPS)
    return bucket;
  size_t shift = bucket / STEPS - 1;
  return ((uint64_t)(bucket % STEPS + STEPS + 1) << shift) - 1;
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
  for (size_t i = 0; i < HISTOGRAM_BUCKETS - 1 && histogram->count > 0; i++) { /* the last has no end */
    below += histogram->buckets[i];
    if (below >= wanted)
      return histogram_upper_us(i) < histogram->max_us ? histogram_upper_us(i) : histogram->max_us;
  }
  return histogram->max_us;
}

/* histogram.h - times in microseconds, to within 2 %. */
#ifndef REDLOCK_HISTOGRAM_H
#define REDLOCK_HISTOGRAM_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 40 * 64 };

struct histogram {
  uint64_t count, sum_us, max_us;
  uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, int64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
uint64_t histogram_upper_us(size_t bucket);                                          /* the longest that is in it */
uint64_t histogram_percentile_us(const struct histogram *histogram, double percent); /* an upper bound; 0 if empty */

/* times.c */
json_t *times_json(const struct histogram *histogram);
void times_print(const struct histogram *histogram); /* bars, a line for each power of two */

#endif

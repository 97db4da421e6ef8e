/* Counters of a client's locks, for operators. No decision depends on them. */
#ifndef RLK_FIGURES_H
#define RLK_FIGURES_H

#include <stdint.h>

enum { RLK_BOUNDS = 16, RLK_COUNTED_STATUSES = 17, RLK_COUNTED_LOSSES = 8 };

/* How many values are up to each bound and above the one before; the last: above all bounds. */
struct rlk_histogram {
  uint64_t counts[RLK_BOUNDS + 1];
  int64_t sum;
};

struct rlk_figures {
  uint64_t acquisitions[RLK_COUNTED_STATUSES]; /* that ended, by status */
  uint64_t losses[RLK_COUNTED_LOSSES];         /* by reason */
  struct rlk_histogram wait_us, hold_us;       /* from the call of acquire to the lock; from there to its end */
  struct rlk_histogram attempts;               /* per acquisition that was granted */
};

extern const int64_t rlk_time_bounds_us[RLK_BOUNDS];
extern const int64_t rlk_attempt_bounds[RLK_BOUNDS];

void rlk_histogram_add(struct rlk_histogram *histogram, const int64_t *bounds, int64_t value);

#endif

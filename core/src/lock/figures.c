#include "figures.h"

const int64_t rlk_time_bounds_us[RLK_BOUNDS] = {250,      500,      1000,     2500,     5000,    10000,
                                                25000,    50000,    100000,   250000,   1000000, 2500000,
                                                10000000, 30000000, 60000000, 300000000};
const int64_t rlk_attempt_bounds[RLK_BOUNDS] = {1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000};

void rlk_histogram_add(struct rlk_histogram *histogram, const int64_t *bounds, int64_t value)
{
  int i = 0;
  while (i < RLK_BOUNDS && value > bounds[i])
    i++;
  histogram->counts[i]++;
  histogram->sum += value;
}

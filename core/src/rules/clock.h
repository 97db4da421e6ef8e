/* The clock of a server against ours: whether it was stepped forward, and whether it is ahead of the others (rule
 * C.3.2). Keys end by it, so a step forward ends leases before their time. Pure: no I/O, no clock, no allocation. */
#ifndef RLK_CLOCK_H
#define RLK_CLOCK_H

#include <stdint.h>

/* Bounds of its time minus ours: it was read between sending and reading. */
struct rlk_clock {
  int64_t low_ns, high_ns;
  int64_t at_ns; /* by our clock; 0: it was never read */
};

struct rlk_clock_sample {
  int64_t server_us; /* its reading */
  int64_t sent_ns, read_ns;
};

/* A step forward between two readings: by how much at least, and at most. at most 0: there was none. */
struct rlk_step {
  int64_t low_ns, high_ns;
  int64_t from_ns, to_ns; /* when they were, by our clock */
};

#define RLK_CLOCK_OLD_NS INT64_C(900000000000) /* an older reading says nothing of the present time */

/* Is the reading so recent that drift hides no larger step than a comparison of the nodes with each other does? */
int rlk_clock_is_known(const struct rlk_clock *clock, int64_t now_ns, double drift_factor);

/* Notes a reading of the clock. Returns the step since the last one, if it may be more than 50 ms beyond what clocks
 * drift apart. A step back only lengthens leases. */
struct rlk_step rlk_clock_note(struct rlk_clock *clock, const struct rlk_clock_sample *sample, double drift_factor);
/* Steps that were as large, and may have been at the same moment. */
int rlk_step_may_be_same(const struct rlk_step *one, const struct rlk_step *other);

/* By how much the clock is ahead of the fastest of `count` clocks that is right although `wrong` of the servers,
 * known or not, may be ahead; negative if it is not. Clocks that were never read do not matter. */
int64_t rlk_clock_ahead_ns(const struct rlk_clock *clock, const struct rlk_clock *const *clocks, int count, int wrong,
                           int64_t now_ns, double drift_factor);

#endif

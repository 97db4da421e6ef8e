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

/* Notes a reading of the clock. Returns by how much it may have been stepped forward since the last one, if that is
 * more than limit_ns; else 0. A step back only lengthens leases. */
int64_t rlk_clock_note(struct rlk_clock *clock, const struct rlk_clock_sample *sample, double drift_factor,
                       int64_t limit_ns);

/* By how much the clock is ahead of the fastest of `count` clocks that is right although `wrong` of the servers,
 * known or not, may be ahead; negative if it is not. Clocks that were never read do not matter. */
int64_t rlk_clock_ahead_ns(const struct rlk_clock *clock, const struct rlk_clock *const *clocks, int count, int wrong,
                           int64_t now_ns, double drift_factor);

#endif

/* A hierarchical timing wheel for leases that are renewed: setting, clearing and finding what is due cost the same for
 * ten leases and for ten thousand. Ticks are 1 ms; seven levels of 64 slots reach 139 years. */
#ifndef RLK_WHEEL_H
#define RLK_WHEEL_H

#include <stdint.h>

enum { RLK_WHEEL_LEVELS = 7, RLK_WHEEL_SLOTS = 64 };

struct rlk_wheel_entry {
  struct rlk_wheel_entry *next, *previous; /* next NULL: not set */
  int64_t at_tick;
  uint16_t slot; /* level * 64 + slot */
};

struct rlk_wheel {
  int64_t tick; /* everything up to it has been taken */
  int count;
  uint64_t used[RLK_WHEEL_LEVELS];
  struct rlk_wheel_entry slots[RLK_WHEEL_LEVELS * RLK_WHEEL_SLOTS]; /* heads of circular lists */
};

void rlk_wheel_init(struct rlk_wheel *wheel, int64_t now_ns);
void rlk_wheel_set(struct rlk_wheel *wheel, struct rlk_wheel_entry *entry, int64_t at_ns);
void rlk_wheel_clear(struct rlk_wheel *wheel, struct rlk_wheel_entry *entry);
/* When the wheel must be looked at again: at the next due lease, or earlier if a coarser slot must be spread. */
int64_t rlk_wheel_next(const struct rlk_wheel *wheel);
/* Takes one lease that is due at now; NULL when there is none. */
struct rlk_wheel_entry *rlk_wheel_pop(struct rlk_wheel *wheel, int64_t now_ns);

#endif

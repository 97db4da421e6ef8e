/* A hierarchical timing wheel for leases that are renewed: setting, clearing and finding what is due cost the same for
 * ten leases and for ten thousand. Ticks are 1 ms; seven levels of 64 slots reach 139 years. */
#ifndef RL_WHEEL_H
#define RL_WHEEL_H

#include <stdint.h>

enum { RL_WHEEL_LEVELS = 7, RL_WHEEL_SLOTS = 64 };

struct rl_wheel_entry {
  struct rl_wheel_entry *next, *previous; /* next NULL: not set */
  int64_t at_tick;
  uint16_t slot; /* level * 64 + slot */
};

struct rl_wheel {
  int64_t tick; /* everything up to it has been taken */
  int count;
  uint64_t used[RL_WHEEL_LEVELS];
  struct rl_wheel_entry slots[RL_WHEEL_LEVELS * RL_WHEEL_SLOTS]; /* heads of circular lists */
};

void rl_wheel_init(struct rl_wheel *wheel, int64_t now_ns);
void rl_wheel_set(struct rl_wheel *wheel, struct rl_wheel_entry *entry, int64_t at_ns);
void rl_wheel_clear(struct rl_wheel *wheel, struct rl_wheel_entry *entry);
/* When the wheel has to be looked at again: at the next due lease, or earlier where a coarser slot must be spread. */
int64_t rl_wheel_next(const struct rl_wheel *wheel);
/* Takes one lease that is due at now; NULL when there is none. */
struct rl_wheel_entry *rl_wheel_pop(struct rl_wheel *wheel, int64_t now_ns);

#endif

/* Deadlines in a binary heap. A timer is embedded in what it belongs to; the heap's room is reserved when that is made,
 * so that setting a timer cannot fail. */
#ifndef RL_TIMER_H
#define RL_TIMER_H

#include <stddef.h>
#include <stdint.h>

enum rl_timer_kind { RL_TIMER_OPERATION, RL_TIMER_LEASE, RL_TIMER_NODE };

struct rl_timer {
  int64_t at_ns;
  size_t place; /* in the heap, counted from 1; 0: not set */
  enum rl_timer_kind kind;
};

struct rl_timers {
  struct rl_timer **heap;
  size_t count, capacity, reserved;
};

/* Room for n more timers: 0, or -1 when memory is out. To be given back with a negative n. */
int rl_timers_reserve(struct rl_timers *timers, int n);
void rl_timer_set(struct rl_timers *timers, struct rl_timer *timer, int64_t at_ns);
void rl_timer_clear(struct rl_timers *timers, struct rl_timer *timer);
/* The earliest deadline, RL_NEVER if there is none. */
int64_t rl_timers_next(const struct rl_timers *timers);
/* Takes off the earliest timer that is due at now; NULL if none is. */
struct rl_timer *rl_timers_pop(struct rl_timers *timers, int64_t now_ns);
void rl_timers_free(struct rl_timers *timers);

#endif

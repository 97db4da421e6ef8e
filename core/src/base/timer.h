/* Deadlines in a binary heap. A timer is embedded in its owner; the heap's room is reserved when the owner is made,
 * so that setting a timer cannot fail. */
#ifndef RLK_TIMER_H
#define RLK_TIMER_H

#include <stddef.h>
#include <stdint.h>

enum rlk_timer_kind { RLK_TIMER_OPERATION, RLK_TIMER_LEASE, RLK_TIMER_NODE, RLK_TIMER_LISTENER };

struct rlk_timer {
  int64_t at_ns;
  size_t place; /* in the heap, counted from 1; 0: not set */
  enum rlk_timer_kind kind;
};

struct rlk_timers {
  struct rlk_timer **heap;
  size_t count, capacity, reserved;
};

/* Room for n more timers: 0, or -1 when memory is out. Returned by a call with a negative n. */
int rlk_timers_reserve(struct rlk_timers *timers, int n);
void rlk_timer_set(struct rlk_timers *timers, struct rlk_timer *timer, int64_t at_ns);
void rlk_timer_clear(struct rlk_timers *timers, struct rlk_timer *timer);
/* The earliest deadline, RLK_NEVER if there is none. */
int64_t rlk_timers_next(const struct rlk_timers *timers);
/* Takes off the earliest timer that is due at now; NULL if none is. */
struct rlk_timer *rlk_timers_pop(struct rlk_timers *timers, int64_t now_ns);
void rlk_timers_free(struct rlk_timers *timers);

#endif

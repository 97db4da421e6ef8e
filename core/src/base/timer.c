#include "timer.h"

#include <stdlib.h>

#include "platform.h"

int rl_timers_reserve(struct rl_timers *t, int n)
{
  size_t wanted = t->reserved + (size_t)n;
  if (n > 0 && wanted > t->capacity) {
    size_t capacity = t->capacity ? t->capacity * 2 : 64;
    struct rl_timer **heap;
    while (capacity < wanted)
      capacity *= 2;
    heap = realloc(t->heap, capacity * sizeof *heap);
    if (!heap)
      return -1;
    t->heap = heap;
    t->capacity = capacity;
  }
  t->reserved = wanted;
  return 0;
}

static void put(struct rl_timers *t, size_t place, struct rl_timer *timer)
{
  t->heap[place - 1] = timer;
  timer->place = place;
}

static void sift_up(struct rl_timers *t, size_t place, struct rl_timer *timer)
{
  while (place > 1 && t->heap[place / 2 - 1]->at_ns > timer->at_ns) {
    put(t, place, t->heap[place / 2 - 1]);
    place /= 2;
  }
  put(t, place, timer);
}

static void sift_down(struct rl_timers *t, size_t place, struct rl_timer *timer)
{
  for (;;) {
    size_t child = place * 2;
    if (child > t->count)
      break;
    if (child < t->count && t->heap[child]->at_ns < t->heap[child - 1]->at_ns)
      child++;
    if (t->heap[child - 1]->at_ns >= timer->at_ns)
      break;
    put(t, place, t->heap[child - 1]);
    place = child;
  }
  put(t, place, timer);
}

static void settle(struct rl_timers *t, size_t place, struct rl_timer *timer)
{
  if (place > 1 && t->heap[place / 2 - 1]->at_ns > timer->at_ns)
    sift_up(t, place, timer);
  else
    sift_down(t, place, timer);
}

void rl_timer_set(struct rl_timers *t, struct rl_timer *timer, int64_t at_ns)
{
  timer->at_ns = at_ns;
  if (timer->place)
    settle(t, timer->place, timer);
  else
    sift_up(t, ++t->count, timer);
}

void rl_timer_clear(struct rl_timers *t, struct rl_timer *timer)
{
  size_t place = timer->place;
  struct rl_timer *last;
  if (!place)
    return;
  timer->place = 0;
  last = t->heap[--t->count];
  if (last != timer)
    settle(t, place, last);
}

int64_t rl_timers_next(const struct rl_timers *t)
{
  return t->count ? t->heap[0]->at_ns : RL_NEVER;
}

struct rl_timer *rl_timers_pop(struct rl_timers *t, int64_t now_ns)
{
  struct rl_timer *first;
  if (!t->count || t->heap[0]->at_ns > now_ns)
    return NULL;
  first = t->heap[0];
  rl_timer_clear(t, first);
  return first;
}

void rl_timers_free(struct rl_timers *t)
{
  free(t->heap);
  *t = (struct rl_timers){0};
}

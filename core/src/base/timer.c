#include "timer.h"

#include <stdlib.h>

#include "platform.h"

int rlk_timers_reserve(struct rlk_timers *t, int n)
{
  size_t wanted = t->reserved + (size_t)n;
  if (n > 0 && wanted > t->capacity) {
    size_t capacity = t->capacity ? t->capacity * 2 : 64;
    struct rlk_timer **heap;
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

static void put(struct rlk_timers *t, size_t place, struct rlk_timer *timer)
{
  t->heap[place - 1] = timer;
  timer->place = place;
}

static void sift_up(struct rlk_timers *t, size_t place, struct rlk_timer *timer)
{
  while (place > 1 && t->heap[place / 2 - 1]->at_ns > timer->at_ns) {
    put(t, place, t->heap[place / 2 - 1]);
    place /= 2;
  }
  put(t, place, timer);
}

static void sift_down(struct rlk_timers *t, size_t place, struct rlk_timer *timer)
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

static void settle(struct rlk_timers *t, size_t place, struct rlk_timer *timer)
{
  if (place > 1 && t->heap[place / 2 - 1]->at_ns > timer->at_ns)
    sift_up(t, place, timer);
  else
    sift_down(t, place, timer);
}

void rlk_timer_set(struct rlk_timers *t, struct rlk_timer *timer, int64_t at_ns)
{
  timer->at_ns = at_ns;
  if (timer->place)
    settle(t, timer->place, timer);
  else
    sift_up(t, ++t->count, timer);
}

void rlk_timer_clear(struct rlk_timers *t, struct rlk_timer *timer)
{
  size_t place = timer->place;
  struct rlk_timer *last;
  if (!place)
    return;
  timer->place = 0;
  last = t->heap[--t->count];
  if (last != timer)
    settle(t, place, last);
}

int64_t rlk_timers_next(const struct rlk_timers *t)
{
  return t->count ? t->heap[0]->at_ns : RLK_NEVER;
}

struct rlk_timer *rlk_timers_pop(struct rlk_timers *t, int64_t now_ns)
{
  struct rlk_timer *first;
  if (!t->count || t->heap[0]->at_ns > now_ns)
    return NULL;
  first = t->heap[0];
  rlk_timer_clear(t, first);
  return first;
}

void rlk_timers_free(struct rlk_timers *t)
{
  free(t->heap);
  *t = (struct rlk_timers){0};
}

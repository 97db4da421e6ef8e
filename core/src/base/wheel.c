#include "wheel.h"

#include <stddef.h>

#include "platform.h"

#define BITS 6
#define MASK 63

void rlk_wheel_init(struct rlk_wheel *w, int64_t now_ns)
{
  w->tick = now_ns / RLK_NS_PER_MS;
  w->count = 0;
  for (int level = 0; level < RLK_WHEEL_LEVELS; level++)
    w->used[level] = 0;
  for (int i = 0; i < RLK_WHEEL_LEVELS * RLK_WHEEL_SLOTS; i++)
    w->slots[i].next = w->slots[i].previous = &w->slots[i];
}

/* The level on which tick differs from the wheel's own tick, and the slot there. */
static int slot_of(const struct rlk_wheel *w, int64_t tick)
{
  for (int level = RLK_WHEEL_LEVELS - 1; level > 0; level--)
    if ((tick >> (BITS * level)) != (w->tick >> (BITS * level)))
      return level * RLK_WHEEL_SLOTS + (int)((tick >> (BITS * level)) & MASK);
  return (int)(tick & MASK);
}

static void link_entry(struct rlk_wheel *w, struct rlk_wheel_entry *e)
{
  int64_t tick = e->at_tick > w->tick ? e->at_tick : w->tick;
  int slot = slot_of(w, tick);
  struct rlk_wheel_entry *head = &w->slots[slot];
  e->slot = (uint16_t)slot;
  e->next = head;
  e->previous = head->previous;
  head->previous->next = e;
  head->previous = e;
  w->used[slot / RLK_WHEEL_SLOTS] |= UINT64_C(1) << (slot & MASK);
}

static void unlink_entry(struct rlk_wheel *w, struct rlk_wheel_entry *e)
{
  struct rlk_wheel_entry *head = &w->slots[e->slot];
  e->previous->next = e->next;
  e->next->previous = e->previous;
  e->next = NULL;
  if (head->next == head)
    w->used[e->slot / RLK_WHEEL_SLOTS] &= ~(UINT64_C(1) << (e->slot & MASK));
}

void rlk_wheel_set(struct rlk_wheel *w, struct rlk_wheel_entry *e, int64_t at_ns)
{
  rlk_wheel_clear(w, e);
  e->at_tick = at_ns / RLK_NS_PER_MS;
  link_entry(w, e);
  w->count++;
}

void rlk_wheel_clear(struct rlk_wheel *w, struct rlk_wheel_entry *e)
{
  if (!e->next)
    return;
  unlink_entry(w, e);
  w->count--;
}

/* The tick at which the next used slot begins, and its level; INT64_MAX if the wheel is empty. */
static int64_t next_slot(const struct rlk_wheel *w, int *level)
{
  for (*level = 0; *level < RLK_WHEEL_LEVELS; (*level)++) {
    int shift = BITS * *level;
    int here = (int)((w->tick >> shift) & MASK);
    uint64_t ahead = w->used[*level] >> here << here;
    if (ahead) {
      int64_t base = w->tick >> (shift + BITS) << (shift + BITS);
      int64_t begins = base + ((int64_t)__builtin_ctzll(ahead) << shift);
      return begins > w->tick ? begins : w->tick;
    }
  }
  return INT64_MAX;
}

int64_t rlk_wheel_next(const struct rlk_wheel *w)
{
  int level;
  int64_t tick = w->count ? next_slot(w, &level) : INT64_MAX;
  return tick == INT64_MAX ? RLK_NEVER : tick * RLK_NS_PER_MS;
}

/* Spreads a coarser slot, which begins now, over the finer levels. */
static void cascade(struct rlk_wheel *w, int level)
{
  int slot = level * RLK_WHEEL_SLOTS + (int)((w->tick >> (BITS * level)) & MASK);
  struct rlk_wheel_entry *head = &w->slots[slot];
  while (head->next != head) {
    struct rlk_wheel_entry *e = head->next;
    unlink_entry(w, e);
    link_entry(w, e);
  }
}

struct rlk_wheel_entry *rlk_wheel_pop(struct rlk_wheel *w, int64_t now_ns)
{
  int64_t now = now_ns / RLK_NS_PER_MS;
  int level;
  while (w->count) {
    int64_t tick = next_slot(w, &level);
    struct rlk_wheel_entry *e;
    if (tick > now)
      break;
    w->tick = tick;
    if (level > 0) {
      cascade(w, level);
      continue;
    }
    e = w->slots[tick & MASK].next;
    rlk_wheel_clear(w, e);
    return e;
  }
  if (now > w->tick && !w->count)
    w->tick = now;
  return NULL;
}

/* Events for logs: a bounded queue that drops the oldest, and a descriptor that is readable while there are any. */
#ifndef RLK_EVENT_H
#define RLK_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "bell.h"

enum { RLK_EVENTS_MAX = 128 };

enum rlk_event_kind {
  RLK_EVENT_LOST,
  RLK_EVENT_AT_RISK,
  RLK_EVENT_LIMIT,
  RLK_EVENT_HELD_LONG,
  RLK_EVENT_NODE_UP,
  RLK_EVENT_NODE_DOWN,
  RLK_EVENT_NODE_SILENT,
  RLK_EVENT_NODE_REFUSED,
  RLK_EVENT_NODE_RESTARTED,
  RLK_EVENT_WARNING
};

/* A reason (RLK_WHY_SIZE), and the RLK_PARTs around two names. */
enum { RLK_EVENT_DETAIL_SIZE = 140 };

struct rlk_event {
  enum rlk_event_kind kind;
  int node; /* -1: about a resource */
  int reason;
  int64_t at_ms; /* wall clock, for people */
  uint16_t resource_size;
  char resource[65];
  char detail[RLK_EVENT_DETAIL_SIZE];
};

struct rlk_events {
  struct rlk_event *ring; /* NULL: nothing is noted */
  int first, count;
  uint64_t dropped;
  struct rlk_bell bell; /* not open: never asked for */
};

int rlk_events_init(struct rlk_events *events); /* 0, or -1 when memory is out; a second time: nothing happens */
void rlk_events_free(struct rlk_events *events);
/* Details of the resource may follow at once; they are valid until the next one is added. */
struct rlk_event *rlk_event_add(struct rlk_events *events, enum rlk_event_kind kind, int node, const char *detail);
void rlk_event_about(struct rlk_event *event, const char *resource, size_t size, int reason);
/* The oldest, or NULL. */
const struct rlk_event *rlk_event_first(const struct rlk_events *events);
void rlk_event_pop(struct rlk_events *events);
void rlk_events_reset_dropped(struct rlk_events *events);
/* The descriptor, made at the first call; -1 when the system refuses. */
int rlk_events_fd(struct rlk_events *events);
void rlk_events_forked(struct rlk_events *events);

#endif

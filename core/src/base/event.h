/* What happened, for logs: a bounded queue that drops the oldest, and a descriptor that is readable while there are
 * any. */
#ifndef RL_EVENT_H
#define RL_EVENT_H

#include <stddef.h>
#include <stdint.h>

enum { RL_EVENTS_MAX = 128 };

enum rl_event_kind {
  RL_EVENT_LOST,
  RL_EVENT_AT_RISK,
  RL_EVENT_LIMIT,
  RL_EVENT_NODE_UP,
  RL_EVENT_NODE_DOWN,
  RL_EVENT_NODE_SILENT,
  RL_EVENT_NODE_REFUSED,
  RL_EVENT_NODE_RESTARTED,
  RL_EVENT_WARNING
};

struct rl_event {
  enum rl_event_kind kind;
  int node; /* -1: about a resource */
  int reason;
  int64_t at_ms; /* wall clock, for people */
  uint16_t resource_size;
  char resource[65];
  char detail[132];
};

struct rl_events {
  struct rl_event *ring; /* NULL: nothing is noted */
  int first, count;
  uint64_t dropped;
  int fd; /* -1: nobody asked for it */
};

int rl_events_init(struct rl_events *events); /* 0, or -1 when memory is out; a second time: nothing happens */
void rl_events_free(struct rl_events *events);
/* Details of the resource may follow at once; they are valid until the next one is added. */
struct rl_event *rl_event_add(struct rl_events *events, enum rl_event_kind kind, int node, const char *detail);
void rl_event_about(struct rl_event *event, const char *resource, size_t size, int reason);
/* The oldest, or NULL. */
const struct rl_event *rl_event_first(const struct rl_events *events);
void rl_event_pop(struct rl_events *events);
void rl_events_reset_dropped(struct rl_events *events);
/* The descriptor, made at the first call; -1 when the system refuses. */
int rl_events_fd(struct rl_events *events);
void rl_events_forked(struct rl_events *events);

#endif

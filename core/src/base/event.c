#include "event.h"

#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "platform.h"

int rlk_events_init(struct rlk_events *e)
{
  if (!e->ring)
    e->ring = calloc(RLK_EVENTS_MAX, sizeof *e->ring);
  return e->ring ? 0 : -1;
}

void rlk_events_free(struct rlk_events *e)
{
  free(e->ring);
  rlk_bell_close(&e->bell);
}

static int is_queued(const struct rlk_events *e)
{
  return e->count > 0 || e->dropped > 0;
}

/* Makes the descriptor readable if events are queued, or clears it. */
static void signal_queued(struct rlk_events *e, int was_queued)
{
  if (e->bell.readable < 0 || was_queued == is_queued(e))
    return;
  if (was_queued)
    rlk_bell_silence(&e->bell);
  else
    rlk_bell_ring(e->bell.ringer);
}

struct rlk_event *rlk_event_add(struct rlk_events *e, enum rlk_event_kind kind, int node, const char *detail)
{
  struct rlk_event *event;
  struct rlk_text text;
  int was_queued = is_queued(e);
  if (!e->ring)
    return NULL;
  if (e->count == RLK_EVENTS_MAX) {
    e->first = (e->first + 1) % RLK_EVENTS_MAX;
    e->count--;
    e->dropped++;
  }
  event = &e->ring[(e->first + e->count++) % RLK_EVENTS_MAX];
  event->kind = kind;
  event->node = node;
  event->at_ms = rlk_platform_real.wall_ns(NULL) / RLK_NS_PER_MS;
  event->reason = 0;
  event->resource_size = 0;
  text = rlk_text_in(event->detail, sizeof event->detail);
  rlk_text_add(&text, detail);
  signal_queued(e, was_queued);
  return event;
}

void rlk_event_about(struct rlk_event *event, const char *resource, size_t size, int reason)
{
  if (!event)
    return;
  if (size > sizeof event->resource) /* one byte more than is shown, to notice that the text was cut */
    size = sizeof event->resource;
  memcpy(event->resource, resource, size);
  event->resource_size = (uint16_t)size;
  event->reason = reason;
}

const struct rlk_event *rlk_event_first(const struct rlk_events *e)
{
  return e->count ? &e->ring[e->first] : NULL;
}

void rlk_event_pop(struct rlk_events *e)
{
  e->first = (e->first + 1) % RLK_EVENTS_MAX;
  e->count--;
  signal_queued(e, 1);
}

void rlk_events_reset_dropped(struct rlk_events *e)
{
  e->dropped = 0;
  signal_queued(e, 1);
}

int rlk_events_fd(struct rlk_events *e)
{
  if (e->bell.readable < 0 && rlk_bell_open(&e->bell) == 0 && is_queued(e))
    rlk_bell_ring(e->bell.ringer);
  return e->bell.readable;
}

/* In a child: the parent's events and its descriptor are not ours. */
void rlk_events_forked(struct rlk_events *e)
{
  e->first = e->count = 0;
  e->dropped = 0;
  if (e->bell.readable >= 0)
    rlk_bell_reopen(&e->bell);
}

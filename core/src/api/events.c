/* The events of a client as JSON lines. */
#include <string.h>

#include "../lock/lease.h"
#include "api.h"

static const char *const names[] = {
    [RLK_EVENT_LOST] = "lost",
    [RLK_EVENT_AT_RISK] = "at_risk",
    [RLK_EVENT_LIMIT] = "limit",
    [RLK_EVENT_HELD_LONG] = "held_long",
    [RLK_EVENT_NODE_UP] = "node_up",
    [RLK_EVENT_NODE_DOWN] = "node_down",
    [RLK_EVENT_NODE_SILENT] = "node_silent",
    [RLK_EVENT_NODE_REFUSED] = "node_refused",
    [RLK_EVENT_NODE_RESTARTED] = "node_restarted",
    [RLK_EVENT_WARNING] = "warning",
};

/* The detail, and its parts where it names an option, as redlock_lock_message_parts has them. */
static void details(const char *detail, struct rlk_text *out)
{
  char plain[sizeof(((struct rlk_event *)0)->detail)];
  struct rlk_text text = rlk_text_in(plain, sizeof plain);
  text.is_plain = 1;
  rlk_text_add(&text, detail);
  rlk_text_add(out, ",\"detail\":");
  rlk_text_json_clean(out, plain, strlen(plain));
  if (!strchr(detail, RLK_PART[0]))
    return;
  rlk_text_add(out, ",\"parts\":[");
  for (size_t size; size = strcspn(detail, RLK_PART), 1; detail += size + 1) {
    rlk_text_json_clean(out, detail, size);
    if (!detail[size])
      break;
    rlk_text_add(out, ",");
  }
  rlk_text_add(out, "]");
}

static void format(redlock_client *c, const struct rlk_event *e, struct rlk_text *out)
{
  rlk_text_format(out, "{\"event\":\"%s\",\"at_ms\":%lld", names[e->kind], (long long)e->at_ms);
  if (e->resource_size) {
    rlk_text_add(out, ",\"resource\":");
    rlk_text_json(out, e->resource, e->resource_size, 64);
  }
  if (e->node >= 0) {
    const char *name = c->engine.net.nodes[e->node].url.name;
    rlk_text_add(out, ",\"node\":");
    rlk_text_json(out, name, strlen(name), SIZE_MAX);
  }
  if (e->reason)
    rlk_text_format(out, ",\"reason\":\"%s\"", rlk_loss_name(e->reason));
  details(e->detail, out);
  rlk_text_add(out, "}");
}

/* An event that does not fit stays queued. */
static void next_event(redlock_client *c, struct rlk_text *out)
{
  struct rlk_events *events = &c->engine.net.events;
  const struct rlk_event *first = rlk_event_first(events);
  if (events->dropped) {
    rlk_text_format(out, "{\"event\":\"dropped\",\"count\":%llu}", (unsigned long long)events->dropped);
    if (out->length < out->size)
      rlk_events_reset_dropped(events);
  } else if (first) {
    format(c, first, out);
    if (out->length < out->size)
      rlk_event_pop(events);
  }
}

int64_t redlock_client_event(redlock_client *c, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  if (!rlk_enter(c))
    return -REDLOCK_INVALID;
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next) /* a lapse is reported even if no thread drives */
    rlk_lock_is_held(lock, rlk_client_now(c));
  next_event(c, &out);
  return rlk_leave_text(c, &out);
}

int redlock_client_event_fd(redlock_client *c)
{
  const struct rlk_net *net;
  int fd;
  if (!rlk_enter(c))
    return -REDLOCK_INVALID;
  net = &c->engine.net;
  fd = net->events.bell.readable;
  if (fd < 0 && net->state == RLK_NET_OPEN && !net->env.stepped)
    fd = rlk_events_fd(&c->engine.net.events);
  if (fd < 0)
    fd = net->state == RLK_NET_OPEN ? -REDLOCK_INTERNAL : -REDLOCK_INVALID;
  return rlk_leave(c, fd);
}

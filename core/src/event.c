/* What is told for logs: a bounded queue of what happened, as JSON lines. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core.h"

static const char *const names[] = {
    [RL_EVENT_LOST] = "lost",
    [RL_EVENT_AT_RISK] = "at_risk",
    [RL_EVENT_LIMIT] = "limit",
    [RL_EVENT_NODE_UP] = "node_up",
    [RL_EVENT_NODE_DOWN] = "node_down",
    [RL_EVENT_NODE_REFUSED] = "node_refused",
    [RL_EVENT_NODE_RESTARTED] = "node_restarted",
    [RL_EVENT_WARNING] = "warning",
};

static int64_t wall_clock_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void rl_event_add(redlock_client *c, enum rl_event_kind kind, int node, redlock_lock *lock, const char *detail)
{
  struct rl_event *e;
  struct rl_text text;
  if (!c->events)
    return;
  if (c->events_count == RL_EVENTS_MAX) {
    c->events_first = (c->events_first + 1) % RL_EVENTS_MAX;
    c->events_count--;
    c->events_dropped++;
  }
  e = &c->events[(c->events_first + c->events_count++) % RL_EVENTS_MAX];
  e->kind = kind;
  e->node = node;
  e->at_ms = wall_clock_ms();
  e->resource_size = 0;
  if (lock) { /* one byte more than is shown tells that it was cut */
    size_t size = lock->key->resource_size < sizeof e->resource ? lock->key->resource_size : sizeof e->resource;
    memcpy(e->resource, rl_key_resource(lock->key), size);
    e->resource_size = (uint16_t)size;
  }
  text = rl_text_in(e->detail, sizeof e->detail);
  rl_text_add(&text, detail);
}

static void format(redlock_client *c, const struct rl_event *e, struct rl_text *out)
{
  rl_text_format(out, "{\"event\":\"%s\",\"at_ms\":%lld", names[e->kind], (long long)e->at_ms);
  if (e->resource_size) {
    rl_text_add(out, ",\"resource\":");
    rl_text_json(out, e->resource, e->resource_size, 64);
  }
  if (e->node >= 0) {
    rl_text_add(out, ",\"node\":");
    rl_text_json(out, c->nodes[e->node].url.name, strlen(c->nodes[e->node].url.name), SIZE_MAX);
  }
  rl_text_add(out, ",\"detail\":");
  rl_text_json(out, e->detail, strlen(e->detail), SIZE_MAX);
  rl_text_add(out, "}");
}

static int64_t next_event(redlock_client *c, struct rl_text *out)
{
  if (c->events_dropped) {
    rl_text_format(out, "{\"event\":\"dropped\",\"count\":%llu}", (unsigned long long)c->events_dropped);
    if (out->length < out->size)
      c->events_dropped = 0;
  } else if (c->events_count) {
    format(c, &c->events[c->events_first], out);
    if (out->length < out->size) {
      c->events_first = (c->events_first + 1) % RL_EVENTS_MAX;
      c->events_count--;
    }
  }
  return (int64_t)out->length;
}

int64_t redlock_client_event(redlock_client *c, char *buf, size_t size)
{
  struct rl_text out = rl_text_in(buf, size);
  int64_t length = 0;
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  for (redlock_lock *lock = c->locks; lock; lock = lock->next) /* a lapse is told without anybody driving */
    rl_lock_is_held(lock, rl_now(c));
  if (c->events)
    length = next_event(c, &out);
  rl_client_leave(c);
  return length;
}

/* What is told for logs: a bounded queue of what happened, as JSON lines. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core.h"

static const char *const names[] = {
    [RL_EVENT_LOST] = "lost",
    [RL_EVENT_AT_RISK] = "at_risk",
    [RL_EVENT_LIMIT] = "limit",
    [RL_EVENT_NODE_UP] = "node_up",
    [RL_EVENT_NODE_DOWN] = "node_down",
    [RL_EVENT_NODE_SILENT] = "node_silent",
    [RL_EVENT_NODE_REFUSED] = "node_refused",
    [RL_EVENT_NODE_RESTARTED] = "node_restarted",
    [RL_EVENT_WARNING] = "warning",
};

static const char *const reasons[] = {
    [REDLOCK_LOSS_NONE] = "",
    [REDLOCK_LOSS_EXPIRED] = "expired",
    [REDLOCK_LOSS_GONE] = "gone",
    [REDLOCK_LOSS_RESTARTED] = "restarted",
    [REDLOCK_LOSS_REFUSED] = "refused",
    [REDLOCK_LOSS_LIMIT] = "limit",
};

static int64_t wall_clock_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int is_queued(const redlock_client *c)
{
  return c->events_count > 0 || c->events_dropped > 0;
}

/* Makes the descriptor readable, or clears it, when what is queued has become so. */
static void signal_queued(redlock_client *c, int was_queued)
{
  eventfd_t count;
  if (c->event_fd < 0 || was_queued == is_queued(c))
    return;
  if (was_queued)
    eventfd_read(c->event_fd, &count);
  else
    eventfd_write(c->event_fd, 1);
}

void rl_event_add(redlock_client *c, enum rl_event_kind kind, int node, redlock_lock *lock, const char *detail)
{
  struct rl_event *e;
  struct rl_text text;
  int was_queued = is_queued(c);
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
  e->loss = kind == RL_EVENT_LOST ? lock->loss : REDLOCK_LOSS_NONE;
  e->resource_size = 0;
  if (lock) { /* one byte more than is shown tells that it was cut */
    size_t size = lock->key->resource_size < sizeof e->resource ? lock->key->resource_size : sizeof e->resource;
    memcpy(e->resource, rl_key_resource(lock->key), size);
    e->resource_size = (uint16_t)size;
  }
  text = rl_text_in(e->detail, sizeof e->detail);
  rl_text_add(&text, detail);
  signal_queued(c, was_queued);
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
  if (e->loss)
    rl_text_format(out, ",\"reason\":\"%s\"", reasons[e->loss]);
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
  if (c->events) {
    int was_queued = is_queued(c);
    length = next_event(c, &out);
    signal_queued(c, was_queued);
  }
  rl_client_leave(c);
  return length;
}

/* ---- the descriptor ---- */

int redlock_client_event_fd(redlock_client *c)
{
  int fd;
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  if (c->event_fd < 0 && c->state == RL_CLIENT_OPEN && !c->env.stepped)
    c->event_fd = eventfd(is_queued(c), EFD_CLOEXEC | EFD_NONBLOCK);
  fd = c->event_fd;
  if (fd < 0)
    fd = c->state == RL_CLIENT_OPEN ? -REDLOCK_INTERNAL : -REDLOCK_INVALID;
  rl_client_leave(c);
  return fd;
}

/* In a child: the parent's events are not ours, nor is what its descriptor stands for. */
void rl_events_forked(redlock_client *c)
{
  int fresh;
  c->events_first = c->events_count = 0;
  c->events_dropped = 0;
  if (c->event_fd < 0)
    return;
  fresh = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fresh < 0 || dup3(fresh, c->event_fd, O_CLOEXEC) < 0) {
    close(c->event_fd);
    c->event_fd = -1;
  }
  if (fresh >= 0)
    close(fresh);
}

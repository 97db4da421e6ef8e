/* The started shape: the descriptor, processing, and what has ended. */
#include <string.h>

#include "../base/list.h"
#include "step.h"

int redlock_client_fd(redlock_client *c)
{
  struct rlk_net *net;
  int fd = -REDLOCK_INVALID;
  if (!c)
    return -REDLOCK_INVALID;
  net = &c->engine.net;
  pthread_mutex_lock(&c->mutex);
  rlk_client_enter(c);
  if (!net->env.stepped && net->state != RLK_NET_CLOSED && net->state != RLK_NET_NEW)
    fd = rlk_poller_public(&net->poller);
  if (fd < 0 && fd != -REDLOCK_INVALID) {
    struct rlk_text why = rlk_text_in(c->message, sizeof c->message);
    rlk_text_format(&why, "no descriptor: %s", strerror(-fd));
    fd = -REDLOCK_INTERNAL;
  }
  if (c->engine.ended || net->dirty_nodes)
    rlk_client_notify(c);
  rlk_client_leave(c);
  return fd;
}

/* All that is due: 1, or 0 if the client is not open. */
static int process(redlock_client *c)
{
  rlk_client_enter(c);
  if (c->engine.net.state == RLK_NET_OPEN) {
    if (atomic_exchange(&c->rung, 0) || c->notified)
      rlk_poller_clear(&c->engine.net.poller);
    c->notified = 0;
    rlk_client_flush(c); /* a started operation leaves before its answers are looked for */
    rlk_client_service(c);
  }
  return c->engine.net.state == RLK_NET_OPEN;
}

static int take_ended(redlock_client *c, uint64_t *tag)
{
  redlock_lock *lock = c->engine.ended;
  if (!lock)
    return 0;
  RLK_LIST_REMOVE(c->engine.ended, c->engine.last_ended, lock, _ended);
  lock->is_ended = 0;
  *tag = lock->tag;
  return 1;
}

int redlock_client_process(redlock_client *c)
{
  int is_open;
  if (!c)
    return REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  is_open = process(c);
  rlk_client_leave(c);
  return is_open ? REDLOCK_OK : REDLOCK_INVALID;
}

int redlock_client_next(redlock_client *c, uint64_t *tag)
{
  int found;
  if (!c || !tag)
    return 0;
  pthread_mutex_lock(&c->mutex);
  rlk_client_enter(c);
  found = take_ended(c, tag);
  rlk_client_leave(c);
  return found;
}

int redlock_client_advance(redlock_client *c, uint64_t *tag)
{
  int found;
  if (!c || !tag)
    return 0;
  pthread_mutex_lock(&c->mutex);
  process(c);
  found = take_ended(c, tag);
  c->engine.ended_marked = c->engine.ended != NULL; /* the one that is taken needs no descriptor */
  rlk_client_leave(c);
  return found;
}

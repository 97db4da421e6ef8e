/* The started shape: the descriptor, processing, and ended operations. */
#include <string.h>

#include "../base/list.h"
#include "api.h"

int redlock_client_fd(redlock_client *c)
{
  struct rlk_net *net;
  int fd = -REDLOCK_INVALID;
  if (!rlk_enter(c))
    return -REDLOCK_INVALID;
  net = &c->engine.net;
  if (!net->env.stepped && net->state != RLK_NET_CLOSED && net->state != RLK_NET_NEW)
    fd = rlk_poller_public(&net->poller);
  if (fd < 0 && fd != -REDLOCK_INVALID) {
    struct rlk_text why = rlk_text_in(c->message, sizeof c->message);
    rlk_text_format(&why, "no descriptor: %s", strerror(-fd));
    fd = -REDLOCK_INTERNAL;
  }
  if (c->engine.ended || net->dirty_nodes)
    rlk_client_notify(c);
  return rlk_leave(c, fd);
}

/* All that is due: REDLOCK_INVALID if the client is not open. */
static int process(redlock_client *c)
{
  if (c->engine.net.state != RLK_NET_OPEN)
    return REDLOCK_INVALID;
  if (atomic_exchange(&c->rung, 0) || c->notified)
    rlk_poller_clear(&c->engine.net.poller);
  c->notified = 0;
  rlk_client_flush(c); /* a started operation leaves before its answers are looked for */
  rlk_client_service(c);
  return c->engine.net.state == RLK_NET_OPEN ? REDLOCK_OK : REDLOCK_INVALID;
}

static int take_ended(redlock_client *c, uint64_t *tag)
{
  redlock_lock *lock = c->engine.ended;
  if (!lock)
    return 0;
  RLK_LIST_REMOVE(c->engine.ended, c->engine.last_ended, lock, ended.);
  lock->is_ended = 0;
  *tag = lock->tag;
  return 1;
}

int redlock_client_process(redlock_client *c)
{
  return rlk_enter(c) ? rlk_leave(c, process(c)) : REDLOCK_INVALID;
}

int redlock_client_next(redlock_client *c, uint64_t *tag)
{
  return tag && rlk_enter(c) ? rlk_leave(c, take_ended(c, tag)) : 0;
}

int redlock_client_advance(redlock_client *c, uint64_t *tag)
{
  int found;
  if (!tag || !rlk_enter(c))
    return 0;
  process(c);
  found = take_ended(c, tag);
  c->engine.ended_marked = c->engine.ended != NULL; /* the one that is taken needs no descriptor */
  return rlk_leave(c, found);
}

/* The started shape: the descriptor, processing, and what has ended. */
#include "core.h"

int redlock_client_fd(redlock_client *c)
{
  int fd;
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  fd = c->env.stepped || c->state == RL_CLIENT_CLOSED || c->state == RL_CLIENT_NEW ? -REDLOCK_INVALID
                                                                                 : rl_poller_public(&c->poller);
  if (fd < 0 && fd != -REDLOCK_INVALID)
    fd = -REDLOCK_INTERNAL;
  if (c->ended || c->dirty_nodes)
    rl_client_notify(c);
  rl_client_leave(c);
  return fd;
}

/* All that is due: 1, or 0 if the client is not open. */
static int process(redlock_client *c)
{
  rl_client_enter(c);
  if (c->state == RL_CLIENT_OPEN) {
    if (atomic_exchange(&c->rung, 0) || c->notified)
      rl_poller_clear(&c->poller);
    c->notified = 0;
    rl_client_flush(c); /* a started operation leaves before its answers are looked for */
    rl_client_tend(c);
  }
  return c->state == RL_CLIENT_OPEN;
}

static int take_ended(redlock_client *c, uint64_t *tag)
{
  redlock_lock *lock = c->ended;
  if (!lock)
    return 0;
  c->ended = lock->next_ended;
  if (c->ended)
    c->ended->previous_ended = NULL;
  else
    c->last_ended = NULL;
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
  rl_client_leave(c);
  return is_open ? REDLOCK_OK : REDLOCK_INVALID;
}

int redlock_client_next(redlock_client *c, uint64_t *tag)
{
  int found;
  if (!c || !tag)
    return 0;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  found = take_ended(c, tag);
  rl_client_leave(c);
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
  c->ended_marked = c->ended != NULL; /* the one that is taken needs no descriptor */
  rl_client_leave(c);
  return found;
}

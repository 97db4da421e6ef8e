/* What the rooms below only mark; rl_client_unlock acts on it. */
#include "core.h"

/* The lock's started operation has ended, or it is at risk or lost: redlock_client_next gives its tag. */
void rl_client_tell(redlock_client *c, redlock_lock *lock)
{
  if (!lock->is_ended) {
    lock->is_ended = 1;
    lock->next_ended = NULL;
    lock->previous_ended = c->last_ended;
    if (c->last_ended)
      c->last_ended->next_ended = lock;
    else
      c->ended = lock;
    c->last_ended = lock;
  }
  c->ended_marked = 1;
}

void rl_client_unwait(redlock_client *c, struct rl_waiter *w)
{
  if (!w->waits)
    return;
  w->waits = 0;
  if (w->previous)
    w->previous->next = w->next;
  else
    c->waiters = w->next;
  if (w->next)
    w->next->previous = w->previous;
  else
    c->last_waiter = w->previous;
}

void rl_client_wake(redlock_client *c, struct rl_waiter *w)
{
  rl_client_unwait(c, w);
  c->woken |= w->bit;
}

void rl_client_renew_at(redlock_client *c, int64_t at_ns)
{
  if (at_ns < c->renew_due_ns)
    c->renew_due_ns = at_ns;
}

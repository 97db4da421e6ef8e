/* What the rooms below only mark; rl_client_unlock acts on it. */
#include "lock.h"

/* The lock's started operation has ended, or it is at risk or lost: redlock_client_next gives its tag. */
void rl_mark_ended(struct rl_engine *e, redlock_lock *lock)
{
  if (!lock->is_ended) {
    lock->is_ended = 1;
    lock->next_ended = NULL;
    lock->previous_ended = e->last_ended;
    if (e->last_ended)
      e->last_ended->next_ended = lock;
    else
      e->ended = lock;
    e->last_ended = lock;
  }
  e->ended_marked = 1;
}

void rl_unwait(struct rl_engine *e, struct rl_waiter *w)
{
  if (!w->waits)
    return;
  w->waits = 0;
  if (w->previous)
    w->previous->next = w->next;
  else
    e->waiters = w->next;
  if (w->next)
    w->next->previous = w->previous;
  else
    e->last_waiter = w->previous;
}

void rl_mark_woken(struct rl_engine *e, struct rl_waiter *w)
{
  rl_unwait(e, w);
  e->woken |= w->bit;
}

void rl_mark_renewal(struct rl_engine *e, int64_t at_ns)
{
  if (at_ns < e->renew_due_ns)
    e->renew_due_ns = at_ns;
}

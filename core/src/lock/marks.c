/* Marks set by the floors below; rlk_client_unlock acts on them. */
#include "../base/list.h"
#include "lock.h"

void rlk_mark_ended(struct rlk_engine *e, redlock_lock *lock)
{
  if (!lock->is_ended) {
    lock->is_ended = 1;
    RLK_LIST_APPEND(e->ended, e->last_ended, lock, ended.);
  }
  e->ended_marked = 1;
}

void rlk_unwait(struct rlk_engine *e, struct rlk_waiter *w)
{
  if (!w->waits)
    return;
  w->waits = 0;
  rlk_eventcount_give(&e->numbers, w->number);
  RLK_LIST_REMOVE(e->waiters, e->last_waiter, w, );
}

void rlk_mark_woken(struct rlk_engine *e, struct rlk_waiter *w)
{
  rlk_unwait(e, w);
  rlk_eventcount_add(&e->woken, w->number);
}

void rlk_mark_renewal(struct rlk_engine *e, int64_t at_ns)
{
  if (at_ns < e->renew_due_ns)
    e->renew_due_ns = at_ns;
}

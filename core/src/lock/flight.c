#include "../base/list.h"
#include "flight.h"
#include "holder.h"

void rlk_flight_begin(redlock_lock *lock, int kind)
{
  struct rlk_engine *e = lock->engine;
  lock->kind = kind;
  lock->status = REDLOCK_PENDING;
  lock->phase = RLK_ASKING_ALL;
  lock->round++;
  lock->started = 0;
  lock->timer_tight = 0;
  lock->asking_again = 0;
  lock->deadline_ns = lock->outage_until_ns = RLK_NEVER;
  atomic_store(&lock->cancelled, 0);
  rlk_holder_drop(lock);
  RLK_LIST_APPEND(e->flights, e->last_flight, lock, _flight);
}

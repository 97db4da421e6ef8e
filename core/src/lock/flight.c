#include "../base/list.h"
#include "flight.h"
#include "holder.h"

void rlk_flight_begin(redlock_lock *lock, const struct rlk_verb *verb)
{
  struct rlk_engine *e = lock->engine;
  lock->op.verb = verb;
  lock->op.kind = verb->kind;
  lock->op.status = REDLOCK_PENDING;
  lock->op.inner = 0;
  lock->op.phase = RLK_ASKING_ALL;
  lock->round.number++;
  lock->op.is_started = 0;
  lock->round.is_tight = 0;
  lock->op.asking_again = lock->op.forms_asked = 0;
  lock->op.looking = 0;
  lock->op.deadline_ns = lock->op.outage_until_ns = RLK_NEVER;
  atomic_store(&lock->op.cancelled, 0);
  rlk_holder_drop(lock);
  RLK_LIST_APPEND(e->flights, e->last_flight, lock, flight.);
}

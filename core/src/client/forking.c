#include "registry.h"

#include "../base/fork.h"
#include "../base/mutant.h"
#include "../lock/dispatch.h"
#include "../lock/holder.h"
#include "../lock/operation.h"
#include "../wait/queue.h"
#include "alarm.h"

void rlk_client_forked(redlock_client *c)
{
  c->fork_generation = rlk_fork_generation();
  rlk_alarm_forked();
  if (c->engine.net.state == RLK_NET_NEW)
    return;
  c->driven = c->sleeping = c->driver_woken = c->driver_rings = 0;
  c->driving = NULL;
  c->notified = 1; /* the descriptors are still the parent's: nothing is written to them */
  c->engine.waiters = c->engine.last_waiter = NULL; /* their threads do not exist here */
  c->engine.numbers = (struct rlk_eventcount_numbers){0};
  c->engine.woken = (struct rlk_eventcount_set){0};
  rlk_eventcount_forked(&c->eventcount);
  atomic_store(&c->cancels, 0);
  atomic_store(&c->rung, 0);
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next) {
    lock->op.waiter = NULL;
    if (!RLK_MUTANT(CHILD_KEEPS_LOCKS))
      rlk_operation_forked(lock);
  }
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rlk_node_abandon(&c->engine.net.nodes[i]);
    rlk_dispatch_abandoned(&c->engine, &c->engine.net.nodes[i]);
  }
  c->engine.net.dirty_nodes = NULL;
  if (!RLK_MUTANT(CHILD_KEEPS_CLAIMS))
    rlk_claims_forked(&c->engine);
  c->engine.ended = c->engine.last_ended = NULL;
  c->engine.unwritten = NULL;
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next)
    lock->is_ended = lock->round.is_unwritten = lock->op.settling = 0;
  c->settling = c->engine.ended_marked = 0;
  c->engine.renew_due_ns = RLK_NEVER;
  rlk_events_forked(&c->engine.net.events);
  c->polled_ns = 0;
  c->notified = 0;
  if (!RLK_MUTANT(CHILD_KEEPS_SEED)) {
    rlk_claims_seed(&c->engine);
    rlk_queue_init(&c->engine);
    rlk_holder_init(&c->engine);
  }
  if (c->engine.net.state != RLK_NET_OPEN)
    c->engine.net.state = RLK_NET_CLOSED;
  else if (rlk_poller_reopen(&c->engine.net.poller) != 0)
    c->engine.net.state = RLK_NET_CLOSED; /* without descriptors it can only be freed */
}

/* The step, run by every thread that works in a client: all due work, without waiting. And the mutex around it:
 * marks are acted on when it is released. */

#include "../base/fork.h"
#include "../lock/cleanup.h"
#include "../lock/dispatch.h"
#include "../lock/operation.h"
#include "../lock/renewal.h"
#include "../lock/round.h"
#include "../node/listener.h"
#include "../vote/voter.h"
#include "../wait/answers.h"
#include "alarm.h"
#include "registry.h"
#include "step.h"
#include "stepped.h"

#define EXPIRE_EVERY_NS (1000 * RLK_NS_PER_MS)

static void hear(struct rlk_engine *e, struct rlk_node *n, struct rlk_outcome *outcome)
{
  if (outcome->kind == RLK_OUTCOME_WOKEN)
    rlk_wait_woken(e, n, outcome);
  else
    rlk_dispatch(e, n, outcome);
}

void rlk_client_hear(redlock_client *c, struct rlk_node *n, int64_t now)
{
  struct rlk_outcome outcome;
  if (rlk_node_is_being_set_up(n))
    rlk_claims_note_leases(&c->engine);
  while (n->is_awake && rlk_voter_next(n, &outcome, now))
    hear(&c->engine, n, &outcome);
}

static void node_timer(redlock_client *c, struct rlk_node *n, int64_t now)
{
  rlk_node_timer(n, now);
  rlk_client_pull(c, n, now);
}

static void fire(redlock_client *c, struct rlk_timer *timer, int64_t now)
{
  switch (timer->kind) {
  case RLK_TIMER_OPERATION: rlk_operation_timer(RLK_OWNER(redlock_lock, op.timer, timer), now); break;
  case RLK_TIMER_LEASE: rlk_operation_lapse(RLK_OWNER(redlock_lock, hold.timer, timer), now); break;
  case RLK_TIMER_LISTENER: rlk_listener_timer(RLK_OWNER(struct rlk_node, listener_timer, timer), now); break;
  case RLK_TIMER_NODE: node_timer(c, RLK_OWNER(struct rlk_node, timer, timer), now); break;
  }
}

static void wake_settled(redlock_client *c)
{
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next)
    if (lock->op.settling && lock->op.waiter && !rlk_is_awaited(lock))
      rlk_mark_woken(&c->engine, lock->op.waiter);
}

void rlk_client_step(redlock_client *c, int64_t now)
{
  struct rlk_timer *timer;
  for (int i = 0; i < c->engine.net.node_count; i++)
    if (c->engine.net.nodes[i].resolve) {
      rlk_node_look_at_name(&c->engine.net.nodes[i], now);
      rlk_client_pull(c, &c->engine.net.nodes[i], now);
    }
  while ((timer = rlk_timers_pop(&c->engine.net.timers, now)) != NULL)
    fire(c, timer, now);
  if (c->engine.renewing)
    rlk_renewals_due(&c->engine, now);
  if (c->settling)
    wake_settled(c);
  if (now - c->engine.expired_ns > EXPIRE_EVERY_NS && c->engine.owed)
    rlk_claims_expire(&c->engine, now);
}

static void note_written(redlock_client *c, int64_t now)
{
  while (c->engine.unwritten) {
    redlock_lock *lock = c->engine.unwritten;
    c->engine.unwritten = lock->round.next_unwritten;
    lock->round.is_unwritten = 0;
    rlk_round_written(lock, now);
  }
}

void rlk_client_flush(redlock_client *c)
{
  int64_t now = c->engine.net.dirty_nodes ? rlk_client_now(c) : 0;
  while (c->engine.net.dirty_nodes) {
    struct rlk_node *n = c->engine.net.dirty_nodes;
    c->engine.net.dirty_nodes = n->next_dirty;
    n->dirty = 0;
    rlk_voter_flush(n, now);
    rlk_client_pull(c, n, now);
  }
  if (c->engine.unwritten)
    note_written(c, rlk_client_now(c));
}

void rlk_client_handle(redlock_client *c, const struct rlk_poll_event *events, int count)
{
  int64_t now = count > 0 ? rlk_client_now(c) : 0;
  for (int i = 0; i < count; i++) {
    struct rlk_node *n = &c->engine.net.nodes[events[i].node];
    rlk_node_event(n, events[i].generation, events[i].what, now);
    rlk_client_pull(c, n, now);
  }
}

void rlk_client_poll(redlock_client *c)
{
  struct rlk_poll_event events[RLK_POLL_EVENTS];
  int count;
  c->polled_ns = rlk_client_now(c);
  if (c->engine.net.env.stepped)
    return;
  do {
    count = rlk_poller_wait(&c->engine.net.poller, events, 0);
    rlk_client_handle(c, events, count);
  } while (count == RLK_POLL_EVENTS);
  if (c->driver_woken || atomic_load(&c->cancels))
    rlk_poller_wake(&c->engine.net.poller); /* the wake-up may have been the driver's */
}

static int64_t next_timer(const redlock_client *c)
{
  return rlk_smaller(rlk_timers_next(&c->engine.net.timers), rlk_timers_next(&c->engine.renewal_timers));
}

int64_t rlk_client_next_deadline(redlock_client *c)
{
  return c->engine.net.dirty_nodes ? 0 : next_timer(c);
}

void rlk_client_link_event(redlock_client *c, int node, uint32_t generation, int what)
{
  struct rlk_poll_event event = {node, generation, what};
  rlk_client_handle(c, &event, 1);
}

/* ---- entering and leaving ---- */

void rlk_client_look_for_cancels(redlock_client *c)
{
  redlock_lock *next;
  if (atomic_load_explicit(&c->cancels, memory_order_relaxed) == 0 || atomic_exchange(&c->cancels, 0) == 0)
    return;
  for (redlock_lock *lock = c->engine.flights; lock; lock = next) {
    next = lock->flight.next;
    if (atomic_load(&lock->op.cancelled))
      rlk_operation_cancel(lock, rlk_client_now(c));
  }
  rlk_client_wake_driver(c); /* the driver's own operation may have been among them */
}

void rlk_client_enter(redlock_client *c)
{
  if (c->registered && c->fork_generation != rlk_fork_generation())
    rlk_client_forked(c);
  rlk_client_look_for_cancels(c);
}

/* Acts on the marks and releases the mutex. A waiter woken earlier would only block on the mutex. */
void rlk_client_unlock(redlock_client *c)
{
  struct rlk_eventcount_set woken;
  int wakes = c->engine.woken.any, wakes_driver = c->driver_rings;
  c->driver_rings = 0;
  if (wakes) {
    woken = c->engine.woken;
    c->engine.woken = (struct rlk_eventcount_set){0};
  }
  if (c->engine.ended_marked)
    rlk_client_notify(c);
  if (c->engine.renew_due_ns != RLK_NEVER)
    rlk_alarm_set(c, c->engine.renew_due_ns);
  c->engine.ended_marked = 0;
  c->engine.renew_due_ns = RLK_NEVER;
  if (wakes)
    rlk_eventcount_announce(&c->eventcount, &woken);
  pthread_mutex_unlock(&c->mutex);
  if (wakes_driver)
    rlk_poller_wake(&c->engine.net.poller);
  if (wakes)
    rlk_eventcount_ring(&c->eventcount, &woken);
}

void rlk_client_leave(redlock_client *c)
{
  if (c->engine.net.poller.outer >= 0) {
    int64_t next = next_timer(c); /* notify reports queued events */
    if (next < rlk_poller_armed_ns(&c->engine.net.poller))
      rlk_poller_arm(&c->engine.net.poller, next, rlk_client_now(c));
  }
  rlk_client_unlock(c);
}

void rlk_client_notify(redlock_client *c)
{
  if (c->notified || c->engine.net.poller.notify.ringer < 0)
    return;
  c->notified = 1;
  rlk_poller_notify(&c->engine.net.poller);
}

void rlk_client_wake_driver(redlock_client *c)
{
  if (!c->sleeping || c->driver_woken)
    return;
  c->driver_woken = c->driver_rings = 1;
}

void rlk_client_service(redlock_client *c)
{
  rlk_client_poll(c);
  rlk_client_step(c, rlk_client_now(c));
  rlk_client_flush(c);
  /* the driver's own operation may have ended here, or something be due before it wakes */
  if (c->driven && (!c->driving || !rlk_is_awaited(c->driving) || next_timer(c) < c->sleeps_until_ns))
    rlk_client_wake_driver(c);
}

void rlk_client_send(redlock_client *c)
{
  if (c->driven)
    rlk_client_wake_driver(c);
  else
    rlk_client_flush(c);
}

void rlk_client_mark_queued(redlock_client *c)
{
  if (c->driven)
    rlk_client_wake_driver(c);
  else
    rlk_client_notify(c);
}

/* The step that everybody runs who works in a client: all that is due, without waiting. And the mutex around it: what
 * was marked meanwhile is acted on when it is given back. */

#include "../base/fork.h"
#include "../lock/dispatch.h"
#include "../lock/lease.h"
#include "../lock/operation.h"
#include "../lock/renewal.h"
#include "../lock/round.h"
#include "keeper.h"
#include "step.h"
#include "stepped.h"

#define EXPIRE_EVERY_NS (1000 * RL_NS_PER_MS)

/* Takes what the node has to tell, after everything that may make it tell something. */
void rl_client_pull(redlock_client *c, struct rl_node *n, int64_t now)
{
  struct rl_outcome outcome;
  if (n->is_awake && rl_node_is_being_set_up(n))
    rl_claims_note_leases(&c->engine);
  while (n->is_awake && rl_node_next(n, &outcome, now))
    rl_dispatch(&c->engine, n, &outcome);
}

static void node_timer(redlock_client *c, struct rl_node *n, int64_t now)
{
  rl_node_timer(n, now);
  rl_client_pull(c, n, now);
}

static void fire(redlock_client *c, struct rl_timer *timer, int64_t now)
{
  switch (timer->kind) {
  case RL_TIMER_OPERATION: rl_operation_timer(RL_OWNER(redlock_lock, timer, timer), now); break;
  case RL_TIMER_LEASE: rl_lock_lapse(RL_OWNER(redlock_lock, lease_timer, timer), now); break;
  case RL_TIMER_NODE: node_timer(c, RL_OWNER(struct rl_node, timer, timer), now); break;
  }
}

static void wake_settled(redlock_client *c)
{
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next)
    if (lock->settling && lock->waiter && !rl_is_awaited(lock))
      rl_mark_woken(&c->engine, lock->waiter);
}

void rl_client_step(redlock_client *c, int64_t now)
{
  struct rl_timer *timer;
  for (int i = 0; i < c->engine.net.node_count; i++)
    if (c->engine.net.nodes[i].resolve) {
      rl_node_look_at_name(&c->engine.net.nodes[i], now);
      rl_client_pull(c, &c->engine.net.nodes[i], now);
    }
  while ((timer = rl_timers_pop(&c->engine.net.timers, now)) != NULL)
    fire(c, timer, now);
  rl_renewals_due(&c->engine, now);
  if (c->settling)
    wake_settled(c);
  if (now - c->engine.expired_ns > EXPIRE_EVERY_NS && c->engine.debts)
    rl_claims_expire(&c->engine, now);
}

static void note_written(redlock_client *c, int64_t now)
{
  while (c->engine.unwritten) {
    redlock_lock *lock = c->engine.unwritten;
    c->engine.unwritten = lock->next_unwritten;
    lock->unwritten = 0;
    rl_round_written(lock, now);
  }
}

void rl_client_flush(redlock_client *c)
{
  int64_t now = c->engine.net.dirty_nodes ? rl_client_now(c) : 0;
  while (c->engine.net.dirty_nodes) {
    struct rl_node *n = c->engine.net.dirty_nodes;
    c->engine.net.dirty_nodes = n->next_dirty;
    n->dirty = 0;
    rl_node_flush(n, now);
    rl_client_pull(c, n, now);
  }
  if (c->engine.unwritten)
    note_written(c, rl_client_now(c));
}

void rl_client_handle(redlock_client *c, const struct rl_poll_event *events, int count)
{
  int64_t now = count > 0 ? rl_client_now(c) : 0;
  for (int i = 0; i < count; i++) {
    struct rl_node *n = &c->engine.net.nodes[events[i].node];
    rl_node_event(n, events[i].generation, events[i].what, now);
    rl_client_pull(c, n, now);
  }
}

void rl_client_poll(redlock_client *c)
{
  struct rl_poll_event events[RL_POLL_EVENTS];
  int count;
  c->polled_ns = rl_client_now(c);
  if (c->engine.net.env.stepped)
    return;
  do {
    count = rl_poller_wait(&c->engine.net.poller, events, 0);
    rl_client_handle(c, events, count);
  } while (count == RL_POLL_EVENTS);
  if (c->kicked || atomic_load(&c->cancels))
    rl_poller_wake(&c->engine.net.poller); /* the bell may have been meant for the driver, which has not heard it yet */
}

static int64_t next_timer(const redlock_client *c)
{
  int64_t timers = rl_timers_next(&c->engine.net.timers);
  int64_t wheel = c->engine.wheel.count ? rl_wheel_next(&c->engine.wheel) : RL_NEVER;
  return timers < wheel ? timers : wheel;
}

int64_t rl_client_next_deadline(redlock_client *c)
{
  return c->engine.net.dirty_nodes ? 0 : next_timer(c);
}

void rl_client_link_event(redlock_client *c, int node, uint32_t generation, int what)
{
  struct rl_poll_event event = {node, generation, what};
  rl_client_handle(c, &event, 1);
}

/* ---- entering and leaving ---- */

void rl_client_look_for_cancels(redlock_client *c)
{
  redlock_lock *next;
  if (atomic_load_explicit(&c->cancels, memory_order_relaxed) == 0 || atomic_exchange(&c->cancels, 0) == 0)
    return;
  for (redlock_lock *lock = c->engine.flights; lock; lock = next) {
    next = lock->next_flight;
    if (atomic_load(&lock->cancelled))
      rl_operation_cancel(lock, rl_client_now(c));
  }
  rl_client_kick(c); /* the driver's own operation may have been among them */
}

void rl_client_enter(redlock_client *c)
{
  if (c->registered && c->fork_generation != rl_fork_generation())
    rl_client_forked(c);
  rl_client_look_for_cancels(c);
}

/* Acts on what was marked and gives the mutex back. Who is woken before that would run into the mutex and sleep
 * again. */
void rl_client_unlock(redlock_client *c)
{
  uint32_t woken = c->engine.woken;
  c->engine.woken = 0;
  if (c->engine.ended_marked)
    rl_client_notify(c);
  if (c->engine.renew_due_ns != RL_NEVER)
    rl_keeper_schedule(c, c->engine.renew_due_ns);
  c->engine.ended_marked = 0;
  c->engine.renew_due_ns = RL_NEVER;
  if (woken)
    rl_bell_announce(&c->bell);
  pthread_mutex_unlock(&c->mutex);
  if (woken)
    rl_bell_ring(&c->bell, woken);
}

void rl_client_leave(redlock_client *c)
{
  if (c->engine.net.poller.timer >= 0) {
    int64_t next = next_timer(c); /* what is queued is told by notify */
    if (next < rl_poller_armed_ns(&c->engine.net.poller))
      rl_poller_arm(&c->engine.net.poller, next, rl_client_now(c));
  }
  rl_client_unlock(c);
}

void rl_client_notify(redlock_client *c)
{
  if (c->notified || c->engine.net.poller.notify < 0)
    return;
  c->notified = 1;
  rl_poller_notify(&c->engine.net.poller);
}

void rl_client_kick(redlock_client *c)
{
  if (!c->sleeping || c->kicked)
    return;
  c->kicked = 1;
  rl_poller_wake(&c->engine.net.poller);
}

void rl_client_tend(redlock_client *c)
{
  rl_client_poll(c);
  rl_client_step(c, rl_client_now(c));
  rl_client_flush(c);
  /* the driver's own operation may have ended here, or something be due before it wakes */
  if (c->driven && (!c->driving || !rl_is_awaited(c->driving) || next_timer(c) < c->sleeps_until_ns))
    rl_client_kick(c);
}

void rl_client_send(redlock_client *c)
{
  if (c->driven)
    rl_client_kick(c);
  else
    rl_client_flush(c);
}

void rl_client_queued(redlock_client *c)
{
  if (c->driven)
    rl_client_kick(c);
  else
    rl_client_notify(c);
}

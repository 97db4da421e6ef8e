/* Who does the I/O of a client: the step that all of them run, the thread that drives for everybody while others wait,
 * and the started shape. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "core.h"

#define EXPIRE_EVERY_NS (1000 * RL_NS_PER_MS)

/* ---- the step: all that is due, without waiting ---- */

#define OWNER(type, member, pointer) ((type *)((char *)(pointer) - offsetof(type, member)))

static void fire(redlock_client *c, struct rl_timer *timer, int64_t now)
{
  (void)c;
  switch (timer->kind) {
  case RL_TIMER_OPERATION: rl_operation_timer(OWNER(redlock_lock, timer, timer), now); break;
  case RL_TIMER_LEASE: rl_lock_is_held(OWNER(redlock_lock, lease_timer, timer), now); break;
  case RL_TIMER_NODE: rl_node_timer(OWNER(struct rl_node, timer, timer), now); break;
  }
}

void rl_client_step(redlock_client *c, int64_t now)
{
  struct rl_timer *timer;
  for (int i = 0; i < c->node_count; i++)
    if (c->nodes[i].state == RL_NODE_RESOLVING && c->nodes[i].timer.place)
      rl_node_timer(&c->nodes[i], now);
  while ((timer = rl_timers_pop(&c->timers, now)) != NULL)
    fire(c, timer, now);
  rl_renewals_due(c, now);
  if (now - c->expired_ns > EXPIRE_EVERY_NS && c->debts)
    rl_claims_expire(c, now);
}

void rl_client_flush(redlock_client *c)
{
  while (c->dirty_nodes) {
    struct rl_node *n = c->dirty_nodes;
    c->dirty_nodes = n->next_dirty;
    n->dirty = 0;
    rl_node_flush(n, rl_now(c));
  }
}

static void handle(redlock_client *c, const struct rl_poll_event *events, int count)
{
  for (int i = 0; i < count; i++) {
    struct rl_node *n = &c->nodes[events[i].node];
    if (n->link.generation == events[i].generation && n->link.fd >= 0) /* not of an earlier connection */
      rl_node_event(n, events[i].what, rl_now(c));
  }
}

void rl_client_poll(redlock_client *c)
{
  struct rl_poll_event events[RL_POLL_EVENTS];
  int count;
  c->polled_ns = rl_now(c);
  if (c->env.stepped)
    return;
  do {
    count = rl_poller_wait(&c->poller, events, 0);
    handle(c, events, count);
  } while (count == RL_POLL_EVENTS);
  if (c->kicked)
    rl_poller_wake(&c->poller); /* the bell may have been meant for the driver, which has not heard it yet */
}

static int64_t next_timer(const redlock_client *c)
{
  int64_t timers = rl_timers_next(&c->timers);
  int64_t wheel = c->wheel.count ? rl_wheel_next(&c->wheel) : RL_NEVER;
  return timers < wheel ? timers : wheel;
}

int64_t rl_client_next_deadline(redlock_client *c)
{
  return c->dirty_nodes ? 0 : next_timer(c);
}

void rl_client_link_event(redlock_client *c, int node, uint32_t generation, int what)
{
  struct rl_poll_event event = {node, generation, what};
  handle(c, &event, 1);
}

/* ---- entering and leaving ---- */

static void look_for_cancels(redlock_client *c)
{
  redlock_lock *next;
  if (atomic_load_explicit(&c->cancels, memory_order_relaxed) == 0 || atomic_exchange(&c->cancels, 0) == 0)
    return;
  for (redlock_lock *lock = c->flights; lock; lock = next) {
    next = lock->next_flight;
    if (atomic_load(&lock->cancelled))
      rl_operation_cancel(lock, rl_now(c));
  }
  rl_client_kick(c); /* the driver's own operation may have been among them */
}

void rl_client_enter(redlock_client *c)
{
  if (c->registered && c->fork_generation != rl_fork_generation())
    rl_client_forked(c);
  look_for_cancels(c);
}

/* Gives the mutex back, then wakes those whose operation has ended: a thread that is woken before that would run into
 * the mutex and sleep again. */
static void unlock(redlock_client *c)
{
  uint32_t woken = c->woken;
  c->woken = 0;
  if (woken)
    rl_bell_announce(&c->bell);
  pthread_mutex_unlock(&c->mutex);
  if (woken)
    rl_bell_ring(&c->bell, woken);
}

void rl_client_leave(redlock_client *c)
{
  if (c->poller.timer >= 0) {
    int64_t next = next_timer(c); /* what is queued is told by notify */
    if (next < rl_poller_armed_ns(&c->poller))
      rl_poller_arm(&c->poller, next, rl_now(c));
  }
  unlock(c);
}

static void notify(redlock_client *c)
{
  if (c->notified || c->poller.notify < 0)
    return;
  c->notified = 1;
  rl_poller_notify(&c->poller);
}

void rl_client_kick(redlock_client *c)
{
  if (!c->sleeping || c->kicked)
    return;
  c->kicked = 1;
  rl_poller_wake(&c->poller);
}

void rl_client_tend(redlock_client *c)
{
  rl_client_poll(c);
  rl_client_step(c, rl_now(c));
  rl_client_flush(c);
  if (c->driven)
    rl_client_kick(c); /* the driver's own operation may have ended here */
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
    notify(c);
}

void rl_client_tell(redlock_client *c, redlock_lock *lock)
{
  if (!lock->is_ended) {
    lock->is_ended = 1;
    lock->next_ended = NULL;
    if (c->last_ended)
      c->last_ended->next_ended = lock;
    else
      c->ended = lock;
    c->last_ended = lock;
  }
  if (c->gathering)
    c->gathered = 1;
  else
    notify(c);
}

/* ---- driving ---- */

static void add_waiter(redlock_client *c, struct rl_waiter *w)
{
  w->waits = 1;
  w->bit = UINT32_C(1) << (c->waiter_count++ % 32);
  w->previous = c->last_waiter;
  if (c->last_waiter)
    c->last_waiter->next = w;
  else
    c->waiters = w;
  c->last_waiter = w;
}

static void remove_waiter(redlock_client *c, struct rl_waiter *w)
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
  remove_waiter(c, w);
  c->woken |= w->bit;
}

void rl_client_hand_over(redlock_client *c)
{
  struct rl_waiter *heir = c->waiters;
  c->driven = heir != NULL;
  if (!heir)
    return;
  heir->drives = 1;
  rl_client_wake(c, heir);
}

/* Waits for input without holding the mutex, then handles it. 0, or -EINTR. */
int rl_client_drive_once(redlock_client *c, int64_t until_ns)
{
  struct rl_poll_event events[RL_POLL_EVENTS];
  int64_t next = rl_client_next_deadline(c);
  int64_t timeout_ns = next < until_ns ? next : until_ns;
  int count;
  if (timeout_ns != RL_NEVER) {
    timeout_ns -= rl_now(c);
    timeout_ns = timeout_ns > 0 ? timeout_ns : 0;
  }
  c->sleeping = 1;
  unlock(c);
  count = rl_poller_wait(&c->poller, events, timeout_ns);
  pthread_mutex_lock(&c->mutex);
  c->sleeping = c->kicked = 0;
  look_for_cancels(c);
  if (count > 0)
    handle(c, events, count);
  c->polled_ns = rl_now(c);
  rl_client_step(c, c->polled_ns);
  return count == -EINTR ? -EINTR : 0;
}

static void drive_until(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  for (;;) {
    if (c->woken) { /* those who wake now have their next request leave with the same write */
      unlock(c);
      sched_yield();
      pthread_mutex_lock(&c->mutex);
    }
    rl_client_flush(c);
    if (!rl_in_flight(lock) || (until_ns != RL_NEVER && rl_now(c) >= until_ns))
      return;
    if (rl_client_drive_once(c, until_ns) == -EINTR && interruptible) {
      rl_client_flush(c);
      return;
    }
  }
}

static void wait_on(redlock_client *c, struct rl_waiter *w, int64_t until_ns)
{
  uint32_t rings;
  if (c->woken) { /* others are to be woken first; that may change everything */
    unlock(c);
  } else {
    rings = rl_bell_rings(&c->bell);
    pthread_mutex_unlock(&c->mutex);
    rl_bell_wait(&c->bell, rings, w->bit, until_ns == RL_NEVER ? RL_NEVER : until_ns - rl_now(c));
  }
  pthread_mutex_lock(&c->mutex);
}

/* Waits while another thread drives. 1: the role was handed to this one. */
static int wait_for_driver(redlock_client *c, redlock_lock *lock, int64_t until_ns)
{
  struct rl_waiter w = {0};
  rl_client_kick(c);
  add_waiter(c, &w);
  lock->waiter = &w;
  while (rl_in_flight(lock) && !w.drives && (until_ns == RL_NEVER || rl_now(c) < until_ns))
    wait_on(c, &w, until_ns);
  lock->waiter = NULL;
  remove_waiter(c, &w);
  return w.drives;
}

/* Blocks until the lock's operation has ended, until_ns, or, if interruptible, a signal. */
int rl_client_drive(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  if (c->env.stepped || !rl_in_flight(lock))
    rl_client_send(c);
  else if (c->driven && !wait_for_driver(c, lock, until_ns))
    return lock->status;
  else {
    c->driven = 1;
    drive_until(c, lock, until_ns, interruptible);
    rl_client_hand_over(c);
  }
  return lock->status;
}

/* ---- the started shape ---- */

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
    notify(c);
  rl_client_leave(c);
  return fd;
}

/* All that is due; what ends meanwhile is only gathered. 1, or 0 if the client is not open. */
static int process(redlock_client *c)
{
  int rung = c->notified || atomic_load(&c->cancels);
  c->gathered = 0;
  c->gathering = 1;
  rl_client_enter(c);
  if (c->state == RL_CLIENT_OPEN) {
    if (rung)
      rl_poller_clear(&c->poller);
    c->notified = 0;
    rl_client_flush(c); /* a started operation leaves before its answers are looked for */
    rl_client_tend(c);
  }
  c->gathering = 0;
  return c->state == RL_CLIENT_OPEN;
}

static int take_ended(redlock_client *c, uint64_t *tag)
{
  redlock_lock *lock = c->ended;
  if (!lock)
    return 0;
  c->ended = lock->next_ended;
  if (!c->ended)
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
  if (c->gathered)
    notify(c);
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
  if (c->ended)
    notify(c);
  rl_client_leave(c);
  return found;
}

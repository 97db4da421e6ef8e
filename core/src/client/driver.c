/* The thread that does the I/O for everybody while others wait, and how it hands that on. */
#include <errno.h>
#include <sched.h>

#include "../base/list.h"
#include "../base/mutant.h"
#include "../lock/operation.h"
#include "driver.h"
#include "step.h"
#include "stepped.h"

static void add_waiter(redlock_client *c, struct rlk_waiter *w)
{
  w->waits = 1;
  w->number = rlk_eventcount_take(&c->engine.numbers);
  RLK_LIST_APPEND(c->engine.waiters, c->engine.last_waiter, w, );
}

void rlk_client_hand_over(redlock_client *c)
{
  struct rlk_waiter *heir = RLK_MUTANT(NO_HEIR) ? NULL : c->engine.waiters;
  c->driven = heir != NULL;
  if (!heir)
    return;
  heir->drives = 1;
  rlk_mark_woken(&c->engine, heir);
}

int rlk_client_drive_once(redlock_client *c, int64_t until_ns)
{
  struct rlk_poll_event events[RLK_POLL_EVENTS];
  int64_t timeout_ns = rlk_smaller(rlk_client_next_deadline(c), until_ns);
  int count;
  c->sleeps_until_ns = timeout_ns;
  if (timeout_ns != RLK_NEVER)
    timeout_ns = rlk_larger(timeout_ns - rlk_client_now(c), 0);
  c->sleeping = 1;
  rlk_client_unlock(c);
  count = rlk_poller_wait(&c->engine.net.poller, events, timeout_ns);
  pthread_mutex_lock(&c->mutex);
  c->sleeping = c->driver_woken = 0;
  rlk_client_look_for_cancels(c);
  if (count > 0)
    rlk_client_handle(c, events, count);
  c->polled_ns = rlk_client_now(c);
  rlk_client_step(c, c->polled_ns);
  return count == -EINTR ? -EINTR : 0;
}

static void drive_until(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  for (;;) {
    if (c->engine.woken.any) { /* threads that wake now get their next request into the same write */
      rlk_client_unlock(c);
      sched_yield();
      pthread_mutex_lock(&c->mutex);
    }
    rlk_client_flush(c);
    if (!rlk_is_awaited(lock) || (until_ns != RLK_NEVER && rlk_client_now(c) >= until_ns))
      return;
    if (rlk_client_drive_once(c, until_ns) == -EINTR && interruptible) {
      rlk_client_flush(c);
      return;
    }
  }
}

static void wait_on(redlock_client *c, struct rlk_waiter *w, int64_t until_ns)
{
  uint32_t rings;
  if (c->engine.woken.any) { /* other threads must be woken first; that may change everything */
    rlk_client_unlock(c);
  } else {
    rings = rlk_eventcount_rings(&c->eventcount, w->number);
    rlk_client_unlock(c);
    rlk_eventcount_wait(&c->eventcount, rings, w->number,
                        until_ns == RLK_NEVER ? RLK_NEVER : until_ns - rlk_client_now(c));
  }
  pthread_mutex_lock(&c->mutex);
}

/* Waits while another thread drives. 1: the role was handed to this one. */
static int wait_for_driver(redlock_client *c, redlock_lock *lock, int64_t until_ns)
{
  struct rlk_waiter w = {0};
  if (rlk_client_next_deadline(c) < c->sleeps_until_ns) /* a waiter behind others has nothing to write */
    rlk_client_wake_driver(c);
  add_waiter(c, &w);
  lock->op.waiter = &w;
  while (rlk_is_awaited(lock) && !w.drives && (until_ns == RLK_NEVER || rlk_client_now(c) < until_ns))
    wait_on(c, &w, until_ns);
  lock->op.waiter = NULL;
  rlk_unwait(&c->engine, &w);
  return w.drives;
}

int rlk_client_drive(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  if (c->engine.net.env.stepped || !rlk_is_awaited(lock))
    rlk_client_send(c);
  else if (c->driven && !wait_for_driver(c, lock, until_ns))
    return lock->op.status;
  else {
    c->driven = 1;
    c->driving = lock;
    drive_until(c, lock, until_ns, interruptible);
    c->driving = NULL;
    rlk_client_hand_over(c);
  }
  return lock->op.status;
}

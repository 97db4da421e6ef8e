/* Leaving: no new operation begins, pending ones end, held locks are released, and replies are read to the end. */
#include <time.h>

#include "../lock/cleanup.h"
#include "../lock/lease.h"
#include "../lock/operation.h"
#include "../wait/others.h"
#include "driver.h"
#include "life.h"
#include "step.h"

#define SLICE 512 /* locks that are given up at a time: then replies are read */

static int is_over(const redlock_client *c, int64_t until_ns)
{
  return rlk_client_now(c) >= until_ns;
}

/* All that is pending ends, and nothing is held any more: a thread that releases its lock meanwhile has lost it. */
static void end_everything(redlock_client *c)
{
  while (c->engine.flights)
    rlk_operation_cancel(c->engine.flights, rlk_client_now(c));
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next) {
    if (lock->state != REDLOCK_STATE_HELD && lock->state != REDLOCK_STATE_LOST)
      continue;
    if (lock->state == REDLOCK_STATE_HELD)
      lock->hold.loss = REDLOCK_LOSS_CLOSED;
    rlk_lock_end_hold(lock, REDLOCK_STATE_LOST);
    lock->hold.depth = 0;
  }
}

/* All that was held is released; 0 if there was no time to release all of it. */
static int give_everything_up(redlock_client *c, int64_t until_ns)
{
  int count = 0, is_late = 0;
  for (redlock_lock *lock = c->engine.locks; lock && !is_late; lock = lock->next) {
    int64_t now = rlk_client_now(c);
    if (++count % SLICE == 0) {
      rlk_client_flush(c);
      rlk_client_poll(c);
      is_late = is_over(c, until_ns);
    }
    if (lock->state == REDLOCK_STATE_LOST && !is_late) {
      rlk_others_hand_over(lock, now);
      rlk_claim_give_up(&c->engine, lock->claim, 0, now);
    }
  }
  rlk_client_flush(c);
  return !is_late;
}

/* Whether the node's connection may still yield an outcome. */
static int is_awaited(const redlock_client *c, const struct rlk_node *n)
{
  uint32_t count = n->line->requests.count;
  if (n->state == RLK_NODE_OFF)
    return 0;
  if (n->state == RLK_NODE_SETUP)
    count -= (uint32_t)n->line->setup_left; /* requests that joined the set-up */
  return count > 0 || (n->state != RLK_NODE_REFUSED && rlk_claims_are_owed(&c->engine, n->index));
}

static void close_node(redlock_client *c, struct rlk_node *n)
{
  int64_t now = rlk_client_now(c);
  rlk_node_close(n, now);
  rlk_client_pull(c, n, now);
  rlk_timer_clear(&c->engine.net.timers, &n->timer);
}

/* Closes the connections that are done: how many are left. */
static int close_done(redlock_client *c)
{
  int left = 0;
  for (int i = 0; i < c->engine.net.node_count; i++) {
    if (is_awaited(c, &c->engine.net.nodes[i]))
      left++;
    else
      close_node(c, &c->engine.net.nodes[i]);
  }
  return left;
}

/* A close with unread replies would reset the connection and lose deletes that the server has not read yet, so all
 * replies are read (rule A.5). */
static void read_to_the_end(redlock_client *c, int64_t until_ns)
{
  while (close_done(c) > 0 && !is_over(c, until_ns) && !c->engine.net.env.stepped) {
    rlk_client_drive_once(c, until_ns);
    rlk_client_flush(c);
  }
}

/* 1 if an answer is missing. */
static int close_the_rest(redlock_client *c)
{
  int unanswered = 0;
  for (int i = 0; i < c->engine.net.node_count; i++) {
    unanswered |= c->engine.net.nodes[i].line->requests.count > 0;
    close_node(c, &c->engine.net.nodes[i]);
  }
  return unanswered;
}

/* With the mutex held. */
static void drain(redlock_client *c, int64_t until_ns)
{
  int is_complete, may_be_held;
  rlk_client_poll(c);
  is_complete = give_everything_up(c, until_ns);
  read_to_the_end(c, until_ns);
  rlk_claims_expire(&c->engine, rlk_client_now(c));
  may_be_held = c->engine.pending_deletes > 0 || !is_over(c, c->engine.forgotten_until_ns);
  c->engine.net.state = RLK_NET_CLOSED;
  is_complete &= !close_the_rest(c);
  c->drained = is_complete && !may_be_held ? REDLOCK_OK : REDLOCK_TIMED_OUT;
}

static void pause_unlocked(redlock_client *c)
{
  struct timespec moment = {0, 1000000};
  rlk_client_leave(c);
  nanosleep(&moment, NULL);
  pthread_mutex_lock(&c->mutex);
}

/* Cancels the other threads that block in the client; the last of them leaves the driver's seat. A thread that does
 * not run, so that it cannot leave, is awaited until until_ns at most: the rest of the work needs no seat. */
static void take_the_seat(redlock_client *c, int64_t until_ns)
{
  end_everything(c);
  for (;;) {
    rlk_client_wake_driver(c); /* its own operation may have ended here, however long it meant to sleep */
    if (!c->driven || is_over(c, until_ns))
      break;
    pause_unlocked(c);
  }
  c->driven = 1;
}

/* Another thread drains already: waits for its end. */
static int wait_for_drain(redlock_client *c, int64_t until_ns)
{
  while (c->engine.net.state != RLK_NET_CLOSED && rlk_client_now(c) < until_ns)
    pause_unlocked(c);
  return c->engine.net.state == RLK_NET_CLOSED ? c->drained : REDLOCK_TIMED_OUT;
}

int rlk_client_drain(redlock_client *c, int64_t limit_ms)
{
  int64_t until_ns;
  if (limit_ms < 0)
    limit_ms = RLK_INT(&c->engine.net.options, EXIT_DRAIN_MS);
  until_ns = rlk_client_now(c) + limit_ms * RLK_NS_PER_MS;
  if (c->engine.net.state == RLK_NET_DRAINING)
    return wait_for_drain(c, until_ns);
  if (c->engine.net.state != RLK_NET_OPEN)
    return c->drained;
  c->engine.net.state = RLK_NET_DRAINING; /* refuses new work */
  take_the_seat(c, until_ns);
  drain(c, until_ns);
  rlk_client_hand_over(c);
  return c->drained;
}

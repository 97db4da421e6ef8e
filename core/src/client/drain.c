/* Leaving: nothing new begins, what is pending ends, what is held is released, and the answers are read to the end. */
#include <time.h>

#include "../lock/operation.h"
#include "../lock/queue.h"
#include "../lock/renewal.h"
#include "drain.h"
#include "driver.h"
#include "step.h"

/* From now on deletes carry the script (rule A.5); those under way do not. */
static void repeat_deletes(redlock_client *c, int64_t now)
{
  for (int i = 0; i < c->engine.net.node_count; i++)
    if (c->engine.net.nodes[i].state == RLK_NODE_READY)
      rlk_claims_repeat(&c->engine, &c->engine.net.nodes[i], now);
}

/* All that is pending ends, all that is held is released. */
static void give_everything_up(redlock_client *c, int64_t now)
{
  while (c->engine.flights)
    rlk_operation_cancel(c->engine.flights, now);
  for (redlock_lock *lock = c->engine.locks; lock; lock = lock->next) {
    rlk_renewal_end(lock);
    rlk_timer_clear(&c->engine.net.timers, &lock->lease_timer);
    if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_LOST) {
      rlk_queue_hand_over(lock, now);
      rlk_claim_give_up(&c->engine, lock->claim, 0, now);
      lock->state = REDLOCK_STATE_FREE;
      lock->valid_until_ns = 0;
    }
  }
  for (int i = 0; i < c->engine.net.node_count; i++)
    if (c->engine.net.nodes[i].state == RLK_NODE_READY)
      rlk_claims_pay(&c->engine, &c->engine.net.nodes[i], now);
}

static int connections(const redlock_client *c)
{
  int count = 0;
  for (int i = 0; i < c->engine.net.node_count; i++)
    count += c->engine.net.nodes[i].state != RLK_NODE_OFF;
  return count;
}

static int has_pending_delete(const redlock_client *c, int node)
{
  for (const struct rlk_claim *claim = c->engine.claims; claim; claim = claim->next)
    if (claim->given_up && (claim->node[node].flags & RLK_MAY_HOLD))
      return 1;
  return 0;
}

static void close_nodes(redlock_client *c, int64_t now, int *unanswered)
{
  for (int i = 0; i < c->engine.net.node_count; i++) {
    struct rlk_node *n = &c->engine.net.nodes[i];
    *unanswered += n->line->requests.count > 0;
    rlk_node_close(n, now);
    rlk_client_pull(c, n, now);
    rlk_timer_clear(&c->engine.net.timers, &n->timer);
  }
}

/* Half-closes what is written and reads to the end: a close with unread replies would reset the connection and lose
 * releases that the server has not read yet (rule A.5). */
static void read_to_the_end(redlock_client *c, int64_t until_ns)
{
  for (int i = 0; i < c->engine.net.node_count; i++) {
    struct rlk_node *n = &c->engine.net.nodes[i];
    int64_t now = rlk_client_now(c);
    if (n->state == RLK_NODE_READY || n->state == RLK_NODE_REFUSED)
      rlk_node_flush(n, now);
    else if (!has_pending_delete(c, i))
      rlk_node_close(n, now); /* nobody needs its connection any more */
    rlk_client_pull(c, n, now);
  }
  while (connections(c) > 0 && rlk_client_now(c) < until_ns && !c->engine.net.env.stepped) {
    rlk_client_drive_once(c, until_ns);
    rlk_client_flush(c);
  }
}

/* With the mutex held. */
static int drain(redlock_client *c, int64_t until_ns)
{
  int unanswered = 0;
  rlk_client_poll(c);
  give_everything_up(c, rlk_client_now(c));
  c->engine.net.state = RLK_NET_LEAVING;
  read_to_the_end(c, until_ns);
  c->engine.net.state = RLK_NET_CLOSED;
  close_nodes(c, rlk_client_now(c), &unanswered);
  return unanswered ? REDLOCK_TIMED_OUT : REDLOCK_OK;
}

static void pause_unlocked(redlock_client *c)
{
  struct timespec moment = {0, 1000000};
  rlk_client_leave(c);
  nanosleep(&moment, NULL);
  pthread_mutex_lock(&c->mutex);
}

/* Others that block in the client are cancelled; the last of them leaves the driver's seat. One that does not run, so
 * that it cannot leave, is not waited for beyond until_ns: what is left to do needs no seat. */
static void take_the_seat(redlock_client *c, int64_t until_ns)
{
  for (;;) {
    while (c->engine.flights)
      rlk_operation_cancel(c->engine.flights, rlk_client_now(c));
    rlk_client_wake_driver(c); /* its own operation may have ended here, however long it meant to sleep */
    if (!c->driven || rlk_client_now(c) >= until_ns)
      break;
    pause_unlocked(c);
  }
  c->driven = 1;
}

/* Another thread drains already: its end is waited for. */
static int wait_for_drain(redlock_client *c, int64_t until_ns)
{
  while (c->engine.net.state != RLK_NET_CLOSED && rlk_client_now(c) < until_ns)
    pause_unlocked(c);
  return c->engine.net.state == RLK_NET_CLOSED ? REDLOCK_OK : REDLOCK_TIMED_OUT;
}

int rlk_client_drain(redlock_client *c, int64_t limit_ms)
{
  int64_t until_ns;
  int status;
  if (limit_ms < 0)
    limit_ms = RLK_INT(&c->engine.net.options, EXIT_DRAIN_MS);
  until_ns = rlk_client_now(c) + limit_ms * RLK_NS_PER_MS;
  if (c->engine.net.state == RLK_NET_DRAINING || c->engine.net.state == RLK_NET_LEAVING)
    return wait_for_drain(c, until_ns);
  if (c->engine.net.state != RLK_NET_OPEN)
    return REDLOCK_OK;
  c->engine.net.state = RLK_NET_DRAINING; /* refuses new work */
  repeat_deletes(c, rlk_client_now(c));
  take_the_seat(c, until_ns);
  status = drain(c, until_ns);
  rlk_client_hand_over(c);
  return status;
}

int redlock_client_drain(redlock_client *c, int64_t limit_ms)
{
  int status;
  if (!c || limit_ms < -1)
    return REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rlk_client_enter(c);
  c->users++; /* another thread may free the client meanwhile */
  status = rlk_client_drain(c, limit_ms > RLK_YEAR_MS ? RLK_YEAR_MS : limit_ms);
  rlk_client_unref(c);
  return status;
}

/* The one thread per process that sees to renewals. It is a shell: it sleeps until the next lease is due and then runs
 * the same step that every driver runs. */
#include "../base/fd.h"
#include "alarm.h"
#include "keeper.h"
#include "registry.h"
#include "step.h"

#define CLIENTS_MAX 256 /* whose input the thread awaits at the same time; the others are looked at when due */

/* A connection in progress, a scheduled one, or a silence timer needs a thread that attends to it. */
static int64_t connecting_ns(redlock_client *c, int *look)
{
  int64_t next = RLK_NEVER;
  for (int i = 0; i < c->engine.net.node_count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    if (n->state == RLK_NODE_READY && n->line->requests.count == 0)
      continue;
    *look = *look || (n->state == RLK_NODE_READY ? n->second != NULL : n->state != RLK_NODE_OFF);
    if (n->timer.place)
      next = rlk_smaller(next, n->timer.at_ns);
  }
  return next;
}

/* Runs the due work of one client and returns when it is due again. *look: its input matters before that. */
static int64_t service_one(redlock_client *c, int *look)
{
  const struct rlk_engine *e = &c->engine;
  int64_t connecting;
  *look = 0;
  if (!c->engine.renewing || c->engine.net.state != RLK_NET_OPEN)
    return RLK_NEVER;
  c->in_service = 1;
  rlk_client_service(c);
  c->in_service = 0;
  connecting = connecting_ns(c, look);
  *look = *look || e->renewals_open > 0 || (e->batches > 0 && rlk_client_now(c) < e->batch_answers_ns);
  return rlk_smaller(connecting, rlk_timers_next(&c->engine.renewal_timers));
}

/* Goes through all clients: the number of descriptors to wait for, and when the next lease is due. */
static int service_all(struct pollfd *fds, int64_t *next)
{
  redlock_client *c;
  int count = 2;
  *next = atomic_exchange(&rlk_alarm.asked_ns, RLK_NEVER); /* else each of many short holds would ring */
  fds[0] = (struct pollfd){.fd = rlk_alarm.bell.readable, .events = POLLIN};
  c = rlk_registry_lock();
  atomic_store(&rlk_alarm.sleeps_until_ns, RLK_NEVER); /* work scheduled by other threads rings, and we look again */
  for (; c; c = c->next) {
    int look;
    pthread_mutex_lock(&c->mutex);
    *next = rlk_smaller(*next, service_one(c, &look));
    if (look && count < CLIENTS_MAX)
      fds[count++] = (struct pollfd){.fd = c->engine.net.poller.inner, .events = POLLIN};
    rlk_client_leave(c);
  }
  atomic_store(&rlk_alarm.sleeps_until_ns, *next);
  rlk_fd_timer(&rlk_alarm.timer, *next);
  fds[1] = (struct pollfd){.fd = rlk_alarm.timer, .events = POLLIN};
  rlk_registry_unlock();
  return count;
}

static void sleep_until(struct pollfd *fds, int count, int64_t next)
{
  int64_t left_ns = next == RLK_NEVER ? RLK_NEVER : rlk_larger(next - rlk_platform_real.now_ns(NULL), 0);
  if (rlk_fd_poll(fds, count, left_ns) > 0 && (fds[0].revents & POLLIN))
    rlk_bell_silence(&rlk_alarm.bell);
}

static void *keep(void *nothing)
{
  struct pollfd fds[CLIENTS_MAX];
  (void)nothing;
  rlk_thread_name("redlock-keeper");
  for (;;) {
    int64_t next;
    int count = service_all(fds, &next);
    sleep_until(fds, count, next);
  }
  return NULL;
}

int rlk_keeper_ensure(void)
{
  int status = REDLOCK_OK;
  rlk_registry_lock();
  rlk_alarm_forked();
  if (!rlk_alarm.running) {
    atomic_store(&rlk_alarm.sleeps_until_ns, 0);
    if ((rlk_alarm.bell.readable < 0 && rlk_bell_open(&rlk_alarm.bell) != 0) || rlk_thread_start(keep, NULL) != 0)
      status = REDLOCK_INTERNAL;
    else
      rlk_alarm.running = 1;
  }
  rlk_registry_unlock();
  return status;
}

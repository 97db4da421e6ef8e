/* Renewal: what is due, and the one thread per process that sees to it. The thread is a shell: it sleeps until the next
 * lease is due and then runs the same step that every driver runs. Here is also the registry of clients that it walks,
 * which the fork handlers need too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core.h"

#define MS RL_NS_PER_MS
#define CLIENTS_MAX 256 /* whose input the thread waits for at the same time; the others are looked at when due */

/* ---- what is due ---- */

/* Leases that are due at about the same time are renewed together: one command per node. */
static int64_t rounded(const redlock_lock *lock, int64_t at)
{
  int64_t grain = lock->terms.ttl_ms * MS / 64;
  return grain > MS ? at - at % grain : at;
}

static void schedule(redlock_lock *lock, int64_t at)
{
  redlock_client *c = lock->client;
  rl_wheel_set(&c->wheel, &lock->renewal, at);
  rl_keeper_schedule(c, at);
}

static void close_round(redlock_lock *lock)
{
  lock->client->renewals_open -= lock->renewal_goal_ns != 0;
  lock->renewal_goal_ns = 0;
}

/* Half of the TTL after the oldest counted request (rule B.4). */
static void schedule_next(redlock_lock *lock)
{
  schedule(lock, rounded(lock, lock->valid_until_ns - lock->terms.lease_ns + lock->terms.ttl_ms * MS / 2));
}

void rl_renewal_begin(redlock_lock *lock, int64_t now)
{
  (void)now;
  if (!RL_INT(&lock->options, RENEW) || lock->renewed)
    return;
  lock->renewed = 1;
  lock->renewal_last = lock->at_risk = 0;
  lock->client->renewing++;
  schedule_next(lock);
}

void rl_renewal_end(redlock_lock *lock)
{
  if (!lock->renewed)
    return;
  close_round(lock);
  rl_wheel_clear(&lock->client->wheel, &lock->renewal);
  lock->renewed = 0;
  lock->client->renewing--;
}

static void limit_reached(redlock_lock *lock, const char *which)
{
  rl_event_add(lock->client, RL_EVENT_LIMIT, -1, lock, which);
  rl_renewal_end(lock);
}

void rl_renewal_confirmed(redlock_lock *lock, int64_t now)
{
  (void)now;
  if (!lock->renewed || !lock->renewal_goal_ns || lock->valid_until_ns < lock->renewal_goal_ns)
    return;
  close_round(lock);
  lock->at_risk = 0;
  lock->extensions++;
  lock->client->renewals++;
  if (lock->renewal_last)
    limit_reached(lock, "max_hold_ms: the lease runs out");
  else
    schedule_next(lock);
}

void rl_batch_drop(redlock_client *c, struct rl_batch *batch)
{
  if (--batch->users > 0)
    return;
  for (int i = 0; i < batch->count; i++) {
    batch->claim[i]->owed--;
    rl_claim_settle(c, batch->claim[i]);
  }
  if (c->spare_batch)
    free(batch);
  else
    c->spare_batch = batch;
}

static struct rl_batch *batch_new(redlock_client *c)
{
  struct rl_batch *batch = c->spare_batch ? c->spare_batch : malloc(sizeof *batch);
  c->spare_batch = NULL;
  if (!batch)
    return NULL;
  batch->users = 1;
  batch->count = 0;
  return batch;
}

static void send_batch(redlock_client *c, struct rl_batch *batch, int64_t now)
{
  if (!batch)
    return;
  for (int i = 0; i < c->node_count && batch->count; i++)
    if (rl_node_can_ask(&c->nodes[i], batch->terms.node_timeout_ns, now) == RL_ASKED)
      rl_node_send_renewal(&c->nodes[i], batch, 0, now); /* without memory the node misses this round */
  rl_batch_drop(c, batch);
}

/* The terms of the next renewal, cut to max_hold_ms: 0 when no time is left for one. */
static int terms_of(redlock_lock *lock, struct rl_terms *terms, int64_t now)
{
  struct rl_text nowhere = rl_text_in(NULL, 0);
  int64_t hold_max_ms = RL_INT(&lock->options, MAX_HOLD_MS);
  int64_t left_ms;
  *terms = lock->terms;
  if (hold_max_ms < 0)
    return 1;
  left_ms = hold_max_ms - (now - lock->acquired_ns) / MS;
  if (left_ms >= terms->ttl_ms)
    return 1;
  lock->renewal_last = 1;
  if (left_ms < RL_TTL_MS_MIN || rl_terms_for(&lock->options, left_ms, terms, &nowhere) != REDLOCK_OK)
    return 0;
  return now + terms->lease_ns > lock->valid_until_ns;
}

/* Whether the lock takes part in this round; then terms says with what. */
static int due(redlock_lock *lock, struct rl_terms *terms, int64_t now)
{
  int64_t extensions_max = RL_INT(&lock->options, MAX_EXTENSIONS);
  if (!rl_lock_is_held(lock, now))
    return 0;
  if (extensions_max >= 0 && lock->extensions >= extensions_max) {
    limit_reached(lock, "max_extensions: the lease runs out");
    return 0;
  }
  if (!terms_of(lock, terms, now)) {
    limit_reached(lock, "max_hold_ms: the lease runs out");
    return 0;
  }
  if (lock->renewal_goal_ns && !lock->at_risk) {
    lock->at_risk = 1;
    rl_event_add(lock->client, RL_EVENT_AT_RISK, -1, lock, "a renewal was not confirmed in time");
    rl_client_tell(lock->client, lock);
  }
  return 1;
}

static void renew(redlock_lock *lock, const struct rl_terms *terms, struct rl_batch *batch, int64_t now)
{
  int64_t again_ns = terms->ttl_ms * MS / 8;
  if (again_ns < terms->node_timeout_ns)
    again_ns = terms->node_timeout_ns;
  if (!lock->renewal_goal_ns)
    lock->client->renewals_open++;
  lock->renewal_goal_ns = now + terms->lease_ns;
  if (batch) {
    lock->claim->owed++;
    batch->claim[batch->count++] = lock->claim;
  }
  schedule(lock, now + again_ns);
}

static int same_terms(const struct rl_terms *a, const struct rl_terms *b)
{
  return a->ttl_ms == b->ttl_ms && a->lease_ns == b->lease_ns;
}

void rl_renewals_due(redlock_client *c, int64_t now)
{
  struct rl_batch *batch = NULL;
  struct rl_wheel_entry *entry;
  if (!c->wheel.count)
    return;
  while ((entry = rl_wheel_pop(&c->wheel, now)) != NULL) {
    redlock_lock *lock = (redlock_lock *)((char *)entry - offsetof(redlock_lock, renewal));
    struct rl_terms terms;
    if (!due(lock, &terms, now))
      continue;
    if (batch && (batch->count == RL_BATCH_MAX || !same_terms(&batch->terms, &terms))) {
      send_batch(c, batch, now);
      batch = NULL;
    }
    if (!batch) {
      batch = batch_new(c);
      if (batch)
        batch->terms = terms;
    }
    renew(lock, &terms, batch, now); /* without memory it is tried again like a round without answers */
  }
  send_batch(c, batch, now);
}

/* ---- the registry and fork ---- */

static struct {
  pthread_mutex_t mutex; /* before any client's */
  redlock_client *clients;
  atomic_int running; /* the thread is there */
  int wake_fd;
  _Atomic int64_t sleeps_until_ns;
  uint32_t generation;
  volatile uint32_t *mark; /* a page that the kernel wipes in a child; NULL: getpid is asked */
  pid_t pid;
  pthread_once_t once;
  int handlers;
} keeper = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake_fd = -1, .generation = 1, .once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
  pthread_mutex_lock(&keeper.mutex);
  for (redlock_client *c = keeper.clients; c; c = c->next)
    pthread_mutex_lock(&c->mutex);
}

static void after_fork_parent(void)
{
  for (redlock_client *c = keeper.clients; c; c = c->next)
    pthread_mutex_unlock(&c->mutex);
  pthread_mutex_unlock(&keeper.mutex);
}

/* The child has no keeper thread; it gets one with its first renewed lock. */
static void new_generation(void)
{
  keeper.generation++;
  keeper.running = 0;
  keeper.pid = getpid();
  if (keeper.mark)
    *keeper.mark = keeper.generation;
  if (keeper.wake_fd >= 0)
    close(keeper.wake_fd);
  keeper.wake_fd = -1;
}

static void after_fork_child(void)
{
  new_generation();
  for (redlock_client *c = keeper.clients; c; c = c->next) {
    rl_client_forked(c);
    pthread_mutex_unlock(&c->mutex);
  }
  pthread_mutex_unlock(&keeper.mutex);
}

static void set_up(void)
{
  keeper.handlers = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
  keeper.pid = getpid();
#ifdef MADV_WIPEONFORK
  {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark != MAP_FAILED && madvise(mark, page, MADV_WIPEONFORK) == 0) {
      keeper.mark = mark;
      *keeper.mark = keeper.generation;
    } else if (mark != MAP_FAILED) {
      munmap(mark, page);
    }
  }
#endif
}

/* Which process of a line of forks this is. Sees a raw clone too, which runs no handlers. */
uint32_t rl_fork_generation(void)
{
  if (keeper.mark ? *keeper.mark != keeper.generation : keeper.pid != getpid())
    new_generation();
  return keeper.generation;
}

int rl_keeper_register(redlock_client *c)
{
  pthread_once(&keeper.once, set_up);
  if (!keeper.handlers)
    return REDLOCK_INTERNAL;
  pthread_mutex_lock(&keeper.mutex);
  c->fork_generation = rl_fork_generation();
  c->next = keeper.clients;
  if (keeper.clients)
    keeper.clients->previous = c;
  keeper.clients = c;
  c->registered = 1;
  pthread_mutex_unlock(&keeper.mutex);
  return REDLOCK_OK;
}

void rl_keeper_unregister(redlock_client *c)
{
  pthread_mutex_lock(&keeper.mutex);
  if (c->registered) {
    if (c->previous)
      c->previous->next = c->next;
    else
      keeper.clients = c->next;
    if (c->next)
      c->next->previous = c->previous;
    c->registered = 0;
  }
  pthread_mutex_unlock(&keeper.mutex);
}

/* ---- the thread ---- */

static void wake(void)
{
  uint64_t one = 1;
  if (write(keeper.wake_fd, &one, sizeof one) < 0) {
    /* full: it is being woken anyway */
  }
}

void rl_keeper_schedule(redlock_client *c, int64_t at_ns)
{
  if (!c->env.stepped && !c->tended && keeper.running && at_ns < atomic_load(&keeper.sleeps_until_ns))
    wake();
}

/* A connection that is being made, or waits to be, needs somebody who looks after it. */
static int64_t connecting_ns(redlock_client *c, int *look)
{
  int64_t next = RL_NEVER;
  for (int i = 0; i < c->node_count; i++) {
    const struct rl_node *n = &c->nodes[i];
    if (n->state == RL_NODE_READY)
      continue;
    *look = *look || n->state != RL_NODE_OFF;
    if (n->timer.place && n->timer.at_ns < next)
      next = n->timer.at_ns;
  }
  return next;
}

/* Runs what is due in one client: when it is due again. *look: its input matters before that. */
static int64_t tend(redlock_client *c, int *look)
{
  int64_t next, connecting;
  *look = 0;
  if (!c->renewing || c->state != RL_CLIENT_OPEN)
    return RL_NEVER;
  c->tended = 1;
  rl_client_poll(c);
  rl_client_step(c, rl_now(c));
  rl_client_flush(c);
  c->tended = 0;
  next = rl_wheel_next(&c->wheel);
  connecting = connecting_ns(c, look);
  *look = *look || c->renewals_open > 0;
  return connecting < next ? connecting : next;
}

/* Goes through all clients: the number of descriptors to wait for, and when the next lease is due. */
static int tend_all(struct pollfd *fds, int64_t *next)
{
  int count = 1;
  *next = RL_NEVER;
  fds[0] = (struct pollfd){.fd = keeper.wake_fd, .events = POLLIN};
  pthread_mutex_lock(&keeper.mutex);
  atomic_store(&keeper.sleeps_until_ns, RL_NEVER); /* what is scheduled behind our back rings, and we look again */
  for (redlock_client *c = keeper.clients; c; c = c->next) {
    int look;
    int64_t due_ns;
    pthread_mutex_lock(&c->mutex);
    due_ns = tend(c, &look);
    if (due_ns < *next)
      *next = due_ns;
    if (look && count < CLIENTS_MAX)
      fds[count++] = (struct pollfd){.fd = c->poller.inner, .events = POLLIN};
    rl_client_leave(c);
  }
  atomic_store(&keeper.sleeps_until_ns, *next);
  pthread_mutex_unlock(&keeper.mutex);
  return count;
}

static void sleep_until(struct pollfd *fds, int count, int64_t next)
{
  struct timespec limit, *timeout = NULL;
  uint64_t rung;
  if (next != RL_NEVER) {
    int64_t left_ns = next - rl_platform_real.now_ns(NULL);
    left_ns = left_ns > 0 ? left_ns : 0;
    limit = (struct timespec){left_ns / 1000000000, left_ns % 1000000000};
    timeout = &limit;
  }
  if (ppoll(fds, (nfds_t)count, timeout, NULL) > 0 && (fds[0].revents & POLLIN))
    while (read(fds[0].fd, &rung, sizeof rung) < 0 && errno == EINTR)
      ;
}

static void *keep(void *nothing)
{
  struct pollfd fds[CLIENTS_MAX];
  (void)nothing;
  for (;;) {
    int64_t next;
    int count = tend_all(fds, &next);
    sleep_until(fds, count, next);
  }
  return NULL;
}

/* Detached, with all signals blocked: handlers of the program never run in it. */
static int start_thread(void)
{
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  int error;
  if (pthread_attr_init(&attributes) != 0)
    return -1;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(&thread, &attributes, keep, NULL);
  if (error == 0)
    pthread_setname_np(thread, "redlock-keeper");
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error ? -1 : 0;
}

int rl_keeper_ensure(redlock_client *c)
{
  int status = REDLOCK_OK;
  (void)c;
  pthread_mutex_lock(&keeper.mutex);
  rl_fork_generation();
  if (!keeper.running) {
    if (keeper.wake_fd < 0)
      keeper.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_store(&keeper.sleeps_until_ns, 0);
    if (keeper.wake_fd < 0 || start_thread() != 0)
      status = REDLOCK_INTERNAL;
    else
      keeper.running = 1;
  }
  pthread_mutex_unlock(&keeper.mutex);
  return status;
}

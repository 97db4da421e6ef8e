/* The one thread per process that sees to renewals. It is a shell: it sleeps until the next lease is due and then runs
 * the same step that every driver runs. Here is also the registry of clients that it walks, which fork needs, too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core.h"

#define CLIENTS_MAX 256 /* whose input the thread waits for at the same time; the others are looked at when due */

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
static int64_t tend_one(redlock_client *c, int *look)
{
  int64_t next, connecting;
  *look = 0;
  if (!c->renewing || c->state != RL_CLIENT_OPEN)
    return RL_NEVER;
  c->tended = 1;
  rl_client_tend(c);
  c->tended = 0;
  next = rl_wheel_next(&c->wheel);
  connecting = connecting_ns(c, look);
  *look = *look || c->renewals_open > 0 || (c->batches > 0 && rl_now(c) < c->batch_answers_ns);
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
    due_ns = tend_one(c, &look);
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
  rl_thread_name("redlock-keeper");
  for (;;) {
    int64_t next;
    int count = tend_all(fds, &next);
    sleep_until(fds, count, next);
  }
  return NULL;
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
    if (keeper.wake_fd < 0 || rl_thread_start(keep, NULL) != 0)
      status = REDLOCK_INTERNAL;
    else
      keeper.running = 1;
  }
  pthread_mutex_unlock(&keeper.mutex);
  return status;
}

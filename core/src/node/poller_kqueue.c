#include "../base/system.h"
#include "poller.h"

#ifndef RLK_LINUX

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

#include <sys/event.h>
#include <sys/time.h>
#include <unistd.h>

#include "../base/fd.h"
#include "../base/fork.h"

#define WAIT_MAX_NS INT64_C(3600000000000)
#define ARM_MAX_US 1000000000 /* fits into 32 bits; a wake-up that is too early arms it again */

#ifdef NOTE_MACH_CONTINUOUS_TIME
#define TIMER_FLAGS (NOTE_USECONDS | NOTE_MACH_CONTINUOUS_TIME) /* it counts suspend, as the clock does (rule A.1) */
#else
#define TIMER_FLAGS NOTE_USECONDS
#endif

static int change(int kq, int fd, int filter, int flags, void *mark)
{
  struct kevent event;
  EV_SET(&event, (uintptr_t)fd, filter, flags, 0, 0, mark);
  return kevent(kq, &event, 1, NULL, 0, NULL) == 0 ? 0 : -errno;
}

#ifdef __linux__
/* Here kqueue is a library, with fork handlers that have to run before those of the registry. */
__attribute__((constructor)) static void load(void)
{
  close(kqueue());
}
#endif

int rlk_poller_set(void)
{
  int kq = kqueue();
  if (kq >= 0)
    fcntl(kq, F_SETFD, FD_CLOEXEC);
  return kq >= 0 ? kq : -errno;
}

int rlk_poller_add(int set, int fd)
{
  return change(set, fd, EVFILT_READ, EV_ADD, NULL);
}

int rlk_poller_open_timer(struct rlk_poller *p)
{
  (void)p;
  return 0;
}

/* A kqueue is not inherited: in a child the number may belong to another descriptor. */
void rlk_poller_shut(const struct rlk_poller *p, int *kq)
{
  if (*kq >= 0 && p->fork_generation == rlk_fork_generation())
    close(*kq);
  *kq = -1;
}

void rlk_poller_forked(struct rlk_poller *p)
{
  int public_fd = p->outer;
  if (p->fork_generation == rlk_fork_generation())
    return;
  p->fork_generation = rlk_fork_generation();
  p->inner = -1;
  if (public_fd < 0)
    return;
  p->outer = rlk_poller_set();
  if (p->outer < 0 || p->outer == public_fd || fcntl(public_fd, F_GETFD) >= 0)
    return;
  rlk_fd_renumber(p->outer, public_fd);
  p->outer = public_fd;
}

int rlk_poller_watch(struct rlk_poller *p, int fd, int node, uint32_t generation, int writable, int again)
{
  void *mark = (void *)(((uintptr_t)generation << RLK_NODE_BITS) | (uintptr_t)node);
  int status = again ? 0 : change(p->inner, fd, EVFILT_READ, EV_ADD, mark);
  if (status != 0)
    return status;
  if (writable)
    return change(p->inner, fd, EVFILT_WRITE, EV_ADD, mark);
  if (again)
    change(p->inner, fd, EVFILT_WRITE, EV_DELETE, NULL);
  return 0;
}

void rlk_poller_forget(struct rlk_poller *p, int fd)
{
  change(p->inner, fd, EVFILT_READ, EV_DELETE, NULL);
  change(p->inner, fd, EVFILT_WRITE, EV_DELETE, NULL);
}

int rlk_poller_look(struct rlk_poller *p, struct rlk_poll_event *out, int64_t timeout_ns)
{
  struct kevent events[RLK_POLL_EVENTS];
  int64_t limit_ns = timeout_ns <= 0 ? 0 : timeout_ns < WAIT_MAX_NS ? timeout_ns : WAIT_MAX_NS;
  struct timespec limit = {(time_t)(limit_ns / 1000000000), (long)(limit_ns % 1000000000)};
  int count = 0;
  int n = kevent(p->inner, NULL, 0, events, RLK_POLL_EVENTS, timeout_ns == RLK_NEVER ? NULL : &limit);
  if (n < 0)
    return -errno;
  for (int i = 0; i < n; i++) {
    uintptr_t mark = (uintptr_t)events[i].udata;
    int what = events[i].filter == EVFILT_WRITE ? RLK_WRITABLE : RLK_READABLE;
    if (events[i].filter == EVFILT_TIMER)
      atomic_store_explicit(&p->armed_ns, RLK_NEVER, memory_order_relaxed);
    else if (events[i].ident == (uintptr_t)p->wake.readable)
      rlk_bell_silence(&p->wake);
    else
      out[count++] =
          (struct rlk_poll_event){(int)(mark & (RLK_NODES_MAX - 1)), (uint32_t)(mark >> RLK_NODE_BITS), what};
  }
  return count;
}

void rlk_poller_arm(struct rlk_poller *p, int64_t at_ns, int64_t now_ns)
{
  int64_t left_us = (at_ns - now_ns + 999) / 1000;
  struct kevent event;
  if (p->outer < 0 || at_ns == RLK_NEVER || at_ns >= rlk_poller_armed_ns(p))
    return;
  left_us = left_us < 1 ? 1 : left_us < ARM_MAX_US ? left_us : ARM_MAX_US;
  EV_SET(&event, 0, EVFILT_TIMER, EV_ADD | EV_ONESHOT, TIMER_FLAGS, (intptr_t)left_us, NULL);
  if (kevent(p->inner, &event, 1, NULL, 0, NULL) == 0)
    atomic_store_explicit(&p->armed_ns, at_ns, memory_order_relaxed);
}

#endif

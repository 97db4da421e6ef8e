#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "poller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../base/platform.h"

#define WAKE_MARK UINT64_MAX
#define TIMER_MARK (UINT64_MAX - 1)
#define FAILED_PAUSE_NS 10000000
#define SHORT_NS 2000000

static int add(int epoll, int fd, uint64_t mark)
{
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = mark};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static void shut(int *fd)
{
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

static int open_inner(struct rlk_poller *p)
{
  int status;
  p->inner = epoll_create1(EPOLL_CLOEXEC);
  if (p->inner < 0)
    return -errno;
  p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  status = p->wake < 0 ? -errno : add(p->inner, p->wake, WAKE_MARK);
  return status;
}

int rlk_poller_open(struct rlk_poller *p)
{
  int status;
  *p = (struct rlk_poller){.inner = -1, .wake = -1, .outer = -1, .notify = -1, .timer = -1, .armed_ns = RLK_NEVER};
  status = open_inner(p);
  if (status != 0)
    rlk_poller_close(p);
  return status;
}

void rlk_poller_close(struct rlk_poller *p)
{
  shut(&p->outer);
  shut(&p->notify);
  shut(&p->timer);
  shut(&p->wake);
  shut(&p->inner);
}

static int open_timer(struct rlk_poller *p)
{
  p->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (p->timer < 0)
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  p->armed_ns = RLK_NEVER;
  return p->timer < 0 ? -errno : add(p->inner, p->timer, TIMER_MARK);
}

/* Everything of the public descriptor but its number. */
static int open_outer(struct rlk_poller *p, int *fd)
{
  int status;
  *fd = epoll_create1(EPOLL_CLOEXEC);
  if (*fd < 0)
    return -errno;
  __atomic_store_n(&p->notify, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), __ATOMIC_RELEASE);
  status = p->notify < 0 ? -errno : add(*fd, p->notify, 0);
  if (status == 0)
    status = add(*fd, p->inner, 1);
  return status == 0 ? open_timer(p) : status;
}

int rlk_poller_public(struct rlk_poller *p)
{
  int fd, status;
  if (p->outer >= 0)
    return p->outer;
  status = open_outer(p, &fd);
  if (status != 0) {
    shut(&fd);
    shut(&p->notify);
    shut(&p->timer);
    return status;
  }
  return p->outer = fd;
}

int rlk_poller_reopen(struct rlk_poller *p)
{
  int public_fd = p->outer, fd, status;
  shut(&p->notify);
  shut(&p->timer);
  shut(&p->wake);
  shut(&p->inner);
  status = open_inner(p);
  if (status != 0 || public_fd < 0)
    return status;
  status = open_outer(p, &fd);
  if (status == 0 && dup3(fd, public_fd, O_CLOEXEC) < 0)
    status = -errno;
  shut(&fd);
  return status;
}

int rlk_poller_watch(struct rlk_poller *p, int fd, int node, uint32_t generation, int writable, int again)
{
  struct epoll_event event = {.events = EPOLLIN | (writable ? (uint32_t)EPOLLOUT : 0),
                              .data.u64 = ((uint64_t)generation << 16) | (uint64_t)node};
  return epoll_ctl(p->inner, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void rlk_poller_forget(struct rlk_poller *p, int fd)
{
  epoll_ctl(p->inner, EPOLL_CTL_DEL, fd, NULL);
}

/* epoll_wait counts in milliseconds, which is too coarse for the shortest pauses between attempts: those are waited for
 * with ppoll, or a little too long where that is forbidden. (epoll_pwait2 would do both, but filters of system calls
 * forbid it, and older kernels lack it.) */
static int wait_for(int epoll, struct epoll_event *events, int64_t timeout_ns)
{
  if (timeout_ns <= 0 || timeout_ns == RLK_NEVER)
    return epoll_wait(epoll, events, RLK_POLL_EVENTS, timeout_ns <= 0 ? 0 : -1);
  if (timeout_ns < SHORT_NS) {
    struct pollfd readable = {.fd = epoll, .events = POLLIN};
    struct timespec limit = {.tv_nsec = (long)timeout_ns};
    int n = ppoll(&readable, 1, &limit, NULL);
    if (n > 0)
      return epoll_wait(epoll, events, RLK_POLL_EVENTS, 0);
    if (n == 0 || errno == EINTR)
      return n;
  }
  if (timeout_ns > INT64_C(3600000000000))
    timeout_ns = INT64_C(3600000000000);
  return epoll_wait(epoll, events, RLK_POLL_EVENTS, (int)((timeout_ns + 999999) / 1000000));
}

static void swallow(int fd)
{
  uint64_t count;
  while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
    ;
}

/* Where waiting itself fails, the caller's loop must not take a whole core. */
static int failed(int64_t timeout_ns)
{
  struct timespec moment = {0, timeout_ns < FAILED_PAUSE_NS ? (long)timeout_ns : FAILED_PAUSE_NS};
  int error = errno;
  if (error != EINTR && timeout_ns > 0)
    nanosleep(&moment, NULL);
  return -error;
}

int rlk_poller_wait(struct rlk_poller *p, struct rlk_poll_event *out, int64_t timeout_ns)
{
  struct epoll_event events[RLK_POLL_EVENTS];
  int count = 0;
  int n = wait_for(p->inner, events, timeout_ns);
  if (n < 0)
    return failed(timeout_ns);
  for (int i = 0; i < n; i++) {
    uint64_t mark = events[i].data.u64;
    if (mark == WAKE_MARK) {
      swallow(p->wake);
    } else if (mark == TIMER_MARK) {
      swallow(p->timer);
      __atomic_store_n(&p->armed_ns, RLK_NEVER, __ATOMIC_RELAXED);
    } else {
      int what = events[i].events & EPOLLOUT ? RLK_WRITABLE : 0;
      if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        what |= RLK_READABLE;
      out[count++] = (struct rlk_poll_event){(int)(mark & 0xffff), (uint32_t)(mark >> 16), what};
    }
  }
  return count;
}

static void ring(int fd)
{
  uint64_t one = 1;
  int saved = errno;
  if (fd >= 0)
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
      ;
  errno = saved;
}

void rlk_poller_wake(struct rlk_poller *p)
{
  ring(p->wake);
}

void rlk_poller_notify(struct rlk_poller *p)
{
  ring(__atomic_load_n(&p->notify, __ATOMIC_ACQUIRE)); /* a cancel looks without the mutex */
}

void rlk_poller_clear(struct rlk_poller *p)
{
  if (p->notify >= 0)
    swallow(p->notify);
}

int64_t rlk_poller_armed_ns(const struct rlk_poller *p)
{
  return __atomic_load_n(&p->armed_ns, __ATOMIC_RELAXED);
}

void rlk_poller_arm(struct rlk_poller *p, int64_t at_ns, int64_t now_ns)
{
  int64_t left_ns = at_ns - now_ns > 1 ? at_ns - now_ns : 1;
  struct itimerspec spec = {.it_value = {left_ns / 1000000000, left_ns % 1000000000}};
  if (p->timer < 0 || at_ns == RLK_NEVER || at_ns >= rlk_poller_armed_ns(p))
    return;
  if (timerfd_settime(p->timer, 0, &spec, NULL) == 0)
    __atomic_store_n(&p->armed_ns, at_ns, __ATOMIC_RELAXED);
}

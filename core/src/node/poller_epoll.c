#include "../base/system.h"
#include "poller.h"

#ifdef RLK_LINUX

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../base/fd.h"

#define WAKE_MARK UINT64_MAX
#define TIMER_MARK (UINT64_MAX - 1)
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
  status = rlk_bell_open(&p->wake);
  return status == 0 ? add(p->inner, p->wake.readable, WAKE_MARK) : status;
}

int rlk_poller_open(struct rlk_poller *p)
{
  int status;
  *p = RLK_NO_POLLER;
  status = open_inner(p);
  if (status != 0)
    rlk_poller_close(p);
  return status;
}

void rlk_poller_close(struct rlk_poller *p)
{
  shut(&p->outer);
  rlk_bell_close(&p->notify);
  shut(&p->timer);
  rlk_bell_close(&p->wake);
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
  status = rlk_poller_open_notify(p);
  if (status == 0)
    status = add(*fd, p->notify.readable, 0);
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
    rlk_bell_close(&p->notify);
    shut(&p->timer);
    return status;
  }
  return p->outer = fd;
}

void rlk_poller_forked(struct rlk_poller *p)
{
  (void)p;
}

int rlk_poller_reopen(struct rlk_poller *p)
{
  int public_fd = p->outer, fd, status;
  rlk_bell_close(&p->notify);
  shut(&p->timer);
  rlk_bell_close(&p->wake);
  shut(&p->inner);
  status = open_inner(p);
  if (status != 0 || public_fd < 0)
    return status;
  status = open_outer(p, &fd);
  if (status == 0)
    return rlk_fd_renumber(fd, public_fd);
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

/* epoll_wait counts in milliseconds, which is too coarse for the shortest pauses between attempts: these use ppoll,
 * or last a little too long if that is forbidden. (epoll_pwait2 would do both, but system call filters forbid it,
 * and older kernels lack it.) */
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

static void swallow_expiration(struct rlk_poller *p)
{
  uint64_t count;
  while (read(p->timer, &count, sizeof count) < 0 && errno == EINTR)
    ;
  atomic_store_explicit(&p->armed_ns, RLK_NEVER, memory_order_relaxed);
}

int rlk_poller_wait(struct rlk_poller *p, struct rlk_poll_event *out, int64_t timeout_ns)
{
  struct epoll_event events[RLK_POLL_EVENTS];
  int count = 0;
  int n = wait_for(p->inner, events, timeout_ns);
  if (n < 0)
    return rlk_poller_failed(timeout_ns);
  for (int i = 0; i < n; i++) {
    uint64_t mark = events[i].data.u64;
    if (mark == WAKE_MARK) {
      rlk_bell_silence(&p->wake);
    } else if (mark == TIMER_MARK) {
      swallow_expiration(p);
    } else {
      int what = events[i].events & EPOLLOUT ? RLK_WRITABLE : 0;
      if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        what |= RLK_READABLE;
      out[count++] = (struct rlk_poll_event){(int)(mark & 0xffff), (uint32_t)(mark >> 16), what};
    }
  }
  return count;
}

void rlk_poller_arm(struct rlk_poller *p, int64_t at_ns, int64_t now_ns)
{
  int64_t left_ns = at_ns - now_ns > 1 ? at_ns - now_ns : 1;
  struct itimerspec spec = {.it_value = {left_ns / 1000000000, left_ns % 1000000000}};
  if (p->timer < 0 || at_ns == RLK_NEVER || at_ns >= rlk_poller_armed_ns(p))
    return;
  if (timerfd_settime(p->timer, 0, &spec, NULL) == 0)
    atomic_store_explicit(&p->armed_ns, at_ns, memory_order_relaxed);
}

#endif

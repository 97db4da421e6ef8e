#include "../base/system.h"
#include "poller.h"

#ifdef RLK_LINUX

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WAKE_MARK UINT64_MAX
#define TIMER_MARK (UINT64_MAX - 1)
#define SHORT_NS 2000000

static int add(int epoll, int fd, uint64_t mark)
{
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = mark};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int rlk_poller_set(void)
{
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  return epoll < 0 ? -errno : epoll;
}

int rlk_poller_add(int set, int fd)
{
  return add(set, fd, WAKE_MARK);
}

int rlk_poller_open_timer(struct rlk_poller *p)
{
  p->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (p->timer < 0)
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  return p->timer < 0 ? -errno : add(p->inner, p->timer, TIMER_MARK);
}

void rlk_poller_shut(const struct rlk_poller *p, int *fd)
{
  (void)p;
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

void rlk_poller_forked(struct rlk_poller *p)
{
  (void)p;
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

int rlk_poller_look(struct rlk_poller *p, struct rlk_poll_event *out, int64_t timeout_ns)
{
  struct epoll_event events[RLK_POLL_EVENTS];
  int count = 0;
  int n = wait_for(p->inner, events, timeout_ns);
  if (n < 0)
    return -errno;
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

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "platform.h"
#include "system.h"
#ifdef RLK_LINUX
#include <sys/timerfd.h>
#endif

int rlk_fd_set_up(int fd)
{
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return -errno;
  return 0;
}

int rlk_fd_renumber(int fd, int number)
{
  int status = dup2(fd, number) < 0 || fcntl(number, F_SETFD, FD_CLOEXEC) != 0 ? -errno : 0;
  close(fd);
  return status;
}

#ifdef RLK_LINUX

int rlk_fd_socket(int family)
{
  int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return fd < 0 ? -errno : fd;
}

int rlk_fd_poll(struct pollfd *fds, int count, int64_t timeout_ns)
{
  struct timespec limit = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  return ppoll(fds, (nfds_t)count, timeout_ns == RLK_NEVER ? NULL : &limit, NULL);
}

void rlk_fd_timer(int *timer, int64_t at_ns)
{
  struct itimerspec spec = {{0, 0}, {0, 0}};
  if (at_ns != RLK_NEVER)
    spec.it_value = (struct timespec){at_ns / 1000000000, at_ns % 1000000000};
  if (*timer < 0)
    *timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (*timer >= 0)
    timerfd_settime(*timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

#else

int rlk_fd_socket(int family)
{
  int fd = socket(family, SOCK_STREAM, 0);
  int status = fd < 0 ? -errno : rlk_fd_set_up(fd);
#ifdef SO_NOSIGPIPE
  int on = 1;
  if (status == 0 && setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) != 0)
    status = -errno;
#endif
  if (status == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return status;
}

int rlk_fd_poll(struct pollfd *fds, int count, int64_t timeout_ns)
{
  int64_t timeout_ms = timeout_ns / RLK_NS_PER_MS + (timeout_ns % RLK_NS_PER_MS > 0); /* never too early */
  return poll(fds, (nfds_t)count, timeout_ns == RLK_NEVER ? -1 : timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX);
}

void rlk_fd_timer(int *timer, int64_t at_ns)
{
  (void)timer;
  (void)at_ns;
}

#endif

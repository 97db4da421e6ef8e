#include "link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../base/fd.h"
#include "poller.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* the socket has SO_NOSIGPIPE */
#endif
#if !defined(TCP_KEEPIDLE) && defined(TCP_KEEPALIVE)
#define TCP_KEEPIDLE TCP_KEEPALIVE
#endif

static socklen_t to_sockaddr(const struct rlk_address *a, struct sockaddr_storage *out)
{
  memset(out, 0, sizeof *out);
  if (a->family == AF_UNIX) {
    struct sockaddr_un *un = (struct sockaddr_un *)out;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, a->path, sizeof un->sun_path);
    return sizeof *un;
  }
  if (a->family == AF_INET6) {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(a->port);
    memcpy(&in6->sin6_addr, a->ip, 16);
    return sizeof *in6;
  }
  struct sockaddr_in *in = (struct sockaddr_in *)out;
  in->sin_family = AF_INET;
  in->sin_port = htons(a->port);
  memcpy(&in->sin_addr, a->ip, 4);
  return sizeof *in;
}

static void sockets_abandon(struct rlk_link *link)
{
  if (link->fd >= 0)
    close(link->fd);
  link->fd = -1;
  link->writing = 0;
}

static void sockets_close(struct rlk_link *link)
{
  if (link->fd >= 0)
    rlk_poller_forget(link->poller, link->fd);
  sockets_abandon(link);
}

static void set(int fd, int level, int name, int value)
{
  setsockopt(fd, level, name, &value, sizeof value);
}

/* Probes keep an idle connection known to the middleboxes, and notice within half a minute if it is not.
 * Unacknowledged bytes end the connection about as soon. */
static void set_tcp(int fd)
{
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
#ifdef TCP_USER_TIMEOUT
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 20000); /* ms */
#endif
}

static int begin(struct rlk_link *link, const struct rlk_address *address)
{
  struct sockaddr_storage to;
  socklen_t size = to_sockaddr(address, &to);
  if (address->family != AF_UNIX)
    set_tcp(link->fd);
  /* also a connection that is there at once is reported by the poller, so that requests may join its set-up */
  if (connect(link->fd, (struct sockaddr *)&to, size) == 0 || errno == EINPROGRESS)
    return -EINPROGRESS;
  /* EAGAIN is how a unix socket says that its server's queue is full: no connection was begun */
  return errno == EINTR ? -EINPROGRESS : errno == EAGAIN ? -ECONNREFUSED : -errno;
}

static int sockets_open(struct rlk_link *link, const struct rlk_address *address)
{
  int status, watched, fd = rlk_fd_socket(address->family);
  if (fd < 0)
    return fd;
  link->fd = fd;
  status = begin(link, address);
  if (status == -EINPROGRESS) {
    watched = rlk_poller_watch(link->poller, link->fd, link->node, link->generation, 1, 0);
    link->writing = 1;
    if (watched == 0)
      return status;
    status = watched;
  }
  sockets_abandon(link);
  return status;
}

static int sockets_finish(struct rlk_link *link)
{
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  int error = 0;
  socklen_t error_size = sizeof error;
  if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0)
    return -errno;
  if (error)
    return -error;
  return getpeername(link->fd, (struct sockaddr *)&peer, &size) == 0 ? 0 : -EINPROGRESS;
}

/* After a signal the poller reports the link again. */
static ssize_t size_or_error(ssize_t size)
{
  return size >= 0 ? size : errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

static ssize_t sockets_write(struct rlk_link *link, const char *data, size_t size)
{
  return size_or_error(send(link->fd, data, size, MSG_NOSIGNAL));
}

static ssize_t sockets_read(struct rlk_link *link, char *data, size_t size)
{
  return size_or_error(recv(link->fd, data, size, 0));
}

static void sockets_want_write(struct rlk_link *link, int on)
{
  if (link->fd < 0 || link->writing == on)
    return;
  if (rlk_poller_watch(link->poller, link->fd, link->node, link->generation, on, 1) == 0)
    link->writing = on;
}

/* One end is the other's machine: a unix socket, the loopback network, or the same address. */
int rlk_link_is_local(const struct rlk_link *link)
{
  struct sockaddr_storage here, there;
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (getsockname(link->fd, (struct sockaddr *)&here, &here_size) != 0 ||
      getpeername(link->fd, (struct sockaddr *)&there, &there_size) != 0)
    return 1; /* it is not known */
  if (there.ss_family == AF_INET) {
    const struct sockaddr_in *one = (struct sockaddr_in *)&here, *other = (struct sockaddr_in *)&there;
    return ntohl(other->sin_addr.s_addr) >> 24 == 127 || one->sin_addr.s_addr == other->sin_addr.s_addr;
  }
  if (there.ss_family == AF_INET6)
    return memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, &((struct sockaddr_in6 *)&there)->sin6_addr, 16) == 0;
  return 1;
}

const struct rlk_link_ops rlk_link_sockets = {
    sockets_open,  sockets_finish,  sockets_write, sockets_read, sockets_want_write,
    sockets_close, sockets_abandon, NULL,          NULL,         rlk_link_is_local};

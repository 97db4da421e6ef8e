/* Plain sockets. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "figures.h"
#include "limit.h"
#include "limit_raw.h"

static int fds[MAX_NODES];

void transport_begin(int node, int fd)
{
  fds[node] = fd;
}

void transport_write(int node, const char *data, size_t size)
{
  while (size > 0) {
    ssize_t sent = send(fds[node], data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
      die("send: %s", strerror(errno));
    if (sent < 0) {
      poll(&(struct pollfd){fds[node], POLLOUT, 0}, 1, -1);
      continue;
    }
    data += sent;
    size -= (size_t)sent;
  }
}

size_t transport_read(int node, char *data, size_t size)
{
  ssize_t got = recv(fds[node], data, size, 0);
  if (got <= 0)
    die("node %d: %s", node, got == 0 ? "closed" : strerror(errno));
  return (size_t)got;
}

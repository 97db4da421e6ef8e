/* To be preloaded: once the file $DEAF is there, a poll() of two descriptors hears nothing of the first one, as if
 * another thread were always faster at what there is to read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

typedef int wait_for(struct pollfd *, nfds_t, int);

__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
  wait_for *real = (wait_for *)dlsym(RTLD_NEXT, "poll");
  if (count != 2 || access(getenv("DEAF"), F_OK) != 0)
    return real(fds, count, timeout_ms);
  fds[0].revents = 0;
  return real(fds + 1, 1, timeout_ms);
}

/* Calls about descriptors that are not the same on all systems. Functions that return int give 0 or -errno. */
#ifndef RLK_FD_H
#define RLK_FD_H

#include <poll.h>
#include <stdint.h>

int rlk_fd_set_up(int fd); /* non-blocking, and closed by exec */
/* A stream socket that is set up; or -errno. */
int rlk_fd_socket(int family);
/* fd gets another number, whose former descriptor is closed; fd itself is closed in any case. */
int rlk_fd_renumber(int fd, int number);
/* poll() with a limit in nanoseconds, RLK_NEVER: none. Returns the result of poll(). */
int rlk_fd_poll(struct pollfd *fds, int count, int64_t timeout_ns);
/* *timer, which is opened if it is -1, becomes readable at that time of the platform's clock; RLK_NEVER: not. Unlike
 * the limit of poll(), the time runs on while the process is stopped. It stays -1 if the system has no such timer. */
void rlk_fd_timer(int *timer, int64_t at_ns);

#endif

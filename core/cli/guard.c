/* guard.c - ends CMD's whole process group when redlock dies without a word.
 *
 * The parent-death signal reaches CMD alone. The guard sees the end of redlock as the end of a pipe, and also reaches
 * the processes that CMD has started, unless they left its group. It is forked before the client exists, so it inherits
 * nothing of it, and lives in its own session, out of reach of the terminal's signals. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void guard_main(int pipe_end)
{
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  setsid();
  prctl(PR_SET_NAME, "redlock-guard");
  for (int fd = 0; fd < 3; fd++)
    close(fd);
  pid_t group = 0, told;
  while (read(pipe_end, &told, sizeof told) == sizeof told)
    group = told;
  if (group > 0)
    kill(-group, SIGKILL);
  _exit(0);
}

int guard_start(struct guard *guard)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail_errno("pipe");
  guard->pid = fork();
  if (guard->pid < 0)
    return fail_errno("fork");
  if (guard->pid == 0) {
    close(ends[1]);
    guard_main(ends[0]);
  }
  close(ends[0]);
  guard->pipe = ends[1];
  return 0;
}

void guard_watch(const struct guard *guard, pid_t group)
{
  ssize_t written = write(guard->pipe, &group, sizeof group);
  (void)written; /* it can only fail if the guard was killed; the parent-death signal remains */
}

void guard_end(const struct guard *guard)
{
  guard_watch(guard, 0);
  close(guard->pipe);
  while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
    continue;
}

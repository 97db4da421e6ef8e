/* terminal.c - which process may read from the terminal. SIGTTOU is blocked in redlock while it passes the terminal
 * on. */
#include "job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int terminal_open(void)
{
  return open("/dev/tty", O_RDWR | O_CLOEXEC);
}

bool terminal_is_ours(int tty)
{
  return tty >= 0 && tcgetpgrp(tty) == getpgrp();
}

bool terminal_give(const struct job *job)
{
  return tcsetpgrp(job->tty, job->pid) == 0;
}

bool terminal_take(const struct job *job)
{
  if (job->tty < 0 || tcgetpgrp(job->tty) != job->pid)
    return false;
  return tcsetpgrp(job->tty, getpgrp()) == 0;
}

static bool is_pipe(int fd)
{
  struct stat about;
  return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

/* In `redlock run ... | less` the other programs need the terminal first; CMD gets it when it reads from it. */
bool terminal_is_wanted(void)
{
  return !is_pipe(STDIN_FILENO) && !is_pipe(STDOUT_FILENO);
}

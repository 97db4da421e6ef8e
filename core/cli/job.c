/* job.c - starts CMD in a process group of its own and notices its end. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the child between fork and exec: only async-signal-safe calls. The pipe reports why exec failed. */
static void become_job(const struct job *job, const struct session *session, pid_t parent, struct watch watch,
                       int report)
{
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(EXIT_CANNOT_RUN);
  watch.group = getpid();
  guard_tell(&job->guard, watch); /* before it can have children */
  if (job->takes_terminal && tcgetpgrp(job->tty) == getpgid(parent))
    tcsetpgrp(job->tty, getpid());
  if (session->child_ignored)
    signal(SIGCHLD, SIG_IGN);
  sigprocmask(SIG_SETMASK, &session->mask_before, NULL);
  execvp(session->args->job[0], session->args->job);
  int why = errno;
  ssize_t written = write(report, &why, sizeof why);
  _exit(written == sizeof why ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

static int reap_unstarted(const struct job *job, const struct session *session, int why)
{
  waitpid(job->pid, NULL, 0);
  terminal_take(job);
  return fail(why == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "%s: %s", session->args->job[0], strerror(why));
}

int job_start(struct job *job, const struct session *session)
{
  int report[2], why = 0;
  if (pipe2(report, O_CLOEXEC) != 0)
    return fail_errno("pipe");
  struct watch watch = guard_watch(session, 0);
  pid_t parent = getpid();
  job->pid = fork();
  if (job->pid == 0)
    become_job(job, session, parent, watch, report[1]);
  close(report[1]);
  if (job->pid < 0) {
    close(report[0]);
    return fail_errno("fork");
  }
  setpgid(job->pid, job->pid); /* parent and child both do this, whichever runs first */
  bool failed = read(report[0], &why, sizeof why) == sizeof why;
  close(report[0]);
  job->running = !failed;
  return failed ? reap_unstarted(job, session, why) : 0;
}

/* CMD may have left its group for another one; the processes that it has started may, too, and are not known. */
void job_signal(const struct job *job, int number)
{
  kill(-job->pid, number);
  if (job->running && getpgid(job->pid) != job->pid)
    kill(job->pid, number);
}

bool job_group_exists(const struct job *job)
{
  return kill(-job->pid, 0) == 0;
}

int job_wait(struct job *job)
{
  int status;
  if (!job->running || waitpid(job->pid, &status, WNOHANG | WUNTRACED) != job->pid)
    return 0;
  if (WIFSTOPPED(status))
    return WSTOPSIG(status);
  job->running = false;
  job->wait_status = status;
  return 0;
}

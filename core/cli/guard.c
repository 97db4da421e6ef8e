/* guard.c - ends CMD's whole process group when redlock dies without a word, or is stopped beyond the end of the lease.
 *
 * The parent-death signal reaches CMD alone. The guard sees the end of redlock as the end of a pipe, and also reaches
 * the processes that CMD has started, unless they left its group. It is forked before the client exists, so it inherits
 * nothing of it, and lives in its own session, out of reach of the terminal's signals. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* So much later than redlock, which notices the end of the lease by itself: CMD gets one SIGTERM. */
enum { LATER_MS = 200 };

/* When the guard has something to do; 0 if it has not. */
static int64_t due_ms(const struct watch *watch)
{
  if (watch->group == 0)
    return 0;
  int64_t term_ms = watch->term_ms + LATER_MS, kill_ms = watch->kill_ms + LATER_MS;
  return term_ms < kill_ms ? term_ms : kill_ms;
}

static void end_what_is_due(struct watch *watch)
{
  int64_t now = redlock_now_ms();
  if (due_ms(watch) == 0 || due_ms(watch) > now)
    return;
  if (watch->kill_ms + LATER_MS <= now) {
    kill(-watch->group, SIGKILL);
    watch->group = 0;
  } else {
    kill(-watch->group, SIGTERM);
    kill(-watch->group, SIGCONT);
    watch->term_ms = NEVER_MS;
  }
}

/* Until something is due or said. The timer also counts the time of a suspend. */
static void sleep_for(const struct watch *watch, int timer, int pipe_end)
{
  int64_t ms = due_ms(watch);
  struct itimerspec at = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
  struct pollfd wanted[] = {{.fd = pipe_end, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
  poll(wanted, 2, -1);
}

static void guard_main(int pipe_end)
{
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  setsid();
  prctl(PR_SET_NAME, "redlock-guard");
  for (int fd = 0; fd < 3; fd++)
    close(fd);
  int timer = timerfd_create(CLOCK_BOOTTIME, 0);
  struct watch watch = {.group = 0}, next;
  ssize_t got;
  while ((got = read(pipe_end, &next, sizeof next)) != 0) {
    if (got == sizeof next) {
      watch = next;
      continue;
    }
    end_what_is_due(&watch);
    sleep_for(&watch, timer, pipe_end);
  }
  if (watch.group > 0)
    kill(-watch.group, SIGKILL);
  _exit(0);
}

int guard_start(struct guard *guard)
{
  if (pipe2(guard->ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return fail_errno("pipe");
  guard->pid = fork();
  if (guard->pid < 0)
    return fail_errno("fork");
  if (guard->pid == 0) {
    close(guard->ends[1]);
    guard_main(guard->ends[0]);
  }
  return 0;
}

/* A guard that is stopped reads nothing; what it has not read is out of date. */
void guard_tell(const struct guard *guard, struct watch watch)
{
  struct watch old;
  while (write(guard->ends[1], &watch, sizeof watch) < 0 && errno == EAGAIN &&
         (read(guard->ends[0], &old, sizeof old) > 0 || errno == EAGAIN))
    continue;
}

struct watch guard_watch(const struct session *session, pid_t group)
{
  int64_t end_ms = redlock_now_ms() + redlock_lock_validity_ms(session->lock);
  return (struct watch){.group = group, .term_ms = end_ms, .kill_ms = end_ms + kill_after_ms};
}

/* It may be stopped. */
void guard_end(const struct guard *guard)
{
  kill(guard->pid, SIGKILL);
  while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
    continue;
  close(guard->ends[0]);
  close(guard->ends[1]);
}

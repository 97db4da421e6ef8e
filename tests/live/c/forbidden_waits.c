/* A filter of system calls, as containers and services have them, that forbids the waits that count in nanoseconds
 * ("short ERRNO"): a lock whose servers have only a moment to answer is taken all the same, and no processor is burnt
 * until then. Where no way of waiting is allowed ("all ERRNO") the call ends by its deadline and burns none either. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"

#define ANSWER(number, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)

#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static void forbid(int all, unsigned error)
{
  unsigned refuse = SECCOMP_RET_ERRNO | error, others = all ? refuse : SECCOMP_RET_ALLOW;
  struct sock_filter waits[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ANSWER(SYS_ppoll, refuse),
      ANSWER(SYS_epoll_pwait2, refuse),
      ANSWER(SYS_epoll_pwait, others),
      ANSWER(SYS_epoll_wait, others),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof waits / sizeof *waits, waits};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static double seconds(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int count, char **words)
{
  redlock_client *client = check_client();
  redlock_lock *lock;
  double wall = seconds(CLOCK_MONOTONIC), cpu;
  int all;
  CHECK(count == 3);
  all = strcmp(words[1], "all") == 0;
  forbid(all, (unsigned)atoi(words[2]));
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  lock = redlock_lock_new(client, "forbidden", 9);
  CHECK(lock);
  if (all) {
    CHECK(redlock_lock_acquire(lock, 2000) != REDLOCK_OK);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    CHECK(wall > 1.9);
    CHECK(cpu < wall / 4);
  } else {
    CHECK_OK(lock, redlock_lock_acquire(lock, 0)); /* now the connections are there */
    CHECK_OK(lock, redlock_lock_release(lock));
    CHECK(redlock_lock_set(lock, "node_timeout_ms", "2") == REDLOCK_OK);
    CHECK_OK(lock, redlock_lock_acquire(lock, 20000));
    CHECK_OK(lock, redlock_lock_release(lock));
    CHECK(seconds(CLOCK_PROCESS_CPUTIME_ID) < 2);
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  puts("ok");
  return 0;
}

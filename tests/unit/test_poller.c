/* What a poller tells, when, and to whom: the same of epoll and of kqueue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"
#include "node/poller.h"

#define LONG_NS INT64_C(60000000000)

struct fixture {
  struct rlk_poller poller;
  int ours, theirs; /* the ends of a connection */
};

static int64_t now_ns(void)
{
  return rlk_platform_real.now_ns(NULL);
}

static int set_up(void **state)
{
  static struct fixture f;
  int ends[2];
  rlk_fork_watch();
  assert_int_equal(rlk_poller_open(&f.poller), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  f.ours = ends[0];
  f.theirs = ends[1];
  *state = &f;
  return 0;
}

static int tear_down(void **state)
{
  struct fixture *f = *state;
  close(f->ours);
  close(f->theirs);
  rlk_poller_close(&f->poller);
  return 0;
}

static int readable(int fd, int timeout_ms)
{
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  return poll(&wanted, 1, timeout_ms);
}

/* The report within a minute, of one node in one generation; 0: a wake-up. */
static int next_event(struct rlk_poller *p, int node, uint32_t generation)
{
  struct rlk_poll_event events[RLK_POLL_EVENTS];
  int count = rlk_poller_wait(p, events, LONG_NS), what = 0;
  for (int i = 0; i < count; i++) {
    assert_int_equal(events[i].node, node);
    assert_int_equal(events[i].generation, generation);
    what |= events[i].what;
  }
  return what;
}

static int nothing_is_told(struct rlk_poller *p)
{
  struct rlk_poll_event events[RLK_POLL_EVENTS];
  return rlk_poller_wait(p, events, 0) == 0;
}

static void test_input_is_reported_until_it_is_read(void **state)
{
  struct fixture *f = *state;
  char byte;
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 63, RLK_GENERATION_MASK, 0, 0), 0);
  assert_true(nothing_is_told(&f->poller));
  assert_int_equal(write(f->theirs, "x", 1), 1);
  assert_int_equal(next_event(&f->poller, 63, RLK_GENERATION_MASK), RLK_READABLE);
  assert_int_equal(next_event(&f->poller, 63, RLK_GENERATION_MASK), RLK_READABLE);
  assert_int_equal(read(f->ours, &byte, 1), 1);
  assert_true(nothing_is_told(&f->poller));
}

static void test_room_to_write_is_reported_while_it_is_wanted(void **state)
{
  struct fixture *f = *state;
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 0, 1, 1, 0), 0);
  assert_int_equal(next_event(&f->poller, 0, 1), RLK_WRITABLE);
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 0, 1, 0, 1), 0);
  assert_true(nothing_is_told(&f->poller));
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 0, 1, 0, 1), 0);
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 0, 1, 1, 1), 0);
  assert_int_equal(write(f->theirs, "x", 1), 1);
  assert_int_equal(next_event(&f->poller, 0, 1), RLK_READABLE | RLK_WRITABLE);
}

static void test_the_end_of_a_connection_is_input(void **state)
{
  struct fixture *f = *state;
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 2, 7, 0, 0), 0);
  shutdown(f->theirs, SHUT_WR);
  assert_int_equal(next_event(&f->poller, 2, 7), RLK_READABLE);
}

static void test_a_forgotten_descriptor_is_not_reported(void **state)
{
  struct fixture *f = *state;
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 2, 7, 1, 0), 0);
  assert_int_equal(write(f->theirs, "x", 1), 1);
  rlk_poller_forget(&f->poller, f->ours);
  assert_true(nothing_is_told(&f->poller));
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 2, 8, 0, 0), 0);
  assert_int_equal(next_event(&f->poller, 2, 8), RLK_READABLE);
  assert_int_equal(rlk_poller_watch(&f->poller, -1, 2, 8, 0, 0), -EBADF);
}

static void test_a_wait_lasts_as_long_as_it_should(void **state)
{
  struct fixture *f = *state;
  static const int64_t waits_ns[] = {1, 1500000, 20000000};
  struct rlk_poll_event events[RLK_POLL_EVENTS];
  for (size_t i = 0; i < sizeof waits_ns / sizeof *waits_ns; i++) {
    int64_t begun_ns = now_ns();
    assert_int_equal(rlk_poller_wait(&f->poller, events, waits_ns[i]), 0);
    assert_true(now_ns() - begun_ns >= waits_ns[i]);
  }
}

static void *wake(void *poller)
{
  rlk_poller_wake(poller);
  return NULL;
}

static void test_a_wake_up_ends_one_wait(void **state)
{
  struct fixture *f = *state;
  int64_t begun_ns = now_ns();
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, wake, &f->poller), 0);
  assert_int_equal(next_event(&f->poller, 0, 0), 0);
  assert_true(now_ns() - begun_ns < LONG_NS);
  pthread_join(thread, NULL);
  for (int i = 0; i < 10000; i++) /* more than a pipe has room for; rings are not counted */
    rlk_poller_wake(&f->poller);
  assert_int_equal(readable(f->poller.inner, 0), 1);
  assert_true(nothing_is_told(&f->poller));
  assert_int_equal(readable(f->poller.inner, 0), 0);
}

static void test_the_public_descriptor_is_readable_while_work_is_due(void **state)
{
  struct fixture *f = *state;
  char byte;
  int fd = rlk_poller_public(&f->poller);
  assert_true(fd >= 0);
  assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  assert_int_equal(rlk_poller_public(&f->poller), fd);
  assert_int_equal(rlk_poller_watch(&f->poller, f->ours, 1, 1, 0, 0), 0);
  assert_int_equal(readable(fd, 0), 0);

  assert_int_equal(write(f->theirs, "x", 1), 1);
  assert_int_equal(readable(fd, 60000), 1);
  assert_int_equal(next_event(&f->poller, 1, 1), RLK_READABLE);
  assert_int_equal(readable(fd, 0), 1); /* another thread was notified; no thread has read it */
  assert_int_equal(read(f->ours, &byte, 1), 1);
  assert_int_equal(readable(fd, 0), 0);

  rlk_poller_notify(&f->poller);
  assert_int_equal(readable(fd, 60000), 1);
  assert_true(nothing_is_told(&f->poller)); /* drivers do not take it away */
  assert_int_equal(readable(fd, 0), 1);
  rlk_poller_clear(&f->poller);
  assert_int_equal(readable(fd, 0), 0);
}

static void test_the_public_descriptor_is_readable_at_a_deadline(void **state)
{
  struct fixture *f = *state;
  int fd;
  int64_t at_ns = now_ns() + LONG_NS;
  rlk_poller_arm(&f->poller, at_ns, now_ns()); /* the descriptor was not requested yet */
  assert_int_equal(rlk_poller_armed_ns(&f->poller), RLK_NEVER);
  fd = rlk_poller_public(&f->poller);
  rlk_poller_arm(&f->poller, RLK_NEVER, now_ns());
  assert_int_equal(rlk_poller_armed_ns(&f->poller), RLK_NEVER);
  rlk_poller_arm(&f->poller, at_ns, now_ns());
  assert_int_equal(rlk_poller_armed_ns(&f->poller), at_ns);
  assert_int_equal(readable(fd, 0), 0);

  at_ns = now_ns() + 20000000;
  rlk_poller_arm(&f->poller, at_ns, now_ns()); /* an earlier one takes its place */
  assert_int_equal(readable(fd, 30000), 1);
  assert_true(now_ns() >= at_ns);
  assert_true(nothing_is_told(&f->poller));
  assert_int_equal(readable(fd, 0), 0);
  assert_int_equal(rlk_poller_armed_ns(&f->poller), RLK_NEVER);
  rlk_poller_arm(&f->poller, 1, now_ns()); /* it has passed */
  assert_int_equal(readable(fd, 60000), 1);
}

static void test_far_deadlines_are_no_error(void **state)
{
  struct fixture *f = *state;
  int64_t at_ns = now_ns() + INT64_C(10) * 365 * 86400 * 1000000000;
  int fd = rlk_poller_public(&f->poller);
  rlk_poller_arm(&f->poller, at_ns, now_ns());
  assert_int_equal(rlk_poller_armed_ns(&f->poller), at_ns);
  assert_int_equal(readable(fd, 0), 0);
}

/* In the child of the test below; the number of the check that failed. */
static int child(struct fixture *f, int fd, int answer)
{
  rlk_poller_forked(&f->poller);
  if (rlk_poller_reopen(&f->poller) != 0 || rlk_poller_public(&f->poller) != fd)
    return 1;
  if (readable(fd, 0) != 0 || rlk_poller_armed_ns(&f->poller) != RLK_NEVER)
    return 2; /* it has what was the parent's */
  rlk_poller_notify(&f->poller);
  rlk_poller_wake(&f->poller);
  if (readable(fd, 60000) != 1 || !nothing_is_told(&f->poller))
    return 3;
  rlk_poller_clear(&f->poller);
  if (readable(fd, 0) != 0)
    return 4;
  if (rlk_poller_watch(&f->poller, f->ours, 9, 3, 0, 0) != 0 || readable(fd, 60000) != 1)
    return 5;
  rlk_poller_arm(&f->poller, now_ns() + LONG_NS, now_ns());
  rlk_poller_notify(&f->poller);
  return write(answer, "done", 5) == 5 ? 0 : 6;
}

static void test_a_child_has_a_poller_of_its_own(void **state)
{
  struct fixture *f = *state;
  char answer[8];
  int ends[2], status, fd = rlk_poller_public(&f->poller);
  pid_t pid;
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(f->theirs, "x", 1), 1);
  rlk_poller_arm(&f->poller, now_ns() + LONG_NS, now_ns());
  pid = fork();
  if (pid == 0)
    _exit(child(f, fd, ends[1]));
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(read(ends[0], answer, sizeof answer), 5);
  assert_int_equal(readable(fd, 0), 0); /* nothing of it has reached the parent */
  rlk_poller_notify(&f->poller);
  assert_int_equal(readable(fd, 60000), 1);
  close(ends[0]);
  close(ends[1]);
}

static void test_closing_the_poller_in_a_child_closes_no_other_fd(void **state)
{
  struct fixture *f = *state;
  int status, fd = rlk_poller_public(&f->poller);
  pid_t pid = fork();
  if (pid == 0) {
    int files[32], left = 0;
    for (int i = 0; i < 32; i++)
      files[i] = open("/dev/null", O_RDONLY);
    rlk_poller_close(&f->poller);
    for (int i = 0; i < 32; i++)
      left += fcntl(files[i], F_GETFD) >= 0;
    _exit(left == 32 ? 0 : 1);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(WEXITSTATUS(status), 0);
  rlk_poller_notify(&f->poller);
  assert_int_equal(readable(fd, 60000), 1);
}

/* Its number may be given to a file between the fork and the poller's turn. */
static int child_with_files(struct fixture *f)
{
  int files[32], fd;
  struct stat null, file;
  for (int i = 0; i < 32; i++)
    files[i] = open("/dev/null", O_RDONLY);
  if (files[31] < 0 || rlk_poller_reopen(&f->poller) != 0 || stat("/dev/null", &null) != 0)
    return 1;
  fd = rlk_poller_public(&f->poller);
  rlk_poller_notify(&f->poller);
  if (fd < 0 || readable(fd, 60000) != 1 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
    return 2;
  for (int i = 0; i < 32; i++)
    if (files[i] == fd || fstat(files[i], &file) != 0 || file.st_rdev != null.st_rdev)
      return 3;
  return 0;
}

static void test_a_child_leaves_other_descriptors_alone(void **state)
{
  struct fixture *f = *state;
  int status;
  pid_t pid;
  assert_true(rlk_poller_public(&f->poller) >= 0);
  pid = fork();
  if (pid == 0)
    _exit(child_with_files(f));
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(WEXITSTATUS(status), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
  const struct CMUnitTest poller[] = {
      CASE(test_input_is_reported_until_it_is_read),
      CASE(test_room_to_write_is_reported_while_it_is_wanted),
      CASE(test_the_end_of_a_connection_is_input),
      CASE(test_a_forgotten_descriptor_is_not_reported),
      CASE(test_a_wait_lasts_as_long_as_it_should),
      CASE(test_a_wake_up_ends_one_wait),
      CASE(test_the_public_descriptor_is_readable_while_work_is_due),
      CASE(test_the_public_descriptor_is_readable_at_a_deadline),
      CASE(test_far_deadlines_are_no_error),
      CASE(test_a_child_has_a_poller_of_its_own),
      CASE(test_a_child_leaves_other_descriptors_alone),
      CASE(test_closing_the_poller_in_a_child_closes_no_other_fd),
  };
  return cmocka_run_group_tests(poller, NULL, NULL);
}

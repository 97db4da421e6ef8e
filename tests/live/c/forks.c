/* A child that inherits a client: forked, cloned without the C library's knowledge, one that starts threads, and one
 * that was forked as another thread worked in a client that is not open yet. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static redlock_client *client;
static redlock_lock *held;

static redlock_lock *take(const char *resource)
{
  redlock_lock *lock = redlock_lock_new(client, resource, strlen(resource));
  CHECK(lock);
  CHECK_OK(lock, redlock_lock_acquire(lock, 30000));
  return lock;
}

static void inherited_hold_is_the_parents(void)
{
  CHECK(redlock_lock_state(held) == REDLOCK_STATE_FORKED);
  CHECK(redlock_lock_validity_ms(held) == 0);
  CHECK_STATUS(held, redlock_lock_extend(held, 0), REDLOCK_FORKED);
  CHECK_STATUS(held, redlock_lock_release(held), REDLOCK_FORKED);
}

static void *lock_in_a_thread(void *resource)
{
  redlock_lock *lock = take(resource);
  CHECK_OK(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  return NULL;
}

static void child(int with_threads)
{
  redlock_lock *own;
  alarm(60);
  inherited_hold_is_the_parents();
  own = take("own");
  CHECK_OK(own, redlock_lock_extend(own, 0));
  if (with_threads) {
    pthread_t one, two;
    CHECK(pthread_create(&one, NULL, lock_in_a_thread, "one") == 0);
    CHECK(pthread_create(&two, NULL, lock_in_a_thread, "two") == 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
  }
  CHECK_OK(own, redlock_lock_release(own));
  redlock_lock_free(own);
  redlock_lock_free(held);
  redlock_client_free(client);
}

static void reap(pid_t pid)
{
  int status;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fork_child(int with_threads)
{
  pid_t pid = fork();
  if (pid == 0) {
    child(with_threads);
    exit(0); /* with the checks of sanitizers at exit */
  }
  reap(pid);
}

/* fork behind the back of pthread_atfork */
static void clone_child(void)
{
  pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) {
    redlock_lock *own;
    alarm(60);
    inherited_hold_is_the_parents();
    own = take("own");
    CHECK_OK(own, redlock_lock_release(own));
    redlock_lock_free(own);
    _exit(0);
  }
  reap(pid);
}

static void fork_in_mid_operation(void)
{
  redlock_lock *lock = redlock_lock_new(client, "mid", 3);
  CHECK_OK(lock, redlock_lock_start(lock, REDLOCK_ACQUIRE, 30000));
  CHECK(redlock_client_process(client) == REDLOCK_OK);
  fork_child(0);
  CHECK_OK(lock, redlock_lock_wait(lock, -1));
  CHECK_OK(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
}

static redlock_client *fresh;
static atomic_int set_often, stop_setting;

static void *set_again_and_again(void *nodes)
{
  while (!atomic_load(&stop_setting)) {
    check_set(fresh, "nodes", nodes);
    atomic_fetch_add(&set_often, 1);
  }
  return NULL;
}

static void fork_as_a_client_is_set(void)
{
  char nodes[64 * 32] = "redis://127.0.0.1:1000";
  pthread_t setter;
  for (size_t i = 1, end = strlen(nodes); i < 64; i++)
    end += (size_t)snprintf(nodes + end, sizeof nodes - end, ",redis://127.0.0.1:%zu", 1000 + i);
  fresh = redlock_client_new();
  CHECK(fresh);
  CHECK(pthread_create(&setter, NULL, set_again_and_again, nodes) == 0);
  for (int i = 0; i < 50; i++) {
    pid_t pid;
    int before = atomic_load(&set_often);
    while (atomic_load(&set_often) == before)
      poll(NULL, 0, 1);
    pid = fork();
    if (pid == 0) {
      alarm(20);
      check_set(fresh, "ttl_ms", "10000");
      _exit(0);
    }
    reap(pid);
  }
  atomic_store(&stop_setting, 1);
  pthread_join(setter, NULL);
  redlock_client_free(fresh);
}

static void parents_lock_is_intact(void)
{
  CHECK(redlock_lock_state(held) == REDLOCK_STATE_HELD);
  CHECK_OK(held, redlock_lock_extend(held, 0));
}

int main(int argc, char **argv)
{
  int threads = argc < 2 || strcmp(argv[1], "--no-threads") != 0;
  client = check_client();
  check_set(client, "renew", threads ? "true" : "false"); /* the keeper is a thread */
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  held = take("held");
  CHECK(redlock_client_fd(client) >= 0);
  for (int i = 0; i < 3; i++) {
    fork_child(threads);
    parents_lock_is_intact();
  }
  clone_child();
  parents_lock_is_intact();
  fork_in_mid_operation();
  parents_lock_is_intact();
  fork_as_a_client_is_set();
  CHECK_OK(held, redlock_lock_release(held));
  redlock_lock_free(held);
  redlock_client_free(client);
  puts("ok");
  return 0;
}

/* A thread that waits for a lock is kept from running while another thread wins it for that one. By the time it runs
 * the lease has lapsed ("lapsed") or is shorter than min_validity_ms ("short"): its call must not return that lock. Nor
 * may it where the client has been drained meanwhile, while the lease still ran ("drained") or after it ("left"), or is
 * about to give the lock back ("leaving"): then it must neither return OK nor begin anew, and a lock that another
 * thread releases just then was lost. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static redlock_lock *first, *driving, *late;
static atomic_int keeps, kept, go, taken, returned;
static _Thread_local int leaves_now, is_taker;

static void pause_ms(int ms)
{
  struct timespec time = {0, ms * 1000000L};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* The thread that waits is kept where it holds no mutex of the library. */
static int is_kept(void)
{
  if (!is_taker || !atomic_load(&keeps) || atomic_load(&go))
    return 0;
  atomic_store(&kept, 1);
  while (!atomic_load(&go))
    pause_ms(1);
  return 1;
}

/* In place of the C library's, for the shared library too. drain sleeps until there is no driver, before it gives
 * the locks back: the thread that was kept comes then. A thread that waits sleeps in one of the other two. */
#pragma GCC visibility push(default)

int nanosleep(const struct timespec *time, struct timespec *left)
{
  if (leaves_now) {
    if (!atomic_load(&go))
      CHECK_STATUS(first, redlock_lock_release(first), REDLOCK_LOST);
    atomic_store(&go, 1);
    while (!atomic_load(&returned))
      pause_ms(1);
  }
  return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) == 0 ? 0 : -1;
}

long syscall(long number, ...)
{
  static long (*real)(long, ...);
  long words[6];
  va_list list;
  if (number == SYS_futex && is_kept())
    return 0;
  va_start(list, number);
  for (int i = 0; i < 6; i++)
    words[i] = va_arg(list, long);
  va_end(list);
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict limit)
{
  (void)condition;
  (void)limit;
  pthread_mutex_unlock(mutex);
  if (!is_kept())
    pause_ms(1);
  pthread_mutex_lock(mutex);
  return 0;
}

#pragma GCC visibility pop

static void interrupt(int number)
{
  (void)number; /* a thread that sleeps returns once */
}

static void *drive(void *argument)
{
  CHECK_STATUS(driving, redlock_lock_acquire(driving, -1), REDLOCK_CANCELLED);
  return argument;
}

static void *take(void *argument)
{
  is_taker = 1;
  atomic_store(&taken, redlock_lock_acquire(late, -1));
  atomic_store(&returned, 1);
  return argument;
}

static redlock_lock *lock_on(redlock_client *client, const char *resource)
{
  redlock_lock *lock = redlock_lock_new(client, resource, strlen(resource));
  CHECK(lock);
  return lock;
}

static int is_refused(redlock_lock *lock)
{
  for (int node = 0; node < 5; node++)
    if (redlock_lock_vote(lock, node) == REDLOCK_BUSY)
      return 1;
  return 0;
}

/* A thread whose attempt was refused waits for the next one, driving or for the driver. */
static pthread_t start_refused(void *(*call)(void *), redlock_lock *lock)
{
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, call, NULL) == 0);
  while (!is_refused(lock))
    pause_ms(1);
  return thread;
}

static int is_too_late(int lapsed, int64_t min_validity_ms)
{
  return lapsed ? redlock_lock_state(late) == REDLOCK_STATE_LOST : redlock_lock_validity_ms(late) < min_validity_ms;
}

static void must_be_won_anew(const char *token)
{
  char fresh[64];
  CHECK(atomic_load(&taken) == REDLOCK_OK);
  CHECK(redlock_lock_state(late) == REDLOCK_STATE_HELD && redlock_lock_validity_ms(late) >= 1);
  redlock_lock_token(late, fresh, sizeof fresh);
  CHECK(strcmp(fresh, token) != 0); /* an attempt of its own won it, not the one that came too late */
  CHECK_OK(late, redlock_lock_release(late));
}

static void must_be_given_up(void)
{
  int status = atomic_load(&taken);
  CHECK(status == REDLOCK_CANCELLED || status == REDLOCK_LOST);
  CHECK(redlock_lock_state(late) != REDLOCK_STATE_HELD && redlock_lock_validity_ms(late) == 0);
}

static void set_lease(redlock_lock *lock, int ttl_ms, int64_t min_validity_ms)
{
  char ttl[24], minimum[24];
  snprintf(ttl, sizeof ttl, "%d", ttl_ms);
  snprintf(minimum, sizeof minimum, "%d", (int)min_validity_ms);
  CHECK_OK(lock, redlock_lock_set(lock, "node_timeout_ms", "1000"));
  CHECK_OK(lock, redlock_lock_set(lock, "ttl_ms", ttl));
  CHECK_OK(lock, redlock_lock_set(lock, "min_validity_ms", minimum));
}

static int is(const char *how, const char *either, const char *other)
{
  return strcmp(how, either) == 0 || strcmp(how, other) == 0;
}

int main(int argc, char **argv)
{
  const char *how = argc > 1 ? argv[1] : "short";
  int lapsed = is(how, "lapsed", "left"), drained = is(how, "drained", "leaving");
  int leaves = drained || is(how, "left", "left");
  int64_t min_validity_ms = lapsed || drained ? 1 : 28000;
  redlock_client *client = check_client();
  redlock_lock *locks[4], *second;
  pthread_t driver, taker;
  char token[64];
  alarm(120); /* a call that does not return is a failure */
  check_set(client, "retry_delay_ms", "50");
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  for (int i = 0; i < 4; i++)
    locks[i] = lock_on(client, i % 2 ? "second" : "first");
  first = locks[0], second = locks[1], driving = locks[2], late = locks[3];
  set_lease(late, lapsed ? 4000 : 30000, min_validity_ms);
  CHECK_OK(first, redlock_lock_acquire(first, 10000));
  CHECK_OK(second, redlock_lock_acquire(second, 10000));
  driver = start_refused(drive, driving);
  taker = start_refused(take, late);

  CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = interrupt}, NULL) == 0); /* no SA_RESTART */
  atomic_store(&keeps, 1);
  for (; !atomic_load(&kept); pause_ms(1))
    pthread_kill(taker, SIGUSR1);
  CHECK_OK(second, redlock_lock_release(second));
  while (redlock_lock_state(late) != REDLOCK_STATE_HELD)
    pause_ms(1);
  redlock_lock_token(late, token, sizeof token);
  while (!drained && !is_too_late(lapsed, min_validity_ms))
    pause_ms(1);
  leaves_now = is(how, "leaving", "leaving");
  if (leaves)
    CHECK(redlock_client_drain(client, 10000) == REDLOCK_OK);
  if (leaves_now)
    CHECK(atomic_load(&returned));
  atomic_store(&go, 1);
  pthread_join(taker, NULL);
  if (leaves)
    must_be_given_up();
  else
    must_be_won_anew(token);
  redlock_lock_cancel(driving);
  pthread_join(driver, NULL);
  redlock_client_free(client);
  for (int i = 0; i < 4; i++)
    redlock_lock_free(locks[i]);
  puts("ok");
  return 0;
}

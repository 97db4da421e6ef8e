/* 100 threads on one client: own resources, one resource for all, one handle for all, an event loop beside them. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"

enum { THREADS = 100, CYCLES = 5 };

static redlock_client *client;
static redlock_lock *shared;
static atomic_int inside, entered, running;

static void own_resource(int number)
{
  char name[32];
  redlock_lock *lock;
  snprintf(name, sizeof name, "own-%d", number);
  lock = redlock_lock_new(client, name, strlen(name));
  CHECK(lock);
  if (number % 3 == 0)
    CHECK_OK(lock, redlock_lock_set(lock, "renew", "true"));
  for (int i = 0; i < CYCLES; i++) {
    CHECK_OK(lock, redlock_lock_acquire(lock, 60000));
    CHECK(redlock_lock_state(lock) == REDLOCK_STATE_HELD && redlock_lock_validity_ms(lock) > 0);
    CHECK_OK(lock, redlock_lock_extend(lock, 0));
    CHECK_OK(lock, redlock_lock_release(lock));
  }
  CHECK_OK(lock, redlock_lock_start(lock, REDLOCK_ACQUIRE, 60000));
  CHECK_OK(lock, redlock_lock_wait(lock, -1));
  redlock_lock_free(lock); /* releases */
}

static void one_resource(void)
{
  redlock_lock *lock = redlock_lock_new(client, "all", 3);
  CHECK(lock);
  CHECK_OK(lock, redlock_lock_acquire(lock, -1));
  CHECK(atomic_fetch_add(&inside, 1) == 0);
  atomic_fetch_add(&entered, 1);
  CHECK(atomic_fetch_sub(&inside, 1) == 1);
  CHECK_OK(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
}

/* Misuse: any status but a crash. */
static void one_handle(int number)
{
  char text[256];
  for (int i = 0; i < CYCLES; i++) {
    int status = number % 2 ? redlock_lock_acquire(shared, 50) : redlock_lock_release(shared);
    CHECK(status != REDLOCK_INTERNAL && status != REDLOCK_NO_MEMORY);
    redlock_lock_token(shared, text, sizeof text);
    redlock_lock_message(shared, text, sizeof text);
    redlock_lock_status(shared);
    redlock_lock_state(shared);
    redlock_lock_validity_ms(shared);
    if (number % 10 == 0)
      redlock_lock_cancel(shared);
  }
}

static void *work(void *argument)
{
  int number = (int)(size_t)argument;
  own_resource(number);
  one_handle(number);
  one_resource();
  atomic_fetch_sub(&running, 1);
  return NULL;
}

static void *event_loop(void *argument)
{
  struct pollfd readable = {.fd = redlock_client_fd(client), .events = POLLIN};
  char text[8192];
  uint64_t tag;
  while (atomic_load(&running) > 0) {
    poll(&readable, 1, 10);
    CHECK(redlock_client_process(client) == REDLOCK_OK);
    while (redlock_client_next(client, &tag) == 1)
      ;
    redlock_client_event(client, text, sizeof text);
    redlock_client_describe(client, text, sizeof text);
  }
  return argument;
}

int main(void)
{
  pthread_t threads[THREADS], loop;
  client = check_client();
  check_set(client, "retry_delay_ms", "20");
  CHECK(redlock_client_open(client) == REDLOCK_OK);
  shared = redlock_lock_new(client, "shared", 6);
  atomic_store(&running, THREADS);
  CHECK(pthread_create(&loop, NULL, event_loop, NULL) == 0);
  for (size_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  pthread_join(loop, NULL);
  CHECK(atomic_load(&entered) == THREADS);
  redlock_client_free(client);
  redlock_lock_free(shared);
  puts("ok");
  return 0;
}

/* Fails the n-th allocation for every n over a scenario: each ends in a status, without crash, hang or leak. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static atomic_long countdown = -1; /* allocations until the one that fails; -1: none does */
static atomic_long live;           /* blocks allocated less blocks freed */
static atomic_int failed;

static int fails(void)
{
  if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0)
    return 0;
  atomic_store(&failed, 1);
  errno = ENOMEM;
  return 1;
}

static void *counted(void *block)
{
  if (block)
    atomic_fetch_add(&live, 1);
  return block;
}

/* In place of the C library's, for the shared libraries too: they must be visible. */
#pragma GCC visibility push(default)

void *malloc(size_t size)
{
  return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
  return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
  void *block;
  if (fails())
    return NULL;
  block = __libc_realloc(old, size);
  if (block && !old)
    atomic_fetch_add(&live, 1);
  return block;
}

void free(void *block)
{
  if (block)
    atomic_fetch_sub(&live, 1);
  __libc_free(block);
}

#pragma GCC visibility pop

/* What the n-th round came to. */
static int allowed(int status)
{
  return status == REDLOCK_OK || redlock_status_is(status, REDLOCK_IS_ERROR) || status == REDLOCK_PENDING;
}

#define TRY(call) CHECK(allowed(call))

static void use(redlock_client *client, redlock_lock *lock)
{
  char text[4096];
  struct pollfd readable = {.fd = redlock_client_fd(client), .events = POLLIN};
  uint64_t tag;
  TRY(redlock_lock_set(lock, "retry_count", "3"));
  TRY(redlock_lock_acquire(lock, 200));
  TRY(redlock_lock_extend(lock, 0));
  redlock_lock_message(lock, text, sizeof text);
  redlock_client_describe(client, text, sizeof text);
  TRY(redlock_lock_release(lock));
  if (redlock_lock_start(lock, REDLOCK_ACQUIRE, 200) == REDLOCK_OK) {
    poll(&readable, readable.fd < 0 ? 0 : 1, 5);
    redlock_client_process(client);
    TRY(redlock_lock_wait(lock, 1000));
    redlock_lock_cancel(lock);
  }
  if (redlock_lock_start(lock, REDLOCK_INSPECT, 0) == REDLOCK_OK)
    TRY(redlock_lock_wait(lock, 1000));
  redlock_client_next(client, &tag);
  redlock_client_event(client, text, sizeof text);
  redlock_lock_token(lock, text, sizeof text);
}

/* A handle whose lease has lapsed takes over a token, and works whether it could or not. */
static void lose_and_adopt(redlock_client *client)
{
  redlock_lock *lock = redlock_lock_new(client, "lost", 4);
  if (!lock)
    return;
  TRY(redlock_lock_set(lock, "node_timeout_ms", "25"));
  TRY(redlock_lock_set(lock, "ttl_ms", "100"));
  TRY(redlock_lock_acquire(lock, 200));
  while (redlock_lock_state(lock) == REDLOCK_STATE_HELD)
    poll(NULL, 0, 1);
  TRY(redlock_lock_adopt(lock, "a token of another library"));
  TRY(redlock_lock_release(lock));
  redlock_lock_free(lock);
}

static void scenario(const char *nodes)
{
  redlock_client *client = redlock_client_new();
  redlock_lock *lock, *other;
  if (!client)
    return;
  TRY(redlock_client_set(client, "nodes", nodes));
  TRY(redlock_client_set(client, "key_prefix", "p:"));
  TRY(redlock_client_set(client, "client_name", "failing"));
  TRY(redlock_client_set(client, "node_timeout_ms", "1000"));
  TRY(redlock_client_open(client));
  lock = redlock_lock_new(client, "resource", 8);
  other = redlock_lock_new(client, "resource", 8);
  if (lock && other) {
    use(client, lock);
    TRY(redlock_lock_acquire(other, 0));
    TRY(redlock_lock_adopt(other, "0123456789012345678901234567890123456789"));
    lose_and_adopt(client);
  }
  redlock_lock_free(other);
  redlock_client_drain(client, 1000);
  redlock_client_free(client);
  redlock_lock_free(lock);
}

static long settled_blocks(void)
{
  return atomic_load(&live);
}

int main(void)
{
  char nodes[4096];
  long rounds = 0, before;
  CHECK(getenv("REDLOCK_NODES"));
  snprintf(nodes, sizeof nodes, "%s", getenv("REDLOCK_NODES"));
  scenario(nodes); /* what is allocated once per process */
  before = settled_blocks();
  do {
    atomic_store(&failed, 0);
    atomic_store(&countdown, rounds++);
    alarm(30); /* a hang is a failure */
    scenario(nodes);
    atomic_store(&countdown, -1);
    if (settled_blocks() != before) {
      fprintf(stderr, "allocation %ld failed: %ld blocks leaked\n", rounds - 1, settled_blocks() - before);
      return 1;
    }
  } while (atomic_load(&failed));
  CHECK(rounds > 20); /* otherwise nothing was counted */
  printf("ok, %ld allocations\n", rounds - 1);
  return 0;
}

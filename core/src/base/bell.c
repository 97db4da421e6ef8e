#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bell.h"

#include <limits.h>
#include <stddef.h>
#include <time.h>

#include "platform.h"

uint32_t rl_bell_rings(struct rl_bell *bell)
{
  return atomic_load_explicit(&bell->rings, memory_order_relaxed);
}

void rl_bell_announce(struct rl_bell *bell)
{
  atomic_fetch_add_explicit(&bell->rings, 1, memory_order_relaxed);
}

#ifdef __linux__

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct timespec after(int64_t timeout_ns)
{
  struct timespec at;
  int64_t ns;
  clock_gettime(CLOCK_MONOTONIC, &at);
  ns = at.tv_nsec + timeout_ns % 1000000000;
  at.tv_sec += timeout_ns / 1000000000 + ns / 1000000000;
  at.tv_nsec = ns % 1000000000;
  return at;
}

int rl_bell_init(struct rl_bell *bell)
{
  atomic_init(&bell->rings, 0);
  return 0;
}

void rl_bell_free(struct rl_bell *bell)
{
  (void)bell;
}

void rl_bell_wait(struct rl_bell *bell, uint32_t rings, uint32_t bit, int64_t timeout_ns)
{
  struct timespec at = after(timeout_ns == RL_NEVER ? 0 : timeout_ns > 0 ? timeout_ns : 0);
  syscall(SYS_futex, &bell->rings, FUTEX_WAIT_BITSET_PRIVATE, rings, timeout_ns == RL_NEVER ? NULL : &at, NULL, bit);
}

void rl_bell_ring(struct rl_bell *bell, uint32_t bits)
{
  syscall(SYS_futex, &bell->rings, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
}

#else

int rl_bell_init(struct rl_bell *bell)
{
  atomic_init(&bell->rings, 0);
  if (pthread_mutex_init(&bell->mutex, NULL) != 0)
    return -1;
  if (pthread_cond_init(&bell->condition, NULL) == 0)
    return 0;
  pthread_mutex_destroy(&bell->mutex);
  return -1;
}

void rl_bell_free(struct rl_bell *bell)
{
  pthread_cond_destroy(&bell->condition);
  pthread_mutex_destroy(&bell->mutex);
}

void rl_bell_wait(struct rl_bell *bell, uint32_t rings, uint32_t bit, int64_t timeout_ns)
{
  struct timespec at;
  (void)bit;
  clock_gettime(CLOCK_REALTIME, &at);
  if (timeout_ns == RL_NEVER || timeout_ns > INT64_C(3600000000000))
    timeout_ns = INT64_C(3600000000000);
  timeout_ns += at.tv_nsec;
  at.tv_sec += timeout_ns / 1000000000;
  at.tv_nsec = timeout_ns % 1000000000;
  pthread_mutex_lock(&bell->mutex);
  if (rl_bell_rings(bell) == rings)
    pthread_cond_timedwait(&bell->condition, &bell->mutex, &at);
  pthread_mutex_unlock(&bell->mutex);
}

void rl_bell_ring(struct rl_bell *bell, uint32_t bits)
{
  (void)bits;
  pthread_mutex_lock(&bell->mutex);
  pthread_cond_broadcast(&bell->condition);
  pthread_mutex_unlock(&bell->mutex);
}

#endif

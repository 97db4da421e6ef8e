#include "platform.h"
#include "system.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef RLK_LINUX
#include <sys/syscall.h>
#endif

/* CLOCK_BOOTTIME counts suspend; CLOCK_MONOTONIC would still call a lock valid after it (rule A.1). */
static int64_t real_now_ns(void *context)
{
  struct timespec t;
  (void)context;
#ifdef CLOCK_BOOTTIME
  if (clock_gettime(CLOCK_BOOTTIME, &t) == 0)
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef RLK_LINUX
/* Only where getrandom fails: mixes clocks, pid and an address, which differ between processes. */
static uint64_t poor_random(void)
{
  struct timespec t;
  uint64_t x;
  clock_gettime(CLOCK_REALTIME, &t);
  x = (uint64_t)t.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)t.tv_sec ^ ((uint64_t)getpid() << 32) ^
      (uint64_t)(uintptr_t)&t;
  x ^= x >> 31;
  return x * UINT64_C(0xbf58476d1ce4e5b9);
}

static uint64_t real_random(void *context)
{
  uint64_t bits;
  (void)context;
  if (syscall(SYS_getrandom, &bits, sizeof bits, 0) != (long)sizeof bits) /* glibc before 2.25 has no getrandom() */
    bits = poor_random();
  return bits;
}
#else
static uint64_t real_random(void *context)
{
  uint64_t bits;
  (void)context;
  arc4random_buf(&bits, sizeof bits);
  return bits;
}
#endif

static int64_t real_wall_ns(void *context)
{
  struct timespec t;
  (void)context;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t real_process(void *context, char *host, size_t size)
{
  (void)context;
  if (gethostname(host, size - 1) != 0)
    host[0] = 0;
  host[size - 1] = 0;
  return getpid();
}

const struct rlk_platform rlk_platform_real = {real_now_ns, real_random, real_wall_ns, real_process};

const char *rlk_variable(const char *name)
{
#ifdef __linux__ /* also where kqueue is tried on Linux */
  return secure_getenv(name);
#else
  return issetugid() ? NULL : getenv(name);
#endif
}

int rlk_thread_start(void *(*run)(void *argument), void *argument)
{
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  int error;
  if (pthread_attr_init(&attributes) != 0)
    return -1;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(&thread, &attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error ? -1 : 0;
}

void rlk_thread_name(const char *name)
{
#ifdef __linux__
  pthread_setname_np(pthread_self(), name);
#elif defined(__APPLE__)
  pthread_setname_np(name);
#else
  (void)name;
#endif
}

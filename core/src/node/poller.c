/* The common part of all pollers. */
#include "poller.h"

#include <errno.h>
#include <time.h>

#define FAILED_PAUSE_NS 10000000

void rlk_poller_wake(struct rlk_poller *p)
{
  rlk_bell_ring(p->wake.ringer);
}

void rlk_poller_notify(struct rlk_poller *p)
{
  rlk_bell_ring(__atomic_load_n(&p->notify.ringer, __ATOMIC_ACQUIRE));
}

void rlk_poller_clear(struct rlk_poller *p)
{
  if (p->notify.readable >= 0)
    rlk_bell_silence(&p->notify);
}

int rlk_poller_open_notify(struct rlk_poller *p)
{
  struct rlk_bell notify;
  int status = rlk_bell_open(&notify);
  p->notify.readable = notify.readable;
  __atomic_store_n(&p->notify.ringer, notify.ringer, __ATOMIC_RELEASE); /* a cancel looks without the mutex */
  return status;
}

int64_t rlk_poller_armed_ns(const struct rlk_poller *p)
{
  return atomic_load_explicit(&p->armed_ns, memory_order_relaxed);
}

int rlk_poller_failed(int64_t timeout_ns)
{
  struct timespec moment = {0, timeout_ns < FAILED_PAUSE_NS ? (long)timeout_ns : FAILED_PAUSE_NS};
  int error = errno;
  if (error != EINTR && timeout_ns > 0)
    nanosleep(&moment, NULL);
  return -error;
}

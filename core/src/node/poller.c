/* The common part of all pollers. */
#include "poller.h"

#include <errno.h>
#include <time.h>

#include "../base/fd.h"
#include "../base/fork.h"

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

/* ---- opening and closing ---- */

static int open_inner(struct rlk_poller *p)
{
  int status;
  p->armed_ns = RLK_NEVER;
  p->inner = rlk_poller_set();
  if (p->inner < 0)
    return p->inner;
  status = rlk_bell_open(&p->wake);
  return status == 0 ? rlk_poller_add(p->inner, p->wake.readable) : status;
}

int rlk_poller_open(struct rlk_poller *p)
{
  int status;
  *p = RLK_NO_POLLER;
  p->fork_generation = rlk_fork_generation();
  status = open_inner(p);
  if (status != 0)
    rlk_poller_close(p);
  return status;
}

static void close_all_but_outer(struct rlk_poller *p)
{
  rlk_poller_shut(p, &p->inner);
  rlk_poller_shut(p, &p->timer);
  rlk_bell_close(&p->notify);
  rlk_bell_close(&p->wake);
}

void rlk_poller_close(struct rlk_poller *p)
{
  rlk_poller_shut(p, &p->outer);
  close_all_but_outer(p);
}

static int open_notify(struct rlk_poller *p)
{
  struct rlk_bell notify;
  int status = rlk_bell_open(&notify);
  p->notify.readable = notify.readable;
  __atomic_store_n(&p->notify.ringer, notify.ringer, __ATOMIC_RELEASE); /* a cancel looks without the mutex */
  return status;
}

/* Everything of the public descriptor but its number; or -errno. */
static int open_outer(struct rlk_poller *p)
{
  int outer = rlk_poller_set(), status = outer < 0 ? outer : open_notify(p);
  if (status == 0)
    status = rlk_poller_add(outer, p->notify.readable);
  if (status == 0)
    status = rlk_poller_add(outer, p->inner);
  if (status == 0)
    status = rlk_poller_open_timer(p);
  if (status == 0)
    return outer;
  rlk_poller_shut(p, &outer);
  rlk_poller_shut(p, &p->timer);
  rlk_bell_close(&p->notify);
  return status;
}

int rlk_poller_public(struct rlk_poller *p)
{
  int outer = p->outer >= 0 ? p->outer : open_outer(p);
  if (outer >= 0)
    p->outer = outer;
  return outer;
}

int rlk_poller_reopen(struct rlk_poller *p)
{
  int has_public = p->outer >= 0, outer, status;
  rlk_poller_forked(p);
  close_all_but_outer(p);
  status = open_inner(p);
  if (status != 0 || !has_public)
    return status;
  outer = open_outer(p);
  return outer < 0 ? outer : p->outer < 0 ? -EMFILE : rlk_fd_renumber(outer, p->outer);
}

/* ---- waiting ---- */

/* Where waiting itself fails, after a pause: the caller's loop must not take a whole core. */
int rlk_poller_wait(struct rlk_poller *p, struct rlk_poll_event *events, int64_t timeout_ns)
{
  struct timespec moment = {0, timeout_ns < FAILED_PAUSE_NS ? (long)timeout_ns : FAILED_PAUSE_NS};
  int count = rlk_poller_look(p, events, timeout_ns);
  if (count < 0 && count != -EINTR && timeout_ns > 0)
    nanosleep(&moment, NULL);
  return count;
}

/* One descriptor over all links, deadlines and wake-ups, made of epoll or kqueue.
 *
 * The public descriptor is an outer set over {inner set, notify}. Drivers and the keeper wait on the inner one, which
 * has the links, the timer and wake. A flat set would lose wake-ups: it stops being readable once another thread has
 * read the socket. */
#ifndef RLK_POLLER_H
#define RLK_POLLER_H

#include <stdatomic.h>
#include <stdint.h>

#include "../base/bell.h"
#include "../base/platform.h"
#include "../rules/quorum.h"

struct rlk_poller {
  int inner; /* always open, as wake is */
  int outer; /* the public descriptor; -1 until it is asked for, as timer and notify are not open until then */
  int timer; /* of epoll; a kqueue has timers in it */
  struct rlk_bell wake, notify;
  _Atomic int64_t armed_ns; /* the time for which the timer is set; RLK_NEVER: it is not */
  uint32_t fork_generation; /* of the process that a kqueue belongs to */
};

#define RLK_NO_POLLER                                                                                                  \
  ((struct rlk_poller){                                                                                                \
      .inner = -1, .outer = -1, .timer = -1, .wake = {-1, -1}, .notify = {-1, -1}, .armed_ns = RLK_NEVER})

/* The events on a link; several may be given at once. */
enum { RLK_READABLE = 1, RLK_WRITABLE = 2 };

struct rlk_poll_event {
  int node;
  uint32_t generation;
  int what; /* RLK_READABLE, RLK_WRITABLE */
};

enum { RLK_POLL_EVENTS = 64 };

/* Functions that return int give 0 or -errno. */
int rlk_poller_open(struct rlk_poller *poller);
void rlk_poller_close(struct rlk_poller *poller);
/* In a forked child: a new set, under the public descriptor's number. The old ones are shared with the parent, so they
 * are only closed, never changed. */
int rlk_poller_reopen(struct rlk_poller *poller);
/* The public descriptor, made at the first call; or -errno. */
int rlk_poller_public(struct rlk_poller *poller);

/* A generation has as many bits as fit into a pointer of 32 bits together with a node's number. */
#define RLK_NODE_BITS 6
#define RLK_GENERATION_MASK (UINT32_MAX >> RLK_NODE_BITS)
_Static_assert(1 << RLK_NODE_BITS == RLK_NODES_MAX, "a node's number has its bits");

int rlk_poller_watch(struct rlk_poller *poller, int fd, int node, uint32_t generation, int writable, int again);
void rlk_poller_forget(struct rlk_poller *poller, int fd);

/* Waits until timeout_ns has passed (RLK_NEVER: no limit). The number of link events, 0 for a wake-up; or -EINTR. */
int rlk_poller_wait(struct rlk_poller *poller, struct rlk_poll_event *events, int64_t timeout_ns);

void rlk_poller_wake(struct rlk_poller *poller);   /* ends a wait of another thread; async-signal-safe */
void rlk_poller_notify(struct rlk_poller *poller); /* makes the public descriptor readable; async-signal-safe */
void rlk_poller_clear(struct rlk_poller *poller);  /* ... and not any more */
static inline int64_t rlk_poller_armed_ns(const struct rlk_poller *poller)
{
  return atomic_load_explicit(&poller->armed_ns, memory_order_relaxed);
}
/* The public descriptor turns readable at at_ns at the latest. */
void rlk_poller_arm(struct rlk_poller *poller, int64_t at_ns, int64_t now_ns);

/* ---- what it is made of: poller_epoll.c or poller_kqueue.c, as are watch, forget and arm ---- */

int rlk_poller_set(void);            /* a new set of descriptors, or -errno */
int rlk_poller_add(int set, int fd); /* ... which is readable when fd is */
int rlk_poller_open_timer(struct rlk_poller *poller);
void rlk_poller_shut(const struct rlk_poller *poller, int *fd); /* a set, or the timer; -1: nothing happens */
int rlk_poller_look(struct rlk_poller *poller, struct rlk_poll_event *events, int64_t timeout_ns); /* as wait */
/* In a forked child, for all pollers before any descriptor is opened: a child does not inherit a kqueue, so the
 * numbers of public descriptors are free, and are taken again. If one has been taken by then, the poller gets
 * another number. */
void rlk_poller_forked(struct rlk_poller *poller);

#endif

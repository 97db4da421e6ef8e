/* One descriptor over all links, deadlines and wake-ups.
 *
 * The public descriptor is an outer epoll over {inner epoll, notify}. Drivers and the keeper wait on the inner one,
 * which has the links, the timer and wake. A flat epoll would lose wake-ups: it stops being readable once another
 * thread has read the socket. */
#ifndef RLK_POLLER_H
#define RLK_POLLER_H

#include <stdint.h>

struct rlk_poller {
  int inner, wake;          /* always open */
  int outer, notify, timer; /* -1 until the public descriptor is asked for */
  int64_t armed_ns;         /* what the timer is set to; RLK_NEVER: it is not */
};

/* What an event on a link can be; several may be given at once. */
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

int rlk_poller_watch(struct rlk_poller *poller, int fd, int node, uint32_t generation, int writable, int again);
void rlk_poller_forget(struct rlk_poller *poller, int fd);

/* Waits until timeout_ns has passed (RLK_NEVER: no limit). The number of link events, 0 for a wake-up; or -EINTR. */
int rlk_poller_wait(struct rlk_poller *poller, struct rlk_poll_event *events, int64_t timeout_ns);

void rlk_poller_wake(struct rlk_poller *poller);   /* ends somebody's wait; async-signal-safe */
void rlk_poller_notify(struct rlk_poller *poller); /* makes the public descriptor readable; async-signal-safe */
void rlk_poller_clear(struct rlk_poller *poller);  /* ... and not any more */
int64_t rlk_poller_armed_ns(const struct rlk_poller *poller);
/* The public descriptor turns readable at at_ns at the latest. */
void rlk_poller_arm(struct rlk_poller *poller, int64_t at_ns, int64_t now_ns);

#endif

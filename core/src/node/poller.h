/* One descriptor over all links, deadlines and wake-ups.
 *
 * The public descriptor is an outer epoll over {inner epoll, notify}. Drivers and the keeper wait on the inner one,
 * which has the links, the timer and wake. A flat epoll would lose wake-ups: it stops being readable once another
 * thread has read the socket. */
#ifndef RL_POLLER_H
#define RL_POLLER_H

#include <stdint.h>

struct rl_poller {
  int inner, wake;          /* always open */
  int outer, notify, timer; /* -1 until the public descriptor is asked for */
  int64_t armed_ns;         /* what the timer is set to; RL_NEVER: it is not */
};

/* What an event on a link can be; several may be given at once. */
enum { RL_READABLE = 1, RL_WRITABLE = 2 };

struct rl_poll_event {
  int node;
  uint32_t generation;
  int what; /* RL_READABLE, RL_WRITABLE */
};

enum { RL_POLL_EVENTS = 64 };

/* Functions that return int give 0 or -errno. */
int rl_poller_open(struct rl_poller *poller);
void rl_poller_close(struct rl_poller *poller);
/* In a forked child: a new set, under the public descriptor's number. The old ones are shared with the parent, so they
 * are only closed, never changed. */
int rl_poller_reopen(struct rl_poller *poller);
/* The public descriptor, made at the first call; or -errno. */
int rl_poller_public(struct rl_poller *poller);

int rl_poller_watch(struct rl_poller *poller, int fd, int node, uint32_t generation, int writable, int again);
void rl_poller_forget(struct rl_poller *poller, int fd);

/* Waits until timeout_ns has passed (RL_NEVER: no limit). The number of link events, 0 for a wake-up; or -EINTR. */
int rl_poller_wait(struct rl_poller *poller, struct rl_poll_event *events, int64_t timeout_ns);

void rl_poller_wake(struct rl_poller *poller);   /* ends somebody's wait; async-signal-safe */
void rl_poller_notify(struct rl_poller *poller); /* makes the public descriptor readable; async-signal-safe */
void rl_poller_clear(struct rl_poller *poller);  /* ... and not any more */
int64_t rl_poller_armed_ns(const struct rl_poller *poller);
/* The public descriptor turns readable at at_ns at the latest. */
void rl_poller_arm(struct rl_poller *poller, int64_t at_ns, int64_t now_ns);

#endif

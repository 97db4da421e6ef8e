/* A client: its locks and nodes under one mutex, and the thread that drives their I/O. */
#ifndef RLK_CLIENT_H
#define RLK_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../include/redlock.h"
#include "../base/eventcount.h"
#include "../lock/lock.h"
#include "../node/node.h"

/* Where max_ttl_ms may be set: the last counts. */
enum rlk_source { RLK_BY_DEFAULT, RLK_BY_NODES, RLK_BY_OPTION };

struct redlock_client {
  pthread_mutex_t mutex;
  int users;                       /* the owner and every lock */
  redlock_client *next, *previous; /* in the registry of the process */
  int registered;
  int in_service; /* the keeper's thread is working in it */
  uint32_t fork_generation;
  char message[512];
  char wrong_environment[2][384]; /* why REDLOCK_GUARD and REDLOCK_MAX_TTL_MS could not be taken: open refuses that
                                   * unless the program has set the option */
  int64_t max_ttl_ms[3];          /* by enum rlk_source; 0: it is not set there */
  int ttl_is_given;               /* ttl_ms was set: it stands, whatever max_ttl_ms is */
  struct rlk_plan *bootstrap;     /* of the last redlock_client_bootstrap; NULL: none */
  struct rlk_engine engine;
  int64_t polled_ns; /* when pending input was last looked for */
  /* the driver */
  int driven;       /* a thread is the driver, or has been handed the role */
  int sleeping;     /* ... and waits in the poller */
  int driver_woken; /* ... and has been woken already */
  int driver_rings; /* ... or is, as soon as the mutex is released: before, it would only block on that */
  int64_t sleeps_until_ns;
  const redlock_lock *driving; /* ... for this lock's operation; NULL: for the client's end */
  int settling;                /* threads that wait for all answers */
  int drained;                 /* the result of the drain that has closed it */
  struct rlk_eventcount eventcount;
  int notified;       /* the public descriptor has been made readable */
  atomic_int cancels; /* locks with a cancel still to be handled */
  atomic_int rung;    /* a cancel has made the public descriptor readable */
};

static inline redlock_client *rlk_client_of(const redlock_lock *lock)
{
  return RLK_OWNER(redlock_client, engine, lock->engine);
}

static inline int64_t rlk_client_now(const redlock_client *client)
{
  return rlk_now(&client->engine.net);
}

#endif

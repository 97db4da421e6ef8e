/* What a lock knows while it waits, and what the waiters of one client share. Only this floor looks into either. */
#ifndef RLK_WAIT_H
#define RLK_WAIT_H

#include "../lock/lock.h"

enum { RLK_ROOM_BUCKETS = 64, RLK_HEARD_KEPT = 256, RLK_LEFT_KEPT = 64, RLK_QUEUE_NAME_SIZE = 16 };

enum {
  RLK_QUEUE_ANYWHERE = -2, /* the client is connecting: it does not know yet where others wait */
  RLK_QUEUE_EACH = -3      /* each of several resources has a home of its own */
};

enum rlk_turn {
  RLK_TURN_NONE,   /* the queue has no say: it does not wait in order, or it waits for something else */
  RLK_TURN_WAIT,   /* it sleeps, or has asked for its place */
  RLK_TURN_ATTEMPT /* it is to make an attempt now */
};

/* A place in a queue, by the last answer. */
struct rlk_rank {
  int64_t before; /* so many are before it; of several resources: 0 none, 1 none of several */
  int64_t changed_ns;
  int64_t step_ns; /* how long one of them took; 0: not known */
  int is_known;    /* there was an answer */
};

/* What a lock of several resources knows of one of them (several.c). */
struct rlk_part_wait {
  int home; /* the node of the queue in which it has a place; -1: none */
  struct rlk_rank rank;
  int is_free;
  int listens;              /* the name of its place there says so; names differ between resources */
  int64_t asked_ns, ask_ns; /* when it was asked for, and when it is to be asked for again */
};

/* Whether others wait for the resource of a lock that does not wait itself (others.c). */
struct rlk_others {
  int home;         /* the node that is asked behind its SET, RLK_QUEUE_..., or -1 */
  uint64_t asked;   /* nodes whose answer to that is outstanding, as bits */
  int64_t until_ns; /* a lock that is won waits for them no longer than that; 0: it does not wait */
  int are_waiting;  /* a home node said so behind its vote */
};

/* The position of a lock in the order of waiters for its resource. */
struct rlk_wait {
  struct rlk_room *room;         /* NULL: it does not wait there */
  redlock_lock *next, *previous; /* in it */
  redlock_lock *next_placed;     /* in its bucket of the places */
  int is_short;                  /* it ends before a place in the queue is of use */
  int64_t arrived_ns;            /* its place in the queue is by this */
  uint64_t arrival;              /* ... and among those of its client by this number */
  struct rlk_place place;        /* in the queues of nodes: */
  int home, second;              /* ... the one that it believes, and another one, if it waits for long; -1: none */
  int64_t spare_due_ns;          /* when that is asked, or asked again */
  struct rlk_rank rank;          /* at home */
  int64_t told_ns;               /* by when it was told to ask again; RLK_NEVER */
  int is_told;                   /* that it is its turn, while an attempt or a pause was under way */
  int is_released;               /* another node than home told of a release, since its last attempt */
  int in_vain;                   /* attempts that failed although its turn had come */
  int64_t pause_until_ns;        /* ... and until when there is no other one */
  struct rlk_part_wait *parts;   /* of several resources; NULL: it has not waited yet */
  int64_t arrival_us;            /* ... its place in all queues is by this */
  int64_t keeps_until_ns; /* ... it keeps what is free, or lets others pass, until then; 0: it is not first yet */
  int64_t keep_ns;        /* ... for so long, */
  int keeps;              /* ... and which of both it does */
  struct rlk_others others;
};

/* What a release, or a wait that has ended, has learned of its resources: whether others wait. */
struct rlk_heard {
  uint64_t key_hash;
  int64_t at_ns;
  int others_wait;
};

/* A place that was given back. A node that was away then, or refused writes, has it still. */
struct rlk_left {
  struct rlk_key *key;
  struct rlk_place place;
  int slots;
  int64_t again_ns; /* it is not given back again before */
};

/* What the waiters of one client share. */
struct rlk_waits {
  struct rlk_room *rooms[RLK_ROOM_BUCKETS];
  redlock_lock *placed[RLK_ROOM_BUCKETS];   /* queued waiters, by their place */
  char queue_name[RLK_QUEUE_NAME_SIZE + 1]; /* of the client, in queues and as its channel */
  int room_count;
  struct rlk_heard heard[RLK_HEARD_KEPT]; /* each at the place of its hash; a newer one takes that */
  uint64_t arrivals;                      /* acquisitions that were begun */
  uint64_t places;                        /* taken so far */
  struct rlk_left left[RLK_LEFT_KEPT];    /* the last ones that were given back */
  uint64_t lefts;                         /* ... so far */
  uint64_t strays;                        /* wake-ups for unknown waiters */
  struct rlk_number woken_text;           /* for how long whoever is woken is the first, as it is sent */
};

static inline int rlk_has_place(const redlock_lock *lock)
{
  return lock->wait->place.number != 0;
}

#endif

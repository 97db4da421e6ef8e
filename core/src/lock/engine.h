/* The locks of a client and what they share. The marks here are acted on when the client's mutex is released. */
#ifndef RLK_ENGINE_H
#define RLK_ENGINE_H

#include "../../include/redlock.h"
#include "../base/eventcount.h"
#include "../base/macros.h"
#include "../vote/guard.h"
#include "figures.h"

enum { RLK_CLIENT_ENTRY_MAX = 256 };

struct rlk_claim;
struct rlk_waits;

/* A thread that waits for its operation while another one drives; it stands on that thread's stack. */
struct rlk_waiter {
  struct rlk_waiter *next, *previous;
  uint32_t number; /* on the eventcount */
  int waits;       /* it stands in engine->waiters */
  int drives;      /* it has been handed the role of the driver */
};

/* What a node has told of the programs that use it (programs.c). */
struct rlk_programs {
  int64_t again_ns; /* then it is told again which program this is */
  int64_t told_ns;
  char *text; /* its time in s, then fields and their values, as texts behind their size; NULL: it has told nothing */
  size_t size;
};

/* What the locks of a client know of a node. */
struct rlk_peer {
  uint64_t granted, busy, other, late; /* answers to SET */
  int64_t queue_again_ns;              /* until then waiters do not queue there: it denies a command of the queue */
  int queue_works;                     /* a lock was handed over there, and that was not denied since */
  int queue_refused;                   /* the server forbids the queue (already reported) */
  int holder_refused;                  /* the same for the entries of holders */
  struct rlk_programs programs;
};

struct rlk_engine {
  struct rlk_net net;
  int quorum;
  /* what there is */
  redlock_lock *locks, *flights, *last_flight;
  redlock_lock *unwritten;               /* rounds with requests still to be written */
  struct rlk_claim *claims, *last_claim; /* in the order of their making */
  struct rlk_claim *owed, *last_owed;    /* claims with a delete that cannot be sent yet, oldest first */
  int owed_count;
  int64_t forgotten_until_ns;     /* tokens that were forgotten may be on some node until then */
  struct rlk_key *last_key;       /* of the last lock that was made */
  struct rlk_claim *spare_claims; /* for reuse, singly linked by next */
  int spare_count, pending_deletes;
  int64_t expired_ns; /* when expired claims were last looked for */
  uint64_t token_client, token_seed, token_count;
  char client_entry[RLK_CLIENT_ENTRY_MAX]; /* how this client describes itself to others */
  /* renewal */
  struct rlk_timers renewal_timers;
  int renewing;             /* locks that the keeper looks after */
  int renewals_open;        /* locks with a round under way */
  int batches;              /* with answers to come */
  int64_t batch_answers_ns; /* until then the keeper reads late renewal replies: one may be NOSCRIPT */
  struct rlk_waits *waits;  /* what its waiters share: of the floor above */
  /* marks */
  redlock_lock *ended, *last_ended;
  int ended_marked;     /* the list of ended locks has grown: the descriptor must become readable */
  int64_t renew_due_ns; /* a renewal was scheduled: the thread that renews has to know; RLK_NEVER: none was */
  struct rlk_waiter *waiters, *last_waiter;
  struct rlk_eventcount_numbers numbers; /* of the waiters */
  struct rlk_eventcount_set woken;       /* to be rung */
  /* reports */
  uint64_t acquired, lost, attempts, renewals;
  struct rlk_figures figures;
  struct rlk_peer peers[RLK_NODES_MAX];
  struct rlk_voter voters[RLK_NODES_MAX];
};

static inline struct rlk_engine *rlk_engine_of(struct rlk_net *net)
{
  return RLK_OWNER(struct rlk_engine, net, net);
}

static inline struct rlk_peer *rlk_peer_of(const struct rlk_node *node)
{
  return &rlk_engine_of(node->net)->peers[node->index];
}

/* The lock's started operation has ended, or it is at risk or lost: redlock_client_next gives its tag. */
void rlk_mark_ended(struct rlk_engine *engine, redlock_lock *lock);
void rlk_mark_woken(struct rlk_engine *engine, struct rlk_waiter *waiter);
void rlk_unwait(struct rlk_engine *engine, struct rlk_waiter *waiter); /* it waits no longer */
void rlk_mark_renewal(struct rlk_engine *engine, int64_t at_ns);

#endif

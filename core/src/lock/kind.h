/* All in which one kind of lock differs from another. Rounds, leases, renewal, loss, cleaning up and waiting do not. */
#ifndef RLK_KIND_H
#define RLK_KIND_H

#include "../node/out.h"
#include "lock.h"

/* NULL: nothing of its own. */
struct rlk_kind {
  const char *name;
  /* The rows of the requests that take the lock on a node, keep it there for longer, and set its remaining time. The
   * functions write them, for the caller to end: 0, or -1 when memory is out. proposal: of the attempt, or the
   * number of the lock. */
  const struct rlk_ask *take, *keep, *cut;
  const struct rlk_ask *renew; /* of a renewal of its own; NULL: it is renewed in one command with others */
  int (*put_take)(struct rlk_out *out, struct rlk_line *line, const struct rlk_claim *claim,
                  const struct rlk_number *ttl_ms, int64_t proposal);
  int (*put_keep)(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim, int64_t ttl_ms);
  int (*put_cut)(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim, int64_t ttl_ms);
  /* Gives it back there: the row of that request, or NULL when memory is out. */
  const struct rlk_ask *(*put_give)(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim,
                                    int64_t now_ns);
  void (*leave)(struct rlk_node *node, struct rlk_claim *claim,
                int64_t now_ns);                      /* ... and leaves the queue behind it */
  void (*let_in)(redlock_lock *lock, int64_t now_ns); /* a holder that was exclusive goes on as one that shares */
  void (*lost)(redlock_lock *lock); /* a hold has ended before its release: its place in queues goes */
  char form;                        /* its name in its scripts; 0: it has none */
  int shares;                       /* it is held by readers */
  const char *alone;                /* what it is called where it cannot go on as a reader's; NULL: it can */
  int many;                         /* several may hold it at a time: a winner leaves the queue */
  int tells_end;                    /* a take that meets others reports how long they hold */
  /* REDLOCK_OK, or REDLOCK_INVALID with the reason why it cannot be acquired. */
  int (*check)(const redlock_lock *lock, struct rlk_text *why);
  /* Prepares a claim that is no attempt: of a token to adopt, or of what is to be inspected or, of_all, removed. As
   * check, or REDLOCK_NO_MEMORY. */
  int (*pin)(const redlock_lock *lock, struct rlk_claim *claim, int of_all, struct rlk_text *why);
  /* A new attempt: its proposal to all nodes; it may change which node is asked first. -1: memory is out. */
  int64_t (*propose)(redlock_lock *lock, int64_t now_ns);
  int (*judge)(const redlock_lock *lock); /* the verdict of an attempt that has failed; else the last round's stands */
  int (*is_taken)(const redlock_lock *lock); /* a single attempt has seen that others hold it; else by their token */
  struct rlk_tally (*count)(redlock_lock *lock, int64_t now_ns); /* the votes of an attempt */
  /* A majority has granted, until then: 1 if the lock is won with that, 0 if nodes were asked for more. */
  int (*settle)(redlock_lock *lock, int granted, int64_t until_ns, int64_t now_ns);
  void (*joined)(redlock_lock *lock, int node, int64_t now_ns); /* a node has granted after the lock was won */
};

/* Of how many slots it may take any; 0: there are none of its kind. */
static inline int rlk_lock_slots(const redlock_lock *lock)
{
  return lock->kind->many && !lock->kind->shares ? (int)RLK_INT(&lock->options, PERMITS) : 0;
}

#endif

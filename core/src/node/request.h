/* Asking a node: commands are queued together with the note of what is owed for them. */
#ifndef RL_REQUEST_H
#define RL_REQUEST_H

#include <stdint.h>

#include "../../include/redlock.h"
#include "../rules/options.h"

struct rl_batch;
struct rl_claim;
struct rl_line;
struct rl_node;

enum {
  RL_OWED_MAX = 32768,     /* answers that a node may owe; beyond it nothing is asked there, and deletes wait */
  RL_OWED_LATE_MAX = 1024  /* the same for a node whose oldest answer is overdue */
};

enum rl_owed_kind {
  RL_OWED_SETUP,
  RL_OWED_SET,
  RL_OWED_HINT,   /* PTTL for the waiting */
  RL_OWED_DELETE,
  RL_OWED_CONFIRM, /* the extension script, for a SET that may have met its own token */
  RL_OWED_EXTEND, /* the user's */
  RL_OWED_EXPIRE,
  RL_OWED_RENEW,  /* a batch of the keeper */
  RL_OWED_VALUE,  /* inspect */
  RL_OWED_TTL,
  RL_OWED_REMOVE,
  RL_OWED_LOOK,   /* INFO of a node that is ready: may it still vote? */
  RL_OWED_NOTHING /* an answer that does not matter */
};

/* One reply that the server owes, in the order of the commands. */
struct rl_owed {
  enum rl_owed_kind kind;
  uint32_t round;         /* of the lock's operation; answers of an earlier one do not count. SETUP: the step */
  uint32_t size;          /* of the command */
  uint64_t position;      /* of the command in the stream */
  int64_t sent_ns;        /* before it was queued */
  int64_t lease_ns;       /* what a confirmation is worth, from sent_ns */
  struct rl_claim *claim; /* counted in claim->owed; NULL for SETUP, RENEW, NOTHING */
  struct rl_batch *batch; /* RENEW */
};

/* An rl_answer: RL_ASKED if it can be asked now, RL_WAITING if its connection is being made, else why not. */
int rl_node_can_ask(struct rl_node *node, int64_t node_timeout_ns, int64_t now_ns);
int64_t rl_node_patience_ns(const struct rl_node *node, const struct rl_terms *terms);
int rl_node_is_late(const struct rl_node *node, int64_t node_timeout_ns, int64_t now_ns);
/* Each queues one command and what it is owed: 0, or -1 when memory is out. */
int rl_node_send_set(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_node_send_hint(struct rl_node *node, struct rl_claim *claim, uint32_t round, int64_t now_ns);
int rl_node_send_delete(struct rl_node *node, struct rl_claim *claim, int whole, uint32_t round, int64_t now_ns);
int rl_node_send_extend(struct rl_node *node, redlock_lock *lock, int whole, int64_t now_ns);
/* Sets what is left of the lease to lock->asked. From here on the node counts no longer than that, for the request may
 * be executed at any time; as long as its answer is not read, nothing that is confirmed counts for longer. */
int rl_node_send_expire(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
int rl_node_send_remove(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
/* The same for a SET of the lock's attempt that met a key which may be its own. */
int rl_node_send_confirm(struct rl_node *node, redlock_lock *lock, int whole, int64_t now_ns);
int rl_node_send_renewal(struct rl_node *node, struct rl_batch *batch, int whole, int64_t now_ns);
int rl_node_send_inspect(struct rl_node *node, redlock_lock *lock, int64_t now_ns);
/* Notes what the command that was appended to line->out since its size was `before` is owed; details may be NULL. */
int rl_line_owe(struct rl_line *line, enum rl_owed_kind kind, size_t before, const struct rl_owed *details);
/* The token may be under its key there. */
void rl_node_may_hold(struct rl_node *node, struct rl_claim *claim, int64_t until_ns);
/* Takes back the SET of a finished attempt if not one byte of it was written (rule A.3.2). */
void rl_node_unsend(struct rl_node *node, struct rl_claim *claim);
void rl_node_pay_debts(struct rl_node *node, int64_t now_ns);

#endif

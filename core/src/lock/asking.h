/* Requests to a node about a claim. Each function queues one command: 0, or -1 when memory is out. */
#ifndef RLK_ASKING_H
#define RLK_ASKING_H

#include "../vote/guard.h"
#include "../node/out.h"
#include "lock.h"
#include "renewal.h"

/* The rows are in dispatch.c, with the functions that get the replies. */
extern const struct rlk_ask rlk_row_clock, rlk_row_marker, rlk_row_delete, rlk_row_confirm, rlk_row_extend,
    rlk_row_expire, rlk_row_renew, rlk_row_renewed, rlk_row_value, rlk_row_ttl, rlk_row_remove;

/* A command is complete that was asked for a claim. */
static inline void rlk_ask_end(struct rlk_out *out, struct rlk_request request)
{
  rlk_out_end(out, request);
  request.claim->in_flight++;
}

/* A request about that claim for the lock's operation, and about no lease. */
static inline struct rlk_request rlk_request_of(const redlock_lock *lock, struct rlk_claim *claim,
                                                const struct rlk_ask *ask, int64_t now_ns)
{
  return (struct rlk_request){.ask = ask, .claim = claim, .round = lock->round.number, .sent_ns = now_ns};
}

static inline void rlk_put_token(struct rlk_out *out, const struct rlk_claim *claim)
{
  if (claim->foreign) {
    rlk_out_bulk(out, claim->foreign, claim->token_size);
    return;
  }
  RLK_OUT_TEXT(out, "$40\r\n");
  rlk_out_bytes(out, claim->token, RLK_TOKEN_SIZE);
  RLK_OUT_TEXT(out, "\r\n");
}

/* One script for several locks. */
int rlk_put_extensions(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *const *claims, int count,
                       int64_t ttl_ms);
/* slots: of them all, or 0. */
int rlk_put_del(struct rlk_out *out, struct rlk_line *line, const struct rlk_key *key, int slots);

int rlk_ask_set(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* A SET with the token of a lock that is held, where the node has lost it or never had it (rule B.7). */
int rlk_ask_heal(struct rlk_node *node, redlock_lock *lock, const struct rlk_terms *terms, int64_t now_ns);
/* When the key ends. */
int rlk_ask_ttl(struct rlk_node *node, const struct rlk_key *key, struct rlk_request request);
int rlk_ask_delete(struct rlk_node *node, struct rlk_claim *claim, uint32_t round, int64_t now_ns);
int rlk_ask_extend(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* The same for a SET of the lock's attempt that met a key which may be its own. */
int rlk_ask_confirm(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* Sets the remaining lease to lock->asked. From here on the node counts no longer than that, for the request may be
 * executed at any time; until its reply is read, no confirmation counts for longer. */
int rlk_ask_expire(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
int rlk_ask_renewal(struct rlk_node *node, struct rlk_batch *batch, int64_t now_ns);
int rlk_ask_inspect(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
int rlk_ask_remove(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* Takes back the SET of a finished attempt if not one byte of it was written (rule A.3.2). */
void rlk_ask_not(struct rlk_node *node, struct rlk_claim *claim);

#endif

/* Keys, and claims on them: one token on N nodes. */
#ifndef RL_CLAIM_H
#define RL_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "../../include/redlock.h"
#include "../node/command.h"

enum { RL_DEBTS_MAX = 16384 /* given-up tokens that are remembered for nodes that could not be told */ };

struct rl_engine;
struct rl_node;

/* A resource as a key, shared by its lock and the claims on it. */
struct rl_key {
  int users;
  size_t bulk_size;     /* of the RESP bulk string in bulk */
  size_t resource_size; /* the resource stands at its end, before CRLF */
  char *bulk;
};

enum {
  RL_MAY_HOLD = 1,   /* the token may be under the key on this node */
  RL_SAID_BUSY = 2,  /* it answered a definite nil: it cannot hold the token */
  RL_SET_OWED = 4,   /* its answer to the SET has not been read yet */
  RL_DELETE_OWED = 8, /* a delete is on its way on the node's connection */
  RL_SHORTENING_LOST = 0x8000, /* in shortenings */
  RL_SET_LOST = 16,   /* a SET may have been executed unnoticed: a nil to another is no proof of absence */
  RL_DELETE_LOST = 32 /* the same of a delete: that another one finds nothing proves nothing */
};

struct rl_claim_node {
  int64_t e_ns; /* the lease there is counted on until then; 0: it is not (rule 0) */
  uint8_t flags;
  uint8_t cut;  /* enum redlock_loss: why it is not counted on any more, before its time */
  uint16_t shortenings; /* whose answers are not read yet; RL_SHORTENING_LOST added: one may still be executed */
  int64_t cap_ns;       /* then it counts no longer than this, whatever is confirmed */
};

/* One token on N nodes: an attempt, then the lease, then what has to be deleted. It outlives its lock handle until no
 * node can hold the token and no reply names it. */
struct rl_claim {
  redlock_lock *lock; /* NULL when the handle has let go */
  struct rl_key *key;
  struct rl_claim *next, *previous; /* in engine->claims */
  int in_flight;                    /* requests that name it */
  int holders;                      /* nodes with RL_MAY_HOLD */
  int over;                         /* given up: to be deleted wherever it may be */
  int64_t until_ns;                 /* no node holds it after that */
  size_t token_size;
  char *foreign;                    /* an adopted token of another size, else NULL */
  char token[RL_TOKEN_SIZE];
  struct rl_claim_node node[];
};

/* The token may be under its key there, until then at the latest. */
static inline void rl_claim_may_be_at(struct rl_claim *claim, int node, int64_t until_ns)
{
  struct rl_claim_node *at = &claim->node[node];
  if (!(at->flags & RL_MAY_HOLD))
    claim->holders++;
  at->flags |= RL_MAY_HOLD;
  if (until_ns > claim->until_ns)
    claim->until_ns = until_ns;
}

void rl_claim_free(struct rl_engine *engine, struct rl_claim *claim);
/* Frees the claim if nothing can come of it any more. */
static inline void rl_claim_settle(struct rl_engine *engine, struct rl_claim *claim)
{
  if (!claim->lock && !claim->in_flight && !claim->holders)
    rl_claim_free(engine, claim);
}

struct rl_key *rl_key_new(const char *prefix, const void *resource, size_t size);
void rl_key_drop(struct rl_key *key);
const char *rl_key_resource(const struct rl_key *key);
struct rl_claim *rl_claim_new(redlock_lock *lock);
int rl_claim_take_token(struct rl_claim *claim, const char *token, size_t size); /* 0, or -1 when memory is out */
const char *rl_claim_token(const struct rl_claim *claim);
/* The token is known not to be on the node. */
void rl_claim_cleared(struct rl_engine *engine, struct rl_claim *claim, int node);
/* Gives the token up: deletes go to every node where it may be, now or when the node can be told again. */
void rl_claim_give_up(struct rl_engine *engine, struct rl_claim *claim, int whole, uint32_t round, int64_t now_ns);
/* Sends what was given up and may still be on the node to be deleted there. */
void rl_claims_pay(struct rl_engine *engine, struct rl_node *node, int64_t now_ns);
void rl_claims_expire(struct rl_engine *engine, int64_t now_ns);
/* Notes until when leases on each node are counted on. */
void rl_claims_note_leases(struct rl_engine *engine);
void rl_claims_free(struct rl_engine *engine);
void rl_claims_forked(struct rl_engine *engine);
void rl_claims_seed(struct rl_engine *engine); /* tokens unlike those of any other process */
void rl_claim_forget(struct rl_engine *engine, struct rl_claim *claim); /* no node is thought to hold it */
void rl_claim_let_go(struct rl_engine *engine, struct rl_claim **claim);

#endif

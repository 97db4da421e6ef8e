/* Keys, and claims on them: one token on N nodes. */
#ifndef RLK_CLAIM_H
#define RLK_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "../../include/redlock.h"

enum {
  RLK_TOKEN_SIZE = 40,          /* of the library's own tokens */
  RLK_TOKEN_SIZE_MAX = 128,     /* of one that was adopted */
  RLK_OWED_MAX = 131072,        /* given-up tokens that are remembered for nodes that could not be reached */
  RLK_TOKEN_CLIENT_DIGITS = 12, /* a token begins with the number of the client that made it, ... */
  RLK_TOKEN_TIME_DIGITS = 10,   /* ... and when, in units of 2^24 ns */
  RLK_TOKEN_TIME_SHIFT = 24,
  RLK_TOKEN_MARK_SIZE = 3 /* that of a permit ends with its mark */
};

struct rlk_engine;
struct rlk_kind;
struct rlk_net;
struct rlk_node;
struct rlk_out;

/* The names of a resource's queue, as bulk strings one behind the other: the key itself, the queue from queue on,
 * the promises from promises on, and from channels on the prefix of the channels of clients. */
struct rlk_queue_keys {
  char *text; /* NULL: not made yet */
  size_t queue, promises, channels, size;
};

enum { RLK_RESOURCES_MAX = 100 };

/* The resources of a lock as keys, shared by it and the claims on them. The first one names it. */
struct rlk_key {
  int users;
  int home;              /* the node that all contenders have in common, once it is known; -1 */
  int second;            /* ... and the next one; -1: there is none */
  uint64_t home_servers; /* net->servers at that time */
  int queue_home;        /* of one of several: where others may wait, at the last look; -1: nowhere */
  struct rlk_queue_keys queue;
  int count;              /* of resources */
  char *bulk;             /* their RESP bulk strings, one behind the other */
  size_t bulk_size;       /* of that of the first one */
  size_t resource_size;   /* the resource stands at its end, before CRLF */
  size_t all_size;        /* of those of all */
  uint64_t hash;          /* of those, or of the one resource; 0: not known yet */
  struct rlk_key *part[]; /* of several: each by itself */
};

enum {
  RLK_MAY_HOLD = 1,             /* the token may be under the key on this node */
  RLK_ANSWERED_BUSY = 2,        /* it answered a definite nil: it cannot hold the token */
  RLK_SET_IN_FLIGHT = 4,        /* its answer to the SET has not been read yet */
  RLK_DELETE_IN_FLIGHT = 8,     /* a delete is on its way on the node's connection */
  RLK_UNCHECKED = 64,           /* it granted, but has not shown its marker yet */
  RLK_SHORTENING_LOST = 0x8000, /* in shortenings */
  RLK_SET_LOST = 16,            /* a SET may have been executed unnoticed: a nil to another is no proof of absence */
  RLK_DELETE_LOST = 32          /* the same of a delete: that another one finds nothing proves nothing */
};

struct rlk_claim_node {
  int64_t counts_until_ns; /* the lease there is counted on until then; see rlk_claim_counts (rule 0) */
  uint8_t flags;
  uint8_t cut;           /* enum redlock_loss: why it is not counted on any more, before its time */
  uint16_t shortenings;  /* replies not read yet; RLK_SHORTENING_LOST added: one may still be executed */
  int64_t cap_ns;        /* then it counts no longer than this, whatever is confirmed */
  uint64_t set_position; /* of the last SET in the stream of the connection */
  int64_t number;        /* the number that the take returned there, for kinds that ask for one */
};

/* Of a resource with so many permits, each of which has a slot with a key of its own. */
struct rlk_slots {
  int count;     /* 0: it is of another kind */
  int chosen;    /* whose key is that of the claim, from 1; 0: a node has still to choose one */
  int is_picked; /* a node has chosen it, and has seen who holds the others */
  int rivals;    /* a node has reported that others use this number of permits; 0: none has */
};

/* A waiter's place in the queues of its resources (place.c). */
struct rlk_place {
  uint64_t number;  /* 0: it has none */
  uint64_t at;      /* on which nodes it may stand, as bits, */
  uint64_t listens; /* ... on which of them it is woken, */
  uint64_t first;   /* ... and on which it was first when they last said so */
  int slot;         /* the only one that it can have; -1: any */
  uint8_t shares, is_of_several;
};

/* One token on N nodes: an attempt, then the lease, then pending deletes. It outlives its lock handle until no node
 * can hold the token and no reply names it. */
struct rlk_claim {
  redlock_lock *lock; /* NULL when the handle has let go */
  const struct rlk_kind *kind;
  struct rlk_key *key;
  struct rlk_claim *next, *previous; /* in engine->claims */
  struct {
    struct rlk_claim *next, *previous;
  } owed;
  int is_owed;      /* it is in engine->owed */
  int in_flight;    /* requests that name it */
  int holders;      /* nodes with RLK_MAY_HOLD */
  int given_up;     /* given up: delete it wherever it may be */
  int is_detached;  /* handed over: nothing is ever sent for it */
  int is_adopted;   /* others may have set it where it was not counted */
  int hands_over;   /* its deletes wake who waits; the node whose answer says whether anybody does. -1: they do not */
  uint64_t queues;  /* ... and the nodes that may have the queue, as bits */
  int queues_empty; /* so many homes have said so behind its deletes; -1: others wait */
  struct rlk_place place; /* ... and take this place out */
  int64_t number;         /* the number of the lock, once a majority has granted; 0: none */
  int64_t settle_by_ns;   /* by then its kind must have what it needs beside a majority, or the attempt has failed */
  struct rlk_slots slots;
  int64_t until_ns; /* no node holds it after that, if none executes a SET much later than it was sent */
  size_t token_size;
  char *foreign; /* an adopted token of another size, else NULL */
  char token[RLK_TOKEN_SIZE];
  struct rlk_claim_node node[];
};

/* The lease there is counted on now. */
static inline int rlk_claim_counts(const struct rlk_claim *claim, int node, int64_t now_ns)
{
  return claim->node[node].counts_until_ns > now_ns;
}

/* The token may be under its key there, until then at the latest. */
static inline void rlk_claim_may_be_at(struct rlk_claim *claim, int node, int64_t until_ns)
{
  struct rlk_claim_node *at = &claim->node[node];
  if (!(at->flags & RLK_MAY_HOLD))
    claim->holders++;
  at->flags |= RLK_MAY_HOLD;
  if (until_ns > claim->until_ns)
    claim->until_ns = until_ns;
}

/* A delete must still be queued there. */
static inline int rlk_claim_is_owed_at(const struct rlk_claim *claim, int node)
{
  return (claim->node[node].flags & (RLK_MAY_HOLD | RLK_DELETE_IN_FLIGHT)) == RLK_MAY_HOLD;
}

void rlk_claim_free(struct rlk_engine *engine, struct rlk_claim *claim);
/* Call it after a change of the token's or its deletes' state: engine->owed has the claims with a delete still to be
 * queued somewhere, those given up first at the front. */
void rlk_claim_count_debt(struct rlk_engine *engine, struct rlk_claim *claim);
static inline void rlk_claim_note_debt(struct rlk_engine *engine, struct rlk_claim *claim)
{
  if (claim->given_up || !claim->lock || claim->is_owed)
    rlk_claim_count_debt(engine, claim);
}
/* The same, and frees the claim if no reply and no delete of it is outstanding. */
static inline void rlk_claim_settle(struct rlk_engine *engine, struct rlk_claim *claim)
{
  rlk_claim_note_debt(engine, claim);
  if (!claim->lock && !claim->in_flight && !claim->holders)
    rlk_claim_free(engine, claim);
}

enum { RLK_PREFIX_SIZE_MAX = 256 };
/* The keys of the slots of a resource behind the first, which is its own. */
void rlk_put_slots(struct rlk_out *out, const struct rlk_key *key, int count);
size_t rlk_slots_room(const struct rlk_net *net, const struct rlk_key *key, int count);
/* The token of a permit ends with "p" and two digits of how many there are, less one: others see it on the nodes. */
void rlk_claim_mark(struct rlk_claim *claim);
/* How many permits there are by a token of one; 0: it is that of another lock; -1: it is none of this library. */
int rlk_token_permits(const char *bytes, size_t size);
/* The claim is on that slot, from 0: 0, or -1 when memory is out. */
int rlk_claim_choose(struct rlk_claim *claim, const char *prefix, int slot);
/* NULL when memory is out. */
struct rlk_key *rlk_key_new(const char *prefix, const void *resource, size_t size);
/* Of the resources of both. NULL when memory is out. */
struct rlk_key *rlk_key_join(struct rlk_key *key, struct rlk_key *last);
/* That of a lock: the one of the last lock if that had the same resource. NULL when memory is out. */
struct rlk_key *rlk_key_for(struct rlk_engine *engine, const char *prefix, const void *resource, size_t size);
int rlk_key_has(struct rlk_key *key, const void *resource, size_t size);
int rlk_key_is_same(const struct rlk_key *one, const struct rlk_key *other);
/* One of its resources, which has its queue and its home. */
static inline struct rlk_key *rlk_key_part(struct rlk_key *key, int index)
{
  return key->count > 1 ? key->part[index] : key;
}
void rlk_key_drop(struct rlk_key *key);
const char *rlk_key_resource(const struct rlk_key *key);
struct rlk_claim *rlk_claim_new(redlock_lock *lock);
int rlk_claim_take_token(struct rlk_claim *claim, const char *token, size_t size); /* 0, or -1 when memory is out */
/* The token can be identified among the members of a set: it consists of hexadecimal digits. */
int rlk_claim_can_share(const struct rlk_claim *claim);
const char *rlk_claim_token(const struct rlk_claim *claim);
/* The token is known to be absent from the node. */
void rlk_claim_cleared(struct rlk_engine *engine, struct rlk_claim *claim, int node);
/* Notes until when leases on each node are counted on. */
void rlk_claims_note_leases(struct rlk_engine *engine);
void rlk_claims_free(struct rlk_engine *engine);
void rlk_claims_forked(struct rlk_engine *engine);
void rlk_claims_seed(struct rlk_engine *engine);                           /* tokens unlike those of other processes */
void rlk_claims_client(const struct rlk_engine *engine, char *out);        /* the first digits of all of them */
void rlk_claim_forget(struct rlk_engine *engine, struct rlk_claim *claim); /* no node is thought to hold it */
void rlk_claim_let_go(struct rlk_engine *engine, struct rlk_claim **claim);

#endif

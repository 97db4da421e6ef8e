/* Requests in flight: what was asked on a connection, in the order in which the replies will come. */
#ifndef RL_REQUEST_H
#define RL_REQUEST_H

#include <stddef.h>
#include <stdint.h>

struct rl_batch;
struct rl_claim;
struct rl_line;

enum {
  RL_REQUESTS_MAX = 32768,     /* in flight at a node; beyond it nothing is asked there, and deletes wait */
  RL_REQUESTS_LATE_MAX = 1024  /* the same for a node whose oldest answer is overdue */
};

enum rl_request_kind {
  RL_REQUEST_SETUP,
  RL_REQUEST_SET,
  RL_REQUEST_HINT,    /* PTTL for the waiting */
  RL_REQUEST_DELETE,
  RL_REQUEST_CONFIRM, /* the extension script, for a SET that may have met its own token */
  RL_REQUEST_EXTEND,  /* the user's */
  RL_REQUEST_EXPIRE,
  RL_REQUEST_RENEW,   /* a batch of the keeper */
  RL_REQUEST_VALUE,   /* inspect */
  RL_REQUEST_TTL,
  RL_REQUEST_REMOVE,
  RL_REQUEST_LOOK,    /* INFO of a node that is ready: may it still vote? */
  RL_REQUEST_NOTHING  /* an answer that does not matter */
};

struct rl_request {
  enum rl_request_kind kind;
  uint32_t round;         /* of the lock's operation; answers of an earlier one do not count. SETUP, LOOK: the step */
  uint32_t size;          /* of the command */
  uint32_t count;         /* RENEW: of locks */
  uint64_t position;      /* of the command in the stream */
  int64_t sent_ns;        /* before it was queued */
  int64_t lease_ns;       /* what a confirmation is worth, from sent_ns */
  struct rl_claim *claim; /* whose request it is: only carried here; NULL for SETUP, RENEW, LOOK, NOTHING */
  struct rl_batch *batch; /* RENEW: the same */
};

/* A ring whose size is a power of two. */
struct rl_requests {
  struct rl_request *ring;
  uint32_t size, first, count;
};

int rl_requests_grow(struct rl_requests *requests, uint32_t more);
/* Takes back the SET of a claim, and what was asked for it behind it, if not one byte of it was written (rule A.3.2):
 * how many requests that were. *is_set: the SET was among them. */
int rl_requests_unsend(struct rl_line *line, const struct rl_claim *claim, int *is_set);

/* Takes the oldest off; there is one. */
static inline void rl_requests_take(struct rl_requests *requests, struct rl_request *request)
{
  *request = requests->ring[requests->first];
  requests->first = (requests->first + 1) & (requests->size - 1);
  requests->count--;
}

/* Room for so many more: 0, or -1 when memory is out. */
static inline int rl_requests_reserve(struct rl_requests *requests, uint32_t more)
{
  return requests->count + more <= requests->size ? 0 : rl_requests_grow(requests, more);
}

static inline struct rl_request *rl_request_at(const struct rl_requests *requests, uint32_t i)
{
  return &requests->ring[(requests->first + i) & (requests->size - 1)];
}

#endif

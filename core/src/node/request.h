/* Requests in flight on a connection, in the order in which the replies will arrive. */
#ifndef RLK_REQUEST_H
#define RLK_REQUEST_H

#include <stdint.h>

#include "ask.h"

struct rlk_batch;
struct rlk_claim;
struct rlk_line;

enum {
  RLK_REQUESTS_MAX = 32768,    /* in flight at a node; beyond it nothing is asked there, and deletes wait */
  RLK_REQUESTS_LATE_MAX = 1024 /* the same for a node whose oldest answer is overdue */
};

struct rlk_request {
  const struct rlk_ask *ask;
  struct rlk_claim *claim; /* the owner of the request: only carried here; NULL: of no claim, or of a batch */
  uint64_t position;       /* of the command in the stream */
  int64_t sent_ns;         /* before it was queued */
  int64_t lease_ns;        /* the lease that a confirmation gives, from sent_ns */
  int64_t ttl_ms;          /* SET, extension, shortening, and the marker behind them: of the key */
  uint32_t round;          /* of the lock's operation; answers of an earlier one do not count */
  uint32_t size;           /* of the command */
  union {
    int step;                   /* of the set-up, or of a look at a node that is ready */
    const struct rlk_ask *vote; /* marker: the row of the request that it stands behind */
    int64_t number;             /* the number to which it is raised */
    int64_t client;             /* the number of the client whose entry is asked for */
    int part;                   /* question about a queue: of that one of several resources */
    struct rlk_batch *batch;    /* renewal: only carried here */
  } of;
};

/* A ring whose size is a power of two. */
struct rlk_requests {
  struct rlk_request *ring;
  uint32_t size, first, count;
};

int rlk_requests_grow(struct rlk_requests *requests, uint32_t more);
/* Takes back the SET of a claim and its proofs, if not one byte of it was written (rule A.3.2): returns the number
 * of requests. *is_set: the SET was among them. */
int rlk_requests_unsend(struct rlk_line *line, const struct rlk_claim *claim, int *is_set);

/* Takes the oldest off; there is one. */
static inline void rlk_requests_take(struct rlk_requests *requests, struct rlk_request *request)
{
  *request = requests->ring[requests->first];
  requests->first = (requests->first + 1) & (requests->size - 1);
  requests->count--;
}

/* Room for so many more: 0, or -1 when memory is out. */
static inline int rlk_requests_reserve(struct rlk_requests *requests, uint32_t more)
{
  return requests->count + more <= requests->size ? 0 : rlk_requests_grow(requests, more);
}

static inline struct rlk_request *rlk_request_at(const struct rlk_requests *requests, uint32_t i)
{
  return &requests->ring[(requests->first + i) & (requests->size - 1)];
}

#endif

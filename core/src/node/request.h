/* Requests in flight: what was asked on a connection, in the order in which the replies will come. */
#ifndef RLK_REQUEST_H
#define RLK_REQUEST_H

#include <stddef.h>
#include <stdint.h>

struct rlk_batch;
struct rlk_claim;
struct rlk_line;

enum {
  RLK_REQUESTS_MAX = 32768,    /* in flight at a node; beyond it nothing is asked there, and deletes wait */
  RLK_REQUESTS_LATE_MAX = 1024 /* the same for a node whose oldest answer is overdue */
};

enum rlk_request_kind {
  RLK_REQUEST_SETUP,
  RLK_REQUEST_SET,
  RLK_REQUEST_CLOCK,  /* TIME, behind a SET or an extension */
  RLK_REQUEST_MARKER, /* GET of the restart guard's marker, behind a SET */
  RLK_REQUEST_RAISE,  /* of a fencing number that is smaller than another node's */
  RLK_REQUEST_HINT,   /* PTTL for the waiting */
  RLK_REQUEST_DELETE,
  RLK_REQUEST_CONFIRM, /* the extension script, for a SET that may have met its own token */
  RLK_REQUEST_EXTEND,  /* the user's */
  RLK_REQUEST_EXPIRE,
  RLK_REQUEST_RENEW, /* a batch of the keeper */
  RLK_REQUEST_VALUE, /* inspect */
  RLK_REQUEST_TTL,
  RLK_REQUEST_REMOVE,
  RLK_REQUEST_QUEUED, /* whether others stand in the queue */
  RLK_REQUEST_JOIN,   /* the place in it */
  RLK_REQUEST_HOLDER, /* the token of whoever holds the lock, to say who that is ... */
  RLK_REQUEST_ENTRY,  /* ... by the entry of that client */
  RLK_REQUEST_SHOW,   /* SET of the entry of this one */
  RLK_REQUEST_LOOK,   /* INFO of a node that is ready: may it still vote? */
  RLK_REQUEST_NOTHING /* an answer that does not matter */
};

struct rlk_request {
  enum rlk_request_kind kind;
  uint32_t round;          /* of the lock's operation; answers of an earlier one do not count. SETUP, LOOK: the step */
  uint32_t size;           /* of the command */
  uint32_t count;          /* RENEW: of locks. SET: 1 with a fencing number. MARKER: what it stands behind.
                            * DELETE: 1 if it also hands over */
  uint64_t position;       /* of the command in the stream */
  int64_t sent_ns;         /* before it was queued */
  int64_t lease_ns;        /* what a confirmation is worth, from sent_ns. ENTRY: the client. RAISE: the number */
  int64_t ttl_ms;          /* SET: of the key */
  struct rlk_claim *claim; /* whose request it is: only carried here; NULL for SETUP, RENEW, SHOW, LOOK, NOTHING */
  struct rlk_batch *batch; /* RENEW: the same */
};

/* A ring whose size is a power of two. */
struct rlk_requests {
  struct rlk_request *ring;
  uint32_t size, first, count;
};

int rlk_requests_grow(struct rlk_requests *requests, uint32_t more);
/* Takes back the SET of a claim, and what was asked for it behind it, if not one byte of it was written (rule A.3.2):
 * how many requests that were. *is_set: the SET was among them. */
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

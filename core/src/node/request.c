#include "request.h"

#include <stdlib.h>

#include "node.h"

const struct rlk_ask rlk_row_nothing = {"a request", .rest = RLK_FITS, .error = RLK_FITS};

int rlk_requests_grow(struct rlk_requests *q, uint32_t more)
{
  uint32_t size = q->size ? q->size : 32;
  struct rlk_request *ring;
  while (size < q->count + more)
    size *= 2;
  ring = malloc(size * sizeof *ring);
  if (!ring)
    return -1;
  for (uint32_t i = 0; i < q->count; i++)
    ring[i] = *rlk_request_at(q, i);
  free(q->ring);
  q->ring = ring;
  q->size = size;
  q->first = 0;
  return 0;
}

/* Takes the entry at place i of the ring out; the entries behind it move up. */
static void take_out(struct rlk_requests *q, uint32_t i, uint64_t size)
{
  for (; i + 1 < q->count; i++) {
    struct rlk_request *to = rlk_request_at(q, i);
    *to = *rlk_request_at(q, i + 1);
    to->position -= size;
  }
  q->count--;
}

static int goes_with_a_set(const struct rlk_ask *ask)
{
  return ask->role != RLK_ASK_PLAIN && ask->role != RLK_ASK_QUICK;
}

int rlk_requests_unsend(struct rlk_line *l, const struct rlk_claim *claim, int *is_set)
{
  struct rlk_requests *q = &l->requests;
  int taken = 0;
  *is_set = 0;
  for (uint32_t i = q->count; i-- > 0;) {
    struct rlk_request r = *rlk_request_at(q, i);
    if (r.position < l->written)
      return taken;
    if (r.claim != claim || !goes_with_a_set(r.ask))
      continue;
    rlk_buffer_cut(&l->out, (size_t)(r.position - l->written), r.size);
    l->queued -= r.size;
    take_out(q, i, r.size);
    taken++;
    *is_set |= r.ask->role == RLK_ASK_TAKE;
  }
  return taken;
}

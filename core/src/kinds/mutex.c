/* The plain lock: SET key token NX PX ttl. */
#include "../lock/dispatch.h"
#include "kinds.h"

const struct rlk_ask rlk_row_set = {"SET",
                                    .role = RLK_ASK_TAKE,
                                    .is_vote = 1,
                                    .ok = RLK_GRANTED,
                                    .nil = RLK_BUSY,
                                    .wrong_type = RLK_BUSY,
                                    .arrived = rlk_take_arrived};

static int put_take(struct rlk_node *n, const struct rlk_claim *claim, const struct rlk_number *ttl, int64_t proposal)
{
  (void)proposal;
  return rlk_command_set(&n->line->out, claim->key->bulk, claim->key->bulk_size, claim->token, ttl);
}

const struct rlk_kind rlk_mutex = {.name = "mutex", .take = &rlk_row_set, .put_take = put_take};

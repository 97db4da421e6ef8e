/* The plain lock: SET key token NX PX ttl. */
#include "../lock/asking.h"
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

int rlk_put_extend(struct rlk_node *n, const struct rlk_claim *claim, int64_t ttl_ms)
{
  struct rlk_line *l = n->line;
  const struct rlk_key *key = claim->key;
  if (rlk_command_extend_begin(&l->out, rlk_line_needs_text(l, RLK_SCRIPT_EXTEND), 1,
                               key->bulk_size + claim->token_size) != 0)
    return -1;
  rlk_command_extend_key(&l->out, key->bulk, key->bulk_size);
  rlk_command_extend_ttl(&l->out, ttl_ms);
  rlk_command_extend_token(&l->out, rlk_claim_token(claim), claim->token_size);
  return 0;
}

int rlk_put_expire(struct rlk_node *n, const struct rlk_claim *claim, int64_t ttl_ms)
{
  return rlk_command_expire(&n->line->out, claim->key->bulk, claim->key->bulk_size, rlk_claim_token(claim),
                            claim->token_size, ttl_ms);
}

int rlk_put_release(struct rlk_node *n, struct rlk_claim *claim, int hands_over)
{
  if (hands_over)
    return rlk_put_hand_over(n, claim);
  return rlk_command_release(&n->line->out, rlk_sends_text(n, RLK_SCRIPT_RELEASE), claim->key->bulk,
                             claim->key->bulk_size, rlk_claim_token(claim), claim->token_size);
}

const struct rlk_kind rlk_mutex = {.name = "mutex", .take = &rlk_row_set, .put_take = put_take, RLK_PLAIN_KEY};

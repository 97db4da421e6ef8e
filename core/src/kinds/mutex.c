/* The plain lock: SET key token NX PX ttl. */
#include <string.h>

#include "../base/mutant.h"
#include "../lock/asking.h"
#include "../lock/dispatch.h"
#include "../wait/place.h"
#include "kinds.h"

const struct rlk_ask rlk_row_set = {"SET",
                                    .role = RLK_ASK_TAKE,
                                    .is_vote = 1,
                                    .ok = RLK_GRANTED,
                                    .nil = RLK_BUSY,
                                    .wrong_type = RLK_BUSY,
                                    .arrived = rlk_take_arrived};

static char *put(char *at, const char *bytes, size_t size)
{
  memcpy(at, bytes, size);
  return at + size;
}

#define PUT(at, text) put(at, text, sizeof(text) - 1)

/* ---- on the hot path: in as few pieces as there are ---- */

/* An own token, without its last CRLF. */
static char *put_token(char *at, const struct rlk_claim *claim)
{
  at = PUT(at, "$40\r\n");
  return put(at, claim->token, RLK_TOKEN_SIZE);
}

static int put_take(struct rlk_out *out, struct rlk_line *l, const struct rlk_claim *claim,
                    const struct rlk_number *ttl, int64_t proposal)
{
  struct rlk_buffer *buffer = &l->out;
  char *at;
  (void)proposal;
  if (rlk_out_begin(out, l, claim->key->bulk_size + 160) != 0)
    return -1;
  at = buffer->data + buffer->end;
  at = PUT(at, "*6\r\n$3\r\nSET\r\n");
  at = put(at, claim->key->bulk, claim->key->bulk_size);
  at = put_token(at, claim);
  at = PUT(at, "\r\n$2\r\nNX\r\n$2\r\nPX\r\n");
  at = put(at, ttl->bulk, ttl->size);
  buffer->end = (size_t)(at - buffer->data);
  return 0;
}

static int put_release_by_hash(struct rlk_out *out, struct rlk_line *l, const struct rlk_claim *claim)
{
  struct rlk_buffer *buffer = &l->out;
  char *at;
  if (rlk_out_begin(out, l, claim->key->bulk_size + 160) != 0)
    return -1;
  at = buffer->data + buffer->end;
  at = PUT(at, "*5\r\n$7\r\nEVALSHA\r\n$40\r\n" RLK_RELEASE_HASH "\r\n$1\r\n1\r\n");
  at = put(at, claim->key->bulk, claim->key->bulk_size);
  at = put_token(at, claim);
  at = PUT(at, "\r\n");
  buffer->end = (size_t)(at - buffer->data);
  return 0;
}

/* ---- all requests ---- */

int rlk_put_on_keys(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script, int arguments,
                    const struct rlk_claim *claim)
{
  const struct rlk_key *key = claim->key;
  if (rlk_out_script(out, l, script, key->count, arguments, key->all_size + claim->token_size + 128) != 0)
    return -1;
  rlk_out_bytes(out, key->bulk, key->all_size);
  rlk_put_token(out, claim);
  return 0;
}

int rlk_put_extend(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t ttl_ms)
{
  return rlk_put_extensions(out, l, &claim, 1, ttl_ms);
}

int rlk_put_expire(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t ttl_ms)
{
  if (rlk_put_on_keys(out, l, &rlk_script_expire, 2, claim) != 0)
    return -1;
  rlk_out_number(out, ttl_ms);
  return 0;
}

int rlk_put_release(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim)
{
  if (RLK_MUTANT(BLIND_DELETE))
    return rlk_put_del(out, l, claim->key, 0);
  if (rlk_out_knows(l, &rlk_script_release) && !claim->foreign)
    return put_release_by_hash(out, l, claim);
  return rlk_put_on_keys(out, l, &rlk_script_release, 1, claim);
}

const struct rlk_ask *rlk_put_give(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t now)
{
  if (rlk_hands_over(claim, l->node, now))
    return rlk_put_hand_over(out, l, claim) == 0 ? &rlk_row_hand_over : NULL;
  return rlk_put_release(out, l, claim) == 0 ? &rlk_row_delete : NULL;
}

const struct rlk_kind rlk_mutex = {.name = "mutex", .take = &rlk_row_set, .put_take = put_take, RLK_PLAIN_KEY};

#include <string.h>

#include "asking.h"
#include "lease.h"
#include "operation.h"
#include "programs.h"
#include "release.h"
#include "round.h"
#include "vote.h"

static int is_of_programs(const struct rlk_key *key)
{
  return key->resource_size == strlen(RLK_PROGRAMS_KEY) &&
         memcmp(rlk_key_resource(key), RLK_PROGRAMS_KEY, key->resource_size) == 0;
}

static void told(struct rlk_node *n, struct rlk_outcome *out)
{
  int is_text = !out->fault && out->reply->type == RLK_REPLY_STRING;
  redlock_lock *lock = rlk_vote_lock(&out->request);
  if (!lock || !rlk_in_flight(lock) || lock->round.number != out->request.round)
    return;
  if (is_text && is_of_programs(lock->op.probe->key))
    rlk_programs_keep(n, out);
  else if (is_text)
    lock->node_answers[n->index].value = strdup(out->reply->text.data); /* without memory it is not shown */
  rlk_vote_note_error(n, out);
  rlk_vote_note(lock, n->index, &out->request, is_text ? RLK_GRANTED : RLK_ERROR, out->now_ns);
}

static const struct rlk_ask row_told = {"the script", .is_vote = 1, .rest = RLK_FITS, .arrived = told};

static int put_script(struct rlk_out *out, struct rlk_node *n, const struct rlk_key *key)
{
  const char *prefix = RLK_STRING(n->net, KEY_PREFIX);
  if (rlk_out_begin(out, n->line, key->resource_size + strlen(prefix) + 96) != 0)
    return -1;
  RLK_OUT_TEXT(out, "*4\r\n$4\r\nEVAL\r\n");
  rlk_out_bulk(out, rlk_key_resource(key), key->resource_size);
  RLK_OUT_TEXT(out, "$1\r\n0\r\n");
  rlk_out_bulk(out, prefix, strlen(prefix));
  return 0;
}

static int ask(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  const struct rlk_key *key = lock->op.probe->key;
  struct rlk_out out;
  if ((is_of_programs(key) ? rlk_programs_put(&out, n) : put_script(&out, n, key)) != 0)
    return -1;
  rlk_ask_end(&out, rlk_request_of(lock, lock->op.probe, &row_told, now));
  return 0;
}

static int advance(redlock_lock *lock, int64_t now)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  (void)now;
  return tally.waiting + tally.retrying + tally.asked > 0 ? REDLOCK_PENDING : REDLOCK_OK;
}

static int begin(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  if (!lock->engine->net.looks || lock->key->count > 1)
    return rlk_lock_refuse(lock, "examine: one script, of a client that was opened to look");
  lock->op.probe = rlk_claim_new(lock); /* carries the answers; its token is never sent */
  if (!lock->op.probe)
    return REDLOCK_NO_MEMORY;
  rlk_flight_begin(lock, call->verb);
  rlk_round_clear(lock);
  rlk_round_ask_all(lock, -1, now);
  return advance(lock, now);
}

const struct rlk_verb rlk_examine = {.kind = REDLOCK_EXAMINE,
                                     .name = "examine",
                                     .asks_everybody = 1,
                                     .begin = begin,
                                     .ask = ask,
                                     .advance = advance,
                                     .timer = rlk_release_timer};

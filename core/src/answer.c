/* What a reply means: for the request it answers, and for the node (rule A.7). */
#include <string.h>

#include "core.h"
#include "mutant.h"

#define PAUSE_NS (100 * RL_NS_PER_MS)

static void note_error(struct rl_node *n, const struct rl_owed *o, const struct rl_reply *reply)
{
  redlock_lock *lock = o->claim ? o->claim->lock : NULL;
  struct rl_text text;
  if (!lock)
    return;
  text = rl_text_in(lock->said[n->index].error, sizeof lock->said[0].error);
  rl_text_clean(&text, reply->text.data);
}


/* An error to a request: what it means for the node. The answer for the request comes first (rule A.7). */
static int fault_answer(enum rl_fault fault)
{
  return fault == RL_FAULT_CONFIG || fault == RL_FAULT_PERMISSION ? RL_REFUSED : RL_ERROR;
}

void rl_answer_fault(struct rl_node *n, enum rl_fault fault, const char *text, int64_t now)
{
  char clean[RL_WHY_SIZE];
  struct rl_text out = rl_text_in(clean, sizeof clean);
  rl_text_clean(&out, text);
  switch (fault) {
  case RL_FAULT_ROLE:
  case RL_FAULT_LOADING: rl_node_drop(n, 0, clean, now); break;
  case RL_FAULT_CONFIG: rl_node_refuse(n, clean, now); break;
  case RL_FAULT_PAUSE: n->busy_until_ns = now + PAUSE_NS; break;
  default: break;
  }
}

static void set_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_claim_node *at = &o->claim->node[n->index];
  int64_t sample_ns = now - o->sent_ns;
  n->rtt_ns += n->rtt_ns ? (sample_ns - n->rtt_ns) / 8 : sample_ns;
  at->flags &= (uint8_t)~RL_SET_OWED;
  if (reply->type == RL_REPLY_STATUS) {
    if (n->state != RL_NODE_READY) {
      rl_operation_answer(n, o, RL_REFUSED, now);
      if (!(at->flags & RL_DELETE_OWED)) /* its vote does not count: take the key back (rule C.3) */
        rl_node_send_delete(n, o->claim, 0, 0, now);
      return;
    }
    if (RL_MUTANT(CLOCK_AT_REPLY))
      o->sent_ns = now;
    rl_operation_answer(n, o, RL_GRANTED, now);
    return;
  }
  if (!(at->flags & RL_SET_LOST))
    rl_claim_cleared(n->client, o->claim, n->index);
  if (reply->type == RL_REPLY_NIL) {
    at->flags |= at->flags & RL_MAY_HOLD ? 0 : RL_SAID_BUSY;
    /* what a second SET met may be the key of the first, whose answer was lost */
    rl_operation_answer(n, o, at->flags & RL_SET_LOST ? RL_DROPPED : RL_BUSY, now);
  } else if (reply->type == RL_REPLY_ERROR) {
    enum rl_fault fault = rl_fault_of(reply->text.data);
    note_error(n, o, reply);
    rl_operation_answer(n, o, fault == RL_FAULT_TYPE ? RL_BUSY : fault_answer(fault), now);
    rl_answer_fault(n, fault, reply->text.data, now);
  } else {
    rl_operation_answer(n, o, RL_ERROR, now);
    rl_node_drop(n, 0, "an answer that does not fit SET", now);
  }
}

void rl_answer_keep_debt(struct rl_node *n, int64_t now)
{
  if (n->state != RL_NODE_READY)
    return;
  n->debts_retry_ns = now + PAUSE_NS;
  rl_timer_set(&n->client->timers, &n->timer, n->debts_retry_ns);
}

static void delete_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  enum rl_fault fault;
  o->claim->node[n->index].flags &= (uint8_t)~RL_DELETE_OWED;
  if (reply->type == RL_REPLY_INTEGER) {
    rl_claim_cleared(n->client, o->claim, n->index);
    rl_operation_answer(n, o, reply->integer > 0 ? RL_GRANTED : RL_GONE, now);
    return;
  }
  if (reply->type != RL_REPLY_ERROR) {
    rl_operation_answer(n, o, RL_ERROR, now);
    rl_node_drop(n, 0, "an answer that does not fit the release script", now);
    return;
  }
  fault = rl_fault_of(reply->text.data);
  if (fault == RL_FAULT_NO_SCRIPT && rl_node_send_delete(n, o->claim, 1, o->round, now) == 0)
    return;
  note_error(n, o, reply);
  rl_operation_answer(n, o, fault_answer(fault), now);
  if (fault == RL_FAULT_PAUSE || fault == RL_FAULT_UNWRITABLE)
    rl_answer_keep_debt(n, now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

static void extend_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  enum rl_fault fault;
  if (reply->type == RL_REPLY_ARRAY && reply->count == 1) {
    rl_operation_answer(n, o, reply->integers[0] == 1 ? RL_GRANTED : RL_GONE, now);
    return;
  }
  if (reply->type != RL_REPLY_ERROR) {
    rl_operation_answer(n, o, RL_ERROR, now);
    rl_node_drop(n, 0, "an answer that does not fit the extend script", now);
    return;
  }
  fault = rl_fault_of(reply->text.data);
  if (fault == RL_FAULT_NO_SCRIPT && o->claim->lock && o->round == o->claim->lock->round &&
      rl_in_flight(o->claim->lock) && rl_node_send_extend(n, o->claim->lock, 1, now) == 0)
    return;
  note_error(n, o, reply);
  rl_operation_answer(n, o, fault_answer(fault), now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

static void renew_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_batch *batch = o->batch;
  if (reply->type == RL_REPLY_ERROR) {
    enum rl_fault fault = rl_fault_of(reply->text.data);
    if (fault != RL_FAULT_NO_SCRIPT || rl_node_send_renewal(n, batch, 1, now) != 0)
      rl_answer_fault(n, fault, reply->text.data, now);
    return;
  }
  if (reply->type != RL_REPLY_ARRAY || reply->count != batch->count) {
    rl_node_drop(n, 0, "an answer that does not fit the extend script", now);
    return;
  }
  for (int i = 0; i < batch->count; i++) {
    o->claim = batch->claim[i];
    rl_operation_answer(n, o, reply->integers[i] == 1 ? RL_GRANTED : RL_GONE, now);
  }
  o->claim = NULL;
}

static void value_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  enum rl_fault fault;
  if (reply->type == RL_REPLY_STRING || reply->type == RL_REPLY_NIL) {
    rl_operation_value(n, o, reply);
    return; /* the answer follows with the TTL */
  }
  if (reply->type != RL_REPLY_ERROR)
    return;
  fault = rl_fault_of(reply->text.data);
  if (fault == RL_FAULT_TYPE)
    return;
  note_error(n, o, reply);
  rl_operation_answer(n, o, fault_answer(fault), now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

static void ttl_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  if (reply->type != RL_REPLY_INTEGER)
    return;
  rl_operation_hint(n, o, reply->integer, now);
  if (o->kind == RL_OWED_TTL)
    rl_operation_answer(n, o, reply->integer == -2 ? RL_FREE : RL_BUSY, now);
}

void rl_answer(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  if (o->kind != RL_OWED_SETUP && reply->type != RL_REPLY_ERROR)
    n->failures = 0;
  switch (o->kind) {
  case RL_OWED_SETUP: rl_session_reply(n, (int)o->round, reply, now); break;
  case RL_OWED_SET: set_reply(n, o, reply, now); break;
  case RL_OWED_DELETE: delete_reply(n, o, reply, now); break;
  case RL_OWED_EXTEND: extend_reply(n, o, reply, now); break;
  case RL_OWED_RENEW: renew_reply(n, o, reply, now); break;
  case RL_OWED_VALUE: value_reply(n, o, reply, now); break;
  case RL_OWED_HINT:
  case RL_OWED_TTL: ttl_reply(n, o, reply, now); break;
  case RL_OWED_NOTHING: break;
  }
  if (o->claim) {
    o->claim->owed--;
    rl_claim_settle(n->client, o->claim);
  }
  if (o->batch)
    rl_batch_drop(n->client, o->batch);
}

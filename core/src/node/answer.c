/* What a reply means: for the request it answers, and for the node (rule A.7). */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../lock/claim.h"
#include "../lock/operation.h"
#include "../lock/renewal.h"
#include "answer.h"
#include "silence.h"

#define PERMISSION_PAUSE_NS (1000 * RL_NS_PER_MS)

static void note_error(struct rl_node *n, const struct rl_owed *o, const char *words)
{
  redlock_lock *lock = o->claim ? o->claim->lock : NULL;
  char error[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(error, sizeof error);
  if (!lock)
    return;
  rl_text_clean(&text, words);
  rl_text_mark_cut(&text);
  free(lock->said[n->index].error);
  lock->said[n->index].error = strdup(error); /* without memory it is not shown */
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
  if (n->state == RL_NODE_REFUSED)
    return; /* the reason is known; its connection is only cleaned up on */
  rl_text_clean(&out, text);
  rl_text_mark_cut(&out);
  switch (fault) {
  case RL_FAULT_ROLE:
  case RL_FAULT_LOADING: rl_line_end(n->line, clean); break;
  case RL_FAULT_CONFIG: rl_node_refuse(n, clean, now); break;
  case RL_FAULT_PAUSE: n->busy_until_ns = now + RL_PAUSE_NS; break;
  default: break;
  }
}

/* What was asked has an answer that no server gives: nothing that follows on the connection can be trusted. */
static void misfit(struct rl_node *n, const struct rl_owed *o, const char *words, int64_t now)
{
  if (o->claim) {
    note_error(n, o, words);
    rl_operation_answer(n, o, RL_ERROR, now);
  }
  rl_node_drop(n, 0, words, now);
}

/* A nil to a second SET of the token, after a first one whose answer was lost: the key may be its own. */
static int ask_whose_key(struct rl_node *n, const struct rl_owed *o, int64_t now)
{
  redlock_lock *lock = o->claim->lock;
  if (!(o->claim->node[n->index].flags & RL_SET_LOST) || n->state != RL_NODE_READY)
    return 0;
  return lock && lock->claim == o->claim && !o->claim->over && lock->round == o->round &&
         rl_node_send_confirm(n, lock, 0, now) == 0;
}

static void granted(struct rl_node *n, struct rl_owed *o, int64_t now)
{
  const struct rl_claim_node *at = &o->claim->node[n->index];
  if (n->state == RL_NODE_READY || RL_MUTANT(REFUSED_VOTES)) {
    if (RL_MUTANT(CLOCK_AT_REPLY))
      o->sent_ns = now;
    rl_operation_answer(n, o, RL_GRANTED, now);
    return;
  }
  /* Its vote does not count. The key is taken back once the token is given up, not before: the same server may hold it
   * for another node, and it may have been handed over (rule C.3). */
  rl_operation_answer(n, o, RL_REFUSED, now);
  if (n->line->shared && !o->claim->over) {
    rl_node_may_hold(n->line->shared, o->claim, o->claim->until_ns);
    rl_claim_cleared(rl_engine_of(n->net), o->claim, n->index);
  }
  if (o->claim->over && (at->flags & RL_MAY_HOLD) && !(at->flags & RL_DELETE_OWED))
    rl_node_send_delete(n, o->claim, 0, 0, now);
}

static void not_granted(struct rl_node *n, struct rl_owed *o, int64_t now)
{
  struct rl_claim_node *at = &o->claim->node[n->index];
  if (!(at->flags & RL_SET_LOST))
    rl_claim_cleared(rl_engine_of(n->net), o->claim, n->index);
  at->flags |= at->flags & RL_MAY_HOLD ? 0 : RL_SAID_BUSY;
  if (n->state != RL_NODE_READY)
    rl_operation_answer(n, o, RL_REFUSED, now); /* what it met may be its own, under the other name of the server */
  else if (!ask_whose_key(n, o, now))
    rl_operation_answer(n, o, at->flags & RL_SET_LOST ? RL_DROPPED : RL_BUSY, now);
}

/* The server says that it executed nothing; of an error that is not its own, as a proxy has them, nobody knows. */
static void set_error(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_claim_node *at = &o->claim->node[n->index];
  enum rl_fault fault = rl_fault_of(reply->text.data);
  if (fault == RL_FAULT_OTHER)
    at->flags |= RL_SET_LOST;
  else if (!(at->flags & RL_SET_LOST))
    rl_claim_cleared(rl_engine_of(n->net), o->claim, n->index);
  if (fault == RL_FAULT_CONFIG && n->state == RL_NODE_SETUP) { /* it came before a login that is sent again */
    rl_operation_answer(n, o, RL_WAITING, now);
    return;
  }
  note_error(n, o, reply->text.data);
  rl_operation_answer(n, o, fault == RL_FAULT_TYPE ? RL_BUSY : fault_answer(fault), now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

static void set_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_claim_node *at = &o->claim->node[n->index];
  int64_t sample_ns = now - o->sent_ns;
  n->rtt_ns += n->rtt_ns ? (sample_ns - n->rtt_ns) / 8 : sample_ns;
  at->flags &= (uint8_t)~RL_SET_OWED;
  if (reply->type == RL_REPLY_STATUS && reply->text.end == 2 && memcmp(reply->text.data, "OK", 2) == 0) {
    granted(n, o, now);
  } else if (reply->type == RL_REPLY_NIL) {
    not_granted(n, o, now);
  } else if (reply->type == RL_REPLY_ERROR) {
    set_error(n, o, reply, now);
  } else {
    at->flags |= RL_SET_LOST;
    misfit(n, o, "an unexpected reply to SET", now);
  }
}

void rl_answer_keep_debt(struct rl_node *n, int64_t pause_ns, int64_t now)
{
  if (n->state != RL_NODE_READY)
    return;
  if (!n->debts_retry_ns || now + pause_ns < n->debts_retry_ns)
    n->debts_retry_ns = now + pause_ns;
  rl_timer_set(&n->net->timers, &n->timer, n->debts_retry_ns);
}

static void delete_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  enum rl_fault fault;
  o->claim->node[n->index].flags &= (uint8_t)~RL_DELETE_OWED;
  if (reply->type == RL_REPLY_INTEGER) {
    rl_claim_cleared(rl_engine_of(n->net), o->claim, n->index);
    rl_operation_answer(n, o, reply->integer > 0 ? RL_GRANTED : RL_GONE, now);
    return;
  }
  if (reply->type != RL_REPLY_ERROR) {
    misfit(n, o, "an unexpected reply to the release script", now);
    return;
  }
  fault = rl_fault_of(reply->text.data);
  if (fault == RL_FAULT_NO_SCRIPT && rl_node_send_delete(n, o->claim, 1, o->round, now) == 0)
    return;
  note_error(n, o, reply->text.data);
  rl_operation_answer(n, o, fault_answer(fault), now);
  if (fault == RL_FAULT_PAUSE || fault == RL_FAULT_UNWRITABLE)
    rl_answer_keep_debt(n, RL_PAUSE_NS, now);
  else if (fault == RL_FAULT_PERMISSION) /* it may be given back */
    rl_answer_keep_debt(n, PERMISSION_PAUSE_NS, now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

/* NOSCRIPT: the same with the whole script, if anybody still wants to know. */
static int extend_again(struct rl_node *n, const struct rl_owed *o, int64_t now)
{
  redlock_lock *lock = o->claim->lock;
  if (!lock || lock->claim != o->claim || o->claim->over || lock->round != o->round)
    return -1;
  if (o->kind == RL_OWED_CONFIRM)
    return rl_node_send_confirm(n, lock, 1, now);
  return rl_in_flight(lock) ? rl_node_send_extend(n, lock, 1, now) : -1;
}

static void extend_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  enum rl_fault fault;
  if (rl_reply_is_answers(reply, 1)) {
    int not_ours = o->kind == RL_OWED_CONFIRM ? RL_BUSY : RL_GONE;
    rl_operation_answer(n, o, reply->integers[0] == 1 ? RL_GRANTED : not_ours, now);
    return;
  }
  if (reply->type != RL_REPLY_ERROR) {
    misfit(n, o, "an unexpected reply to the extend script", now);
    return;
  }
  fault = rl_fault_of(reply->text.data);
  if (fault == RL_FAULT_NO_SCRIPT && extend_again(n, o, now) == 0)
    return;
  note_error(n, o, reply->text.data);
  rl_operation_answer(n, o, fault_answer(fault), now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

static void expire_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_claim_node *at = &o->claim->node[n->index];
  at->shortenings--; /* executed or refused: it limits nothing any more */
  if (reply->type == RL_REPLY_INTEGER) {
    rl_operation_answer(n, o, reply->integer > 0 ? RL_GRANTED : RL_GONE, now);
  } else if (reply->type == RL_REPLY_ERROR) {
    note_error(n, o, reply->text.data);
    rl_operation_answer(n, o, fault_answer(rl_fault_of(reply->text.data)), now);
    rl_answer_fault(n, rl_fault_of(reply->text.data), reply->text.data, now);
  } else {
    misfit(n, o, "an unexpected reply to the expire script", now);
  }
}

static void remove_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  if (reply->type == RL_REPLY_INTEGER) {
    rl_operation_answer(n, o, reply->integer > 0 ? RL_GRANTED : RL_GONE, now);
  } else if (reply->type == RL_REPLY_ERROR) {
    note_error(n, o, reply->text.data);
    rl_operation_answer(n, o, fault_answer(rl_fault_of(reply->text.data)), now);
    rl_answer_fault(n, rl_fault_of(reply->text.data), reply->text.data, now);
  } else {
    misfit(n, o, "an unexpected reply to DEL", now);
  }
}

/* NOSCRIPT: the same with the whole script, for the locks that are still held: others were released, handed over or
 * lost meanwhile. */
static int renew_again(struct rl_node *n, struct rl_batch *batch, int64_t now)
{
  struct rl_batch *again = rl_batch_again(rl_engine_of(n->net), batch, now);
  int status = again ? 0 : -1;
  if (again && again->count > 0)
    status = rl_node_send_renewal(n, again, 1, now);
  if (again)
    rl_batch_drop(rl_engine_of(n->net), again);
  return status;
}

static void renew_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_batch *batch = o->batch;
  if (reply->type == RL_REPLY_ERROR) {
    enum rl_fault fault = rl_fault_of(reply->text.data);
    if (fault != RL_FAULT_NO_SCRIPT || renew_again(n, batch, now) != 0)
      rl_answer_fault(n, fault, reply->text.data, now);
    return;
  }
  if (!rl_reply_is_answers(reply, batch->count)) {
    misfit(n, o, "an unexpected reply to the extend script", now);
    return;
  }
  for (int i = 0; i < batch->count; i++) {
    o->claim = batch->claim[i];
    rl_operation_answer(n, o, reply->integers[i] == 1 ? RL_GRANTED : RL_GONE, now);
  }
  o->claim = NULL;
}

static void asking_failed(struct rl_node *n, const struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  enum rl_fault fault = rl_fault_of(reply->text.data);
  note_error(n, o, reply->text.data);
  rl_operation_answer(n, o, fault_answer(fault), now);
  rl_answer_fault(n, fault, reply->text.data, now);
}

static void value_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  if (reply->type == RL_REPLY_STRING || reply->type == RL_REPLY_NIL) {
    rl_operation_value(n, o, reply);
    return; /* the answer follows with the TTL */
  }
  if (reply->type == RL_REPLY_ERROR && rl_fault_of(reply->text.data) != RL_FAULT_TYPE)
    asking_failed(n, o, reply, now);
}

static void ttl_reply(struct rl_node *n, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  if (o->kind == RL_OWED_TTL && reply->type == RL_REPLY_ERROR)
    asking_failed(n, o, reply, now);
  if (reply->type != RL_REPLY_INTEGER)
    return;
  rl_operation_hint(n, o, reply->integer, now);
  if (o->kind == RL_OWED_TTL)
    rl_operation_answer(n, o, reply->integer == -2 ? RL_FREE : RL_BUSY, now);
}

void rl_answer(struct rl_line *l, struct rl_owed *o, const struct rl_reply *reply, int64_t now)
{
  struct rl_node *n = l->node;
  if (o->kind != RL_OWED_SETUP && reply->type != RL_REPLY_ERROR)
    n->failures = 0;
  switch (o->kind) {
  case RL_OWED_SETUP: rl_session_reply(l, (int)o->round, reply, now); break;
  case RL_OWED_SET: set_reply(n, o, reply, now); break;
  case RL_OWED_DELETE: delete_reply(n, o, reply, now); break;
  case RL_OWED_CONFIRM:
  case RL_OWED_EXTEND: extend_reply(n, o, reply, now); break;
  case RL_OWED_EXPIRE: expire_reply(n, o, reply, now); break;
  case RL_OWED_REMOVE: remove_reply(n, o, reply, now); break;
  case RL_OWED_RENEW: renew_reply(n, o, reply, now); break;
  case RL_OWED_VALUE: value_reply(n, o, reply, now); break;
  case RL_OWED_HINT:
  case RL_OWED_TTL: ttl_reply(n, o, reply, now); break;
  case RL_OWED_LOOK: rl_session_looked(l, (int)o->round, reply, now); break;
  case RL_OWED_NOTHING: break;
  }
  if (o->claim) {
    o->claim->owed--;
    rl_claim_settle(rl_engine_of(n->net), o->claim);
  }
  if (o->batch)
    rl_batch_drop(rl_engine_of(n->net), o->batch);
}

/* The result of an operation in one line: the verdict, the nodes' replies grouped by reason, and the advice. The
 * text is made on demand, never during an operation. */
#include <string.h>

#include "../lock/kind.h"
#include "../lock/lease.h"
#include "../vote/eligible.h"
#include "answer.h"
#include "api.h"
#include "held_by.h"

static const char *const verbs[] = {
    [0] = "asked for",
    [REDLOCK_ACQUIRE] = "granted",
    [REDLOCK_EXTEND] = "extended",
    [REDLOCK_RELEASE] = "deleted",
    [REDLOCK_EXPIRE] = "set the lease of",
    [REDLOCK_REMOVE] = "deleted",
    [REDLOCK_LIST] = "listed",
    [REDLOCK_EXAMINE] = "answered",
};

static int tells_loss(const redlock_lock *lock)
{
  return lock->hold.loss && !(lock->op.kind && lock->op.verb->asks_everybody);
}

/* A majority kept it: their answers do not say why. */
static int is_lost_by_no_node(const redlock_lock *lock)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  return tells_loss(lock) && tally.granted >= tally.quorum;
}

static void headline(redlock_lock *lock, struct rlk_text *out)
{
  redlock_client *c = rlk_client_of(lock);
  struct rlk_tally tally = rlk_count(lock->votes, c->engine.net.node_count);
  int no_count = lock->op.kind == REDLOCK_INSPECT || is_lost_by_no_node(lock);
  if (!no_count)
    rlk_text_format(out, "%d of %d nodes %s ", tally.granted, c->engine.net.node_count,
                    tells_loss(lock) && lock->op.kind != REDLOCK_RELEASE ? "kept" : verbs[lock->op.kind]);
  rlk_text_add(out, "\"");
  rlk_text_escaped(out, rlk_key_resource(lock->key), lock->key->resource_size);
  rlk_text_add(out, "\"");
  if (lock->key->count > 1)
    rlk_text_format(out, " and %d more", lock->key->count - 1);
  if (lock->op.kind == REDLOCK_INSPECT)
    rlk_text_format(out, " is held on %d and free on %d of %d nodes", tally.busy, tally.free, c->engine.net.node_count);
  else if (!no_count)
    rlk_text_format(out, ", %d needed", c->engine.quorum);
}

static int is_granted(const redlock_lock *lock)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  return lock->op.kind == REDLOCK_ACQUIRE && tally.granted >= tally.quorum;
}

/* The lock was free when its nodes were asked last. */
static int is_left_to_others(const redlock_lock *lock)
{
  return rlk_count(lock->votes, lock->engine->net.node_count).free > 0 || is_granted(lock);
}

static void held_words(const redlock_lock *lock, const char *what, struct rlk_text *out)
{
  rlk_text_add(out, what);
  if (!rlk_held_by_words(lock, out))
    rlk_text_add(out, "others");
}

static void permits_words(const redlock_lock *lock, struct rlk_text *out)
{
  char holder[400];
  struct rlk_text text = rlk_text_in(holder, sizeof holder);
  if (RLK_INT(&lock->options, SLOT) >= 0)
    held_words(lock, "its permit is held by ", out);
  else if (rlk_held_by_words(lock, &text))
    rlk_text_format(out, "no permit is free, one is held by %s", holder);
  else
    rlk_text_add(out, "no permit is free");
  rlk_text_add(out, ": ");
}

/* The outcome of the operation, if the count of nodes does not say it. */
static void verdict(const redlock_lock *lock, struct rlk_text *out)
{
  int asks_only = lock->op.kind && lock->op.verb->asks_everybody;
  int by_token = lock->op.kind != REDLOCK_ACQUIRE && lock->op.state_before == REDLOCK_STATE_ADOPTED;
  if (lock->op.status == REDLOCK_LOST && by_token) {
    rlk_text_add(out, "nobody holds it with this token: ");
  } else if (tells_loss(lock)) {
    rlk_text_add(out, "the lock was lost: ");
    rlk_loss_words(lock, out);
    rlk_text_add(out, ": ");
  } else if (lock->op.status == REDLOCK_BUSY && !asks_only && is_left_to_others(lock)) {
    rlk_text_add(out, "free, but others wait for it and are before this one: ");
  } else if (lock->op.status == REDLOCK_BUSY && !asks_only && rlk_lock_slots(lock)) {
    permits_words(lock, out);
  } else if (lock->op.status == REDLOCK_BUSY && !asks_only) {
    held_words(lock, "held by ", out);
    rlk_text_add(out, ": ");
  } else if (lock->op.status == REDLOCK_NO_QUORUM && is_granted(lock)) {
    rlk_text_add(out,
                 "granted too late: less than " RLK_NAMED("min_validity_ms") " of " RLK_NAMED("ttl_ms") " was left: ");
  } else if (lock->op.status == REDLOCK_NO_QUORUM || lock->op.status == REDLOCK_REFUSED_CONFIG) {
    rlk_text_add(out, "no quorum: ");
  } else if (lock->op.status == REDLOCK_CANCELLED || lock->op.status == REDLOCK_TIMED_OUT ||
             lock->op.status == REDLOCK_NO_MEMORY || lock->op.status == REDLOCK_FORKED ||
             lock->op.status == REDLOCK_LOST) {
    rlk_text_format(out, "%s: ", redlock_status_text(lock->op.status));
  }
}

/* The nodes from `node` on that said the same, as bits. */
static uint64_t group_of(const struct rlk_said *said, int node, int count)
{
  uint64_t group = 0;
  for (int i = node; i < count; i++)
    group |= (uint64_t)(strcmp(said[i].words, said[node].words) == 0) << i;
  return group;
}

/* "2 nodes: busy (a:1 4.2 s left, b:2)" */
static void group_words(const redlock_lock *lock, const struct rlk_said *said, uint64_t group, struct rlk_text *out)
{
  const char *gap = "(";
  rlk_text_format(out, "%d nodes: %s ", __builtin_popcountll(group), said[__builtin_ctzll(group)].words);
  for (; group; group &= group - 1) {
    int i = __builtin_ctzll(group);
    rlk_text_format(out, "%s%.200s%s%s", gap, lock->engine->net.nodes[i].url.name, said[i].detail[0] ? " " : "",
                    said[i].detail);
    gap = ", ";
  }
  rlk_text_add(out, ")");
}

static int needs_advice(const redlock_lock *lock)
{
  return lock->op.status == REDLOCK_NO_QUORUM || lock->op.status == REDLOCK_REFUSED_CONFIG ||
         lock->op.status == REDLOCK_TIMED_OUT || lock->state == REDLOCK_STATE_LOST || rlk_in_flight(lock);
}

/* The nodes' replies, equal ones together; then the advice, each once. Of a lock that was lost, those that cost it. */
static void group_and_advise(redlock_lock *lock, struct rlk_text *out, int64_t now)
{
  int count = lock->engine->net.node_count, advices = 0, is_new;
  struct rlk_said said[RLK_NODES_MAX];
  uint64_t told = 0, group;
  const char *advice[RLK_NODES_MAX], *what_to_do;
  for (int i = 0; i < count; i++)
    rlk_answer_said(lock, i, &said[i], now);
  for (int i = 0; i < count; i++) {
    if (told >> i & 1 || (lock->state == REDLOCK_STATE_LOST && lock->votes[i] == RLK_GRANTED))
      continue;
    group = group_of(said, i, count);
    rlk_text_add(out, told ? "; " : ": ");
    if (group & (group - 1)) {
      group_words(lock, said, group, out);
    } else {
      rlk_text_format(out, "%.200s ", lock->engine->net.nodes[i].url.name);
      rlk_answer_words(lock, i, out, now);
    }
    told |= group;
    what_to_do = rlk_advice(&lock->engine->net, said[i].why, now);
    is_new = *what_to_do != 0;
    for (int k = 0; k < advices; k++)
      is_new &= strcmp(advice[k], what_to_do) != 0;
    if (is_new)
      advice[advices++] = what_to_do;
  }
  for (int k = 0; k < advices && needs_advice(lock); k++)
    rlk_text_format(out, "; %s", advice[k]);
}

static void message(redlock_lock *lock, struct rlk_text *out)
{
  if (lock->refusal) {
    rlk_text_add(out, lock->refusal);
    return;
  }
  if (lock->op.status == REDLOCK_NOT_HELD && lock->op.kind == 0) {
    rlk_text_add(out, "no operation has been started yet");
    return;
  }
  verdict(lock, out);
  headline(lock, out);
  if (!is_lost_by_no_node(lock))
    group_and_advise(lock, out, rlk_client_now(rlk_client_of(lock)));
  else if (lock->hold.loss == REDLOCK_LOSS_EXPIRED && !RLK_INT(&lock->options, RENEW))
    rlk_text_add(out, "; extend it in time, or set " RLK_NAMED("renew"));
}

static int64_t read_message(redlock_lock *lock, char *buf, size_t size, int is_plain)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  out.is_plain = is_plain;
  if (c)
    message(lock, &out);
  return rlk_leave_text(c, &out);
}

int64_t redlock_lock_message(redlock_lock *lock, char *buf, size_t size)
{
  return read_message(lock, buf, size, 1);
}

int64_t redlock_lock_message_parts(redlock_lock *lock, char *buf, size_t size)
{
  return read_message(lock, buf, size, 0);
}

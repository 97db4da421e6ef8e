/* What the nodes said, in words. Texts are made when they are asked for, never on the way. */
#include <string.h>

#include "../lock/lease.h"
#include "../lock/operation.h"
#include "../node/guard.h"
#include "api.h"
#include "held_by.h"

/* What the connection to a node that could not be asked is like. */
static void down_words(const struct rlk_node *n, struct rlk_text *out)
{
  if (n->why.why)
    rlk_text_add(out, n->why.words);
  else
    rlk_text_add(out, n->state == RLK_NODE_READY ? "could not be asked" : "connecting");
}

/* Why its last connection failed, until another one is ready. */
static void failure_words(const struct rlk_node *n, const char *before, struct rlk_text *out)
{
  if (!n->why.why || n->state == RLK_NODE_READY)
    return;
  rlk_text_add(out, before);
  rlk_text_add(out, n->why.words);
}

/* By hand: the program's locale may write a comma. */
static void tenths_words(int64_t tenths, struct rlk_text *out)
{
  rlk_text_format(out, " (%lld.%lld s left)", (long long)(tenths / 10), (long long)(tenths % 10));
}

static void left_words(const struct rlk_node_answer *answer, struct rlk_text *out, int64_t now)
{
  if (answer->until_ns == RLK_NEVER)
    rlk_text_add(out, " (without a TTL)");
  else if (answer->until_ns > now)
    tenths_words((answer->until_ns - now + 50000000) / 100000000, out);
}

static int deletes(const redlock_lock *lock)
{
  return lock->op.kind == REDLOCK_RELEASE || lock->op.kind == REDLOCK_REMOVE;
}

static const char *granted_words(int kind)
{
  return kind == REDLOCK_RELEASE || kind == REDLOCK_REMOVE  ? "deleted"
         : kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE ? "extended"
                                                            : "granted";
}

static void refused_words(const redlock_lock *lock, int node, struct rlk_text *out)
{
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  const struct rlk_node_answer *answer = &lock->node_answers[node];
  struct rlk_reason why;
  if (answer->error && !n->refused)
    rlk_text_format(out, "error: %s", answer->error);
  else if (!n->refused && lock->op.asked.ttl_ms > n->ttl_limit_ms)
    rlk_text_add(out, rlk_guard_limit(n, lock->op.asked.ttl_ms, &why) ? why.words : "");
  else if (!n->refused && n->state == RLK_NODE_READY)
    rlk_text_add(out, rlk_why_words(RLK_WHY_ALLOWED_BY_FEW));
  else
    down_words(n, out);
}

static void answer_words(redlock_lock *lock, int node, struct rlk_text *out, int64_t now)
{
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  const struct rlk_node_answer *answer = &lock->node_answers[node];
  struct rlk_reason why;
  switch (lock->votes[node]) {
  case RLK_NOT_ASKED: rlk_text_add(out, "not asked"); break;
  case RLK_WAITING:
  case RLK_RETRYING:
    if (n->state == RLK_NODE_READY && lock->op.asked.ttl_ms > n->ttl_limit_ms) {
      rlk_text_add(out, rlk_guard_limit(n, lock->op.asked.ttl_ms, &why) ? why.words : "");
      break;
    }
    rlk_text_add(out, n->silent_ns ? "silent, reconnecting" : "connecting");
    rlk_text_add(out, rlk_in_flight(lock) ? "" : ", not waited for");
    failure_words(n, "; last failure: ", out);
    break;
  case RLK_ASKED: rlk_text_add(out, rlk_in_flight(lock) ? "no answer yet" : "not waited for"); break;
  case RLK_GRANTED: rlk_text_add(out, granted_words(lock->op.kind)); break;
  case RLK_BUSY:
    rlk_text_add(out, "busy");
    left_words(answer, out, now);
    break;
  case RLK_GONE: rlk_text_add(out, deletes(lock) ? "nothing to delete" : "the token is gone"); break;
  case RLK_FREE: rlk_text_add(out, "free"); break;
  case RLK_ERROR:
    rlk_text_format(out, "error: %s", answer->error ? answer->error : "BUSY, not asked for a moment");
    break;
  case RLK_LATE: rlk_text_add(out, "no answer in time"); break;
  case RLK_DROPPED:
    rlk_text_add(out, "connection lost");
    failure_words(n, ": ", out);
    break;
  case RLK_OVERLOADED: rlk_text_add(out, "too many answers outstanding"); break;
  case RLK_QUARANTINED:
    if (rlk_guard_waits(n, now))
      rlk_guard_words(n, out, now);
    else
      rlk_text_add(out, "was quarantined; it may have lost keys");
    break;
  case RLK_REFUSED: refused_words(lock, node, out); break;
  default: down_words(n, out);
  }
}

static int vote(const redlock_lock *lock, int node)
{
  switch (lock->votes[node]) {
  case RLK_WAITING:
  case RLK_RETRYING:
  case RLK_ASKED: return REDLOCK_PENDING;
  case RLK_GRANTED: return REDLOCK_OK;
  case RLK_BUSY: return REDLOCK_BUSY;
  case RLK_GONE: return deletes(lock) ? REDLOCK_NOT_HELD : REDLOCK_LOST;
  case RLK_ERROR: return REDLOCK_NO_QUORUM;
  case RLK_LATE: return REDLOCK_TIMED_OUT;
  case RLK_DROPPED:
  case RLK_DOWN:
  case RLK_OVERLOADED: return REDLOCK_UNREACHABLE;
  case RLK_QUARANTINED: return REDLOCK_QUARANTINED;
  case RLK_REFUSED: return REDLOCK_REFUSED_CONFIG;
  default: return REDLOCK_NOT_HELD;
  }
}

static int has_node(const redlock_lock *lock, int node)
{
  return node >= 0 && node < lock->engine->net.node_count;
}

int redlock_lock_vote(redlock_lock *lock, int node)
{
  redlock_client *c = rlk_enter_lock(lock);
  return c ? rlk_leave(c, has_node(lock, node) ? vote(lock, node) : -REDLOCK_INVALID) : -REDLOCK_INVALID;
}

static void ttl_words(const struct rlk_node_answer *answer, struct rlk_text *out, int64_t now)
{
  if (answer->until_ns == RLK_NEVER)
    rlk_text_add(out, "none");
  else if (answer->until_ns)
    rlk_text_format(out, "%lld", answer->until_ns > now ? (long long)((answer->until_ns - now) / RLK_NS_PER_MS) : 0LL);
}

int64_t redlock_lock_answer(redlock_lock *lock, int node, int field, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  if (!c)
    return -REDLOCK_INVALID;
  if (!has_node(lock, node) || field < REDLOCK_ANSWER_WORDS || field > REDLOCK_ANSWER_TOKEN)
    return rlk_leave(c, -REDLOCK_INVALID);
  if (field == REDLOCK_ANSWER_WORDS)
    answer_words(lock, node, &out, rlk_client_now(c));
  else if (field == REDLOCK_ANSWER_TTL_MS && lock->votes[node] == RLK_BUSY)
    ttl_words(&lock->node_answers[node], &out, rlk_client_now(c));
  else if (field == REDLOCK_ANSWER_TOKEN && lock->node_answers[node].value)
    rlk_text_add(&out, lock->node_answers[node].value);
  return rlk_leave_text(c, &out);
}

static const char *const verbs[] = {
    [0] = "asked for",
    [REDLOCK_ACQUIRE] = "granted",
    [REDLOCK_EXTEND] = "extended",
    [REDLOCK_RELEASE] = "deleted",
    [REDLOCK_EXPIRE] = "set the lease of",
    [REDLOCK_REMOVE] = "deleted",
};

static void headline(redlock_lock *lock, struct rlk_text *out)
{
  redlock_client *c = rlk_client_of(lock);
  struct rlk_tally tally = rlk_count(lock->votes, c->engine.net.node_count);
  if (lock->op.kind != REDLOCK_INSPECT)
    rlk_text_format(out, "%d of %d nodes %s ", tally.granted, c->engine.net.node_count, verbs[lock->op.kind]);
  rlk_text_escaped(out, rlk_key_resource(lock->key), lock->key->resource_size);
  if (lock->op.kind == REDLOCK_INSPECT)
    rlk_text_format(out, " is held on %d and free on %d of %d nodes", tally.busy, tally.free, c->engine.net.node_count);
  else
    rlk_text_format(out, ", %d needed", c->engine.quorum);
}

/* The lock was free when its nodes were asked last. */
static int is_left_to_others(const redlock_lock *lock)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  return tally.free > 0 || tally.granted >= tally.quorum;
}

/* What the operation came to, where the count of the nodes does not say it. */
static void verdict(const redlock_lock *lock, struct rlk_text *out)
{
  int asks_only = lock->op.kind == REDLOCK_INSPECT || lock->op.kind == REDLOCK_REMOVE;
  int by_token = lock->op.kind != REDLOCK_ACQUIRE && lock->op.state_before == REDLOCK_STATE_ADOPTED;
  if (lock->op.status == REDLOCK_LOST && by_token) {
    rlk_text_add(out, "nobody holds it with this token: ");
  } else if (lock->hold.loss && !asks_only) {
    rlk_text_add(out, "the lock was lost: ");
    rlk_loss_words(lock, out);
    rlk_text_add(out, ": ");
  } else if (lock->op.status == REDLOCK_BUSY && !asks_only && is_left_to_others(lock)) {
    rlk_text_add(out, "free, but others wait for it and are before this one: ");
  } else if (lock->op.status == REDLOCK_BUSY && !asks_only) {
    rlk_text_add(out, "held by ");
    if (!rlk_held_by_words(lock, out))
      rlk_text_add(out, "others");
    rlk_text_add(out, ": ");
  } else if (lock->op.status == REDLOCK_CANCELLED || lock->op.status == REDLOCK_TIMED_OUT ||
             lock->op.status == REDLOCK_NO_MEMORY || lock->op.status == REDLOCK_FORKED ||
             lock->op.status == REDLOCK_LOST) {
    rlk_text_format(out, "%s: ", redlock_status_text(lock->op.status));
  }
}

static void message(redlock_lock *lock, struct rlk_text *out)
{
  redlock_client *c = rlk_client_of(lock);
  int64_t now = rlk_client_now(c);
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
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rlk_text_format(out, "%s%.200s ", i ? ", " : ": ", c->engine.net.nodes[i].url.name);
    answer_words(lock, i, out, now);
  }
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

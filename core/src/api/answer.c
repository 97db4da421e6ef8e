/* What a node replied to the last operation of a lock. */
#include "answer.h"

#include <stdio.h>

#include "../lock/round.h"
#include "../vote/guard.h"
#include "api.h"

static void say(struct rlk_said *said, enum rlk_why why, const char *words)
{
  said->why = why;
  snprintf(said->words, sizeof said->words, "%s", words);
}

/* The connection to a node that could not be asked. */
static void say_down(struct rlk_said *said, const struct rlk_node *n)
{
  if (n->why.why)
    say(said, n->why.why, n->why.words);
  else
    say(said, RLK_WHY_NONE, n->state == RLK_NODE_READY ? "could not be asked" : "connecting");
}

/* With why its last connection failed, until another one is ready. */
static void say_failure(struct rlk_said *said, const struct rlk_node *n, const char *words, const char *gap)
{
  int has_failed = n->why.why && n->state != RLK_NODE_READY;
  said->why = has_failed ? n->why.why : RLK_WHY_NONE;
  snprintf(said->words, sizeof said->words, "%s%s%s", words, has_failed ? gap : "", has_failed ? n->why.words : "");
}

/* Of several resources, the one that is not free there. */
static void say_which(struct rlk_said *said, const struct rlk_key *part)
{
  struct rlk_text out = rlk_text_in(said->words, sizeof said->words);
  rlk_text_add(&out, "\"");
  rlk_text_escaped(&out, rlk_key_resource(part), part->resource_size < 64 ? part->resource_size : 64);
  rlk_text_add(&out, "\" is busy");
}

/* By hand: the program's locale may write a comma. */
static void say_left(struct rlk_said *said, const redlock_lock *lock, int node, int64_t now)
{
  const struct rlk_node_answer *answer = &lock->node_answers[node];
  long long tenths = (answer->until_ns - now + 50 * RLK_NS_PER_MS) / (100 * RLK_NS_PER_MS);
  say(said, RLK_WHY_NONE, "busy");
  if (answer->form)
    say(said, RLK_WHY_NONE, "held in another form");
  else if (answer->readers)
    snprintf(said->words, sizeof said->words, "%lld reader%s", (long long)answer->readers,
             answer->readers > 1 ? "s" : "");
  else if (lock->key->count > 1 && lock->op.kind == REDLOCK_ACQUIRE)
    say_which(said, rlk_key_part(lock->key, answer->part));
  if (answer->until_ns == RLK_NEVER)
    snprintf(said->detail, sizeof said->detail, "without a TTL");
  else if (answer->until_ns > now)
    snprintf(said->detail, sizeof said->detail, "%lld.%lld s left", tenths / 10, tenths % 10);
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

static void say_limit(struct rlk_said *said, const redlock_lock *lock, const struct rlk_node *n)
{
  struct rlk_reason why;
  rlk_guard_limit(n, lock->op.asked.ttl_ms, &why);
  say(said, why.why == RLK_WHY_ALLOWS_LESS ? RLK_WHY_NONE : why.why, why.words); /* with the number to advise */
}

static void say_error(struct rlk_said *said, const struct rlk_node *n, const char *error)
{
  enum rlk_why why = n->state != RLK_NODE_READY && n->why.why ? n->why.why : rlk_why_of(error);
  said->why = why == RLK_WHY_ERROR ? RLK_WHY_NONE : why;
  snprintf(said->words, sizeof said->words, "error: %s", error);
}

static void say_refused(struct rlk_said *said, const redlock_lock *lock, int node)
{
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  const struct rlk_node_answer *answer = &lock->node_answers[node];
  enum rlk_why why = rlk_round_refusal(lock, node);
  if (n->refused || !why)
    say_down(said, n);
  else if (answer->error)
    say_error(said, n, answer->error);
  else
    say_limit(said, lock, n);
}

/* It was being connected when the operation ended, or is still. */
static void say_waiting(struct rlk_said *said, const redlock_lock *lock, const struct rlk_node *n)
{
  if (n->state == RLK_NODE_READY && lock->op.asked.ttl_ms > n->voter->ttl_limit_ms)
    say_limit(said, lock, n);
  else if (n->silent_ns)
    say_failure(said, n, "silent, reconnecting", "; last failure: ");
  else if (n->state == RLK_NODE_READY && !rlk_in_flight(lock))
    say(said, RLK_WHY_NONE, "connected after the result");
  else
    say_failure(said, n, rlk_in_flight(lock) ? "connecting" : "not connected yet", "; last failure: ");
}

static void say_quarantined(struct rlk_said *said, const struct rlk_node *n, int64_t now)
{
  struct rlk_text left = rlk_text_in(said->detail, sizeof said->detail);
  enum rlk_why why = rlk_guard_why(n, now);
  if (why)
    rlk_guard_left_words(n, &left, now);
  say(said, why ? why : RLK_WHY_LOST_KEYS, why ? rlk_why_words(why) : "was quarantined; it may have lost keys");
}

static const char *gone_words(const redlock_lock *lock, int node, int64_t now)
{
  int has_lost_keys = rlk_guard_waits(&lock->engine->net.nodes[node], now) ||
                      (lock->claim && lock->claim->node[node].cut == REDLOCK_LOSS_RESTARTED);
  if (deletes(lock))
    return "nothing to delete";
  return has_lost_keys ? "the token is gone: it restarted or lost keys" : "the token is gone";
}

void rlk_answer_said(const redlock_lock *lock, int node, struct rlk_said *said, int64_t now)
{
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  const struct rlk_node_answer *answer = &lock->node_answers[node];
  int in_flight = rlk_in_flight(lock);
  said->detail[0] = 0;
  switch (lock->votes[node]) {
  case RLK_NOT_ASKED: say(said, RLK_WHY_NONE, "not asked"); break;
  case RLK_WAITING:
  case RLK_RETRYING: say_waiting(said, lock, n); break;
  case RLK_ASKED: say_failure(said, n, in_flight ? "no answer yet" : "not waited for", "; last failure: "); break;
  case RLK_GRANTED: say(said, RLK_WHY_NONE, granted_words(lock->op.kind)); break;
  case RLK_BUSY: say_left(said, lock, node, now); break;
  case RLK_GONE: say(said, RLK_WHY_NONE, gone_words(lock, node, now)); break;
  case RLK_FREE: say(said, RLK_WHY_NONE, "free"); break;
  case RLK_ERROR: say_error(said, n, answer->error ? answer->error : "BUSY, not asked for a moment"); break;
  case RLK_LATE: say(said, RLK_WHY_LATE, rlk_why_words(RLK_WHY_LATE)); break;
  case RLK_DROPPED:
    say_failure(said, n, rlk_why_words(RLK_WHY_DROPPED), ": ");
    said->why = said->why ? said->why : RLK_WHY_DROPPED;
    break;
  case RLK_OVERLOADED: say(said, RLK_WHY_OVERLOADED, rlk_why_words(RLK_WHY_OVERLOADED)); break;
  case RLK_QUARANTINED: say_quarantined(said, n, now); break;
  case RLK_REFUSED: say_refused(said, lock, node); break;
  default: say_down(said, n);
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

void rlk_answer_words(const redlock_lock *lock, int node, struct rlk_text *out, int64_t now)
{
  const struct rlk_node *n = &lock->engine->net.nodes[node];
  struct rlk_said said;
  rlk_answer_said(lock, node, &said, now);
  if (lock->votes[node] == RLK_QUARANTINED && rlk_guard_waits(n, now))
    rlk_guard_words(n, out, now);
  else if (said.detail[0])
    rlk_text_format(out, "%s (%s)", said.words, said.detail);
  else
    rlk_text_add(out, said.words);
}

int64_t redlock_lock_answer(redlock_lock *lock, int node, int field, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  if (!c)
    return -REDLOCK_INVALID;
  if (!has_node(lock, node) || field < REDLOCK_ANSWER_WORDS || field > REDLOCK_ANSWER_TEXT)
    return rlk_leave(c, -REDLOCK_INVALID);
  if (field == REDLOCK_ANSWER_WORDS)
    rlk_answer_words(lock, node, &out, rlk_client_now(c));
  else if (field == REDLOCK_ANSWER_TTL_MS && lock->votes[node] == RLK_BUSY)
    ttl_words(&lock->node_answers[node], &out, rlk_client_now(c));
  else if (field == REDLOCK_ANSWER_TOKEN && lock->op.kind == REDLOCK_INSPECT && lock->node_answers[node].value)
    rlk_text_add(&out, lock->node_answers[node].value);
  else if (field == REDLOCK_ANSWER_TEXT && lock->op.kind == REDLOCK_EXAMINE && lock->node_answers[node].value)
    rlk_text_add(&out, lock->node_answers[node].value);
  return rlk_leave_text(c, &out);
}

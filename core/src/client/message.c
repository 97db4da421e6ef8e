/* What the nodes said, in words. Texts are made when they are asked for, never on the way. */
#include <string.h>

#include "../lock/lease.h"
#include "../lock/operation.h"
#include "step.h"

/* What the connection to a node that could not be asked is like. */
static void down_words(const struct rl_node *n, struct rl_text *out)
{
  if (n->why[0])
    rl_text_add(out, n->why);
  else
    rl_text_add(out, n->state == RL_NODE_READY ? "could not be asked" : "connecting");
}

/* By hand: the program's locale may write a comma. */
static void tenths_words(int64_t tenths, struct rl_text *out)
{
  rl_text_format(out, " (%lld.%lld s left)", (long long)(tenths / 10), (long long)(tenths % 10));
}

static void left_words(const struct rl_said *said, struct rl_text *out, int64_t now)
{
  if (said->until_ns == RL_NEVER)
    rl_text_add(out, " (without a TTL)");
  else if (said->until_ns > now)
    tenths_words((said->until_ns - now + 50000000) / 100000000, out);
}

static int deletes(const redlock_lock *lock)
{
  return lock->kind == REDLOCK_RELEASE || lock->kind == REDLOCK_REMOVE;
}

static const char *granted_words(int kind)
{
  return kind == REDLOCK_RELEASE || kind == REDLOCK_REMOVE  ? "deleted"
         : kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE ? "extended"
                                                            : "granted";
}

static void answer_words(redlock_lock *lock, int node, struct rl_text *out, int64_t now)
{
  const struct rl_node *n = &lock->engine->net.nodes[node];
  const struct rl_said *said = &lock->said[node];
  switch (lock->answers[node]) {
  case RL_NOT_ASKED: rl_text_add(out, "not asked"); break;
  case RL_WAITING:
  case RL_RETRYING:
    rl_text_add(out, n->silent_ns ? "silent, reconnecting" : "connecting");
    rl_text_add(out, rl_in_flight(lock) ? "" : ", not waited for");
    break;
  case RL_ASKED: rl_text_add(out, rl_in_flight(lock) ? "no answer yet" : "not waited for"); break;
  case RL_GRANTED: rl_text_add(out, granted_words(lock->kind)); break;
  case RL_BUSY:
    rl_text_add(out, "busy");
    left_words(said, out, now);
    break;
  case RL_GONE: rl_text_add(out, deletes(lock) ? "nothing to delete" : "the token is gone"); break;
  case RL_FREE: rl_text_add(out, "free"); break;
  case RL_ERROR: rl_text_format(out, "error: %s", said->error ? said->error : "BUSY, not asked for a moment"); break;
  case RL_LATE: rl_text_add(out, "no answer in time"); break;
  case RL_DROPPED: rl_text_add(out, "connection lost"); break;
  case RL_OVERLOADED: rl_text_add(out, "too many answers outstanding"); break;
  case RL_REFUSED:
    if (said->error && !n->refused)
      rl_text_format(out, "error: %s", said->error);
    else
      down_words(n, out);
    break;
  default: down_words(n, out);
  }
}

static int vote(const redlock_lock *lock, int node)
{
  switch (lock->answers[node]) {
  case RL_WAITING:
  case RL_RETRYING:
  case RL_ASKED: return REDLOCK_PENDING;
  case RL_GRANTED: return REDLOCK_OK;
  case RL_BUSY: return REDLOCK_BUSY;
  case RL_GONE: return deletes(lock) ? REDLOCK_NOT_HELD : REDLOCK_LOST;
  case RL_ERROR: return REDLOCK_NO_QUORUM;
  case RL_LATE: return REDLOCK_TIMED_OUT;
  case RL_DROPPED:
  case RL_DOWN:
  case RL_OVERLOADED: return REDLOCK_UNREACHABLE;
  case RL_REFUSED: return REDLOCK_REFUSED_CONFIG;
  default: return REDLOCK_NOT_HELD;
  }
}

/* The client with its mutex held if lock and node are valid, else NULL. */
static redlock_client *enter(redlock_lock *lock, int node)
{
  if (!lock || node < 0)
    return NULL;
  pthread_mutex_lock(&rl_client_of(lock)->mutex);
  rl_client_enter(rl_client_of(lock));
  if (node < lock->engine->net.node_count)
    return rl_client_of(lock);
  rl_client_leave(rl_client_of(lock));
  return NULL;
}

int redlock_lock_vote(redlock_lock *lock, int node)
{
  redlock_client *c = enter(lock, node);
  int status;
  if (!c)
    return -REDLOCK_INVALID;
  status = vote(lock, node);
  rl_client_leave(c);
  return status;
}

static void ttl_words(const struct rl_said *said, struct rl_text *out, int64_t now)
{
  if (said->until_ns == RL_NEVER)
    rl_text_add(out, "none");
  else if (said->until_ns)
    rl_text_format(out, "%lld", said->until_ns > now ? (long long)((said->until_ns - now) / RL_NS_PER_MS) : 0LL);
}

int64_t redlock_lock_answer(redlock_lock *lock, int node, int field, char *buf, size_t size)
{
  struct rl_text out = rl_text_in(buf, size);
  redlock_client *c = field < REDLOCK_ANSWER_WORDS || field > REDLOCK_ANSWER_TOKEN ? NULL : enter(lock, node);
  if (!c)
    return -REDLOCK_INVALID;
  if (field == REDLOCK_ANSWER_WORDS)
    answer_words(lock, node, &out, rl_client_now(c));
  else if (field == REDLOCK_ANSWER_TTL_MS && lock->answers[node] == RL_BUSY)
    ttl_words(&lock->said[node], &out, rl_client_now(c));
  else if (field == REDLOCK_ANSWER_TOKEN && lock->said[node].value)
    rl_text_add(&out, lock->said[node].value);
  rl_client_leave(c);
  return (int64_t)out.length;
}

static const char *const verbs[] = {
    [0] = "asked for",
    [REDLOCK_ACQUIRE] = "granted",
    [REDLOCK_EXTEND] = "extended",
    [REDLOCK_RELEASE] = "deleted",
    [REDLOCK_EXPIRE] = "set the lease of",
    [REDLOCK_REMOVE] = "deleted",
};

static void headline(redlock_lock *lock, struct rl_text *out)
{
  redlock_client *c = rl_client_of(lock);
  struct rl_tally tally = rl_count(lock->answers, c->engine.net.node_count);
  if (lock->kind != REDLOCK_INSPECT)
    rl_text_format(out, "%d of %d nodes %s ", tally.granted, c->engine.net.node_count, verbs[lock->kind]);
  rl_text_escaped(out, rl_key_resource(lock->key), lock->key->resource_size);
  if (lock->kind == REDLOCK_INSPECT)
    rl_text_format(out, " is held on %d and free on %d of %d nodes", tally.busy, tally.free, c->engine.net.node_count);
  else
    rl_text_format(out, ", %d needed", c->engine.quorum);
}

/* What the operation came to, where the count of the nodes does not say it. */
static void verdict(const redlock_lock *lock, struct rl_text *out)
{
  int asks_only = lock->kind == REDLOCK_INSPECT || lock->kind == REDLOCK_REMOVE;
  int by_token = lock->kind != REDLOCK_ACQUIRE && lock->was_held == REDLOCK_STATE_ADOPTED;
  if (lock->status == REDLOCK_LOST && by_token) {
    rl_text_add(out, "nobody holds it with this token: ");
  } else if (lock->loss && !asks_only) {
    rl_text_add(out, "the lock was lost: ");
    rl_loss_words(lock, out);
    rl_text_add(out, ": ");
  } else if (lock->status == REDLOCK_BUSY && !asks_only) {
    rl_text_add(out, "held by others: ");
  } else if (lock->status == REDLOCK_CANCELLED || lock->status == REDLOCK_TIMED_OUT ||
             lock->status == REDLOCK_NO_MEMORY || lock->status == REDLOCK_FORKED || lock->status == REDLOCK_LOST) {
    rl_text_format(out, "%s: ", redlock_status_text(lock->status));
  }
}

static void message(redlock_lock *lock, struct rl_text *out)
{
  redlock_client *c = rl_client_of(lock);
  int64_t now = rl_client_now(c);
  if (lock->refusal) {
    rl_text_add(out, lock->refusal);
    return;
  }
  if (lock->status == REDLOCK_NOT_HELD && lock->kind == 0) {
    rl_text_add(out, "no operation has been started yet");
    return;
  }
  verdict(lock, out);
  headline(lock, out);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rl_text_format(out, "%s%.200s ", i ? ", " : ": ", c->engine.net.nodes[i].url.name);
    answer_words(lock, i, out, now);
  }
}

int64_t redlock_lock_message(redlock_lock *lock, char *buf, size_t size)
{
  struct rl_text out = rl_text_in(buf, size);
  if (!lock)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&rl_client_of(lock)->mutex);
  rl_client_enter(rl_client_of(lock));
  message(lock, &out);
  rl_client_leave(rl_client_of(lock));
  return (int64_t)out.length;
}

/* Acquire, extend, release, inspect as state machines: ask the nodes, count, retry, wait, clean up.
 *
 * An operation is a round on all nodes; an acquisition is several rounds with pauses between them. Everything moves by
 * three calls: an answer, a timer, a connection that came up or failed. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define MS RL_NS_PER_MS

static void advance(redlock_lock *lock, int64_t now);

int rl_in_flight(const redlock_lock *lock)
{
  return lock->status == REDLOCK_PENDING;
}

int rl_in_use(const redlock_lock *lock)
{
  return lock->occupied || rl_in_flight(lock);
}

/* ---- beginning and ending ---- */

static void begin(redlock_lock *lock, int kind)
{
  redlock_client *c = lock->client;
  lock->kind = kind;
  lock->status = REDLOCK_PENDING;
  lock->untold = 1;
  lock->phase = RL_ASKING_ALL;
  lock->round++;
  lock->started = 0;
  lock->timer_tight = 0;
  lock->deadline_ns = RL_NEVER;
  atomic_store(&lock->cancelled, 0);
  lock->previous_flight = NULL;
  lock->next_flight = c->flights;
  if (c->flights)
    c->flights->previous_flight = lock;
  c->flights = lock;
}

void rl_operation_end(redlock_lock *lock, int status)
{
  redlock_client *c = lock->client;
  if (!rl_in_flight(lock))
    return;
  lock->status = status;
  lock->phase = RL_IDLE;
  rl_timer_clear(&c->timers, &lock->timer);
  if (lock->next_flight)
    lock->next_flight->previous_flight = lock->previous_flight;
  if (lock->previous_flight)
    lock->previous_flight->next_flight = lock->next_flight;
  else
    c->flights = lock->next_flight;
  rl_claim_let_go(c, &lock->probe);
  if (lock->waiter)
    rl_client_wake(c, lock->waiter);
  if (lock->started)
    rl_client_tell(c, lock);
}

/* ---- a round ---- */

static void clear_answers(redlock_lock *lock)
{
  for (int i = 0; i < lock->client->node_count; i++) {
    struct rl_said *said = &lock->said[i];
    lock->answers[i] = RL_NOT_ASKED;
    free(said->value);
    said->value = NULL;
    said->until_ns = 0;
    said->error[0] = 0;
  }
}

static int send_set(redlock_lock *lock, struct rl_node *n, int64_t now)
{
  /* the hint is asked for behind the SET where nobody will ask later, and on retries (rule F) */
  int hint = lock->attempts > 1 || lock->attempts_max == 1;
  if (rl_node_send_set(n, lock, now) != 0)
    return -1;
  if (hint)
    rl_node_send_hint(n, lock->claim, lock->round, now); /* only a hint: without memory there is none */
  return 0;
}

/* Queues the round's request to a node that can be asked. */
static void ask(redlock_lock *lock, struct rl_node *n, int64_t now)
{
  int status = -1;
  switch (lock->kind) {
  case REDLOCK_ACQUIRE: status = send_set(lock, n, now); break;
  case REDLOCK_EXTEND: status = rl_node_send_extend(n, lock, 0, now); break;
  case REDLOCK_RELEASE: status = rl_node_send_delete(n, lock->claim, 0, lock->round, now); break;
  case REDLOCK_INSPECT: status = rl_node_send_inspect(n, lock, now); break;
  }
  lock->answers[n->index] = status == 0 ? RL_ASKED : RL_DOWN;
}

static void ask_or_note(redlock_lock *lock, int node, int64_t now)
{
  struct rl_node *n = &lock->client->nodes[node];
  int answer = rl_node_can_ask(n, lock->asked.node_timeout_ns, now);
  if (answer == RL_ASKED)
    ask(lock, n, now);
  else
    lock->answers[node] = (uint8_t)answer;
}

static void set_timer(redlock_lock *lock, int64_t at)
{
  rl_timer_set(&lock->client->timers, &lock->timer, at < lock->deadline_ns ? at : lock->deadline_ns);
}

/* Connections are waited for as long as they may take; once a quorum could be asked, only answers are. */
static void time_round(redlock_lock *lock, int64_t now)
{
  struct rl_tally tally = rl_count(lock->answers, lock->client->node_count);
  int connecting = tally.waiting + tally.retrying;
  int tight = connecting == 0 || (lock->kind != REDLOCK_INSPECT && tally.reached >= tally.quorum);
  if (tight && !lock->timer_tight) {
    lock->timer_tight = 1;
    set_timer(lock, now + lock->asked.node_timeout_ns);
  } else if (!lock->timer.place) {
    set_timer(lock, now + RL_INT(&lock->client->options, CONNECT_TIMEOUT_MS) * MS);
  }
}

static void ask_all(redlock_lock *lock, int but, int64_t now)
{
  lock->phase = RL_ASKING_ALL;
  lock->timer_tight = 0;
  rl_timer_clear(&lock->client->timers, &lock->timer);
  for (int i = 0; i < lock->client->node_count; i++)
    if (i != but)
      ask_or_note(lock, i, now);
  time_round(lock, now);
}

/* Does the round hope for a connection to the node? */
static int awaits(const redlock_lock *lock, int node)
{
  return lock->answers[node] == RL_WAITING || lock->answers[node] == RL_RETRYING;
}

/* The time of the round is over: what is open now stays open no longer. */
static void close_round(redlock_lock *lock)
{
  for (int i = 0; i < lock->client->node_count; i++) {
    if (lock->answers[i] == RL_ASKED)
      lock->answers[i] = RL_LATE;
    else if (awaits(lock, i))
      lock->answers[i] = RL_DOWN;
  }
}

/* ---- acquire ---- */

/* A home node that did not answer last time says nothing of the others: then all are asked again. */
static int last_told(const redlock_lock *lock)
{
  return lock->attempts > 1 && (lock->home < 0 || lock->answers[lock->home] == RL_BUSY);
}

static void attempt(redlock_lock *lock, int64_t now)
{
  redlock_client *c = lock->client;
  rl_lock_drop_claim(lock, now);
  lock->claim = rl_claim_new(lock); /* a fresh token per attempt (rule A.6) */
  if (!lock->claim) {
    rl_operation_end(lock, REDLOCK_NO_MEMORY);
    return;
  }
  lock->round++;
  lock->attempts++;
  c->attempts++;
  lock->home = last_told(lock) ? rl_waiting_home(lock, now) : -1;
  if (lock->home >= 0) {
    lock->phase = RL_ASKING_HOME;
    lock->said[lock->home].until_ns = 0;
    ask(lock, &c->nodes[lock->home], now);
    set_timer(lock, now + lock->asked.node_timeout_ns);
    return;
  }
  clear_answers(lock);
  ask_all(lock, -1, now);
  advance(lock, now);
}

static void ask_for_hints(redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->client->node_count; i++) {
    struct rl_node *n = &lock->client->nodes[i];
    int asked = lock->answers[i] == RL_BUSY || lock->answers[i] == RL_ASKED; /* its nil may still be under way */
    if (asked && n->state == RL_NODE_READY)
      rl_node_send_hint(n, lock->claim, lock->round, now);
  }
}

static void sleep_until(redlock_lock *lock, int64_t now)
{
  int64_t hint = rl_waiting_hint_ns(lock, now);
  set_timer(lock, hint < lock->wake_ns ? hint : lock->wake_ns);
}

/* The attempt has failed: clean up, then sleep and try again, or end with the verdict of the last full round. */
static void attempt_failed(redlock_lock *lock, int64_t now)
{
  int again = lock->verdict != REDLOCK_REFUSED_CONFIG && lock->attempts < lock->attempts_max &&
              now < lock->deadline_ns;
  rl_claim_give_up(lock->client, lock->claim, 0, 0, now);
  if (!again) {
    rl_operation_end(lock, lock->verdict);
    return;
  }
  if (lock->attempts == 1)
    ask_for_hints(lock, now);
  lock->phase = RL_SLEEPING;
  lock->wake_ns = now + rl_waiting_pause_ns(lock);
  sleep_until(lock, now);
}

static void won(redlock_lock *lock, int64_t now)
{
  lock->state = REDLOCK_STATE_HELD;
  lock->terms = lock->asked;
  lock->acquired_ns = now;
  lock->extensions = 0;
  lock->detached = 0;
  lock->client->acquired++;
  rl_lock_recount(lock, now);
  rl_renewal_begin(lock, now);
  rl_operation_end(lock, REDLOCK_OK);
}

static int64_t valid_until(const redlock_lock *lock)
{
  int64_t e_ns[RL_NODES_MAX];
  for (int i = 0; i < lock->client->node_count; i++)
    e_ns[i] = lock->claim->node[i].e_ns;
  return rl_valid_until(e_ns, lock->client->node_count, lock->client->quorum);
}

static void advance_acquire(redlock_lock *lock, int64_t now)
{
  struct rl_tally tally;
  int status;
  if (lock->phase == RL_ASKING_HOME) {
    int answer = lock->answers[lock->home];
    if (answer == RL_GRANTED)
      ask_all(lock, lock->home, now);
    else if (answer != RL_ASKED)
      attempt_failed(lock, now);
    if (answer != RL_GRANTED)
      return;
  }
  tally = rl_count(lock->answers, lock->client->node_count);
  status = rl_judge_acquire(&tally, tally.granted >= tally.quorum &&
                                        valid_until(lock) - now >= lock->asked.min_validity_ns);
  if (status == REDLOCK_PENDING)
    return;
  if (status == REDLOCK_OK) {
    won(lock, now);
    return;
  }
  lock->verdict = status;
  attempt_failed(lock, now);
}

static int begin_acquire(redlock_lock *lock, int64_t wait_ms, int64_t now)
{
  if (wait_ms == -2)
    wait_ms = RL_INT(&lock->options, WAIT_MS);
  begin(lock, REDLOCK_ACQUIRE);
  lock->state = REDLOCK_STATE_FREE;
  lock->attempts = 0;
  lock->home = -1;
  lock->attempts_max = INT64_MAX;
  if (wait_ms == 0)
    lock->attempts_max = 1;
  else if (RL_INT(&lock->options, RETRY_COUNT) >= 0)
    lock->attempts_max = 1 + RL_INT(&lock->options, RETRY_COUNT);
  if (wait_ms > 0)
    lock->deadline_ns = now + wait_ms * MS;
  lock->verdict = REDLOCK_TIMED_OUT;
  attempt(lock, now);
  return REDLOCK_OK;
}

/* The winner came back to its lock too late for it to be of use: that attempt has failed (rule A.2, min_validity). */
void rl_operation_retry(redlock_lock *lock, int64_t now)
{
  int64_t attempts = lock->attempts, attempts_max = lock->attempts_max, deadline_ns = lock->deadline_ns;
  int started = lock->started;
  rl_renewal_end(lock);
  rl_timer_clear(&lock->client->timers, &lock->lease_timer);
  lock->state = REDLOCK_STATE_FREE;
  begin(lock, REDLOCK_ACQUIRE);
  lock->started = started;
  lock->attempts = attempts;
  lock->attempts_max = attempts_max;
  lock->deadline_ns = deadline_ns;
  lock->verdict = REDLOCK_NO_QUORUM;
  attempt_failed(lock, now);
}

/* ---- extend ---- */

static void extended(redlock_lock *lock, int64_t now)
{
  if (lock->state == REDLOCK_STATE_ADOPTED) {
    lock->state = REDLOCK_STATE_HELD;
    lock->terms = lock->asked;
    lock->acquired_ns = now;
    lock->extensions = 0;
    rl_lock_recount(lock, now);
    if (lock->state == REDLOCK_STATE_HELD)
      rl_renewal_begin(lock, now);
  }
  lock->extensions++;
  rl_operation_end(lock, lock->state == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST);
}

static void advance_extend(redlock_lock *lock, int64_t now)
{
  struct rl_tally tally = rl_count(lock->answers, lock->client->node_count);
  int status = rl_judge_extend(&tally);
  if (lock->state == REDLOCK_STATE_LOST) {
    rl_operation_end(lock, REDLOCK_LOST);
  } else if (status == REDLOCK_OK) {
    extended(lock, now);
  } else if (status != REDLOCK_PENDING) {
    if (status == REDLOCK_LOST)
      rl_lock_lost(lock, "the token is gone on a majority");
    rl_operation_end(lock, status);
  }
}

static int beyond_limits(redlock_lock *lock, int64_t now)
{
  char why[160];
  struct rl_text text = rl_text_in(why, sizeof why);
  int64_t extensions_max = RL_INT(&lock->options, MAX_EXTENSIONS);
  int64_t hold_max_ms = RL_INT(&lock->options, MAX_HOLD_MS);
  if (lock->state != REDLOCK_STATE_HELD)
    return 0;
  if (extensions_max >= 0 && lock->extensions >= extensions_max)
    rl_text_format(&text, "no extension any more: max_extensions is %lld", (long long)extensions_max);
  else if (hold_max_ms >= 0 && now + lock->asked.ttl_ms * MS > lock->acquired_ns + hold_max_ms * MS)
    rl_text_format(&text, "no extension by ttl_ms %lld any more: max_hold_ms is %lld, held for %lld ms",
                   (long long)lock->asked.ttl_ms, (long long)hold_max_ms, (long long)((now - lock->acquired_ns) / MS));
  else
    return 0;
  rl_lock_refuse(lock, why);
  return 1;
}

static int begin_extend(redlock_lock *lock, int64_t now)
{
  if (beyond_limits(lock, now))
    return REDLOCK_LIMIT;
  begin(lock, REDLOCK_EXTEND);
  clear_answers(lock);
  ask_all(lock, -1, now);
  advance(lock, now);
  return REDLOCK_OK;
}

/* ---- release ---- */

static void advance_release(redlock_lock *lock)
{
  struct rl_tally tally = rl_count(lock->answers, lock->client->node_count);
  int adopted = lock->was_held == REDLOCK_STATE_ADOPTED;
  int status = rl_judge_release(&tally, adopted);
  if (status == REDLOCK_PENDING)
    return;
  if (!adopted) /* the nodes cannot take back what was known at the call */
    status = lock->was_held == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST;
  rl_operation_end(lock, status);
}

/* What the deletes that give_up queued, or could not queue, mean for the count. */
static void note_deletes(redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->client->node_count; i++) {
    int flags = lock->claim->node[i].flags;
    if (flags & RL_DELETE_OWED)
      lock->answers[i] = RL_ASKED;
    else if (!(flags & RL_MAY_HOLD))
      lock->answers[i] = RL_GONE; /* it never had the token, or does not any more */
    else
      ask_or_note(lock, i, now);
  }
}

static int begin_release(redlock_lock *lock, int64_t now)
{
  lock->was_held = lock->state;
  rl_renewal_end(lock);
  rl_timer_clear(&lock->client->timers, &lock->lease_timer);
  lock->state = REDLOCK_STATE_FREE; /* nobody may believe in the lock once the first delete is out (rule A.4) */
  lock->valid_until_ns = 0;
  begin(lock, REDLOCK_RELEASE);
  clear_answers(lock);
  rl_claim_give_up(lock->client, lock->claim, 0, lock->round, now);
  note_deletes(lock, now);
  time_round(lock, now);
  advance(lock, now);
  return REDLOCK_OK;
}

/* ---- inspect ---- */

static void advance_inspect(redlock_lock *lock)
{
  struct rl_tally tally = rl_count(lock->answers, lock->client->node_count);
  int status = rl_judge_inspect(&tally);
  if (status != REDLOCK_PENDING)
    rl_operation_end(lock, status);
}

static int begin_inspect(redlock_lock *lock, int64_t now)
{
  lock->probe = rl_claim_new(lock);
  if (!lock->probe)
    return REDLOCK_NO_MEMORY;
  begin(lock, REDLOCK_INSPECT);
  clear_answers(lock);
  ask_all(lock, -1, now);
  advance(lock, now);
  return REDLOCK_OK;
}

/* ---- all of them ---- */

static void advance(redlock_lock *lock, int64_t now)
{
  if (!rl_in_flight(lock) || lock->phase == RL_SLEEPING)
    return;
  switch (lock->kind) {
  case REDLOCK_ACQUIRE: advance_acquire(lock, now); break;
  case REDLOCK_EXTEND: advance_extend(lock, now); break;
  case REDLOCK_RELEASE: advance_release(lock); break;
  case REDLOCK_INSPECT: advance_inspect(lock); break;
  }
}

/* Says why a call was refused that never got as far as the nodes. */
static void explain(redlock_lock *lock, int kind, int status)
{
  static const char *const calls[] = {"", "acquire", "extend", "release", "inspect"};
  char why[400];
  struct rl_text text = rl_text_in(why, sizeof why);
  rl_text_format(&text, "%s: ", calls[kind]);
  rl_text_escaped(&text, rl_key_resource(lock->key), lock->key->resource_size);
  if (status == REDLOCK_LOST)
    rl_text_add(&text, " is not held any more");
  else if (status == REDLOCK_FORKED)
    rl_text_add(&text, " is held by the parent process");
  else
    rl_text_add(&text, " was not taken by this handle");
  rl_lock_refuse(lock, why);
}

/* The table of state and call at the end of redlock.h. */
static int refusal(redlock_lock *lock, int kind)
{
  int owned = lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED;
  if (lock->state == REDLOCK_STATE_INVALID)
    return REDLOCK_INVALID;
  if (kind == REDLOCK_INSPECT)
    return REDLOCK_OK;
  if (kind == REDLOCK_ACQUIRE) {
    if (!owned)
      return REDLOCK_OK;
    rl_lock_refuse(lock, "acquire: this handle holds a lock already; release or detach it first");
    return REDLOCK_INVALID;
  }
  if (lock->state == REDLOCK_STATE_FORKED)
    return REDLOCK_FORKED;
  if (lock->state == REDLOCK_STATE_LOST)
    return kind == REDLOCK_RELEASE ? REDLOCK_OK : REDLOCK_LOST;
  return owned ? REDLOCK_OK : REDLOCK_NOT_HELD;
}

static int check_arguments(redlock_lock *lock, int kind, int64_t arg)
{
  char why[256];
  struct rl_text text = rl_text_in(why, sizeof why);
  int status = REDLOCK_OK;
  if (kind == REDLOCK_ACQUIRE && (arg < -2 || arg > RL_YEAR_MS)) {
    rl_text_format(&text, "wait_ms is %lld; allowed: -2 to %lld", (long long)arg, (long long)RL_YEAR_MS);
    status = REDLOCK_INVALID;
  } else if (kind == REDLOCK_EXTEND && arg < 0) {
    rl_text_format(&text, "ttl_ms is %lld; allowed: %d to max_ttl_ms (%lld), or 0 for the option", (long long)arg,
                   RL_TTL_MS_MIN, (long long)RL_INT(&lock->options, MAX_TTL_MS));
    status = REDLOCK_INVALID;
  } else if (kind < REDLOCK_ACQUIRE || kind > REDLOCK_INSPECT) {
    rl_text_format(&text, "operation is %d; allowed: 1 to 4 (enum redlock_operation)", kind);
    status = REDLOCK_INVALID;
  } else if (kind == REDLOCK_ACQUIRE || kind == REDLOCK_EXTEND) {
    status = rl_terms_for(&lock->options, kind == REDLOCK_EXTEND ? arg : 0, &lock->asked, &text);
  }
  if (status != REDLOCK_OK)
    rl_lock_refuse(lock, why);
  return status;
}

/* Release and inspect have no TTL of their own; one that does not fit the options must not keep them from running. */
static void default_terms(redlock_lock *lock)
{
  struct rl_text nowhere = rl_text_in(NULL, 0);
  if (rl_terms_for(&lock->options, 0, &lock->asked, &nowhere) != REDLOCK_OK)
    lock->asked = (struct rl_terms){.ttl_ms = RL_TTL_MS_MIN, .node_timeout_ns = 50 * MS};
}

int rl_operation_begin(redlock_lock *lock, int kind, int64_t arg, int64_t now)
{
  int status;
  if (rl_in_use(lock))
    return REDLOCK_IN_FLIGHT;
  if (lock->client->state != RL_CLIENT_OPEN) {
    rl_lock_refuse(lock, "the client has been closed");
    return REDLOCK_INVALID;
  }
  rl_lock_is_held(lock, now);
  status = kind < REDLOCK_ACQUIRE || kind > REDLOCK_INSPECT ? REDLOCK_OK : refusal(lock, kind);
  if (status != REDLOCK_OK && status != REDLOCK_INVALID)
    explain(lock, kind, status);
  if (status == REDLOCK_OK)
    status = check_arguments(lock, kind, arg);
  if (status != REDLOCK_OK)
    return status;
  rl_lock_refuse(lock, NULL);
  switch (kind) {
  case REDLOCK_ACQUIRE: return begin_acquire(lock, arg, now);
  case REDLOCK_EXTEND: return begin_extend(lock, now);
  case REDLOCK_RELEASE: default_terms(lock); return begin_release(lock, now);
  default: default_terms(lock); return begin_inspect(lock, now);
  }
}

void rl_operation_cancel(redlock_lock *lock, int64_t now)
{
  atomic_store(&lock->cancelled, 0);
  if (!rl_in_flight(lock))
    return;
  if (lock->kind == REDLOCK_ACQUIRE && lock->claim && !lock->claim->over)
    rl_claim_give_up(lock->client, lock->claim, 0, 0, now);
  rl_operation_end(lock, REDLOCK_CANCELLED);
}

void rl_operation_timer(redlock_lock *lock, int64_t now)
{
  if (lock->kind == REDLOCK_ACQUIRE && now >= lock->deadline_ns) {
    if (!lock->claim->over)
      rl_claim_give_up(lock->client, lock->claim, 0, 0, now);
    rl_operation_end(lock, lock->verdict);
    return;
  }
  if (lock->phase == RL_SLEEPING) {
    attempt(lock, now);
    return;
  }
  if (lock->phase == RL_ASKING_HOME)
    lock->answers[lock->home] = RL_LATE;
  else
    close_round(lock);
  advance(lock, now);
}

/* A lock that was won before the node's connection was there takes its vote, too, as long as the round could have
 * waited for it: a lock on a bare majority survives no failure. */
static void ask_after_the_win(struct rl_node *n, int64_t now)
{
  for (redlock_lock *lock = n->client->locks; lock; lock = lock->next)
    if (lock->state == REDLOCK_STATE_HELD && lock->kind == REDLOCK_ACQUIRE && !rl_in_flight(lock) &&
        awaits(lock, n->index) && now - lock->acquired_ns < lock->asked.node_timeout_ns)
      ask(lock, n, now);
}

void rl_operation_node_ready(struct rl_node *n, int64_t now)
{
  redlock_lock *next;
  ask_after_the_win(n, now);
  for (redlock_lock *lock = n->client->flights; lock; lock = next) {
    next = lock->next_flight;
    if (lock->phase != RL_ASKING_ALL || !awaits(lock, n->index))
      continue;
    if (n->state == RL_NODE_SETUP && lock->kind != REDLOCK_ACQUIRE)
      continue; /* only a SET may join the set-up */
    ask(lock, n, now);
    time_round(lock, now);
  }
}

void rl_operation_node_down(struct rl_node *n, int64_t now)
{
  redlock_lock *next;
  for (redlock_lock *lock = n->client->flights; lock; lock = next) {
    uint8_t *answer = &lock->answers[n->index];
    next = lock->next_flight;
    if (lock->phase == RL_SLEEPING || (!awaits(lock, n->index) && (*answer != RL_ASKED || !n->refused)))
      continue;
    *answer = n->refused ? RL_REFUSED : RL_DOWN;
    if (lock->phase == RL_ASKING_ALL)
      time_round(lock, now);
    advance(lock, now);
  }
}

/* ---- answers ---- */

/* Notes an answer to the lock's last operation; that moves it on if it is in flight still. */
static void note(redlock_lock *lock, int node, const struct rl_owed *owed, int kind, int answer, int64_t now)
{
  if (lock->kind != kind || lock->round != owed->round)
    return;
  lock->answers[node] = (uint8_t)answer;
  advance(lock, now);
}

static void set_answer(redlock_lock *lock, int node, const struct rl_owed *owed, int answer, int64_t now)
{
  struct rl_claim *claim = owed->claim;
  if (claim->over) { /* of a finished attempt (rule A.3.3): no vote, but it tells who holds */
    if (answer == RL_BUSY && lock->round == owed->round)
      lock->answers[node] = RL_BUSY;
    return;
  }
  if (answer == RL_GRANTED)
    claim->node[node].e_ns = owed->sent_ns + owed->lease_ns;
  if (answer == RL_GRANTED && rl_lock_is_held(lock, now))
    rl_lock_recount(lock, now); /* a vote after the win makes the lock outlive more failures */
  note(lock, node, owed, REDLOCK_ACQUIRE, answer, now);
}

/* A confirmation counts only while the lock is held: a late one never revives it (sticky, rules 0 and B.2). */
static void extend_answer(redlock_lock *lock, int node, const struct rl_owed *owed, int answer, int64_t now)
{
  struct rl_claim *claim = owed->claim;
  int64_t e_ns = owed->sent_ns + owed->lease_ns;
  int usable = !claim->over && (lock->state == REDLOCK_STATE_ADOPTED || rl_lock_is_held(lock, now));
  if (usable && answer == RL_GRANTED && e_ns > claim->node[node].e_ns)
    claim->node[node].e_ns = e_ns;
  if (usable && answer == RL_GONE)
    claim->node[node].e_ns = 0;
  if (usable && lock->state == REDLOCK_STATE_HELD)
    rl_lock_recount(lock, now);
  if (owed->kind == RL_OWED_RENEW)
    rl_renewal_confirmed(lock, now);
  else
    note(lock, node, owed, REDLOCK_EXTEND, answer, now);
}

void rl_operation_answer(struct rl_node *n, const struct rl_owed *owed, int answer, int64_t now)
{
  redlock_lock *lock = owed->claim->lock;
  int mine = lock && (lock->claim == owed->claim || lock->probe == owed->claim);
  if (!mine)
    return;
  switch (owed->kind) {
  case RL_OWED_SET: set_answer(lock, n->index, owed, answer, now); break;
  case RL_OWED_EXTEND:
  case RL_OWED_RENEW: extend_answer(lock, n->index, owed, answer, now); break;
  case RL_OWED_DELETE: note(lock, n->index, owed, REDLOCK_RELEASE, answer, now); break;
  case RL_OWED_VALUE:
  case RL_OWED_TTL:
    if (lock->answers[n->index] == RL_ASKED)
      note(lock, n->index, owed, REDLOCK_INSPECT, answer, now);
    break;
  default: break;
  }
}

void rl_operation_hint(struct rl_node *n, const struct rl_owed *owed, int64_t pttl_ms, int64_t now)
{
  redlock_lock *lock = owed->claim->lock;
  if (!lock || owed->round != lock->round)
    return;
  lock->said[n->index].until_ns = pttl_ms == -1 ? RL_NEVER : now + (pttl_ms > 0 ? pttl_ms * MS : 0);
  if (rl_in_flight(lock) && lock->phase == RL_SLEEPING)
    sleep_until(lock, now);
}

void rl_operation_value(struct rl_node *n, const struct rl_owed *owed, const struct rl_reply *reply)
{
  redlock_lock *lock = owed->claim->lock;
  struct rl_text text;
  char value[300];
  if (!lock || lock->probe != owed->claim || reply->type != RL_REPLY_STRING)
    return;
  text = rl_text_in(value, sizeof value);
  rl_text_escaped(&text, reply->text.data, reply->text.end);
  free(lock->said[n->index].value);
  lock->said[n->index].value = strdup(value); /* without memory the value is not shown */
}

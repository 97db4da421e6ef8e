/* Life of a lock handle; what is known of the lease without asking anybody. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define RESOURCE_SIZE_MAX ((size_t)512 << 20)

/* ---- the lease ---- */

/* The lock takes a new token or ends: what the old one may have left behind is deleted. */
void rl_lock_drop_claim(redlock_lock *lock, int64_t now)
{
  if (lock->claim && !lock->claim->over && !lock->detached)
    rl_claim_give_up(lock->client, lock->claim, 0, 0, now);
  rl_claim_let_go(lock->client, &lock->claim);
  lock->detached = 0;
}

void rl_lock_lost(redlock_lock *lock, const char *reason)
{
  redlock_client *c = lock->client;
  if (lock->state != REDLOCK_STATE_HELD && lock->state != REDLOCK_STATE_ADOPTED)
    return;
  lock->state = REDLOCK_STATE_LOST;
  lock->valid_until_ns = 0;
  rl_timer_clear(&c->timers, &lock->lease_timer);
  rl_renewal_end(lock);
  c->lost++;
  rl_event_add(c, RL_EVENT_LOST, -1, lock, reason);
  rl_client_tell(c, lock);
}

int rl_lock_is_held(redlock_lock *lock, int64_t now)
{
  if (lock->state != REDLOCK_STATE_HELD)
    return 0;
  if (now < lock->valid_until_ns)
    return 1;
  rl_lock_lost(lock, "the lease ran out");
  return 0;
}

void rl_lock_recount(redlock_lock *lock, int64_t now)
{
  redlock_client *c = lock->client;
  int64_t e_ns[RL_NODES_MAX];
  if (lock->state != REDLOCK_STATE_HELD)
    return;
  for (int i = 0; i < c->node_count; i++)
    e_ns[i] = lock->claim->node[i].e_ns;
  lock->valid_until_ns = rl_valid_until(e_ns, c->node_count, c->quorum);
  if (rl_lock_is_held(lock, now))
    rl_timer_set(&c->timers, &lock->lease_timer, lock->valid_until_ns);
}

void rl_lock_refuse(redlock_lock *lock, const char *text)
{
  free(lock->refusal);
  lock->refusal = text ? strdup(text) : NULL; /* without memory the status alone tells it */
}

/* In a child: the parent's lock is not ours. */
void rl_lock_forked(redlock_lock *lock)
{
  if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED)
    lock->state = REDLOCK_STATE_FORKED;
  if (rl_in_flight(lock)) {
    lock->state = REDLOCK_STATE_FORKED;
    lock->waiter = NULL;
    rl_operation_end(lock, REDLOCK_FORKED);
  }
  lock->occupied = 0;
  lock->valid_until_ns = 0;
  rl_timer_clear(&lock->client->timers, &lock->lease_timer);
  rl_renewal_end(lock);
}

/* ---- handles ---- */

static redlock_client *enter(redlock_lock *lock)
{
  pthread_mutex_lock(&lock->client->mutex);
  rl_client_enter(lock->client);
  return lock->client;
}

static void check_new(redlock_lock *lock, const void *resource, size_t size)
{
  char why[96];
  struct rl_text text = rl_text_in(why, sizeof why);
  rl_text_format(&text, "resource has %zu bytes; allowed: 1 to %zu", resource ? size : 0, RESOURCE_SIZE_MAX);
  if (!resource || size == 0 || size > RESOURCE_SIZE_MAX)
    rl_lock_refuse(lock, why);
  else if (lock->client->state != RL_CLIENT_OPEN)
    rl_lock_refuse(lock, "the client is not open");
  else
    return;
  lock->state = REDLOCK_STATE_INVALID;
}

static redlock_lock *allocate(redlock_client *c, const void *resource, size_t size)
{
  size_t nodes = c->node_count > 0 ? (size_t)c->node_count : 1;
  redlock_lock *lock = calloc(1, sizeof *lock + nodes);
  if (!lock)
    return NULL;
  lock->client = c;
  lock->status = REDLOCK_NOT_HELD;
  lock->home = -1;
  lock->timer.kind = RL_TIMER_OPERATION;
  lock->lease_timer.kind = RL_TIMER_LEASE;
  lock->said = calloc(nodes, sizeof *lock->said);
  check_new(lock, resource, size);
  if (lock->state == REDLOCK_STATE_INVALID)
    size = 0;
  lock->key = rl_key_new(c->key_prefix ? c->key_prefix : "", size ? resource : "", size);
  if (lock->said && lock->key && rl_timers_reserve(&c->timers, 2) == 0)
    return lock;
  rl_key_drop(lock->key);
  free(lock->said);
  free(lock->refusal);
  free(lock);
  return NULL;
}

redlock_lock *redlock_lock_new(redlock_client *client, const void *resource, size_t size)
{
  redlock_lock *lock;
  if (!client)
    return NULL;
  pthread_mutex_lock(&client->mutex);
  rl_client_enter(client);
  lock = allocate(client, resource, size);
  if (lock) {
    lock->options = client->options;
    client->users++;
    lock->next = client->locks;
    if (client->locks)
      client->locks->previous = lock;
    client->locks = lock;
  }
  rl_client_leave(client);
  return lock;
}

static void leave_ended(redlock_client *c, redlock_lock *lock)
{
  redlock_lock **at = &c->ended, *previous = NULL;
  if (!lock->is_ended)
    return;
  while (*at != lock) {
    previous = *at;
    at = &(*at)->next_ended;
  }
  *at = lock->next_ended;
  if (c->last_ended == lock)
    c->last_ended = previous;
}

static void unlink_lock(redlock_client *c, redlock_lock *lock)
{
  leave_ended(c, lock);
  if (lock->previous)
    lock->previous->next = lock->next;
  else
    c->locks = lock->next;
  if (lock->next)
    lock->next->previous = lock->previous;
  rl_timers_reserve(&c->timers, -2);
}

void redlock_lock_free(redlock_lock *lock)
{
  redlock_client *c;
  int64_t now;
  if (!lock)
    return;
  c = enter(lock);
  now = rl_now(c);
  rl_operation_cancel(lock, now);
  rl_renewal_end(lock);
  rl_timer_clear(&c->timers, &lock->lease_timer);
  rl_lock_drop_claim(lock, now);
  unlink_lock(c, lock);
  for (int i = 0; i < c->node_count; i++)
    free(lock->said[i].value);
  rl_key_drop(lock->key);
  free(lock->said);
  free(lock->refusal);
  free(lock);
  rl_client_send(c);
  rl_client_unref(c);
}

int redlock_lock_set(redlock_lock *lock, const char *name, const char *value)
{
  char why[512];
  struct rl_text text = rl_text_in(why, sizeof why);
  int option, status = REDLOCK_INVALID;
  redlock_client *c;
  if (!lock || !name || !value)
    return REDLOCK_INVALID;
  c = enter(lock);
  option = rl_option_find(name, 1);
  if (rl_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (option < 0)
    rl_option_unknown(name, 1, &text);
  else
    status = rl_option_parse(&lock->options, option, value, &text);
  if (status != REDLOCK_IN_FLIGHT && lock->state != REDLOCK_STATE_INVALID)
    rl_lock_refuse(lock, status == REDLOCK_OK ? NULL : why);
  rl_client_leave(c);
  return status;
}

int64_t redlock_lock_get(redlock_lock *lock, const char *name, char *buf, size_t size)
{
  struct rl_text text = rl_text_in(buf, size);
  redlock_client *c;
  int option;
  if (!lock || !name)
    return -REDLOCK_INVALID;
  option = rl_option_find(name, 0);
  if (option < 0)
    return -REDLOCK_INVALID;
  if (rl_option_is_text(option))
    return redlock_client_get(lock->client, name, buf, size);
  c = enter(lock);
  rl_option_format(&lock->options, option, &text);
  rl_client_leave(c);
  return (int64_t)text.length;
}

int redlock_lock_set_tag(redlock_lock *lock, uint64_t tag)
{
  redlock_client *c;
  if (!lock)
    return REDLOCK_INVALID;
  c = enter(lock);
  lock->tag = tag;
  rl_client_leave(c);
  return REDLOCK_OK;
}

/* ---- operations ---- */

static int needs_keeper(redlock_lock *lock, int kind)
{
  return (kind == REDLOCK_ACQUIRE || kind == REDLOCK_EXTEND) && RL_INT(&lock->options, RENEW) &&
         !lock->client->env.stepped;
}

static int begin(redlock_lock *lock, redlock_client *c, int kind, int64_t arg)
{
  int64_t now = rl_now(c);
  /* input that waits from before: replies, and connections that the server closed while nobody looked (rule A.3.0) */
  if (!c->driven && now - c->polled_ns > RL_NS_PER_MS) {
    rl_client_poll(c);
    now = rl_now(c);
    rl_client_step(c, now);
  }
  return rl_operation_begin(lock, kind, arg, now);
}

/* Another thread may have won the lock for this one, which the system let run only after the lease was used up. */
static int won_too_late(const redlock_lock *lock, int64_t now)
{
  if (!lock->untold || lock->status != REDLOCK_OK || lock->kind != REDLOCK_ACQUIRE)
    return 0;
  return lock->state == REDLOCK_STATE_LOST ||
         (lock->state == REDLOCK_STATE_HELD && lock->valid_until_ns - now < lock->asked.min_validity_ns);
}

/* Waits for the operation's end and takes the result. The last look before the caller believes in its lock (rule A.1):
 * what was won too late counts as failed. */
static int result(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  lock->occupied = 1;
  rl_client_drive(c, lock, until_ns, interruptible);
  for (int64_t now = rl_now(c); won_too_late(lock, now); now = rl_now(c)) {
    rl_operation_retry(lock, now);
    rl_client_drive(c, lock, until_ns, interruptible);
  }
  lock->occupied = 0;
  lock->untold = rl_in_flight(lock);
  return lock->status;
}

static int blocking(redlock_lock *lock, int kind, int64_t arg)
{
  redlock_client *c;
  int status;
  if (!lock)
    return REDLOCK_INVALID;
  if (needs_keeper(lock, kind)) {
    status = rl_keeper_ensure(lock->client);
    if (status != REDLOCK_OK)
      return status;
  }
  c = enter(lock);
  status = begin(lock, c, kind, arg);
  if (status == REDLOCK_OK)
    status = result(c, lock, RL_NEVER, 0);
  if (status == REDLOCK_PENDING) { /* nothing to wait on could be made */
    rl_operation_cancel(lock, rl_now(c));
    status = REDLOCK_INTERNAL;
  }
  rl_client_leave(c);
  return status;
}

int redlock_lock_acquire(redlock_lock *lock, int64_t wait_ms)
{
  return blocking(lock, REDLOCK_ACQUIRE, wait_ms);
}

int redlock_lock_extend(redlock_lock *lock, int64_t ttl_ms)
{
  return blocking(lock, REDLOCK_EXTEND, ttl_ms);
}

int redlock_lock_release(redlock_lock *lock)
{
  return blocking(lock, REDLOCK_RELEASE, 0);
}

int redlock_lock_start(redlock_lock *lock, int operation, int64_t arg)
{
  redlock_client *c;
  int status, kind = operation > 0 ? operation & ~REDLOCK_AT_ONCE : operation;
  if (!lock)
    return REDLOCK_INVALID;
  if (needs_keeper(lock, kind)) {
    status = rl_keeper_ensure(lock->client);
    if (status != REDLOCK_OK)
      return status;
  }
  c = enter(lock);
  status = begin(lock, c, kind, arg);
  if (status == REDLOCK_OK) {
    lock->started = 1;
    if (!rl_in_flight(lock))
      rl_client_tell(c, lock);
    if (operation & REDLOCK_AT_ONCE)
      rl_client_send(c);
    else
      rl_client_queued(c);
  }
  rl_client_leave(c);
  return status;
}

int redlock_lock_wait(redlock_lock *lock, int64_t limit_ms)
{
  redlock_client *c;
  int64_t until_ns;
  int status;
  if (!lock || limit_ms < -1)
    return REDLOCK_INVALID;
  c = enter(lock);
  until_ns = limit_ms < 0 || limit_ms > RL_YEAR_MS ? RL_NEVER : rl_now(c) + limit_ms * RL_NS_PER_MS;
  status = lock->occupied ? REDLOCK_IN_FLIGHT : result(c, lock, until_ns, 1);
  rl_client_leave(c);
  return status;
}

int redlock_lock_cancel(redlock_lock *lock)
{
  redlock_client *c;
  if (!lock)
    return REDLOCK_INVALID;
  c = lock->client;
  atomic_store(&lock->cancelled, 1);
  atomic_fetch_add(&c->cancels, 1);
  /* nothing else is safe in a signal handler: every entry looks at the mark before it does anything */
  if (!c->env.stepped) {
    rl_poller_wake(&c->poller);
    rl_poller_notify(&c->poller);
  }
  return REDLOCK_OK;
}

static int is_token(redlock_lock *lock, const char *token)
{
  char why[320];
  struct rl_text text = rl_text_in(why, sizeof why);
  if (token && strspn(token, "0123456789abcdef") == RL_TOKEN_SIZE && !token[RL_TOKEN_SIZE])
    return 1;
  rl_text_add(&text, "token is \"");
  rl_text_escaped(&text, token ? token : "", token ? strlen(token) : 0);
  rl_text_add(&text, "\"; allowed: 40 lower-case hexadecimal digits");
  rl_lock_refuse(lock, why);
  return 0;
}

int redlock_lock_adopt(redlock_lock *lock, const char *token)
{
  redlock_client *c;
  int status = REDLOCK_INVALID;
  int64_t now;
  if (!lock)
    return REDLOCK_INVALID;
  c = enter(lock);
  now = rl_now(c);
  rl_lock_is_held(lock, now);
  if (rl_in_use(lock)) {
    status = REDLOCK_IN_FLIGHT;
  } else if (lock->state == REDLOCK_STATE_INVALID || !is_token(lock, token)) {
    status = REDLOCK_INVALID;
  } else if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED) {
    rl_lock_refuse(lock, "adopt: this handle holds a lock already; release or detach it first");
  } else {
    rl_lock_drop_claim(lock, now);
    lock->claim = rl_claim_new(lock);
    status = lock->claim ? REDLOCK_OK : REDLOCK_NO_MEMORY;
  }
  if (status == REDLOCK_OK) {
    int64_t longest_ns = 2 * RL_INT(&c->options, MAX_TTL_MS) * RL_NS_PER_MS;
    memcpy(lock->claim->token, token, RL_TOKEN_SIZE);
    for (int i = 0; i < c->node_count; i++)
      lock->claim->node[i].flags = RL_MAY_HOLD;
    lock->claim->holders = c->node_count;
    lock->claim->until_ns = now + longest_ns;
    lock->state = REDLOCK_STATE_ADOPTED;
    rl_lock_refuse(lock, NULL);
  }
  rl_client_leave(c);
  return status;
}

int redlock_lock_detach(redlock_lock *lock)
{
  redlock_client *c;
  int status = REDLOCK_OK;
  if (!lock)
    return REDLOCK_INVALID;
  c = enter(lock);
  rl_lock_is_held(lock, rl_now(c));
  if (rl_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (lock->state == REDLOCK_STATE_INVALID)
    status = REDLOCK_INVALID;
  else if (lock->state == REDLOCK_STATE_FORKED)
    status = REDLOCK_FORKED;
  else if (lock->state == REDLOCK_STATE_LOST)
    status = REDLOCK_LOST;
  else if (lock->state == REDLOCK_STATE_FREE)
    status = REDLOCK_NOT_HELD;
  if (status == REDLOCK_OK) {
    rl_renewal_end(lock);
    rl_timer_clear(&c->timers, &lock->lease_timer);
    for (int i = 0; i < c->node_count; i++)
      rl_node_unsend(&c->nodes[i], lock->claim); /* no SET of ours may come after the hand-over */
    rl_claim_forget(c, lock->claim);
    lock->detached = 1;
    lock->valid_until_ns = 0;
    lock->state = REDLOCK_STATE_FREE;
  }
  rl_client_leave(c);
  return status;
}

/* ---- local facts ---- */

int redlock_lock_status(redlock_lock *lock)
{
  redlock_client *c;
  int status;
  if (!lock)
    return REDLOCK_INVALID;
  c = enter(lock);
  status = lock->state == REDLOCK_STATE_INVALID ? REDLOCK_INVALID : lock->status;
  if (!lock->occupied && !rl_in_flight(lock))
    lock->untold = 0;
  rl_client_leave(c);
  return status;
}

int redlock_lock_state(redlock_lock *lock)
{
  redlock_client *c;
  int state;
  if (!lock)
    return REDLOCK_STATE_INVALID;
  c = enter(lock);
  rl_lock_is_held(lock, rl_now(c));
  state = lock->state;
  rl_client_leave(c);
  return state;
}

int64_t redlock_lock_validity_ms(redlock_lock *lock)
{
  redlock_client *c;
  int64_t now, validity_ms = 0;
  if (!lock)
    return -REDLOCK_INVALID;
  c = enter(lock);
  now = rl_now(c);
  if (rl_lock_is_held(lock, now))
    validity_ms = (lock->valid_until_ns - now) / RL_NS_PER_MS;
  rl_client_leave(c);
  return validity_ms;
}

int64_t redlock_lock_token(redlock_lock *lock, char *buf, size_t size)
{
  struct rl_text text = rl_text_in(buf, size);
  redlock_client *c;
  if (!lock)
    return -REDLOCK_INVALID;
  c = enter(lock);
  if (lock->claim)
    rl_text_bytes(&text, lock->claim->token, RL_TOKEN_SIZE);
  rl_client_leave(c);
  return (int64_t)text.length;
}

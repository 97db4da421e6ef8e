/* Lock handles: the functions of the public header, each around the client's mutex. */
#include <stdlib.h>
#include <string.h>

#include "../base/fork.h"
#include "../base/list.h"
#include "../base/mutant.h"
#include "../lock/asking.h"
#include "../lock/holder.h"
#include "../lock/lease.h"
#include "../lock/operation.h"
#include "../lock/queue.h"
#include "../lock/release.h"
#include "driver.h"
#include "keeper.h"
#include "life.h"
#include "step.h"

#define RESOURCE_SIZE_MAX ((size_t)512 << 20)

/* ---- handles ---- */

/* Whether the key, or the resource alone, is among the library's own: behind another prefix it may be another program's
 * fencing number or queue. */
static int is_reserved(const struct rlk_key *key, const char *prefix)
{
  static const char own[] = "libredlock:";
  size_t own_size = sizeof own - 1, prefix_size = strlen(prefix);
  const char *resource = rlk_key_resource(key);
  return (key->resource_size >= own_size && memcmp(resource, own, own_size) == 0) ||
         (prefix_size + key->resource_size >= own_size && memcmp(resource - prefix_size, own, own_size) == 0);
}

static void check_new(redlock_lock *lock, const void *resource, size_t size)
{
  char why[96];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  rlk_text_format(&text, "resource has %zu bytes; allowed: 1 to %zu", resource ? size : 0, RESOURCE_SIZE_MAX);
  if (!resource || size == 0 || size > RESOURCE_SIZE_MAX)
    rlk_lock_refuse(lock, why);
  else if (lock->engine->net.state != RLK_NET_OPEN)
    rlk_lock_refuse(lock, "the client is not open");
  else
    return;
  lock->state = REDLOCK_STATE_INVALID;
}

static redlock_lock *allocate(redlock_client *c, const void *resource, size_t size)
{
  const char *prefix = RLK_STRING(&c->engine.net, KEY_PREFIX) ? RLK_STRING(&c->engine.net, KEY_PREFIX) : "";
  size_t nodes = c->engine.net.node_count > 0 ? (size_t)c->engine.net.node_count : 1;
  redlock_lock *lock = calloc(1, sizeof *lock + nodes);
  if (!lock)
    return NULL;
  lock->engine = &c->engine;
  lock->status = REDLOCK_NOT_HELD;
  lock->home = -1;
  lock->timer.kind = RLK_TIMER_OPERATION;
  lock->lease_timer.kind = RLK_TIMER_LEASE;
  lock->node_answers = calloc(nodes, sizeof *lock->node_answers);
  check_new(lock, resource, size);
  if (lock->state == REDLOCK_STATE_INVALID)
    size = 0;
  lock->key = rlk_key_new(prefix, size ? resource : "", size);
  if (lock->node_answers && lock->key && rlk_timers_reserve(&c->engine.net.timers, 2) == 0) {
    lock->is_reserved = is_reserved(lock->key, prefix);
    return lock;
  }
  rlk_key_drop(lock->key);
  free(lock->node_answers);
  free(lock->refusal);
  free(lock);
  return NULL;
}

static redlock_lock *add_lock(redlock_client *client, const void *resource, size_t size)
{
  redlock_lock *lock = allocate(client, resource, size);
  if (lock) {
    lock->options = client->engine.net.options;
    client->users++;
    lock->next = client->engine.locks;
    if (client->engine.locks)
      client->engine.locks->previous = lock;
    client->engine.locks = lock;
  }
  return lock;
}

redlock_lock *redlock_lock_new(redlock_client *client, const void *resource, size_t size)
{
  redlock_lock *lock;
  if (!client)
    return NULL;
  pthread_mutex_lock(&client->mutex);
  rlk_client_enter(client);
  lock = add_lock(client, resource, size);
  rlk_client_leave(client);
  return lock;
}

redlock_lock *redlock_lock_new_probe(redlock_client *client)
{
  char name[48];
  struct rlk_text text = rlk_text_in(name, sizeof name);
  redlock_lock *lock;
  if (!client)
    return NULL;
  pthread_mutex_lock(&client->mutex);
  rlk_client_enter(client);
  rlk_text_format(&text, "libredlock:probe:%016llx", (unsigned long long)rlk_random(&client->engine.net));
  lock = add_lock(client, name, strlen(name));
  if (lock)
    lock->is_reserved = 0;
  rlk_client_leave(client);
  return lock;
}

static void leave_ended(redlock_client *c, redlock_lock *lock)
{
  if (!lock->is_ended)
    return;
  RLK_LIST_REMOVE(c->engine.ended, c->engine.last_ended, lock, _ended);
}

static void leave_unwritten(redlock_client *c, redlock_lock *lock)
{
  redlock_lock **at = &c->engine.unwritten;
  if (!lock->unwritten)
    return;
  while (*at != lock)
    at = &(*at)->next_unwritten;
  *at = lock->next_unwritten;
}

static void unlink_lock(redlock_client *c, redlock_lock *lock)
{
  leave_ended(c, lock);
  leave_unwritten(c, lock);
  if (lock->previous)
    lock->previous->next = lock->next;
  else
    c->engine.locks = lock->next;
  if (lock->next)
    lock->next->previous = lock->previous;
  rlk_timers_reserve(&c->engine.net.timers, -2);
}

void redlock_lock_free(redlock_lock *lock)
{
  redlock_client *c;
  int64_t now;
  if (!lock)
    return;
  c = rlk_lock_enter(lock);
  now = rlk_client_now(c);
  rlk_operation_cancel(lock, now);
  rlk_lock_end_renewal(lock);
  rlk_timer_clear(&c->engine.net.timers, &lock->lease_timer);
  if (lock->state == REDLOCK_STATE_ADOPTED) /* not confirmed: it is still whose it was */
    rlk_claim_forget(&c->engine, lock->claim);
  else
    rlk_lock_drop_claim(lock, now);
  rlk_claim_let_go(&c->engine, &lock->claim);
  unlink_lock(c, lock);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    free(lock->node_answers[i].value);
    free(lock->node_answers[i].error);
  }
  rlk_holder_drop(lock);
  rlk_key_drop(lock->key);
  free(lock->node_answers);
  free(lock->refusal);
  free(lock);
  rlk_client_send(c);
  rlk_client_unref(c);
}

int redlock_lock_set(redlock_lock *lock, const char *name, const char *value)
{
  char why[512];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  int option, status = REDLOCK_INVALID;
  redlock_client *c;
  if (!lock || !name || !value)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  option = rlk_option_find(name, 1);
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (option < 0)
    rlk_option_unknown(name, 1, &text);
  else
    status = rlk_option_parse(&lock->options, option, value, &text);
  if (status != REDLOCK_IN_FLIGHT && lock->state != REDLOCK_STATE_INVALID)
    rlk_lock_refuse(lock, status == REDLOCK_OK ? NULL : why);
  rlk_client_leave(c);
  return status;
}

int redlock_lock_check(redlock_lock *lock)
{
  char why[512];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  struct rlk_terms terms;
  int status = REDLOCK_INVALID;
  redlock_client *c;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (lock->state != REDLOCK_STATE_INVALID) {
    status = rlk_terms_for(&lock->options, 0, &terms, &text);
    rlk_lock_refuse(lock, status == REDLOCK_OK ? NULL : why);
  }
  rlk_client_leave(c);
  return status;
}

int64_t redlock_lock_get(redlock_lock *lock, const char *name, char *buf, size_t size)
{
  struct rlk_text text = rlk_text_in(buf, size);
  redlock_client *c;
  int option;
  if (!lock || !name)
    return -REDLOCK_INVALID;
  option = rlk_option_find(name, 0);
  if (option < 0)
    return -REDLOCK_INVALID;
  if (rlk_option_is_text(option))
    return redlock_client_get(rlk_client_of(lock), name, buf, size);
  c = rlk_lock_enter(lock);
  rlk_option_format(&lock->options, option, &text);
  rlk_client_leave(c);
  return (int64_t)text.length;
}

int redlock_lock_set_tag(redlock_lock *lock, uint64_t tag)
{
  redlock_client *c;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  lock->tag = tag;
  rlk_client_leave(c);
  return REDLOCK_OK;
}

/* ---- operations ---- */

static int confers_a_lease(int kind)
{
  return kind == REDLOCK_ACQUIRE || kind == REDLOCK_EXTEND || kind == REDLOCK_EXPIRE;
}

/* The thread that renews has to be there before the lock is taken. */
static int get_keeper(redlock_lock *lock, int kind)
{
  redlock_client *c = rlk_client_of(lock);
  int status;
  if (!confers_a_lease(kind) || !RLK_INT(&lock->options, RENEW) || c->engine.net.env.stepped)
    return REDLOCK_OK;
  status = rlk_keeper_ensure();
  if (status == REDLOCK_OK)
    return REDLOCK_OK;
  rlk_lock_enter(lock);
  rlk_lock_refuse(lock, "renew: the renewal thread could not be started");
  rlk_client_leave(c);
  return status;
}

static int begin(redlock_lock *lock, redlock_client *c, int kind, int64_t arg)
{
  int64_t now = rlk_client_now(c);
  /* input that waits from before: replies, and connections that the server closed while nobody looked (rule A.3.0) */
  if (!c->driven && now - c->polled_ns > RLK_NS_PER_MS) {
    rlk_client_poll(c);
    now = rlk_client_now(c);
    rlk_client_step(c, now);
  }
  return rlk_operation_begin(lock, kind, arg, now);
}

/* The client leaves: it has released the lock, or is about to; of an acquisition nobody hears OK then. */
static int is_given_back(const redlock_lock *lock)
{
  if (lock->state == REDLOCK_STATE_FREE)
    return !lock->claim || !lock->claim->is_detached;
  return lock->kind == REDLOCK_ACQUIRE && lock->engine->net.state != RLK_NET_OPEN;
}

/* The last look before a caller believes in its lock: nobody is told OK of a lock that is not held (rule A.1). */
static int last_look(redlock_lock *lock, int64_t now)
{
  if (RLK_MUTANT(NO_LAST_LOOK))
    return lock->status;
  rlk_lock_is_held(lock, now);
  if (lock->state == REDLOCK_STATE_INVALID)
    return REDLOCK_INVALID;
  if (lock->status != REDLOCK_OK || !confers_a_lease(lock->kind))
    return lock->status;
  if (lock->state == REDLOCK_STATE_FORKED)
    lock->status = REDLOCK_FORKED;
  else if (is_given_back(lock))
    lock->status = REDLOCK_CANCELLED;
  else if (lock->state == REDLOCK_STATE_LOST)
    lock->status = REDLOCK_LOST;
  return lock->status;
}

/* Another thread may have won the lock for this one, which the system let run only after the lease was used up. */
static int won_too_late(const redlock_client *c, const redlock_lock *lock, int64_t now)
{
  if (lock->status != REDLOCK_OK || lock->kind != REDLOCK_ACQUIRE || c->engine.net.state != RLK_NET_OPEN ||
      RLK_MUTANT(LATE_WINNER))
    return 0;
  return lock->state == REDLOCK_STATE_LOST ||
         (lock->state == REDLOCK_STATE_HELD && lock->valid_until_ns - now < lock->asked.min_validity_ns);
}

/* Waits for the end of the operation in flight and takes its result: what was won too late counts as failed. */
static int result(redlock_client *c, redlock_lock *lock, int64_t until_ns, int interruptible)
{
  int64_t now;
  lock->in_call = 1;
  rlk_client_drive(c, lock, until_ns, interruptible);
  now = rlk_client_now(c);
  while (won_too_late(c, lock, now)) {
    rlk_operation_retry(lock, now);
    rlk_client_drive(c, lock, until_ns, interruptible);
    now = rlk_client_now(c);
  }
  lock->in_call = 0;
  return last_look(lock, now);
}

static int blocking(redlock_lock *lock, int kind, int64_t arg)
{
  redlock_client *c;
  int status;
  if (!lock)
    return REDLOCK_INVALID;
  status = get_keeper(lock, kind);
  if (status != REDLOCK_OK)
    return status;
  c = rlk_lock_enter(lock);
  status = begin(lock, c, kind, arg);
  if (status == REDLOCK_OK)
    status = result(c, lock, RLK_NEVER, 0);
  if (status == REDLOCK_PENDING) { /* nothing to wait on could be made */
    rlk_operation_cancel(lock, rlk_client_now(c));
    status = REDLOCK_INTERNAL;
  }
  rlk_client_leave(c);
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

int redlock_lock_expire(redlock_lock *lock, int64_t ttl_ms)
{
  return blocking(lock, REDLOCK_EXPIRE, ttl_ms);
}

int redlock_lock_remove(redlock_lock *lock)
{
  return blocking(lock, REDLOCK_REMOVE, 0);
}

int redlock_lock_start(redlock_lock *lock, int operation, int64_t arg)
{
  redlock_client *c;
  int status, kind = operation > 0 ? operation & ~REDLOCK_AT_ONCE : operation;
  if (!lock)
    return REDLOCK_INVALID;
  status = get_keeper(lock, kind);
  if (status != REDLOCK_OK)
    return status;
  c = rlk_lock_enter(lock);
  status = begin(lock, c, kind, arg);
  if (status == REDLOCK_OK) {
    lock->started = 1;
    if (!rlk_in_flight(lock))
      rlk_mark_ended(&c->engine, lock);
    if (operation & REDLOCK_AT_ONCE)
      rlk_client_send(c);
    else
      rlk_client_mark_queued(c);
  }
  rlk_client_leave(c);
  return status;
}

int redlock_lock_wait(redlock_lock *lock, int64_t limit_ms)
{
  redlock_client *c;
  int64_t until_ns;
  int status;
  if (!lock || limit_ms < -1)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  until_ns = limit_ms < 0 || limit_ms > RLK_YEAR_MS ? RLK_NEVER : rlk_client_now(c) + limit_ms * RLK_NS_PER_MS;
  if (lock->in_call)
    status = REDLOCK_IN_FLIGHT;
  else if (rlk_in_flight(lock))
    status = result(c, lock, until_ns, 1);
  else /* it had ended before: nobody waits for another try */
    status = last_look(lock, rlk_client_now(c));
  rlk_client_leave(c);
  return status;
}

int redlock_lock_settle(redlock_lock *lock, int64_t limit_ms)
{
  redlock_client *c;
  int64_t until_ns;
  int status = REDLOCK_OK;
  if (!lock || limit_ms < -1)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  until_ns = limit_ms < 0 || limit_ms > RLK_YEAR_MS ? RLK_NEVER : rlk_client_now(c) + limit_ms * RLK_NS_PER_MS;
  if (rlk_in_use(lock)) {
    status = REDLOCK_IN_FLIGHT;
  } else if (lock->kind && c->engine.net.state == RLK_NET_OPEN) {
    lock->in_call = lock->settling = 1;
    c->settling++;
    rlk_client_drive(c, lock, until_ns, 1);
    status = rlk_is_awaited(lock) ? REDLOCK_PENDING : REDLOCK_OK;
    c->settling--;
    lock->in_call = lock->settling = 0;
  }
  rlk_client_leave(c);
  return status;
}

int redlock_lock_cancel(redlock_lock *lock)
{
  redlock_client *c;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_client_of(lock);
  atomic_store(&lock->cancelled, 1);
  atomic_fetch_add(&c->cancels, 1);
  /* nothing else is safe in a signal handler: every entry looks at the mark before it does anything */
  if (!c->engine.net.env.stepped && !rlk_fork_is_unseen(c->fork_generation)) { /* the descriptors may be the parent's */
    rlk_poller_wake(&c->engine.net.poller);
    rlk_poller_notify(&c->engine.net.poller);
    atomic_store(&c->rung, 1); /* after the ring: who sees this can clear it */
  }
  return REDLOCK_OK;
}

static int is_token(redlock_lock *lock, const void *token, size_t size)
{
  char why[80];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  if (token && size > 0 && size <= RLK_TOKEN_SIZE_MAX)
    return 1;
  rlk_text_format(&text, "token has %zu bytes; allowed: 1 to %d", token ? size : 0, RLK_TOKEN_SIZE_MAX);
  rlk_lock_refuse(lock, why);
  return 0;
}

/* The token may be on every node. */
static int adopt(redlock_lock *lock, const void *token, size_t size, int64_t now)
{
  redlock_client *c = rlk_client_of(lock);
  struct rlk_claim *claim = rlk_claim_new(lock);
  if (!claim)
    return REDLOCK_NO_MEMORY;
  if (rlk_claim_take_token(claim, token, size) != 0) {
    rlk_claim_let_go(&c->engine, &claim);
    return REDLOCK_NO_MEMORY;
  }
  rlk_lock_drop_claim(lock, now);
  lock->claim = claim;
  for (int i = 0; i < c->engine.net.node_count; i++)
    claim->node[i].flags = RLK_MAY_HOLD;
  claim->holders = c->engine.net.node_count;
  claim->until_ns = now + 2 * RLK_INT(&c->engine.net.options, MAX_TTL_MS) * RLK_NS_PER_MS;
  lock->state = REDLOCK_STATE_ADOPTED;
  lock->fence = 0;
  lock->loss = REDLOCK_LOSS_NONE;
  rlk_lock_refuse(lock, NULL);
  return REDLOCK_OK;
}

int redlock_lock_adopt_bytes(redlock_lock *lock, const void *token, size_t size)
{
  redlock_client *c;
  int status = REDLOCK_INVALID;
  int64_t now;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  now = rlk_client_now(c);
  rlk_lock_is_held(lock, now);
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED)
    rlk_lock_refuse(lock, "adopt: this handle already holds a lock; release or detach it first");
  else if (lock->is_reserved)
    rlk_lock_refuse_name(lock);
  else if (lock->state != REDLOCK_STATE_INVALID && is_token(lock, token, size))
    status = adopt(lock, token, size, now);
  rlk_client_leave(c);
  return status;
}

int redlock_lock_adopt(redlock_lock *lock, const char *token)
{
  return redlock_lock_adopt_bytes(lock, token, token ? strlen(token) : 0);
}

int redlock_lock_detach(redlock_lock *lock)
{
  redlock_client *c;
  int status = REDLOCK_OK;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  rlk_lock_is_held(lock, rlk_client_now(c));
  if (rlk_in_use(lock))
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
    rlk_lock_end_renewal(lock);
    rlk_timer_clear(&c->engine.net.timers, &lock->lease_timer);
    for (int i = 0; i < c->engine.net.node_count; i++)
      rlk_ask_not(&c->engine.net.nodes[i], lock->claim); /* no SET of ours may come after the hand-over */
    rlk_claim_forget(&c->engine, lock->claim);
    rlk_queue_forget(lock);
    lock->claim->is_detached = 1;
    lock->valid_until_ns = 0;
    lock->state = REDLOCK_STATE_FREE;
  }
  rlk_client_leave(c);
  return status;
}

/* ---- local facts ---- */

int redlock_lock_status(redlock_lock *lock)
{
  redlock_client *c;
  int status;
  if (!lock)
    return REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  status = last_look(lock, rlk_client_now(c));
  rlk_client_leave(c);
  return status;
}

int redlock_lock_state(redlock_lock *lock)
{
  redlock_client *c;
  int state;
  if (!lock)
    return REDLOCK_STATE_INVALID;
  c = rlk_lock_enter(lock);
  rlk_lock_is_held(lock, rlk_client_now(c));
  state = lock->state;
  rlk_client_leave(c);
  return state;
}

int redlock_lock_loss(redlock_lock *lock)
{
  redlock_client *c;
  int loss;
  if (!lock)
    return REDLOCK_LOSS_NONE;
  c = rlk_lock_enter(lock);
  rlk_lock_is_held(lock, rlk_client_now(c));
  loss = lock->loss;
  rlk_client_leave(c);
  return loss;
}

int64_t redlock_lock_validity_ms(redlock_lock *lock)
{
  redlock_client *c;
  int64_t now, validity_ms = 0;
  if (!lock)
    return -REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  now = rlk_client_now(c);
  if (rlk_lock_is_held(lock, now))
    validity_ms = (lock->valid_until_ns - now) / RLK_NS_PER_MS;
  rlk_client_leave(c);
  return validity_ms;
}

int64_t redlock_lock_attempts(redlock_lock *lock)
{
  redlock_client *c;
  int64_t attempts;
  if (!lock)
    return 0;
  c = rlk_lock_enter(lock);
  attempts = lock->attempts;
  rlk_client_leave(c);
  return attempts;
}

int64_t redlock_lock_fence(redlock_lock *lock)
{
  redlock_client *c;
  int64_t fence;
  if (!lock)
    return 0;
  c = rlk_lock_enter(lock);
  fence = lock->fence;
  rlk_client_leave(c);
  return fence;
}

int64_t redlock_lock_token(redlock_lock *lock, char *buf, size_t size)
{
  struct rlk_text text = rlk_text_in(buf, size);
  redlock_client *c;
  if (!lock)
    return -REDLOCK_INVALID;
  c = rlk_lock_enter(lock);
  if (lock->claim)
    rlk_text_bytes(&text, rlk_claim_token(lock->claim), lock->claim->token_size);
  rlk_client_leave(c);
  return (int64_t)text.length;
}

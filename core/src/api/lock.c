/* Lock handles and their options. */
#include <stdlib.h>
#include <string.h>

#include "../base/list.h"
#include "../kinds/kinds.h"
#include "../lock/holder.h"
#include "../lock/kind.h"
#include "../lock/lease.h"
#include "../lock/listing.h"
#include "../lock/operation.h"
#include "../wait/others.h"
#include "../wait/queue.h"
#include "../client/life.h"
#include "api.h"

#define RESOURCE_SIZE_MAX ((size_t)512 << 20)

/* Whether the key, or the resource alone, is among the library's own: behind another prefix it may be another program's
 * fencing number or queue. */
static int is_reserved(const char *prefix, const char *resource, size_t size)
{
  static const char own[] = "libredlock:";
  size_t own_size = sizeof own - 1, prefix_size = strnlen(prefix, own_size);
  return (size >= own_size && memcmp(resource, own, own_size) == 0) ||
         (prefix_size + size >= own_size && memcmp(prefix, own, prefix_size) == 0 &&
          memcmp(resource, own + prefix_size, own_size - prefix_size) == 0);
}

static void check_new(redlock_lock *lock, const void *resource, size_t size)
{
  char why[96];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  if (!resource || size == 0 || size > RESOURCE_SIZE_MAX)
    rlk_text_format(&text, "resource has %zu bytes; allowed: 1 to %zu", resource ? size : 0, RESOURCE_SIZE_MAX);
  else if (lock->engine->net.state != RLK_NET_OPEN)
    rlk_text_add(&text,
                 lock->engine->net.state == RLK_NET_NEW ? "the client is not open" : "the client has been closed");
  else
    return;
  rlk_lock_refuse(lock, why);
  lock->state = REDLOCK_STATE_INVALID;
}

/* Room for the timers of so many more locks: 0, or -1 when memory is out. */
static int reserve_timers(struct rlk_engine *e, int locks)
{
  if (rlk_timers_reserve(&e->renewal_timers, locks) != 0)
    return -1;
  if (rlk_timers_reserve(&e->net.timers, 2 * locks) == 0)
    return 0;
  rlk_timers_reserve(&e->renewal_timers, -locks);
  return -1;
}

/* Consumes the key; NULL when memory is out. */
static redlock_lock *allocate(redlock_client *c, struct rlk_key *key)
{
  /* the list may still be set while the client is not open */
  size_t nodes = c->engine.net.state == RLK_NET_NEW ? RLK_NODES_MAX : (size_t)c->engine.net.node_count;
  redlock_lock *lock = malloc(sizeof *lock + nodes); /* glibc's calloc takes nothing from the cache of the thread */
  struct rlk_node_answer *answers = malloc(nodes * sizeof *answers);
  struct rlk_wait *wait = rlk_wait_new();
  if (!lock || !answers || !wait || !key || reserve_timers(&c->engine, 1) != 0) {
    rlk_key_drop(key);
    rlk_wait_free(wait);
    free(answers);
    free(lock);
    return NULL;
  }
  *lock = (redlock_lock){.engine = &c->engine,
                         .key = key,
                         .options = c->engine.net.options,
                         .op = {.status = REDLOCK_NOT_HELD, .timer.kind = RLK_TIMER_OPERATION},
                         .hold.timer.kind = RLK_TIMER_LEASE,
                         .attempt.home = -1,
                         .wait = wait,
                         .node_answers = answers};
  memset(lock->votes, 0, nodes);
  memset(answers, 0, nodes * sizeof *answers);
  return lock;
}

static void link_lock(redlock_client *client, redlock_lock *lock)
{
  lock->kind = rlk_kind_of(lock);
  client->users++;
  lock->next = client->engine.locks;
  if (client->engine.locks)
    client->engine.locks->previous = lock;
  client->engine.locks = lock;
}

static redlock_lock *add_lock(redlock_client *client, const void *resource, size_t size)
{
  const char *prefix = RLK_STRING(&client->engine.net, KEY_PREFIX) ? RLK_STRING(&client->engine.net, KEY_PREFIX) : "";
  int is_usable = resource && size <= RESOURCE_SIZE_MAX && client->engine.net.state == RLK_NET_OPEN;
  struct rlk_key *key = rlk_key_for(&client->engine, prefix, is_usable ? resource : "", is_usable ? size : 0);
  redlock_lock *lock = allocate(client, key);
  if (lock) {
    check_new(lock, resource, size);
    lock->is_reserved = is_reserved(prefix, rlk_key_resource(key), key->resource_size);
    link_lock(client, lock);
  }
  return lock;
}

redlock_lock *redlock_lock_new(redlock_client *client, const void *resource, size_t size)
{
  redlock_lock *lock = rlk_enter(client) ? add_lock(client, resource, size) : NULL;
  rlk_leave(client, REDLOCK_OK);
  return lock;
}

redlock_lock *redlock_lock_new_probe(redlock_client *client)
{
  char name[48];
  struct rlk_text text = rlk_text_in(name, sizeof name);
  redlock_lock *lock;
  if (!rlk_enter(client))
    return NULL;
  rlk_text_format(&text, "libredlock:probe:%016llx", (unsigned long long)rlk_random(&client->engine.net));
  lock = add_lock(client, name, strlen(name));
  if (lock)
    lock->is_reserved = 0;
  rlk_leave(client, REDLOCK_OK);
  return lock;
}

redlock_lock *redlock_lock_copy(redlock_lock *lock)
{
  redlock_client *c = rlk_enter_lock(lock);
  redlock_lock *copy = NULL;
  if (c) {
    lock->key->users++;
    copy = allocate(c, lock->key);
  }
  if (copy) {
    check_new(copy, rlk_key_resource(lock->key), lock->key->resource_size);
    copy->is_reserved = lock->is_reserved;
    copy->options = lock->options;
    copy->is_fenced = lock->is_fenced;
    link_lock(c, copy);
  }
  rlk_leave(c, REDLOCK_OK);
  return copy;
}

/* ---- several resources ---- */

static int may_add(redlock_lock *lock, const void *resource, size_t size, struct rlk_text *why)
{
  if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_ADOPTED) {
    rlk_text_add(why, "add: this handle holds a lock; release or detach it first");
  } else if (!resource || size == 0 || size > RESOURCE_SIZE_MAX) {
    rlk_text_format(why, "resource has %zu bytes; allowed: 1 to %zu", resource ? size : 0, RESOURCE_SIZE_MAX);
  } else if (lock->key->all_size + size > RESOURCE_SIZE_MAX) { /* all of them travel in one request */
    rlk_text_format(why, "resources have %zu bytes together; allowed: 1 to %zu", lock->key->all_size + size,
                    RESOURCE_SIZE_MAX);
  } else if (lock->key->count == RLK_RESOURCES_MAX) {
    rlk_text_format(why, "a lock has %d resources; allowed: 1 to %d", RLK_RESOURCES_MAX + 1, RLK_RESOURCES_MAX);
  } else if (rlk_key_has(lock->key, resource, size)) {
    rlk_text_add(why, "resource is \"");
    rlk_text_escaped(why, resource, size);
    rlk_text_add(why, "\"; allowed: each once");
  } else {
    return 1;
  }
  return 0;
}

static int add_resource(redlock_lock *lock, const void *resource, size_t size, struct rlk_text *why)
{
  const char *prefix = RLK_STRING(&lock->engine->net, KEY_PREFIX);
  struct rlk_key *one, *with;
  if (!may_add(lock, resource, size, why))
    return REDLOCK_INVALID;
  if (is_reserved(prefix, resource, size)) {
    rlk_lock_name_is_reserved(resource, size, why);
    return REDLOCK_INVALID;
  }
  one = rlk_key_new(prefix, resource, size);
  with = one ? rlk_key_join(lock->key, one) : NULL;
  rlk_key_drop(one);
  if (!with)
    return REDLOCK_NO_MEMORY;
  rlk_key_drop(lock->key);
  lock->key = with;
  rlk_wait_forget_parts(lock->wait); /* it has room for fewer */
  lock->kind = rlk_kind_of(lock);
  return REDLOCK_OK;
}

int redlock_lock_add(redlock_lock *lock, const void *resource, size_t size)
{
  char why[400];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  redlock_client *c = rlk_enter_lock(lock);
  int status = REDLOCK_INVALID;
  if (!c)
    return REDLOCK_INVALID;
  rlk_lock_is_held(lock, rlk_client_now(c));
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (lock->state != REDLOCK_STATE_INVALID) {
    status = add_resource(lock, resource, size, &text);
    rlk_lock_refuse(lock, status == REDLOCK_INVALID ? why : NULL);
  }
  return rlk_leave(c, status);
}

/* ---- the end of a handle ---- */

static void leave_unwritten(redlock_client *c, redlock_lock *lock)
{
  redlock_lock **at = &c->engine.unwritten;
  if (!lock->round.is_unwritten)
    return;
  while (*at != lock)
    at = &(*at)->round.next_unwritten;
  *at = lock->round.next_unwritten;
}

static void unlink_lock(redlock_client *c, redlock_lock *lock)
{
  if (lock->is_ended)
    RLK_LIST_REMOVE(c->engine.ended, c->engine.last_ended, lock, ended.);
  leave_unwritten(c, lock);
  if (lock->previous)
    lock->previous->next = lock->next;
  else
    c->engine.locks = lock->next;
  if (lock->next)
    lock->next->previous = lock->previous;
  reserve_timers(&c->engine, -1);
}

void redlock_lock_free(redlock_lock *lock)
{
  redlock_client *c = rlk_enter_lock(lock);
  int64_t now = c ? rlk_client_now(c) : 0;
  if (!c)
    return;
  rlk_operation_cancel(lock, now);
  rlk_lock_end_renewal(lock);
  rlk_timer_clear(&c->engine.net.timers, &lock->hold.timer);
  if (lock->state == REDLOCK_STATE_ADOPTED) /* not confirmed: it is still whose it was */
    rlk_claim_forget(&c->engine, lock->claim);
  else
    rlk_others_drop_claim(lock, now);
  rlk_claim_let_go(&c->engine, &lock->claim);
  unlink_lock(c, lock);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    free(lock->node_answers[i].value);
    free(lock->node_answers[i].error);
  }
  rlk_holder_drop(lock);
  rlk_wait_free(lock->wait);
  rlk_listing_drop(lock);
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
  redlock_client *c = name && value ? rlk_enter_lock(lock) : NULL;
  if (!c)
    return REDLOCK_INVALID;
  option = rlk_option_find(name, 1);
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (option < 0)
    rlk_option_unknown(name, 1, &text);
  else
    status = rlk_option_parse(&lock->options, option, value, &text);
  lock->kind = rlk_kind_of(lock);
  lock->is_fenced |= status == REDLOCK_OK && option == RLK_OPT_FENCE;
  if (status != REDLOCK_IN_FLIGHT && lock->state != REDLOCK_STATE_INVALID)
    rlk_lock_refuse(lock, status == REDLOCK_OK ? NULL : why);
  return rlk_leave(c, status);
}

int redlock_lock_check(redlock_lock *lock)
{
  char why[512];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  struct rlk_terms terms;
  int status = REDLOCK_INVALID;
  redlock_client *c = rlk_enter_lock(lock);
  if (!c)
    return REDLOCK_INVALID;
  if (rlk_in_use(lock))
    status = REDLOCK_IN_FLIGHT;
  else if (lock->state != REDLOCK_STATE_INVALID) {
    status = rlk_terms_for(&lock->options, 0, &terms, &text);
    if (status == REDLOCK_OK && lock->kind->check)
      status = lock->kind->check(lock, &text);
    rlk_lock_refuse(lock, status == REDLOCK_OK ? NULL : why);
  }
  return rlk_leave(c, status);
}

int64_t redlock_lock_get(redlock_lock *lock, const char *name, char *buf, size_t size)
{
  struct rlk_text text = rlk_text_in(buf, size);
  int option = name ? rlk_option_find(name, 0) : -1;
  redlock_client *c;
  if (!lock || option < 0)
    return -REDLOCK_INVALID;
  if (rlk_option_is_text(option))
    return redlock_client_get(rlk_client_of(lock), name, buf, size);
  c = rlk_enter_lock(lock);
  rlk_option_format(&lock->options, option, &text);
  return rlk_leave_text(c, &text);
}

int redlock_lock_set_tag(redlock_lock *lock, uint64_t tag)
{
  redlock_client *c = rlk_enter_lock(lock);
  if (c)
    lock->tag = tag;
  return rlk_leave(c, REDLOCK_OK);
}

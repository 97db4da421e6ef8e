/* Life of a client: its options, opening, leaving, and what a fork makes of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core.h"

int64_t rl_now(redlock_client *c)
{
  return c->env.platform->now_ns(c->env.context);
}

/* For jitter and the tail of tokens; seeded from the platform. */
uint64_t rl_random(redlock_client *c)
{
  uint64_t x = c->random_state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  c->random_state = x;
  return x * UINT64_C(0x2545f4914f6cdd1d);
}

static void seed(redlock_client *c)
{
  c->token_seed = c->env.platform->random(c->env.context);
  c->random_state = c->env.platform->random(c->env.context) | 1;
  c->token_count = 0;
}

/* ---- options ---- */

static struct rl_text message_of(redlock_client *c)
{
  return rl_text_in(c->message, sizeof c->message);
}

static void free_nodes(redlock_client *c)
{
  for (int i = 0; i < c->node_count; i++) {
    rl_timer_clear(&c->timers, &c->nodes[i].timer);
    rl_node_free(&c->nodes[i]);
  }
  free(c->nodes);
  c->nodes = NULL;
  c->node_count = 0;
}

static int check_twice(redlock_client *c, const struct rl_url *url, struct rl_text *why)
{
  for (int i = 0; i < c->node_count; i++)
    if (rl_url_same(&c->nodes[i].url, url)) {
      rl_text_format(why, "nodes: %.200s is named twice; every node must be another server", url->name);
      return REDLOCK_INVALID;
    }
  return REDLOCK_OK;
}

static int add_node(redlock_client *c, const char *text, size_t size, struct rl_text *why)
{
  struct rl_url url;
  int status;
  if (size == 0) {
    rl_text_format(why, "nodes: entry %d is empty; allowed: %s", c->node_count + 1,
                   redlock_option_at(RL_OPT_NODES, REDLOCK_OPTION_RANGE));
    return REDLOCK_INVALID;
  }
  status = rl_url_parse(&url, text, size, why);
  if (status != REDLOCK_OK)
    return status;
  status = check_twice(c, &url, why);
  if (status == REDLOCK_OK && c->node_count == RL_NODES_MAX) {
    rl_text_format(why, "nodes: more than %d; allowed: 1 to %d", RL_NODES_MAX, RL_NODES_MAX);
    status = REDLOCK_INVALID;
  }
  if (status != REDLOCK_OK) {
    rl_url_free(&url);
    return status;
  }
  rl_node_init(&c->nodes[c->node_count], c, c->node_count);
  c->nodes[c->node_count++].url = url;
  return REDLOCK_OK;
}

#define SPACES " \t\r\n"

/* Spaces around the commas are allowed; an empty entry is not: it would make the quorum another one. */
static int set_nodes(redlock_client *c, const char *value, struct rl_text *why)
{
  int status = REDLOCK_OK;
  free_nodes(c);
  c->nodes = calloc(RL_NODES_MAX, sizeof *c->nodes);
  if (!c->nodes)
    return REDLOCK_NO_MEMORY;
  value += strspn(value, SPACES);
  for (int more = *value != 0; more && status == REDLOCK_OK;) {
    size_t size = strcspn(value, ",");
    size_t used = size;
    while (used && strchr(SPACES, value[used - 1]))
      used--;
    more = value[size] == ',';
    status = add_node(c, value, used, why);
    value += size + (size_t)more;
    value += strspn(value, SPACES);
  }
  if (status != REDLOCK_OK)
    free_nodes(c);
  return status;
}

static int set_text(char **to, const char *value, size_t size_max, int words, struct rl_text *why, const char *name)
{
  char *copy;
  size_t size = strlen(value);
  int ok = size <= size_max;
  for (size_t i = 0; words && i < size; i++)
    ok = ok && (unsigned char)value[i] > 0x20 && (unsigned char)value[i] < 0x7f;
  if (!ok) {
    rl_text_format(why, "%s is \"", name);
    rl_text_escaped(why, value, size);
    rl_text_format(why, "\"; allowed: %s", redlock_option_at(rl_option_find(name, 0), REDLOCK_OPTION_RANGE));
    return REDLOCK_INVALID;
  }
  copy = strdup(value);
  if (!copy)
    return REDLOCK_NO_MEMORY;
  free(*to);
  *to = copy;
  return REDLOCK_OK;
}

static int set_option(redlock_client *c, int option, const char *name, const char *value, struct rl_text *why)
{
  switch (option) {
  case RL_OPT_NODES: return set_nodes(c, value, why);
  case RL_OPT_KEY_PREFIX: return set_text(&c->key_prefix, value, 256, 0, why, name);
  case RL_OPT_CLIENT_NAME: return set_text(&c->client_name, value, 64, 1, why, name);
  default: return rl_option_parse(&c->options, option, value, why);
  }
}

int redlock_client_set(redlock_client *c, const char *name, const char *value)
{
  struct rl_text why;
  int option, status = REDLOCK_INVALID;
  if (!c)
    return REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  why = message_of(c);
  option = name ? rl_option_find(name, 0) : -1;
  if (!name || !value)
    rl_text_add(&why, "name and value must not be NULL");
  else if (c->state != RL_CLIENT_NEW)
    rl_text_format(&why, "%.64s: options of a client are set before it is opened", name);
  else if (option < 0)
    rl_option_unknown(name, 0, &why);
  else
    status = set_option(c, option, name, value, &why);
  if (status == REDLOCK_NO_MEMORY)
    rl_text_add(&why, "out of memory");
  pthread_mutex_unlock(&c->mutex);
  return status;
}

static void format_nodes(redlock_client *c, struct rl_text *out)
{
  for (int i = 0; i < c->node_count; i++) {
    rl_text_add(out, i ? "," : "");
    rl_url_format(&c->nodes[i].url, out);
  }
}

int64_t redlock_client_get(redlock_client *c, const char *name, char *buf, size_t size)
{
  struct rl_text out = rl_text_in(buf, size);
  int option = name ? rl_option_find(name, 0) : -1;
  if (!c || option < 0)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  switch (option) {
  case RL_OPT_NODES: format_nodes(c, &out); break;
  case RL_OPT_KEY_PREFIX: rl_text_add(&out, c->key_prefix); break;
  case RL_OPT_CLIENT_NAME: rl_text_add(&out, c->client_name); break;
  default: rl_option_format(&c->options, option, &out);
  }
  pthread_mutex_unlock(&c->mutex);
  return (int64_t)out.length;
}

int64_t redlock_client_message(redlock_client *c, char *buf, size_t size)
{
  struct rl_text out = rl_text_in(buf, size);
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rl_text_add(&out, c->message);
  pthread_mutex_unlock(&c->mutex);
  return (int64_t)out.length;
}

int redlock_client_node_count(redlock_client *c)
{
  int count;
  if (!c)
    return 0;
  pthread_mutex_lock(&c->mutex);
  count = c->node_count;
  pthread_mutex_unlock(&c->mutex);
  return count;
}

int64_t redlock_client_node_name(redlock_client *c, int node, char *buf, size_t size)
{
  struct rl_text out = rl_text_in(buf, size);
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  if (node >= 0 && node < c->node_count)
    rl_text_add(&out, c->nodes[node].url.name);
  else
    node = -1;
  pthread_mutex_unlock(&c->mutex);
  return node < 0 ? -REDLOCK_INVALID : (int64_t)out.length;
}

/* ---- life ---- */

static void destroy(redlock_client *c)
{
  rl_claims_free(c);
  free_nodes(c);
  rl_timers_free(&c->timers);
  if (!c->env.stepped)
    rl_poller_close(&c->poller);
  free(c->key_prefix);
  free(c->client_name);
  free(c->events);
  free(c->spare_batch);
  rl_bell_free(&c->bell);
  pthread_mutex_unlock(&c->mutex);
  pthread_mutex_destroy(&c->mutex);
  free(c);
}

void rl_client_unref(redlock_client *c)
{
  if (--c->users == 0)
    destroy(c);
  else
    rl_client_leave(c);
}

redlock_client *rl_client_new_in(const struct rl_env *env)
{
  redlock_client *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->env = *env;
  c->users = 1;
  c->poller = (struct rl_poller){-1, -1, -1, -1, -1, RL_NEVER};
  c->key_prefix = strdup("");
  c->client_name = strdup("libredlock");
  rl_options_defaults(&c->options);
  if (c->key_prefix && c->client_name && rl_bell_init(&c->bell) == 0) {
    if (pthread_mutex_init(&c->mutex, NULL) == 0)
      return c;
    rl_bell_free(&c->bell);
  }
  free(c->key_prefix);
  free(c->client_name);
  free(c);
  return NULL;
}

redlock_client *redlock_client_new(void)
{
  static const struct rl_env real = {&rl_platform_real, &rl_link_sockets, NULL, 0};
  return rl_client_new_in(&real);
}

static int check_open(redlock_client *c, struct rl_text *why)
{
  struct rl_terms terms;
  if (c->state != RL_CLIENT_NEW) {
    rl_text_add(why, "the client has been opened already");
    return REDLOCK_INVALID;
  }
  if (c->node_count == 0) {
    rl_text_format(why, "there are no nodes; set option nodes: %s",
                   redlock_option_at(RL_OPT_NODES, REDLOCK_OPTION_RANGE));
    return REDLOCK_INVALID;
  }
  return rl_terms_for(&c->options, 0, &terms, why);
}

static int prepare(redlock_client *c, struct rl_text *why)
{
  int error;
  c->events = calloc(RL_EVENTS_MAX, sizeof *c->events);
  if (!c->events || rl_timers_reserve(&c->timers, c->node_count) != 0) {
    rl_text_add(why, "out of memory");
    return REDLOCK_NO_MEMORY;
  }
  seed(c);
  if (c->env.stepped)
    return REDLOCK_OK;
  error = rl_poller_open(&c->poller);
  if (error != 0) {
    rl_text_format(why, "no descriptor: %s", strerror(-error));
    return REDLOCK_INTERNAL;
  }
  if (rl_keeper_register(c) == REDLOCK_OK)
    return REDLOCK_OK;
  rl_poller_close(&c->poller);
  rl_text_add(why, "no fork handler could be installed");
  return REDLOCK_INTERNAL;
}

int redlock_client_open(redlock_client *c)
{
  struct rl_text why;
  int status;
  int64_t now;
  if (!c)
    return REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  why = message_of(c);
  status = check_open(c, &why);
  pthread_mutex_unlock(&c->mutex);
  if (status == REDLOCK_OK)
    status = prepare(c, &why); /* takes the registry's mutex, which comes before the client's */
  if (status != REDLOCK_OK)
    return status;
  pthread_mutex_lock(&c->mutex);
  now = rl_now(c);
  c->quorum = rl_quorum(c->node_count);
  rl_wheel_init(&c->wheel, now);
  c->state = RL_CLIENT_OPEN;
  if (c->node_count % 2 == 0)
    rl_event_add(c, RL_EVENT_WARNING, -1, NULL, "an even number of nodes survives no more failures than one node less");
  for (int i = 0; i < c->node_count; i++)
    rl_node_connect(&c->nodes[i], now);
  rl_client_leave(c);
  return REDLOCK_OK;
}

/* ---- leaving ---- */

/* All that is pending ends, all that is held is released; the deletes carry the whole script, for a NOSCRIPT could not
 * be repaired any more (rule A.5). */
static void give_everything_up(redlock_client *c, int64_t now)
{
  while (c->flights)
    rl_operation_cancel(c->flights, now);
  for (redlock_lock *lock = c->locks; lock; lock = lock->next) {
    rl_renewal_end(lock);
    rl_timer_clear(&c->timers, &lock->lease_timer);
    if (lock->state == REDLOCK_STATE_HELD || lock->state == REDLOCK_STATE_LOST) {
      rl_claim_give_up(c, lock->claim, 1, 0, now);
      lock->state = REDLOCK_STATE_FREE;
      lock->valid_until_ns = 0;
    }
  }
  for (int i = 0; i < c->node_count; i++)
    if (c->nodes[i].state == RL_NODE_READY)
      rl_node_pay_debts(&c->nodes[i], now);
}

static int connections(const redlock_client *c)
{
  int count = 0;
  for (int i = 0; i < c->node_count; i++)
    count += c->nodes[i].state != RL_NODE_OFF;
  return count;
}

static int is_owed_a_delete(const redlock_client *c, int node)
{
  for (const struct rl_claim *claim = c->claims; claim; claim = claim->next)
    if (claim->over && (claim->node[node].flags & RL_MAY_HOLD))
      return 1;
  return 0;
}

static void close_nodes(redlock_client *c, int64_t now, int *unanswered)
{
  for (int i = 0; i < c->node_count; i++) {
    struct rl_node *n = &c->nodes[i];
    *unanswered += n->owed_count > 0;
    if (n->state != RL_NODE_OFF)
      rl_node_drop(n, 0, "the client is closed", now);
    rl_timer_clear(&c->timers, &n->timer);
  }
}

/* Half-closes what is written and reads to the end: a close with unread replies would reset the connection and lose
 * releases that the server has not read yet (rule A.5). */
static void read_to_the_end(redlock_client *c, int64_t until_ns)
{
  for (int i = 0; i < c->node_count; i++) {
    struct rl_node *n = &c->nodes[i];
    if (n->state == RL_NODE_READY || n->state == RL_NODE_REFUSED)
      rl_node_flush(n, rl_now(c));
    else if (n->state != RL_NODE_OFF && !is_owed_a_delete(c, i))
      rl_node_drop(n, 0, "the client is closed", rl_now(c)); /* nobody needs its connection any more */
  }
  while (connections(c) > 0 && rl_now(c) < until_ns && !c->env.stepped) {
    rl_client_drive_once(c, until_ns);
    rl_client_flush(c);
  }
}

/* With the mutex held and nobody else driving. */
static int drain(redlock_client *c, int64_t limit_ms)
{
  int64_t now = rl_now(c);
  int unanswered = 0;
  if (limit_ms < 0)
    limit_ms = RL_INT(&c->options, EXIT_DRAIN_MS);
  rl_client_poll(c);
  give_everything_up(c, now);
  c->state = RL_CLIENT_LEAVING;
  read_to_the_end(c, now + limit_ms * RL_NS_PER_MS);
  c->state = RL_CLIENT_CLOSED;
  close_nodes(c, rl_now(c), &unanswered);
  return unanswered ? REDLOCK_TIMED_OUT : REDLOCK_OK;
}

/* Others that block in the client are cancelled first; the last of them leaves the driver's seat. */
static void take_the_seat(redlock_client *c)
{
  while (c->flights)
    rl_operation_cancel(c->flights, rl_now(c));
  while (c->driven) {
    struct timespec moment = {0, 1000000};
    rl_client_kick(c);
    rl_client_leave(c);
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&c->mutex);
  }
  c->driven = 1;
}

static int drain_once(redlock_client *c, int64_t limit_ms)
{
  int status = REDLOCK_OK;
  if (c->state != RL_CLIENT_OPEN)
    return status;
  c->state = RL_CLIENT_DRAINING; /* refuses new work */
  take_the_seat(c);
  status = drain(c, limit_ms);
  rl_client_hand_over(c);
  return status;
}

int redlock_client_drain(redlock_client *c, int64_t limit_ms)
{
  int status;
  if (!c || limit_ms < -1)
    return REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  status = drain_once(c, limit_ms);
  rl_client_leave(c);
  return status;
}

void redlock_client_free(redlock_client *c)
{
  if (!c)
    return;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  drain_once(c, -1);
  c->state = RL_CLIENT_CLOSED;
  rl_client_leave(c);
  rl_keeper_unregister(c);
  pthread_mutex_lock(&c->mutex);
  rl_client_unref(c);
}

/* In a child: new descriptors, new randomness, nothing of the parent's. Runs in the fork handler, or at the first call
 * where a raw clone went past it. */
void rl_client_forked(redlock_client *c)
{
  c->fork_generation = rl_fork_generation();
  if (c->state == RL_CLIENT_NEW)
    return;
  c->driven = c->sleeping = c->kicked = 0;
  c->notified = 1; /* the descriptors are still the parent's: nothing is written to them */
  c->waiters = c->last_waiter = NULL; /* their threads do not exist here */
  c->woken = 0;
  atomic_store(&c->cancels, 0);
  for (redlock_lock *lock = c->locks; lock; lock = lock->next) {
    lock->waiter = NULL;
    rl_lock_forked(lock);
  }
  for (int i = 0; i < c->node_count; i++)
    rl_node_abandon(&c->nodes[i]);
  c->dirty_nodes = NULL;
  rl_claims_forked(c);
  c->ended = c->last_ended = NULL;
  for (redlock_lock *lock = c->locks; lock; lock = lock->next)
    lock->is_ended = 0;
  c->events_first = c->events_count = 0;
  c->polled_ns = 0;
  c->notified = 0;
  seed(c);
  if (c->state != RL_CLIENT_OPEN)
    c->state = RL_CLIENT_CLOSED;
  else if (rl_poller_reopen(&c->poller) != 0)
    c->state = RL_CLIENT_CLOSED; /* without descriptors it can only be freed */
}

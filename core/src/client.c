/* Life of a client: opening, freeing, and what a fork makes of it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "mutant.h"

static void destroy(redlock_client *c)
{
  rl_claims_free(c);
  rl_client_free_nodes(c);
  rl_timers_free(&c->timers);
  if (!c->env.stepped)
    rl_poller_close(&c->poller);
  free(c->key_prefix);
  free(c->client_name);
  free(c->events);
  if (c->event_fd >= 0)
    close(c->event_fd);
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
  c->renew_due_ns = RL_NEVER;
  c->event_fd = -1;
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
  redlock_client *c = rl_client_new_in(&real);
  if (c)
    rl_registry_add(c); /* so that no fork catches its mutex locked; where it is refused, open tells */
  return c;
}

static int check_open(redlock_client *c, struct rl_text *why)
{
  struct rl_terms terms;
  if (c->state != RL_CLIENT_NEW) {
    rl_text_add(why, "the client is already open");
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
  rl_seed(c);
  if (!c->env.stepped && rl_registry_add(c) != REDLOCK_OK) {
    rl_text_add(why, "no fork handler could be installed");
    return REDLOCK_INTERNAL;
  }
  if (!c->events)
    c->events = calloc(RL_EVENTS_MAX, sizeof *c->events);
  if (!c->events || rl_timers_reserve(&c->timers, c->node_count) != 0) {
    rl_text_add(why, "out of memory");
    return REDLOCK_NO_MEMORY;
  }
  error = c->env.stepped ? 0 : rl_poller_open(&c->poller);
  if (error == 0)
    return REDLOCK_OK;
  rl_timers_reserve(&c->timers, -c->node_count);
  rl_text_format(why, "no descriptor: %s", strerror(-error));
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
  why = rl_text_in(c->message, sizeof c->message);
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
    rl_event_add(c, RL_EVENT_WARNING, -1, NULL,
                 "an even number of nodes tolerates no more failures than one node fewer");
  for (int i = 0; i < c->node_count; i++)
    rl_node_connect(&c->nodes[i], now);
  rl_client_leave(c);
  return REDLOCK_OK;
}

void redlock_client_free(redlock_client *c)
{
  if (!c)
    return;
  pthread_mutex_lock(&c->mutex);
  rl_client_enter(c);
  rl_client_drain(c, -1);
  if (c->state == RL_CLIENT_NEW)
    c->state = RL_CLIENT_CLOSED;
  rl_client_leave(c);
  rl_registry_remove(c);
  pthread_mutex_lock(&c->mutex);
  rl_client_unref(c);
}

/* In a child: new descriptors, new randomness, nothing of the parent's. Runs in the fork handler, or at the first call
 * where a raw clone went past it. */
void rl_client_forked(redlock_client *c)
{
  c->fork_generation = rl_fork_generation();
  rl_keeper_forked();
  if (c->state == RL_CLIENT_NEW)
    return;
  c->driven = c->sleeping = c->kicked = 0;
  c->driving = NULL;
  c->notified = 1; /* the descriptors are still the parent's: nothing is written to them */
  c->waiters = c->last_waiter = NULL; /* their threads do not exist here */
  c->woken = 0;
  atomic_store(&c->cancels, 0);
  atomic_store(&c->rung, 0);
  for (redlock_lock *lock = c->locks; lock; lock = lock->next) {
    lock->waiter = NULL;
    if (!RL_MUTANT(CHILD_KEEPS_LOCKS))
      rl_lock_forked(lock);
  }
  for (int i = 0; i < c->node_count; i++)
    rl_node_abandon(&c->nodes[i]);
  c->dirty_nodes = NULL;
  if (!RL_MUTANT(CHILD_KEEPS_CLAIMS))
    rl_claims_forked(c);
  c->ended = c->last_ended = NULL;
  c->unwritten = NULL;
  for (redlock_lock *lock = c->locks; lock; lock = lock->next)
    lock->is_ended = lock->unwritten = lock->settling = 0;
  c->settling = c->ended_marked = 0;
  c->renew_due_ns = RL_NEVER;
  rl_events_forked(c);
  c->polled_ns = 0;
  c->notified = 0;
  if (!RL_MUTANT(CHILD_KEEPS_SEED))
    rl_seed(c);
  if (c->state != RL_CLIENT_OPEN)
    c->state = RL_CLIENT_CLOSED;
  else if (rl_poller_reopen(&c->poller) != 0)
    c->state = RL_CLIENT_CLOSED; /* without descriptors it can only be freed */
}

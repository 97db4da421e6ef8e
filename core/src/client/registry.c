/* The clients of the process: the renewal thread walks them, and fork has to have all of them still. */
#include "../base/fork.h"
#include "../base/list.h"
#include "registry.h"

static struct {
  pthread_mutex_t mutex; /* before any client's */
  redlock_client *clients, *last;
  pthread_once_t once;
  int handlers;
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

redlock_client *rlk_registry_lock(void)
{
  pthread_mutex_lock(&registry.mutex);
  return registry.clients;
}

void rlk_registry_unlock(void)
{
  pthread_mutex_unlock(&registry.mutex);
}

static void before_fork(void)
{
  for (redlock_client *c = rlk_registry_lock(); c; c = c->next)
    pthread_mutex_lock(&c->mutex);
}

static void after_fork_parent(void)
{
  for (redlock_client *c = registry.clients; c; c = c->next)
    pthread_mutex_unlock(&c->mutex);
  rlk_registry_unlock();
}

static void after_fork_child(void)
{
  rlk_fork_happened();
  for (redlock_client *c = registry.clients; c; c = c->next)
    if (!c->engine.net.env.stepped)
      rlk_poller_forked(&c->engine.net.poller);
  for (redlock_client *c = registry.clients; c; c = c->next) {
    rlk_client_forked(c);
    pthread_mutex_unlock(&c->mutex);
  }
  rlk_registry_unlock();
}

static void set_up(void)
{
  registry.handlers = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
  rlk_fork_watch();
}

int rlk_registry_add(redlock_client *c)
{
  pthread_once(&registry.once, set_up);
  if (!registry.handlers)
    return REDLOCK_INTERNAL;
  if (c->registered)
    return REDLOCK_OK;
  rlk_registry_lock();
  c->fork_generation = rlk_fork_generation();
  RLK_LIST_APPEND(registry.clients, registry.last, c, );
  c->registered = 1;
  rlk_registry_unlock();
  return REDLOCK_OK;
}

void rlk_registry_remove(redlock_client *c)
{
  rlk_registry_lock();
  if (c->registered)
    RLK_LIST_REMOVE(registry.clients, registry.last, c, );
  c->registered = 0;
  rlk_registry_unlock();
}

/* Opening, draining and freeing a client. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../client/life.h"
#include "../client/registry.h"
#include "../client/stepped.h"
#include "../lock/holder.h"
#include "../vote/guard.h"
#include "../wait/queue.h"
#include "../wait/room.h"
#include "api.h"
#include "config.h"

redlock_client *rlk_client_new_in(const struct rlk_env *env)
{
  redlock_client *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->engine.net.env = *env;
  c->users = 1;
  c->engine.renew_due_ns = RLK_NEVER;
  c->engine.net.events.bell = RLK_NO_BELL;
  c->engine.net.poller = RLK_NO_POLLER;
  rlk_options_defaults(&c->engine.net.options);
  c->engine.waits = rlk_waits_new();
  if (c->engine.waits && rlk_client_init_texts(c) == 0 && rlk_eventcount_init(&c->eventcount) == 0) {
    if (pthread_mutex_init(&c->mutex, NULL) == 0)
      return c;
    rlk_eventcount_free(&c->eventcount);
  }
  rlk_client_free_texts(c);
  rlk_waits_free(c->engine.waits);
  free(c);
  return NULL;
}

redlock_client *redlock_client_new(void)
{
  static const struct rlk_env real = {&rlk_platform_real, &rlk_link_sockets, NULL, 0};
  redlock_client *c = rlk_client_new_in(&real);
  if (!c)
    return NULL;
  rlk_client_read_environment(c);
  rlk_registry_add(c); /* so that no fork catches its mutex locked; if that is refused, open reports it */
  return c;
}

int rlk_client_check(const redlock_client *c, struct rlk_text *why)
{
  if (c->engine.net.node_count == 0) {
    rlk_text_format(why, "there are no nodes; set option nodes: %s",
                    redlock_option_at(RLK_OPT_NODES, REDLOCK_OPTION_RANGE));
    return REDLOCK_INVALID;
  }
  if (RLK_STRING(&c->engine.net, USER_FILE)[0] && !RLK_STRING(&c->engine.net, PASSWORD_FILE)[0])
    return rlk_refuse(why, RLK_NAMED("user_file") " is set without " RLK_NAMED("password_file"));
  for (int i = 0; i < 2; i++)
    if (c->wrong_environment[i][0])
      return rlk_refuse(why, c->wrong_environment[i]);
  return rlk_client_check_max_ttl(c, why);
}

static int check_open(redlock_client *c, struct rlk_text *why)
{
  struct rlk_terms terms;
  if (c->engine.net.state != RLK_NET_NEW)
    return rlk_refuse(why, "the client is already open");
  if (rlk_client_check(c, why) != REDLOCK_OK)
    return REDLOCK_INVALID;
  return rlk_terms_for(&c->engine.net.options, 0, &terms, why);
}

static int prepare(redlock_client *c, struct rlk_text *why)
{
  struct rlk_net *net = &c->engine.net;
  int error;
  rlk_claims_seed(&c->engine);
  rlk_queue_init(&c->engine);
  rlk_holder_init(&c->engine);
  rlk_guard_init(net);
  error = rlk_client_init_tls(c, why);
  if (error != REDLOCK_OK)
    return error;
  if (rlk_events_init(&net->events) != 0 || rlk_timers_reserve(&net->timers, 2 * net->node_count) != 0) {
    rlk_text_add(why, "out of memory");
    return REDLOCK_NO_MEMORY;
  }
  error = net->env.stepped ? 0 : rlk_poller_open(&net->poller);
  if (error == 0)
    return REDLOCK_OK;
  rlk_timers_reserve(&net->timers, -2 * net->node_count);
  rlk_text_format(why, "no descriptor: %s", strerror(-error));
  return REDLOCK_INTERNAL;
}

static void warn_of_readers(redlock_client *c, int option)
{
  const char *path = c->engine.net.texts[option];
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  struct stat about;
  if (!*path || stat(path, &about) != 0 || !S_ISREG(about.st_mode) || !(about.st_mode & S_IROTH))
    return;
  rlk_text_format(&text, RLK_NAMED("%s") " is readable by others (mode %04o): ",
                  redlock_option_at(option, REDLOCK_OPTION_NAME), (unsigned)about.st_mode & 07777);
  rlk_text_clean(&text, path);
  rlk_text_mark_cut(&text);
  rlk_event_add(&c->engine.net.events, RLK_EVENT_WARNING, -1, words);
}

/* Warns of values that are allowed but seldom meant. */
static void warn(redlock_client *c)
{
  struct rlk_net *net = &c->engine.net;
  if (net->node_count % 2 == 0)
    rlk_event_add(&net->events, RLK_EVENT_WARNING, -1,
                  "an even number of nodes tolerates no more failures than one node fewer");
  if (net->tls && !RLK_INT(&net->options, TLS_VERIFY))
    rlk_event_add(
        &net->events, RLK_EVENT_WARNING, -1,
        RLK_NAMED("tls_verify") " is off: any certificate is accepted, so others may read and forge what is sent");
  warn_of_readers(c, RLK_OPT_PASSWORD_FILE);
  warn_of_readers(c, RLK_OPT_USER_FILE);
  warn_of_readers(c, RLK_OPT_TLS_KEY_FILE);
}

int redlock_client_open(redlock_client *c)
{
  return rlk_client_open(c, 0);
}

int redlock_client_open_to_look(redlock_client *c)
{
  return rlk_client_open(c, 1);
}

int rlk_client_open(redlock_client *c, int looks)
{
  struct rlk_text why;
  int status, survives_fork;
  int64_t now;
  if (!c)
    return REDLOCK_INVALID;
  survives_fork = c->engine.net.env.stepped || rlk_registry_add(c) == REDLOCK_OK;
  pthread_mutex_lock(&c->mutex);
  why = rlk_text_in(c->message, sizeof c->message);
  status = check_open(c, &why);
  if (status == REDLOCK_OK && !survives_fork) {
    rlk_text_add(&why, "no fork handler could be installed");
    status = REDLOCK_INTERNAL;
  }
  if (status == REDLOCK_OK)
    status = prepare(c, &why);
  if (status != REDLOCK_OK) {
    pthread_mutex_unlock(&c->mutex);
    return status;
  }
  now = rlk_client_now(c);
  c->engine.quorum = rlk_quorum(c->engine.net.node_count);
  c->engine.net.state = RLK_NET_OPEN;
  c->engine.net.looks = looks;
  warn(c);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rlk_node_connect(&c->engine.net.nodes[i], now);
    rlk_client_pull(c, &c->engine.net.nodes[i], now);
  }
  return rlk_leave(c, REDLOCK_OK);
}

int redlock_client_drain(redlock_client *c, int64_t limit_ms)
{
  int status;
  if (limit_ms < -1 || !rlk_enter(c))
    return REDLOCK_INVALID;
  c->users++; /* another thread may free the client meanwhile */
  status = rlk_client_drain(c, limit_ms > RLK_YEAR_MS ? RLK_YEAR_MS : limit_ms);
  rlk_client_unref(c);
  return status;
}

void redlock_client_free(redlock_client *c)
{
  if (!rlk_enter(c))
    return;
  rlk_client_drain(c, -1);
  if (c->engine.net.state == RLK_NET_NEW)
    c->engine.net.state = RLK_NET_CLOSED;
  rlk_client_leave(c);
  rlk_registry_remove(c);
  pthread_mutex_lock(&c->mutex);
  rlk_client_unref(c);
}

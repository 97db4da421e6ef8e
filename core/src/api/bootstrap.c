/* An operator says that no lock is live, or changes the number in the markers. It works in clients of its own: the
 * caller's sees the new markers as those of any other program. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../client/life.h"
#include "../client/stepped.h"
#include "api.h"
#include "config.h"
#include "../vote/eligible.h"

#define ANOTHER_MS 2000 /* another `--new` may be at work for as long */

enum { MODES = REDLOCK_BOOTSTRAP_DRY - 1 };

/* ---- looking ---- */

static int is_settled(redlock_client *c)
{
  for (int i = 0; i < c->engine.net.node_count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    if (n->state != RLK_NODE_READY && !n->refused && !n->failures)
      return 0;
  }
  return 1;
}

/* Every node has reported what it is, or why it could not. */
static int wait_for_all(redlock_client *c)
{
  struct pollfd wanted = {.fd = redlock_client_fd(c), .events = POLLIN};
  int is_over = 0;
  if (wanted.fd < 0)
    return REDLOCK_INTERNAL;
  while (!is_over) { /* a connection takes no longer than connect_timeout_ms */
    poll(&wanted, 1, 100);
    redlock_client_process(c);
    pthread_mutex_lock(&c->mutex);
    is_over = is_settled(c);
    pthread_mutex_unlock(&c->mutex);
  }
  return REDLOCK_OK;
}

/* A node that is refused for another reason than its marker. */
static int is_refused_otherwise(const struct rlk_node *n)
{
  return n->refused && n->voter->finding <= RLK_FOUND_SMALLER;
}

static void look_at(struct rlk_planned *p, const struct rlk_node *n, int mode, int64_t now)
{
  struct rlk_common common = rlk_plan_common(n->net);
  int64_t clock_ms = n->voter->mark.since_ms + (now - n->voter->since_ns) / RLK_NS_PER_MS;
  struct rlk_sight sight = {n->voter->marker, n->run_id, n->line->facts.replid2, n->url.database, clock_ms};
  struct rlk_text words;
  rlk_plan_look(p, &sight, &common, mode);
  if (is_refused_otherwise(n) || (p->found == REDLOCK_FOUND_VOTES && rlk_guard_waits(n, now)))
    p->found = REDLOCK_FOUND_REFUSED;
  else if (n->state != RLK_NODE_READY && !n->refused)
    p->found = REDLOCK_FOUND_NOTHING;
  if (p->found != REDLOCK_FOUND_REFUSED && p->found != REDLOCK_FOUND_NOTHING && p->found != REDLOCK_FOUND_FOREIGN)
    return;
  p->left_ms = 0;
  words = rlk_text_in(p->words, sizeof p->words);
  if (n->state == RLK_NODE_READY)
    rlk_guard_words(n, &words, now);
  else
    rlk_text_add(&words, n->why.why ? n->why.words : "no answer");
}

/* Each node as seen by this client, with the reason for which it is left alone. */
static void look(struct rlk_plan *plan, redlock_client *c, int mode)
{
  int64_t now = rlk_client_now(c);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    struct rlk_planned *p = &plan->nodes[i];
    look_at(p, n, mode, now);
    p->votes = rlk_may_vote(n, now);
    p->did = p->found == REDLOCK_FOUND_VOTES     ? REDLOCK_DID_NOTHING
             : p->found == REDLOCK_FOUND_NOTHING ? REDLOCK_DID_NO_ANSWER
                                                 : REDLOCK_DID_LEFT_ALONE;
  }
}

/* What was seen is what is to be there when it is replaced. */
static int make(struct rlk_plan *plan, redlock_client *c, int mode)
{
  struct rlk_common common = rlk_plan_common(&c->engine.net);
  look(plan, c, mode);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    memcpy(plan->nodes[i].seen, n->voter->marker, sizeof n->voter->marker);
    memcpy(plan->nodes[i].run_id, n->run_id, sizeof n->run_id);
  }
  return rlk_plan_make(plan, c->engine.net.node_count, &common, mode);
}

/* ---- all of it ---- */

/* An unopened client with the same options and nodes; NULL when memory is out. */
static redlock_client *copy_of(const redlock_client *from)
{
  redlock_client *c = rlk_client_new_in(&from->engine.net.env);
  struct rlk_net *net = c ? &c->engine.net : NULL;
  int ok = c && (net->nodes = calloc((size_t)from->engine.net.node_count, sizeof *net->nodes)) != NULL;
  for (int i = 0; ok && i < RLK_OPTION_COUNT; i++) {
    if (!net->texts[i])
      continue;
    free(net->texts[i]);
    net->texts[i] = strdup(from->engine.net.texts[i]);
    ok = net->texts[i] != NULL;
  }
  for (int i = 0; ok && i < from->engine.net.node_count; i++) {
    struct rlk_url url;
    ok = rlk_url_copy(&url, &from->engine.net.nodes[i].url) == REDLOCK_OK;
    if (!ok)
      break;
    rlk_client_add_node(c, &url);
  }
  if (ok) {
    net->options = from->engine.net.options;
    return c;
  }
  redlock_client_free(c);
  return NULL;
}

static redlock_client *open_copy(redlock_client *c, struct rlk_planned *planned, int *status)
{
  redlock_client *copy = copy_of(c);
  *status = copy ? REDLOCK_OK : REDLOCK_NO_MEMORY;
  if (!copy)
    return NULL;
  RLK_INT(&copy->engine.net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&copy->engine.net.options, TTL_MS) = RLK_INT(&copy->engine.net.options, MAX_TTL_MS); /* it takes no lease */
  RLK_INT(&copy->engine.net.options, NODE_TIMEOUT_MS) = RLK_AUTO;
  RLK_INT(&copy->engine.net.options, MIN_VALIDITY_MS) = RLK_AUTO;
  copy->engine.net.planned = planned;
  *status = rlk_client_open(copy, 1);
  if (*status == REDLOCK_OK)
    *status = wait_for_all(copy);
  return copy;
}

static int close_copy(redlock_client *c, redlock_client *copy, int status)
{
  struct rlk_text why = rlk_text_in(c->message, sizeof c->message);
  if (status != REDLOCK_OK && copy)
    rlk_text_add(&why, copy->message);
  redlock_client_free(copy);
  return status;
}

/* Some nodes are new and others are not: perhaps they are being registered. */
static int is_mixed(const struct rlk_plan *plan, int count)
{
  int is_new = 0;
  for (int i = 0; i < count; i++)
    is_new |= plan->nodes[i].found == REDLOCK_FOUND_NEW;
  return is_new;
}

static int show(redlock_client *c, struct rlk_plan *plan, int mode, int *writes)
{
  int status, again;
  int64_t until = rlk_client_now(c) + ANOTHER_MS * RLK_NS_PER_MS;
  do {
    redlock_client *copy = open_copy(c, NULL, &status);
    again = *writes = 0;
    if (status == REDLOCK_OK) {
      pthread_mutex_lock(&copy->mutex);
      *writes = make(plan, copy, mode);
      again = (mode & MODES) == REDLOCK_BOOTSTRAP_NEW && !*writes && is_mixed(plan, copy->engine.net.node_count) &&
              rlk_client_now(copy) < until;
      pthread_mutex_unlock(&copy->mutex);
    }
    status = close_copy(c, copy, status);
    if (again)
      poll(NULL, 0, 100);
  } while (again);
  return status;
}

/* A planned write was carried out if the marker is now the one of the plan. */
static int carry_out(redlock_client *c, struct rlk_plan *plan)
{
  int status;
  redlock_client *copy = open_copy(c, plan->nodes, &status);
  if (status == REDLOCK_OK) {
    pthread_mutex_lock(&copy->mutex);
    look(plan, copy, plan->mode);
    for (int i = 0; i < copy->engine.net.node_count; i++) {
      struct rlk_planned *p = &plan->nodes[i];
      if (p->written[0] && strcmp(p->written, copy->engine.net.nodes[i].voter->marker) == 0)
        p->did = p->will;
    }
    pthread_mutex_unlock(&copy->mutex);
  }
  plan->mode = 0;
  return close_copy(c, copy, status);
}

/* A node that waits for its vote is no failure of a mode that is not for it. */
static int is_left(const struct rlk_planned *p, int mode)
{
  int waits = p->found == REDLOCK_FOUND_NEW || p->found == REDLOCK_FOUND_QUARANTINED;
  return p->did == REDLOCK_DID_LEFT_ALONE && !(waits && (mode & MODES) != REDLOCK_BOOTSTRAP_YES);
}

/* What the mode is for is done, or the first reason why not. For new nodes a majority is enough. */
static int verdict(const struct rlk_plan *plan, redlock_client *c, int mode)
{
  int count = c->engine.net.node_count, is_new = (mode & MODES) == REDLOCK_BOOTSTRAP_NEW, left = 0, away = 0, told = 0;
  struct rlk_text why = rlk_text_in(c->message, sizeof c->message);
  for (int i = 0; i < count; i++) {
    left += is_left(&plan->nodes[i], mode);
    away += plan->nodes[i].did == REDLOCK_DID_NO_ANSWER;
  }
  if (is_new ? count - left - away >= rlk_quorum(count) : !left && !away)
    return REDLOCK_OK;
  is_new &= count - away < rlk_quorum(count);
  for (int i = 0; i < count; i++) {
    const struct rlk_planned *p = &plan->nodes[i];
    if (left && !is_new ? is_left(p, mode) : p->did == REDLOCK_DID_NO_ANSWER)
      rlk_text_format(&why, "%s%s %s", told++ ? "; " : "", c->engine.net.nodes[i].url.name, p->words);
  }
  return left && !is_new ? REDLOCK_REFUSED_CONFIG : REDLOCK_NO_QUORUM;
}

static int run(redlock_client *c, struct rlk_plan *plan, int mode)
{
  int status = REDLOCK_OK, writes = rlk_plan_was_shown(c->bootstrap, mode);
  if (writes) {
    *plan = *c->bootstrap;
    c->bootstrap->mode = 0;
  } else {
    status = show(c, plan, mode, &writes);
  }
  if (status == REDLOCK_OK && writes && !(mode & REDLOCK_BOOTSTRAP_DRY))
    status = carry_out(c, plan);
  return status;
}

int redlock_client_bootstrap(redlock_client *c, int mode)
{
  struct rlk_plan *plan, *former;
  struct rlk_text why;
  int status;
  if (!c)
    return REDLOCK_INVALID;
  why = rlk_text_in(c->message, sizeof c->message);
  if ((mode & MODES) < REDLOCK_BOOTSTRAP_NEW || (mode & MODES) > REDLOCK_BOOTSTRAP_REPLACE || mode >> 5) {
    rlk_text_format(&why, "mode is %d; allowed: 1 to 3, and %d added (enum redlock_bootstrap)", mode,
                    REDLOCK_BOOTSTRAP_DRY);
    return REDLOCK_INVALID;
  }
  if (rlk_client_check(c, &why) != REDLOCK_OK)
    return REDLOCK_INVALID;
  plan = calloc(1, sizeof *plan);
  status = plan ? run(c, plan, mode) : REDLOCK_NO_MEMORY;
  if (status == REDLOCK_OK) {
    pthread_mutex_lock(&c->mutex);
    former = c->bootstrap;
    c->bootstrap = plan;
    plan = former;
    pthread_mutex_unlock(&c->mutex);
    status = verdict(c->bootstrap, c, mode);
  }
  free(plan);
  return status;
}

static const struct rlk_planned *result_of(const redlock_client *c, int node)
{
  return c->bootstrap && node >= 0 && node < c->engine.net.node_count ? &c->bootstrap->nodes[node] : NULL;
}

static int64_t value_of(const struct rlk_planned *p, int field)
{
  if (!p)
    return -REDLOCK_INVALID;
  switch (field) {
  case REDLOCK_BOOTSTRAP_DID: return p->did;
  case REDLOCK_BOOTSTRAP_VOTES: return p->votes;
  case REDLOCK_BOOTSTRAP_MAX_TTL_MS: return p->mark.max_ttl_ms;
  case REDLOCK_BOOTSTRAP_FOUND: return p->found;
  default: return -REDLOCK_INVALID;
  }
}

int64_t redlock_client_bootstrapped(redlock_client *c, int node, int field)
{
  int64_t value = rlk_enter(c) ? value_of(result_of(c, node), field) : -REDLOCK_INVALID;
  rlk_leave(c, REDLOCK_OK);
  return value;
}

int64_t redlock_client_bootstrap_words(redlock_client *c, int node, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  const struct rlk_planned *p = rlk_enter(c) ? result_of(c, node) : NULL;
  if (c && !p)
    return rlk_leave(c, -REDLOCK_INVALID);
  if (p)
    rlk_text_add(&out, p->words);
  return rlk_leave_text(c, &out);
}

const char *redlock_bootstrap_did_name(int did)
{
  static const char *const names[] = {"nothing", "registered", "replaced", "left_alone", "no_answer"};
  return did >= 0 && did <= REDLOCK_DID_NO_ANSWER ? names[did] : NULL;
}

/* An operator says that no lock is live, or changes the number in the markers. It works in clients of its own: the
 * caller's sees the new markers as those of any other program. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../client/life.h"
#include "../client/stepped.h"
#include "../vote/guard.h"
#include "api.h"
#include "config.h"
#include "../vote/eligible.h"

enum { MODES = REDLOCK_BOOTSTRAP_DRY - 1 };

/* The finding on one node, and what was done there. */
struct rlk_bootstrap_result {
  int found; /* enum redlock_bootstrap_found */
  int did;   /* enum redlock_bootstrap_did */
  int votes;
  int64_t max_ttl_ms; /* of its marker; 0 none */
  char words[RLK_WHY_SIZE];
};

struct bootstrap {
  int mode, count;
  int has_all_new; /* all nodes answered, and none has a marker */
  struct rlk_bootstrap_result *results;
  struct rlk_bootstrap_node *wanted;
};

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

static int found(const struct rlk_node *n, int64_t now)
{
  if (is_refused_otherwise(n))
    return REDLOCK_FOUND_REFUSED;
  if (n->state != RLK_NODE_READY && !n->refused)
    return REDLOCK_FOUND_NOTHING;
  switch (n->voter->finding) {
  case RLK_FOUND_OURS:
    if (rlk_guard_left_ms(n, now))
      return REDLOCK_FOUND_QUARANTINED;
    return rlk_guard_waits(n, now) ? REDLOCK_FOUND_REFUSED : REDLOCK_FOUND_VOTES;
  case RLK_FOUND_NONE: return REDLOCK_FOUND_NEW;
  case RLK_FOUND_SMALLER:
  case RLK_FOUND_LARGER: return REDLOCK_FOUND_OTHER_NUMBER;
  case RLK_FOUND_OTHER_NODES:
  case RLK_FOUND_OTHER_CLUSTER:
  case RLK_FOUND_OLD: return REDLOCK_FOUND_OTHER_LIST;
  case RLK_FOUND_FOREIGN: return REDLOCK_FOUND_FOREIGN;
  default: return REDLOCK_FOUND_NOTHING;
  }
}

static void found_words(const struct rlk_node *n, int found, struct rlk_text *out, int64_t now)
{
  int64_t left_ms = rlk_guard_left_ms(n, now);
  struct rlk_reason why;
  switch (found) {
  case REDLOCK_FOUND_VOTES: rlk_text_add(out, "votes"); break;
  case REDLOCK_FOUND_NEW: rlk_text_add(out, "is new or has lost its keys"); break;
  case REDLOCK_FOUND_QUARANTINED:
    rlk_text_add(out, "is quarantined for another ");
    rlk_text_duration(out, (left_ms + 999) / 1000 * 1000);
    break;
  case REDLOCK_FOUND_OTHER_NUMBER:
    rlk_text_add(out, "allows ");
    rlk_text_duration(out, n->voter->mark.max_ttl_ms);
    break;
  case REDLOCK_FOUND_OTHER_LIST:
    if (n->voter->finding == RLK_FOUND_OLD)
      rlk_text_add(out, "has a marker of version 0.1");
    else if (n->voter->finding == RLK_FOUND_OTHER_NODES)
      rlk_text_format(out, "is registered for %d nodes", n->voter->mark.nodes);
    else
      rlk_text_format(out, "is registered for cluster %s", n->voter->mark.cluster);
    break;
  case REDLOCK_FOUND_FOREIGN: rlk_text_add(out, rlk_guard_finding(n, &why) ? why.words : ""); break;
  default:
    if (n->state == RLK_NODE_READY && rlk_guard_waits(n, now))
      rlk_guard_words(n, out, now);
    else
      rlk_text_add(out, n->why.why ? n->why.words : "no answer");
  }
}

/* Each node as seen by this client, with the reason for which it is left alone. */
static void look(struct bootstrap *b, redlock_client *c)
{
  int64_t now = rlk_client_now(c);
  b->has_all_new = 1;
  for (int i = 0; i < b->count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    struct rlk_bootstrap_result *r = &b->results[i];
    struct rlk_text words = rlk_text_in(r->words, sizeof r->words);
    r->found = found(n, now);
    r->words[0] = 0;
    found_words(n, r->found, &words, now);
    r->votes = rlk_may_vote(n, now);
    r->max_ttl_ms = n->voter->mark.max_ttl_ms;
    r->did = r->found == REDLOCK_FOUND_VOTES     ? REDLOCK_DID_NOTHING
             : r->found == REDLOCK_FOUND_NOTHING ? REDLOCK_DID_NO_ANSWER
                                                 : REDLOCK_DID_LEFT_ALONE;
    memcpy(b->wanted[i].seen, n->voter->marker, sizeof n->voter->marker);
    b->has_all_new &= r->found == REDLOCK_FOUND_NEW && !n->voter->marker[0];
  }
}

/* ---- planning the writes ---- */

/* Rewrites a server's marker, or keeps its identity and the time of that. */
static void want(struct bootstrap *b, int node, const struct rlk_node *n, int did, int64_t now)
{
  struct rlk_marker *marker = &b->wanted[node].marker;
  int keeps =
      b->results[node].found == REDLOCK_FOUND_QUARANTINED || b->results[node].found == REDLOCK_FOUND_OTHER_NUMBER;
  if (keeps)
    *marker = n->voter->mark;
  if (rlk_guard_left_ms(n, now)) /* no lock is live */
    marker->since_ms = 0;
  marker->nodes = b->count;
  b->results[node].did = did;
}

static void plan(struct bootstrap *b, redlock_client *c)
{
  int mode = b->mode & MODES;
  int64_t now = rlk_client_now(c);
  for (int i = 0; i < b->count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    switch (b->results[i].found) {
    case REDLOCK_FOUND_NEW:
    case REDLOCK_FOUND_QUARANTINED:
      if (mode != REDLOCK_BOOTSTRAP_NEW || b->has_all_new)
        want(b, i, n, REDLOCK_DID_REGISTERED, now);
      break;
    case REDLOCK_FOUND_OTHER_NUMBER:
    case REDLOCK_FOUND_OTHER_LIST:
      if (mode == REDLOCK_BOOTSTRAP_REPLACE)
        want(b, i, n, REDLOCK_DID_REPLACED, now);
      break;
    default: break;
    }
  }
}

/* ---- all of it ---- */

/* An unopened client with the same options and nodes; NULL when memory is out. */
static redlock_client *copy_of(const redlock_client *from)
{
  redlock_client *c = rlk_client_new_in(&from->engine.net.env);
  struct rlk_net *net = c ? &c->engine.net : NULL;
  int ok = c && (net->nodes = calloc(RLK_NODES_MAX, sizeof *net->nodes)) != NULL;
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

static redlock_client *open_copy(redlock_client *c, struct bootstrap *b, int writes, int *status)
{
  redlock_client *copy = copy_of(c);
  *status = copy ? REDLOCK_OK : REDLOCK_NO_MEMORY;
  if (!copy)
    return NULL;
  RLK_INT(&copy->engine.net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&copy->engine.net.options, TTL_MS) = RLK_INT(&copy->engine.net.options, MAX_TTL_MS); /* it takes no lease */
  RLK_INT(&copy->engine.net.options, NODE_TIMEOUT_MS) = RLK_AUTO;
  RLK_INT(&copy->engine.net.options, MIN_VALIDITY_MS) = RLK_AUTO;
  copy->engine.net.bootstrap = writes ? b->wanted : NULL;
  *status = rlk_client_open(copy, 1);
  if (*status == REDLOCK_OK)
    *status = wait_for_all(copy);
  return copy;
}

static int writes(const struct bootstrap *b)
{
  for (int i = 0; i < b->count && !(b->mode & REDLOCK_BOOTSTRAP_DRY); i++)
    if (b->wanted[i].marker.nodes)
      return 1;
  return 0;
}

/* A planned write was carried out if the marker is now the one of the plan. */
static void note_written(struct bootstrap *b, const int *planned, redlock_client *c)
{
  for (int i = 0; i < b->count; i++) {
    const struct rlk_node *n = &c->engine.net.nodes[i];
    if (b->wanted[i].written[0] && strcmp(b->wanted[i].written, n->voter->marker) == 0)
      b->results[i].did = planned[i];
  }
}

static int run(redlock_client *c, struct bootstrap *b)
{
  int status, planned[RLK_NODES_MAX];
  redlock_client *copy = open_copy(c, b, 0, &status);
  if (status == REDLOCK_OK) {
    pthread_mutex_lock(&copy->mutex);
    look(b, copy);
    plan(b, copy);
    pthread_mutex_unlock(&copy->mutex);
  }
  if (status == REDLOCK_OK && writes(b)) {
    for (int i = 0; i < b->count; i++)
      planned[i] = b->results[i].did;
    redlock_client_free(copy);
    copy = open_copy(c, b, 1, &status);
    if (status == REDLOCK_OK) {
      pthread_mutex_lock(&copy->mutex);
      look(b, copy);
      note_written(b, planned, copy);
      pthread_mutex_unlock(&copy->mutex);
    }
  }
  if (status != REDLOCK_OK && copy) {
    struct rlk_text why = rlk_text_in(c->message, sizeof c->message);
    rlk_text_add(&why, copy->message);
  }
  redlock_client_free(copy);
  return status;
}

/* All vote, or the first reason why not. */
static int verdict(const struct bootstrap *b, redlock_client *c)
{
  int count[REDLOCK_DID_NO_ANSWER + 1] = {0}, worst;
  struct rlk_text why = rlk_text_in(c->message, sizeof c->message);
  for (int i = 0; i < b->count; i++)
    count[b->results[i].did]++;
  worst = count[REDLOCK_DID_NO_ANSWER] ? REDLOCK_DID_NO_ANSWER : REDLOCK_DID_LEFT_ALONE;
  if ((b->mode & MODES) != REDLOCK_BOOTSTRAP_NEW && count[REDLOCK_DID_LEFT_ALONE])
    worst = REDLOCK_DID_LEFT_ALONE;
  for (int i = 0, told = 0; i < b->count; i++)
    if (b->results[i].did == worst)
      rlk_text_format(&why, "%s%s %s", told++ ? "; " : "", c->engine.net.nodes[i].url.name, b->results[i].words);
  if (!count[worst])
    return REDLOCK_OK;
  return worst == REDLOCK_DID_NO_ANSWER ? REDLOCK_NO_QUORUM : REDLOCK_REFUSED_CONFIG;
}

int redlock_client_bootstrap(redlock_client *c, int mode)
{
  struct bootstrap b = {.mode = mode};
  struct rlk_text why;
  int status = REDLOCK_INVALID;
  if (!c)
    return REDLOCK_INVALID;
  why = rlk_text_in(c->message, sizeof c->message);
  if ((mode & MODES) < REDLOCK_BOOTSTRAP_NEW || (mode & MODES) > REDLOCK_BOOTSTRAP_REPLACE || mode >> 5) {
    rlk_text_format(&why, "mode is %d; allowed: 1 to 3, and %d added (enum redlock_bootstrap)", mode,
                    REDLOCK_BOOTSTRAP_DRY);
    return status;
  }
  if (rlk_client_check(c, &why) != REDLOCK_OK)
    return status;
  b.count = c->engine.net.node_count;
  b.results = calloc(RLK_NODES_MAX, sizeof *b.results);
  b.wanted = calloc(RLK_NODES_MAX, sizeof *b.wanted);
  status = b.results && b.wanted ? run(c, &b) : REDLOCK_NO_MEMORY;
  if (status == REDLOCK_OK) {
    status = verdict(&b, c);
    pthread_mutex_lock(&c->mutex);
    free(c->bootstrap);
    c->bootstrap = b.results;
    b.results = NULL;
    pthread_mutex_unlock(&c->mutex);
  }
  free(b.results);
  free(b.wanted);
  return status;
}

static const struct rlk_bootstrap_result *result_of(const redlock_client *c, int node)
{
  return c->bootstrap && node >= 0 && node < c->engine.net.node_count ? &c->bootstrap[node] : NULL;
}

static int64_t value_of(const struct rlk_bootstrap_result *r, int field)
{
  if (!r)
    return -REDLOCK_INVALID;
  switch (field) {
  case REDLOCK_BOOTSTRAP_DID: return r->did;
  case REDLOCK_BOOTSTRAP_VOTES: return r->votes;
  case REDLOCK_BOOTSTRAP_MAX_TTL_MS: return r->max_ttl_ms;
  case REDLOCK_BOOTSTRAP_FOUND: return r->found;
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
  const struct rlk_bootstrap_result *r = rlk_enter(c) ? result_of(c, node) : NULL;
  if (c && !r)
    return rlk_leave(c, -REDLOCK_INVALID);
  if (r)
    rlk_text_add(&out, r->words);
  return rlk_leave_text(c, &out);
}

const char *redlock_bootstrap_did_name(int did)
{
  static const char *const names[] = {"nothing", "registered", "replaced", "left_alone", "no_answer"};
  return did >= 0 && did <= REDLOCK_DID_NO_ANSWER ? names[did] : NULL;
}

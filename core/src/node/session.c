/* Setting up a connection: who we are, what the server is, and whether it may vote (rule C.3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../lock/lease.h"
#include "../lock/operation.h"
#include "session.h"
#include "silence.h"

/* The commands of the set-up; each reply says which one it answers. */
enum step { HELLO, AUTH, NAME, ID, SELECT, INFO, LOAD, PROVE };

#define LOOK_AGAIN_MIN_MS 1000
#define LOOK_AGAIN_MAX_MS 30000

/* ---- errors of the server ---- */

static const struct {
  const char *begins;
  enum rl_fault fault;
} faults[] = {
    {"READONLY", RL_FAULT_ROLE},
    {"MASTERDOWN", RL_FAULT_ROLE},
    {"LOADING", RL_FAULT_LOADING},
    {"ERR max number of clients", RL_FAULT_LOADING},
    {"DENIED", RL_FAULT_LOADING},
    {"OOM", RL_FAULT_FULL},
    {"BUSY", RL_FAULT_PAUSE},
    {"UNKILLABLE", RL_FAULT_PAUSE},
    {"MISCONF", RL_FAULT_UNWRITABLE},
    {"NOREPLICAS", RL_FAULT_UNWRITABLE},
    {"NOAUTH", RL_FAULT_CONFIG},
    {"WRONGPASS", RL_FAULT_CONFIG},
    {"MOVED", RL_FAULT_CONFIG},
    {"ASK", RL_FAULT_CONFIG},
    {"CLUSTERDOWN", RL_FAULT_CONFIG},
    {"CROSSSLOT", RL_FAULT_CONFIG},
    {"ERR Protocol version", RL_FAULT_CONFIG},
    {"ERR AUTH", RL_FAULT_CONFIG},
    {"ERR Client sent AUTH", RL_FAULT_CONFIG},
    {"ERR invalid password", RL_FAULT_CONFIG},
    {"ERR DB index", RL_FAULT_CONFIG},
    {"ERR invalid DB index", RL_FAULT_CONFIG},
    {"ERR SELECT", RL_FAULT_CONFIG},
    {"NOPERM", RL_FAULT_PERMISSION},
    {"ERR The user executing the script", RL_FAULT_PERMISSION},
    {"ERR ACL failure in script", RL_FAULT_PERMISSION},
    {"NOSCRIPT", RL_FAULT_NO_SCRIPT},
    {"WRONGTYPE", RL_FAULT_TYPE},
    {"ERR unknown command", RL_FAULT_UNKNOWN},
    {"ERR Unknown Redis command", RL_FAULT_UNKNOWN}, /* in a script */
    {"ERR Unknown command", RL_FAULT_UNKNOWN},
    {"NOPROTO", RL_FAULT_UNKNOWN},
};

enum rl_fault rl_fault_of(const char *text)
{
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    size_t size = strlen(faults[i].begins);
    if (strncmp(text, faults[i].begins, size) == 0 && strchr(" ,:`'", text[size])) /* matches the end, too */
      return faults[i].fault;
  }
  return RL_FAULT_OTHER;
}

/* ---- sending ---- */

static int send_words(struct rl_line *l, enum step step, int count, const char *const *words)
{
  size_t before = rl_buffer_size(&l->out);
  if (rl_command_argv(&l->out, count, words) != 0)
    return -1;
  l->setup_left++;
  return rl_line_owe(l, RL_OWED_SETUP, before, &(struct rl_owed){.kind = RL_OWED_SETUP, .round = (uint32_t)step,
                                                                 .sent_ns = rl_now(l->node->net)});
}

static int send_hello(struct rl_line *l)
{
  const char *words[7] = {"HELLO", "2"};
  int count = 2;
  if (l->node->url.password) {
    words[count++] = "AUTH";
    words[count++] = l->node->url.user ? l->node->url.user : "default";
    words[count++] = l->node->url.password;
  }
  if (l->node->net->client_name[0]) {
    words[count++] = "SETNAME";
    words[count++] = l->node->net->client_name;
  }
  return send_words(l, HELLO, count, words);
}

static int send_name(struct rl_line *l)
{
  const char *words[] = {"CLIENT", "SETNAME", l->node->net->client_name};
  return l->node->net->client_name[0] ? send_words(l, NAME, 3, words) : 0;
}

static int send_id(struct rl_line *l)
{
  const char *words[] = {"CLIENT", "ID"};
  return send_words(l, ID, 2, words);
}

/* For servers that do not know HELLO. */
static int send_auth(struct rl_line *l)
{
  const char *words[3] = {"AUTH"};
  int count = 1;
  if (l->node->url.password) {
    if (l->node->url.user)
      words[count++] = l->node->url.user;
    words[count++] = l->node->url.password;
    if (send_words(l, AUTH, count, words) != 0)
      return -1;
  }
  return send_name(l) != 0 ? -1 : send_id(l);
}

static int send_select(struct rl_line *l)
{
  char number[16];
  const char *words[] = {"SELECT", number};
  snprintf(number, sizeof number, "%d", l->node->url.database);
  return l->node->url.database ? send_words(l, SELECT, 2, words) : 0;
}

static int send_info(struct rl_line *l, const char *section)
{
  const char *words[] = {"INFO", section};
  return send_words(l, INFO, 2, words);
}

static int send_load(struct rl_line *l, enum rl_script script)
{
  const char *words[] = {"SCRIPT", "LOAD", rl_script_text(script)};
  return send_words(l, LOAD, 3, words);
}

/* The scripts are tried, since a server may forbid what they do; on a key that nobody has. */
static int send_proof(struct rl_line *l)
{
  char key[384];
  const char *whole[] = {"EVAL", rl_script_text(RL_SCRIPT_PROOF), "1", key};
  const char *by_hash[] = {"EVALSHA", rl_script_hash(RL_SCRIPT_EXTEND), "1", key, "1", "proof"};
  struct rl_text text = rl_text_in(key, sizeof key);
  rl_text_add(&text, l->node->net->key_prefix);
  rl_text_format(&text, "libredlock:proof:%016llx", (unsigned long long)rl_random(l->node->net));
  return send_words(l, PROVE, 4, whole) != 0 ? -1 : send_words(l, PROVE, 6, by_hash);
}

static int send_setup(struct rl_line *l)
{
  l->setup_left = 0;
  l->setup_fault = RL_FAULT_NONE;
  l->setup_again = 0;
  l->run_id[0] = l->role[0] = l->mode[0] = l->policy[0] = l->version[0] = 0;
  l->maxmemory = l->client_id = 0;
  l->shared = NULL;
  if ((l->node->no_hello ? send_auth(l) : send_hello(l)) != 0 || send_select(l) != 0)
    return -1;
  /* several commands: servers before 7.0 take one section each */
  if (send_info(l, "server") != 0 || send_info(l, "replication") != 0 || send_info(l, "memory") != 0)
    return -1;
  if (send_load(l, RL_SCRIPT_RELEASE) != 0 || send_load(l, RL_SCRIPT_EXTEND) != 0)
    return -1;
  return send_proof(l);
}

/* The first SET may join the set-up only if nothing in front of it can redirect it (rule C.3). */
static int may_join(const struct rl_line *l)
{
  return l->node->session_proved || (l->node->url.database == 0 && !l->node->url.password);
}

int rl_session_begin(struct rl_line *l, int64_t now)
{
  rl_line_be(l, RL_NODE_SETUP);
  if (send_setup(l) != 0)
    return -1;
  if (may_join(l) && l != l->node->second)
    rl_operation_node_ready(l->node, now);
  return 0;
}

/* ---- reading ---- */

/* Copies what follows name at the start of a line, up to its end. */
static int info_field(const char *info, const char *name, char *out, size_t size)
{
  size_t name_size = strlen(name);
  for (const char *line = info; line && *line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, name, name_size) == 0 && line[name_size] == ':') {
      size_t length = strcspn(line + name_size + 1, "\r\n");
      if (length >= size)
        length = size - 1;
      memcpy(out, line + name_size + 1, length);
      out[length] = 0;
      return 1;
    }
  }
  return 0;
}

static void read_info(struct rl_line *l, const char *info)
{
  char number[24];
  info_field(info, "run_id", l->run_id, sizeof l->run_id);
  info_field(info, "redis_mode", l->mode, sizeof l->mode);
  info_field(info, "redis_version", l->version, sizeof l->version);
  info_field(info, "role", l->role, sizeof l->role);
  info_field(info, "maxmemory_policy", l->policy, sizeof l->policy);
  if (info_field(info, "maxmemory", number, sizeof number))
    l->maxmemory = strtoll(number, NULL, 10);
}

/* What the proof shows is what a script may not do, but of the user's keys only when they come. Whether the server can
 * write now is no matter of the set-up. */
static int is_no_proof(enum rl_fault fault, const char *text)
{
  return (fault != RL_FAULT_PERMISSION && fault != RL_FAULT_UNKNOWN) || strstr(text, " key");
}

static void note_fault(struct rl_line *l, enum step step, const char *text)
{
  enum rl_fault fault = rl_fault_of(text);
  struct rl_text out;
  if (step == NAME || step == ID || l->setup_fault != RL_FAULT_NONE || (step == PROVE && is_no_proof(fault, text)))
    return; /* not needed to vote; and only the first error tells the cause */
  if (step == HELLO && fault == RL_FAULT_UNKNOWN) {
    l->node->no_hello = 1;
    l->setup_again = l->node->url.password != NULL; /* without a password the rest of the set-up stands */
    return;
  }
  if (l->setup_again)
    return; /* nobody is logged in yet */
  l->setup_fault = (int)fault;
  out = rl_text_in(l->setup_error, sizeof l->setup_error);
  rl_text_clean(&out, text);
  rl_text_mark_cut(&out);
}

const char *rl_session_error(const struct rl_line *l)
{
  return l->state == RL_NODE_SETUP && l->setup_fault != RL_FAULT_NONE ? l->setup_error : NULL;
}

/* What was counted on there is gone: a server that was started anew, or that is a replica now (guard = off). */
static void forget_leases(struct rl_node *n, int reason, int64_t now)
{
  for (struct rl_claim *c = rl_engine_of(n->net)->claims; c; c = c->next) {
    if (c->node[n->index].e_ns == 0)
      continue;
    if (c->lock && c->lock->claim == c && !c->over)
      rl_lock_cut(c->lock, n->index, reason, now);
    c->node[n->index].e_ns = 0;
  }
}

static void check_restart(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  int restarted = n->run_id[0] && l->run_id[0] && strcmp(n->run_id, l->run_id) != 0;
  if (restarted && !RL_MUTANT(RESTART_IGNORED)) {
    rl_event_add(&n->net->events, RL_EVENT_NODE_RESTARTED, n->index, "a new run_id: leases there no longer count");
    forget_leases(n, REDLOCK_LOSS_RESTARTED, now);
  }
  if (l->run_id[0])
    memcpy(n->run_id, l->run_id, sizeof n->run_id);
  if (l->version[0])
    memcpy(n->version, l->version, sizeof n->version);
  if (l->role[0] && strcmp(l->role, "master") != 0 && !RL_MUTANT(DEMOTION_IGNORED))
    forget_leases(n, REDLOCK_LOSS_REFUSED, now);
}

/* Whether a lease on the node is counted on by anybody, though it may have no connection now. */
static int is_counted_on(const struct rl_node *n, int64_t now)
{
  for (const struct rl_claim *c = rl_engine_of(n->net)->claims; c; c = c->next)
    if (!c->over && c->node[n->index].e_ns > now)
      return 1;
  return 0;
}

/* Another node that leads to the same server and votes, or did so for a lease that still counts: no server counts
 * twice for one lock (rule A.8). */
static struct rl_node *same_server(const struct rl_line *l, int64_t now)
{
  for (int i = 0; i < l->node->net->node_count; i++) {
    struct rl_node *other = &l->node->net->nodes[i];
    if (other != l->node && strcmp(other->run_id, l->run_id) == 0 &&
        (other->state == RL_NODE_READY || is_counted_on(other, now)) && !RL_MUTANT(COUNTED_TWICE))
      return other;
  }
  return NULL;
}

/* Why the node is ineligible to vote, or NULL; size bytes of room are in why. */
static const char *objection(const struct rl_line *l, char *why, size_t size)
{
  if (!l->run_id[0] || !l->role[0])
    return "INFO names no run_id or no role";
  if (strcmp(l->mode, "cluster") == 0)
    return "a cluster node; nodes must be independent masters";
  if (l->mode[0] && strcmp(l->mode, "standalone") != 0) {
    snprintf(why, size, "runs in mode %s; nodes must be independent masters", l->mode);
    return why;
  }
  if (strcmp(l->role, "master") != 0)
    return "a replica; only masters are eligible to vote";
  if (l->maxmemory > 0 && l->policy[0] && strcmp(l->policy, "noeviction") != 0) {
    snprintf(why, size, "evicts keys (maxmemory-policy %s); set it to noeviction", l->policy);
    return why;
  }
  return NULL;
}

/* SETs that joined the set-up have gone to a server that votes under another address: what that one met, or meets yet,
 * may be the key of its own token. */
static void share_sets(const struct rl_line *l, struct rl_node *other, int64_t now)
{
  for (uint32_t i = 0; i < l->owed_count; i++) {
    const struct rl_owed *o = &l->owed[(l->owed_first + i) & (l->owed_size - 1)];
    redlock_lock *lock = o->claim ? o->claim->lock : NULL;
    if (o->kind != RL_OWED_SET || !lock || lock->claim != o->claim || o->claim->over || lock->round != o->round)
      continue;
    o->claim->node[other->index].flags |= RL_SET_LOST;
    if (lock->answers[other->index] == RL_BUSY && other->state == RL_NODE_READY &&
        rl_node_send_confirm(other, lock, 0, now) == 0)
      lock->answers[other->index] = RL_ASKED;
  }
}

static const char *second_address(struct rl_line *l, char *why, size_t size, int64_t now)
{
  struct rl_node *other = same_server(l, now);
  if (!other)
    return NULL;
  l->shared = other;
  share_sets(l, other, now);
  snprintf(why, size, "the same server as %s%s", other->url.name,
           other->state == RL_NODE_READY ? "" : ", which is not connected but whose leases still count");
  return why;
}

/* What HELLO would have done on a server that turned out not to know it. */
static int send_rest(struct rl_line *l)
{
  if (!l->node->no_hello || l->node->url.password || l->client_id)
    return 0;
  return send_name(l) != 0 ? -1 : send_id(l);
}

static void ready(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  rl_event_add(&n->net->events, RL_EVENT_NODE_UP, n->index, n->version);
  rl_line_be(l, RL_NODE_READY);
  n->refused = 0;
  n->session_proved = 1;
  n->why[0] = 0;
  n->busy_until_ns = 0;
  n->looked_ns = now;
  rl_timer_clear(&n->net->timers, &n->timer);
  if (send_rest(l) != 0) {
    rl_line_drop(l, 0, "out of memory", now);
    return;
  }
  rl_operation_node_ready(n, now);
  rl_node_pay_debts(n, now);
  if (n->net->state == RL_NET_LEAVING)
    rl_node_flush(n, now); /* closes its half although there may be nothing left to send */
}

static void fault(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  switch (l->setup_fault) {
  case RL_FAULT_CONFIG:
  case RL_FAULT_PERMISSION:
  case RL_FAULT_UNKNOWN: n->session_proved = 0; rl_node_refuse(n, l->setup_error, now); break;
  default: rl_node_drop(n, 0, l->setup_error, now); /* it may pass */
  }
}

static void conclude(struct rl_line *l, int64_t now)
{
  struct rl_node *n = l->node;
  char why[RL_WHY_SIZE];
  const char *no;
  if (l->setup_again) {
    if (send_setup(l) != 0)
      rl_line_drop(l, 0, "out of memory", now);
    return;
  }
  if (l == n->second && !rl_silence_replace(l, now))
    return;
  check_restart(l, now);
  if (l->setup_fault != RL_FAULT_NONE) {
    fault(l, now);
    return;
  }
  no = objection(l, why, sizeof why);
  if (!no)
    no = second_address(l, why, sizeof why, now);
  if (!no) {
    ready(l, now);
    return;
  }
  rl_node_pay_debts(n, now); /* it may not vote, but delete */
  rl_node_refuse(n, no, now);
}

void rl_session_reply(struct rl_line *l, int step, const struct rl_reply *reply, int64_t now)
{
  l->setup_left--;
  if (reply->type == RL_REPLY_ERROR)
    note_fault(l, (enum step)step, reply->text.data);
  else if (step == INFO && reply->type == RL_REPLY_STRING)
    read_info(l, reply->text.data);
  else if (step == HELLO && reply->type == RL_REPLY_ARRAY)
    l->client_id = reply->id;
  else if (step == ID && reply->type == RL_REPLY_INTEGER)
    l->client_id = reply->integer;
  if (l->setup_left == 0 && l->state == RL_NODE_SETUP)
    conclude(l, now);
}

/* ---- looking again ---- */

void rl_session_look_again(struct rl_line *l, int64_t now)
{
  static const char *const sections[] = {"replication", "memory"};
  int64_t pause_ms = RL_INT(&l->node->net->options, TTL_MS);
  pause_ms = pause_ms < LOOK_AGAIN_MIN_MS ? LOOK_AGAIN_MIN_MS : pause_ms;
  pause_ms = pause_ms > LOOK_AGAIN_MAX_MS ? LOOK_AGAIN_MAX_MS : pause_ms;
  if (now - l->node->looked_ns < pause_ms * RL_NS_PER_MS)
    return;
  l->node->looked_ns = now;
  for (int is_last = 0; is_last < 2; is_last++) {
    const char *words[] = {"INFO", sections[is_last]};
    size_t before = rl_buffer_size(&l->out);
    struct rl_owed look = {.kind = RL_OWED_LOOK, .round = (uint32_t)is_last, .sent_ns = now};
    if (rl_command_argv(&l->out, 2, words) != 0)
      return;
    if (rl_line_owe(l, RL_OWED_LOOK, before, &look) != 0)
      rl_buffer_cut(&l->out, before, rl_buffer_size(&l->out) - before);
  }
}

void rl_session_looked(struct rl_line *l, int is_last, const struct rl_reply *reply, int64_t now)
{
  char why[RL_WHY_SIZE];
  const char *no;
  if (reply->type == RL_REPLY_STRING)
    read_info(l, reply->text.data);
  if (!is_last || l->state != RL_NODE_READY)
    return;
  no = objection(l, why, sizeof why);
  if (!no)
    return;
  check_restart(l, now);
  rl_node_pay_debts(l->node, now);
  rl_node_refuse(l->node, no, now);
}

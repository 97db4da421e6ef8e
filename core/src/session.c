/* Setting up a connection: who we are, what the server is, and whether it may vote (rule C.3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* The commands of the set-up; each reply says which one it answers. */
enum step { HELLO, AUTH, NAME, SELECT, INFO, LOAD };

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
    {"NOPERM", RL_FAULT_PERMISSION},
    {"NOSCRIPT", RL_FAULT_NO_SCRIPT},
    {"WRONGTYPE", RL_FAULT_TYPE},
    {"ERR unknown command", RL_FAULT_UNKNOWN},
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

static int send_words(struct rl_node *n, enum step step, int count, const char *const *words)
{
  size_t before = rl_buffer_size(&n->out);
  if (rl_command_argv(&n->out, count, words) != 0)
    return -1;
  n->setup_left++;
  return rl_node_owe(n, RL_OWED_SETUP, before, &(struct rl_owed){.kind = RL_OWED_SETUP, .round = (uint32_t)step,
                                                                 .sent_ns = rl_now(n->client)});
}

static int send_hello(struct rl_node *n)
{
  const char *words[7] = {"HELLO", "2"};
  int count = 2;
  if (n->url.password) {
    words[count++] = "AUTH";
    words[count++] = n->url.user ? n->url.user : "default";
    words[count++] = n->url.password;
  }
  if (n->client->client_name[0]) {
    words[count++] = "SETNAME";
    words[count++] = n->client->client_name;
  }
  return send_words(n, HELLO, count, words);
}

static int send_name(struct rl_node *n)
{
  const char *words[] = {"CLIENT", "SETNAME", n->client->client_name};
  return n->client->client_name[0] ? send_words(n, NAME, 3, words) : 0;
}

/* For servers that do not know HELLO. */
static int send_auth(struct rl_node *n)
{
  const char *words[3] = {"AUTH"};
  int count = 1;
  if (n->url.password) {
    if (n->url.user)
      words[count++] = n->url.user;
    words[count++] = n->url.password;
    if (send_words(n, AUTH, count, words) != 0)
      return -1;
  }
  return send_name(n);
}

static int send_select(struct rl_node *n)
{
  char number[16];
  const char *words[] = {"SELECT", number};
  snprintf(number, sizeof number, "%d", n->url.database);
  return n->url.database ? send_words(n, SELECT, 2, words) : 0;
}

static int send_info(struct rl_node *n, const char *section)
{
  const char *words[] = {"INFO", section};
  return send_words(n, INFO, 2, words);
}

static int send_load(struct rl_node *n, enum rl_script script)
{
  const char *words[] = {"SCRIPT", "LOAD", rl_script_text(script)};
  return send_words(n, LOAD, 3, words);
}

static int send_setup(struct rl_node *n)
{
  n->setup_left = 0;
  n->setup_fault = RL_FAULT_NONE;
  n->setup_again = 0;
  n->run_id_seen[0] = n->role[0] = n->mode[0] = n->policy[0] = 0;
  n->maxmemory = 0;
  if ((n->no_hello ? send_auth(n) : send_hello(n)) != 0 || send_select(n) != 0)
    return -1;
  /* several commands: servers before 7.0 take one section each */
  if (send_info(n, "server") != 0 || send_info(n, "replication") != 0 || send_info(n, "memory") != 0)
    return -1;
  return send_load(n, RL_SCRIPT_RELEASE) != 0 || send_load(n, RL_SCRIPT_EXTEND) != 0 ? -1 : 0;
}

/* The first SET may join the set-up only if nothing in front of it can redirect it (rule C.3). */
static int may_join(const struct rl_node *n)
{
  return n->session_proved || (n->url.database == 0 && !n->url.password);
}

int rl_session_begin(struct rl_node *n, int64_t now)
{
  n->state = RL_NODE_SETUP;
  if (send_setup(n) != 0)
    return -1;
  if (may_join(n))
    rl_operation_node_ready(n, now);
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

static void read_info(struct rl_node *n, const char *info)
{
  char number[24];
  info_field(info, "run_id", n->run_id_seen, sizeof n->run_id_seen);
  info_field(info, "redis_mode", n->mode, sizeof n->mode);
  info_field(info, "redis_version", n->version, sizeof n->version);
  info_field(info, "role", n->role, sizeof n->role);
  info_field(info, "maxmemory_policy", n->policy, sizeof n->policy);
  if (info_field(info, "maxmemory", number, sizeof number))
    n->maxmemory = strtoll(number, NULL, 10);
}

static void note_fault(struct rl_node *n, enum step step, const char *text)
{
  enum rl_fault fault = rl_fault_of(text);
  struct rl_text out;
  if (step == NAME || n->setup_fault != RL_FAULT_NONE)
    return; /* a name is a courtesy; only the first error tells the cause */
  if (step == HELLO && fault == RL_FAULT_UNKNOWN) {
    n->no_hello = 1;
    n->setup_again = n->url.password != NULL; /* without a password the rest of the set-up stands */
    return;
  }
  if (n->setup_again)
    return; /* nobody is logged in yet */
  n->setup_fault = (int)fault;
  out = rl_text_in(n->setup_error, sizeof n->setup_error);
  rl_text_clean(&out, text);
}

/* What was counted on there is gone: a server that was started anew, or that is a replica now (guard = off). */
static void forget_leases(struct rl_node *n, int64_t now)
{
  for (struct rl_claim *c = n->client->claims; c; c = c->next) {
    if (c->node[n->index].e_ns == 0)
      continue;
    c->node[n->index].e_ns = 0;
    if (c->lock && c->lock->claim == c && !c->over)
      rl_lock_recount(c->lock, now);
  }
}

static void check_restart(struct rl_node *n, int64_t now)
{
  int restarted = n->run_id[0] && n->run_id_seen[0] && strcmp(n->run_id, n->run_id_seen) != 0;
  if (restarted) {
    rl_event_add(n->client, RL_EVENT_NODE_RESTARTED, n->index, NULL, "a new run_id: leases there count no more");
    forget_leases(n, now);
  }
  if (n->run_id_seen[0])
    memcpy(n->run_id, n->run_id_seen, sizeof n->run_id);
  if (n->role[0] && strcmp(n->role, "master") != 0)
    forget_leases(n, now);
}

static const struct rl_node *same_server(const struct rl_node *n)
{
  for (int i = 0; i < n->client->node_count; i++) {
    const struct rl_node *other = &n->client->nodes[i];
    if (other != n && other->state == RL_NODE_READY && strcmp(other->run_id, n->run_id_seen) == 0)
      return other;
  }
  return NULL;
}

/* Why the node may not vote, or NULL; size bytes of room are in why. */
static const char *objection(struct rl_node *n, char *why, size_t size)
{
  const struct rl_node *other;
  if (!n->run_id_seen[0] || !n->role[0])
    return "INFO names no run_id or no role";
  if (strcmp(n->mode, "cluster") == 0)
    return "a cluster node; nodes must be independent masters";
  if (n->mode[0] && strcmp(n->mode, "standalone") != 0) {
    snprintf(why, size, "runs in mode %s; nodes must be independent masters", n->mode);
    return why;
  }
  if (strcmp(n->role, "master") != 0)
    return "a replica; only a master may vote";
  if (n->maxmemory > 0 && n->policy[0] && strcmp(n->policy, "noeviction") != 0) {
    snprintf(why, size, "evicts keys (maxmemory-policy %s); set it to noeviction", n->policy);
    return why;
  }
  other = same_server(n);
  if (!other)
    return NULL;
  snprintf(why, size, "the same server as %s", other->url.name);
  return why;
}

static void ready(struct rl_node *n, int64_t now)
{
  rl_event_add(n->client, RL_EVENT_NODE_UP, n->index, NULL, n->version);
  n->state = RL_NODE_READY;
  n->refused = 0;
  n->session_proved = 1;
  n->why[0] = 0;
  n->busy_until_ns = 0;
  rl_timer_clear(&n->client->timers, &n->timer);
  if (n->no_hello && !n->url.password && n->client->client_name[0]) {
    const char *words[] = {"CLIENT", "SETNAME", n->client->client_name};
    size_t before = rl_buffer_size(&n->out);
    if (rl_command_argv(&n->out, 3, words) != 0 || rl_node_owe(n, RL_OWED_NOTHING, before, NULL) != 0) {
      rl_node_drop(n, 0, "out of memory", now);
      return;
    }
  }
  rl_operation_node_ready(n, now);
  rl_node_pay_debts(n, now);
  if (n->client->state == RL_CLIENT_LEAVING)
    rl_node_flush(n, now); /* closes its half although there may be nothing left to send */
}

static void fault(struct rl_node *n, int64_t now)
{
  switch (n->setup_fault) {
  case RL_FAULT_LOADING:
  case RL_FAULT_PAUSE:
  case RL_FAULT_ROLE: rl_node_drop(n, 0, n->setup_error, now); break;
  default: n->session_proved = 0; rl_node_refuse(n, n->setup_error, now);
  }
}

static void conclude(struct rl_node *n, int64_t now)
{
  char why[RL_WHY_SIZE];
  const char *no;
  if (n->setup_again) {
    if (send_setup(n) != 0)
      rl_node_drop(n, 0, "out of memory", now);
    return;
  }
  check_restart(n, now);
  if (n->setup_fault != RL_FAULT_NONE) {
    fault(n, now);
    return;
  }
  no = objection(n, why, sizeof why);
  if (no)
    rl_node_refuse(n, no, now);
  else
    ready(n, now);
}

void rl_session_reply(struct rl_node *n, int step, const struct rl_reply *reply, int64_t now)
{
  n->setup_left--;
  if (reply->type == RL_REPLY_ERROR)
    note_fault(n, (enum step)step, reply->text.data);
  else if (step == INFO && reply->type == RL_REPLY_STRING)
    read_info(n, reply->text.data);
  if (n->setup_left == 0 && n->state == RL_NODE_SETUP)
    conclude(n, now);
}

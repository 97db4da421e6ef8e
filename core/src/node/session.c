#include "session.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "login.h"

/* The commands of the set-up; each reply says which one it answers. */
enum step { HELLO, AUTH, NAME, ID, SELECT, INFO, LOAD, PROVE, MARKER, TIME, REGISTER };

#define LOOK_AGAIN_MIN_MS 1000
#define LOOK_AGAIN_MAX_MS 30000

/* node.c hands their replies to this file. */
const struct rlk_ask rlk_row_setup = {.role = RLK_ASK_SETUP, .rest = RLK_FITS};
const struct rlk_ask rlk_row_look = {.role = RLK_ASK_LOOK, .rest = RLK_FITS};

/* ---- sending ---- */

static int send_words(struct rlk_line *l, enum step step, int count, const char *const *words)
{
  struct rlk_request setup = {.ask = &rlk_row_setup, .of.step = (int)step, .sent_ns = rlk_now(l->node->net)};
  if (rlk_out_words(l, count, words, setup) != 0)
    return -1;
  l->setup_left++;
  return 0;
}

static int send_hello(struct rlk_line *l, const struct rlk_login *login)
{
  const char *words[7] = {"HELLO", "2"};
  int count = 2;
  if (login->password) {
    words[count++] = "AUTH";
    words[count++] = login->user ? login->user : "default";
    words[count++] = login->password;
  }
  if (RLK_STRING(l->node->net, CLIENT_NAME)[0]) {
    words[count++] = "SETNAME";
    words[count++] = RLK_STRING(l->node->net, CLIENT_NAME);
  }
  return send_words(l, HELLO, count, words);
}

static int send_name(struct rlk_line *l)
{
  const char *words[] = {"CLIENT", "SETNAME", RLK_STRING(l->node->net, CLIENT_NAME)};
  return RLK_STRING(l->node->net, CLIENT_NAME)[0] ? send_words(l, NAME, 3, words) : 0;
}

static int send_id(struct rlk_line *l)
{
  const char *words[] = {"CLIENT", "ID"};
  return send_words(l, ID, 2, words);
}

/* For servers that do not know HELLO. */
static int send_auth(struct rlk_line *l, const struct rlk_login *login)
{
  const char *words[3] = {"AUTH"};
  int count = 1;
  if (login->password) {
    if (login->user)
      words[count++] = login->user;
    words[count++] = login->password;
    if (send_words(l, AUTH, count, words) != 0)
      return -1;
  }
  return send_name(l) != 0 ? -1 : send_id(l);
}

static int send_select(struct rlk_line *l)
{
  char number[16];
  const char *words[] = {"SELECT", number};
  snprintf(number, sizeof number, "%d", l->node->url.database);
  return l->node->url.database ? send_words(l, SELECT, 2, words) : 0;
}

static int send_info(struct rlk_line *l, const char *section)
{
  const char *words[] = {"INFO", section};
  return send_words(l, INFO, 2, words);
}

static int send_load(struct rlk_line *l, const struct rlk_script *script)
{
  const char *words[] = {"SCRIPT", "LOAD", script->text};
  l->scripts_known |= script->bit;
  return send_words(l, LOAD, 3, words);
}

/* The scripts are tried on an unused key, since a server may deny their commands. */
static int send_proof(struct rlk_line *l)
{
  char key[384];
  const char *whole[] = {"EVAL", rlk_script_proof.text, "1", key};
  const char *by_hash[] = {"EVALSHA", rlk_script_extend.hash, "1", key, "1", "proof"};
  struct rlk_text text = rlk_text_in(key, sizeof key);
  rlk_text_add(&text, RLK_STRING(l->node->net, KEY_PREFIX));
  rlk_text_format(&text, "libredlock:proof:%016llx", (unsigned long long)rlk_random(l->node->net));
  return send_words(l, PROVE, 4, whole) != 0 ? -1 : send_words(l, PROVE, 6, by_hash);
}

static void marker_key(const struct rlk_line *l, char *out, size_t size)
{
  struct rlk_text text = rlk_text_in(out, size);
  rlk_text_add(&text, RLK_STRING(l->node->net, KEY_PREFIX));
  rlk_text_add(&text, RLK_MARKER_NAME);
}

/* The questions of the restart guard. */
static int send_guard(struct rlk_line *l)
{
  char key[320];
  const char *get[] = {"GET", key};
  const char *time[] = {"TIME"};
  if (!rlk_net_has_markers(l->node->net))
    return 0;
  marker_key(l, key, sizeof key);
  return send_words(l, TIME, 1, time) != 0 ? -1 : send_words(l, MARKER, 2, get);
}

int rlk_session_register(struct rlk_line *l, const char *head, const char *since, const char *tail)
{
  char key[320];
  const char *words[] = {"EVAL", rlk_script_register.text, "1", key, l->marker, head, since, tail};
  const char *time[] = {"TIME"};
  marker_key(l, key, sizeof key);
  l->is_registered = 1;
  l->setup_done = 0;
  return send_words(l, REGISTER, 8, words) != 0 ? -1 : send_words(l, TIME, 1, time);
}

enum rlk_why rlk_session_login(struct rlk_line *l, struct rlk_reason *why)
{
  struct rlk_login login;
  enum rlk_why failed = rlk_login_read(&login, l->node, why);
  if (!failed && (l->node->no_hello ? send_auth(l, &login) : send_hello(l, &login)) != 0)
    failed = rlk_because(why, RLK_WHY_MEMORY, NULL);
  rlk_login_wipe(&login);
  return failed;
}

int rlk_session_send(struct rlk_line *l, int count, const char *const *words)
{
  return send_words(l, NAME, count, words);
}

static int send_questions(struct rlk_line *l)
{
  if (send_select(l) != 0)
    return -1;
  /* several commands: servers before 7.0 take one section each */
  if (send_info(l, "server") != 0 || send_info(l, "replication") != 0 || send_info(l, "memory") != 0 ||
      send_info(l, "persistence") != 0 || send_guard(l) != 0)
    return -1;
  if (send_load(l, &rlk_script_release) != 0 || send_load(l, &rlk_script_extend) != 0 ||
      send_load(l, &rlk_script_ask) != 0 || send_load(l, &rlk_script_hand_over) != 0)
    return -1;
  return send_proof(l);
}

enum rlk_why rlk_session_begin(struct rlk_line *l, struct rlk_reason *why)
{
  l->setup_left = 0;
  l->setup_fault = RLK_FAULT_NONE;
  l->setup_again = 0;
  l->facts = (struct rlk_facts){.scripts = RLK_UNKNOWN};
  l->marker[0] = l->is_registered = l->is_informed = 0;
  l->client_id = 0;
  l->time = (struct rlk_clock_sample){0, 0, 0};
  l->shared = NULL;
  l->node->entry_until_ns = 0;
  if (rlk_session_login(l, why))
    return why->why;
  return send_questions(l) != 0 ? rlk_because(why, RLK_WHY_MEMORY, NULL) : RLK_WHY_NONE;
}

int rlk_session_is_joinable(const struct rlk_line *l)
{
  return l->node->session_proved || (l->node->url.database == 0 && !rlk_login_is_needed(l->node));
}

/* ---- reading ---- */

/* What INFO says that is kept: as text, or as a number where there is no size. */
#define TEXT(field) offsetof(struct rlk_facts, field), sizeof((struct rlk_facts *)0)->field
#define NUMBER(field) offsetof(struct rlk_facts, field), 0
static const struct {
  const char *name;
  size_t at, size;
} info_fields[] = {
    {"run_id", TEXT(run_id)},
    {"redis_mode", TEXT(mode)},
    {"redis_version", TEXT(version)},
    {"server_name", TEXT(server)},
    {"valkey_version", TEXT(version)}, /* behind the version of Redis that it is compatible with */
    {"aof_enabled", TEXT(aof)},
    {"aof_last_write_status", TEXT(aof_write)},
    {"rdb_last_bgsave_status", TEXT(snapshot)},
    {"role", TEXT(role)},
    {"master_replid2", TEXT(replid2)},
    {"maxmemory_policy", TEXT(policy)},
    {"maxmemory", NUMBER(maxmemory)},
    {"used_memory", NUMBER(used_memory)},
};

static void keep_field(struct rlk_facts *facts, const char *line, const char *colon)
{
  const char *value = colon + 1;
  for (size_t i = 0; i < sizeof info_fields / sizeof *info_fields; i++) {
    char *kept = (char *)facts + info_fields[i].at;
    size_t length;
    if (*line != *info_fields[i].name || strncmp(line, info_fields[i].name, (size_t)(colon - line)) != 0 ||
        info_fields[i].name[colon - line])
      continue;
    if (!info_fields[i].size) {
      *(int64_t *)(void *)kept = strtoll(value, NULL, 10);
      return;
    }
    length = strcspn(value, "\r\n");
    length = length < info_fields[i].size ? length : info_fields[i].size - 1;
    memcpy(kept, value, length);
    kept[length] = 0;
    return;
  }
}

void rlk_session_read_info(struct rlk_line *l, const char *info)
{
  l->node->informed_ns = rlk_now(l->node->net);
  l->is_informed = 1;
  for (const char *line = info, *end; *line; line = end + (*end != 0)) {
    const char *colon = strchr(line, ':');
    end = strchr(line, '\n');
    end = end ? end : line + strlen(line);
    if (colon && colon < end)
      keep_field(&l->facts, line, colon);
  }
}

/* The proof shows which commands a script may use; access to the user's keys shows only when they are used. Whether
 * the server can write now does not concern the set-up. */
static int is_no_proof(enum rlk_fault fault, const char *text)
{
  return (fault != RLK_FAULT_PERMISSION && fault != RLK_FAULT_UNKNOWN) || strstr(text, " key");
}

/* For an error in a command of the set-up that has no words of its own here: NULL. */
static const char *unknown(enum step step, const char *error)
{
  switch (step) {
  case SELECT: return "it does not know SELECT";
  case INFO: return "it does not know INFO: it is a proxy or no such server, or INFO was renamed";
  case LOAD: return "it does not know SCRIPT";
  case MARKER: return "it does not know GET";
  case TIME: return "it does not know TIME";
  case REGISTER: return "it does not know EVAL";
  case PROVE: return strstr(error, ", with args") ? "it does not know EVAL or EVALSHA" : NULL; /* or its script fails */
  default: return NULL;
  }
}

/* The right that the ACL must grant, as it is spelled there; NULL if the server's own words suffice. out has
 * RLK_WHY_SIZE bytes. */
static const char *forbidden(const struct rlk_line *l, enum step step, const char *error, char *out)
{
  const char *prefix = RLK_STRING(l->node->net, KEY_PREFIX);
  struct rlk_text text = rlk_text_in(out, RLK_WHY_SIZE);
  if (step == INFO)
    return "INFO: add +info to the ACL of its user";
  if (step == TIME)
    return "TIME: add +time to the ACL of its user";
  if (step != MARKER && step != REGISTER)
    return NULL;
  if (!strstr(error, " key"))
    return "the guard's commands: add +get +set +time +eval to the ACL of its user";
  rlk_text_format(&text, "the key %s%s: add ~%slibredlock:* to the ACL of its user", prefix, RLK_MARKER_NAME, prefix);
  return out;
}

/* A server may repeat in its answer to the login what it was sent: none of that is kept. */
static void note_error(struct rlk_line *l, enum step step, enum rlk_fault fault, const char *text)
{
  char room[RLK_WHY_SIZE];
  enum rlk_why why = rlk_why_of(text);
  const char *denied = fault == RLK_FAULT_PERMISSION ? forbidden(l, step, text, room) : NULL;
  const char *missed = fault == RLK_FAULT_UNKNOWN ? unknown(step, text) : NULL;
  if (step == HELLO || step == AUTH)
    rlk_because(&l->setup_error, why, fault == RLK_FAULT_LOADING || why == RLK_WHY_NOAUTH ? NULL : "the login failed");
  else if (denied)
    rlk_because(&l->setup_error, RLK_WHY_FORBIDS, denied);
  else if (missed)
    rlk_because_of(&l->setup_error, step == INFO ? RLK_WHY_NO_IDENTITY : RLK_WHY_UNKNOWN_COMMAND, missed);
  else
    rlk_because_of(&l->setup_error, why, text);
}

static void note_fault(struct rlk_line *l, enum step step, const char *text)
{
  enum rlk_fault fault = rlk_fault_of(text);
  if (step == NAME || step == ID || l->setup_fault != RLK_FAULT_NONE || (step == PROVE && is_no_proof(fault, text)))
    return; /* not needed to vote; and only the first error has the cause */
  if (step == HELLO && fault == RLK_FAULT_UNKNOWN) {
    l->node->no_hello = 1;
    l->setup_again = rlk_login_is_needed(l->node); /* without a password the rest of the set-up stands */
    return;
  }
  if (l->setup_again)
    return; /* not logged in yet */
  if (step == PROVE || (step == LOAD && rlk_fault_forbids(fault)))
    l->facts.scripts = RLK_NO;
  l->setup_fault = (int)fault;
  note_error(l, step, fault, text);
}

const struct rlk_reason *rlk_session_error(const struct rlk_line *l)
{
  return l->state == RLK_NODE_SETUP && l->setup_fault != RLK_FAULT_NONE ? &l->setup_error : NULL;
}

int rlk_session_complete(struct rlk_line *l)
{
  if (!l->node->no_hello || rlk_login_is_needed(l->node) || l->client_id)
    return 0;
  return send_name(l) != 0 ? -1 : send_id(l);
}

/* A value that is empty, too long or no text is not a marker. */
static void read_marker(struct rlk_line *l, const struct rlk_buffer *text)
{
  int is_text = text->end > 0 && text->end < sizeof l->marker && strlen(text->data) == text->end;
  memcpy(l->marker, is_text ? text->data : "?", is_text ? text->end + 1 : sizeof "?");
}

static int is_of_another_type(const struct rlk_reply *reply)
{
  return reply->type == RLK_REPLY_ERROR && rlk_fault_of(reply->text.data) == RLK_FAULT_TYPE;
}

static void read_time(struct rlk_line *l, const struct rlk_reply *reply, int64_t sent_ns)
{
  l->time = (struct rlk_clock_sample){0, sent_ns, l->read_ns};
  if (!rlk_reply_is_time(reply, &l->time.server_us))
    l->time = (struct rlk_clock_sample){0, 0, 0};
}

void rlk_session_reply(struct rlk_line *l, const struct rlk_request *request, const struct rlk_reply *reply)
{
  int step = request->of.step;
  l->setup_left--;
  if (step == MARKER && is_of_another_type(reply))
    memcpy(l->marker, "?", sizeof "?");
  else if (reply->type == RLK_REPLY_ERROR)
    note_fault(l, (enum step)step, reply->text.data);
  else if (step == INFO && reply->type == RLK_REPLY_STRING)
    rlk_session_read_info(l, reply->text.data);
  else if (step == HELLO && reply->type == RLK_REPLY_ARRAY)
    l->client_id = reply->id;
  else if (step == ID && reply->type == RLK_REPLY_INTEGER)
    l->client_id = reply->integer;
  else if ((step == MARKER || step == REGISTER) && reply->type == RLK_REPLY_STRING)
    read_marker(l, &reply->text);
  else if (step == TIME)
    read_time(l, reply, request->sent_ns);
  else if (step == PROVE && l->facts.scripts == RLK_UNKNOWN)
    l->facts.scripts = RLK_YES;
  l->setup_done = l->setup_left == 0 && l->state == RLK_NODE_SETUP;
}

int rlk_session_is_demoted(const struct rlk_line *l)
{
  return l->facts.role[0] && strcmp(l->facts.role, "master") != 0;
}

/* Not by the run_id alone: one that was a replica meanwhile has the keys of another server. */
int rlk_session_is_other(const struct rlk_line *l)
{
  return l->facts.run_id[0] &&
         (strcmp(l->node->run_id, l->facts.run_id) != 0 || !rlk_replid2_is_same(l->node->replid2, l->facts.replid2));
}

enum rlk_why rlk_session_change(const struct rlk_line *l)
{
  if (rlk_session_is_other(l))
    return RLK_WHY_OTHER_SERVER;
  return rlk_session_is_demoted(l) ? RLK_WHY_REPLICA : RLK_WHY_NONE;
}

/* ---- looking again ---- */

int64_t rlk_session_pause_ns(const struct rlk_node *n)
{
  int64_t pause_ms = rlk_larger(RLK_INT(&n->net->options, TTL_MS), LOOK_AGAIN_MIN_MS);
  return rlk_smaller(pause_ms, LOOK_AGAIN_MAX_MS) * RLK_NS_PER_MS;
}

static int send_look(struct rlk_line *l, enum rlk_look look, const char *command, const char *argument, int64_t now)
{
  const char *words[] = {command, argument};
  return rlk_out_words(l, 2, words, (struct rlk_request){.ask = &rlk_row_look, .of.step = (int)look, .sent_ns = now});
}

void rlk_session_look_first(struct rlk_line *l, int64_t now)
{
  if (l->state != RLK_NODE_READY || now - l->node->role_asked_ns < LOOK_AGAIN_MIN_MS * RLK_NS_PER_MS)
    return;
  l->node->role_asked_ns = now;
  send_look(l, RLK_LOOK_INFO, "INFO", "replication", now); /* without memory the last answer stands */
}

void rlk_session_look_again(struct rlk_line *l, int with_marker, int64_t now)
{
  struct rlk_node *n = l->node;
  char key[320];
  n->look_again_ns = now + (with_marker ? LOOK_AGAIN_MIN_MS * RLK_NS_PER_MS : rlk_session_pause_ns(n));
  if (with_marker) {
    marker_key(l, key, sizeof key);
    send_look(l, RLK_LOOK_MARKER, "GET", key, now);
  }
  rlk_session_look_first(l, now);
  if (send_look(l, RLK_LOOK_INFO, "INFO", "persistence", now) == 0)
    send_look(l, RLK_LOOK_INFO, "INFO", "memory", now);
}

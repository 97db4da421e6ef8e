#include "holder.h"

#include <stdlib.h>
#include <string.h>

#include "asking.h"
#include "form.h"
#include "kind.h"
#include "programs.h"

#define MS RLK_NS_PER_MS
#define FRESH_MS 30000 /* an entry is written again when less than a TTL and this is left of it */
#define CLIENT_PREFIX "libredlock:c:"
#define VERSION "v1 "

/* ---- the entry of this client ---- */

void rlk_holder_init(struct rlk_engine *e)
{
  const struct rlk_env *env = &e->net.env;
  struct rlk_text out = rlk_text_in(e->client_entry, sizeof e->client_entry);
  char host[65] = "";
  long long pid = env->platform->process(env->context, host, sizeof host);
  rlk_text_format(&out, VERSION "%lld ", pid);
  rlk_text_word(&out, host[0] ? host : "?");
  rlk_text_add(&out, " ");
  rlk_text_add(&out, RLK_STRING(&e->net, CLIENT_NAME));
  for (int i = 0; i < e->net.node_count; i++)
    e->net.nodes[i].entry_until_ns = e->peers[i].programs.again_ns = 0;
}

static void entry_key(const struct rlk_net *net, const char *client, char *out, size_t size)
{
  struct rlk_text text = rlk_text_in(out, size);
  rlk_text_add(&text, RLK_STRING(net, KEY_PREFIX));
  rlk_text_add(&text, CLIENT_PREFIX);
  rlk_text_bytes(&text, client, RLK_TOKEN_CLIENT_DIGITS);
}

/* If it cannot be written, that does not concern the lock. */
void rlk_holder_publish(struct rlk_node *n, int64_t ttl_ms, int64_t now)
{
  struct rlk_engine *e = rlk_engine_of(n->net);
  char key[320], client[RLK_TOKEN_CLIENT_DIGITS + 1], rest_ms[24];
  const char *words[] = {"SET", key, e->client_entry, "PX", rest_ms};
  struct rlk_text text = rlk_text_in(rest_ms, sizeof rest_ms);
  n->entry_until_ns = RLK_NEVER;
  if (!RLK_INT(&n->net->options, HOLDER_INFO))
    return;
  n->entry_until_ns = now + (ttl_ms + FRESH_MS) * MS;
  rlk_text_format(&text, "%lld", (long long)(ttl_ms + 2 * FRESH_MS));
  rlk_claims_client(e, client);
  entry_key(n->net, client, key, sizeof key);
  rlk_out_words(n->line, 5, words, (struct rlk_request){.ask = &rlk_row_show, .sent_ns = now});
  rlk_programs_publish(n, now);
}

/* ---- the replies about holders ---- */

/* The type of a key that is no string; for readers also their count, and the token of the longest lease; for a hash of
 * one field, which is how home-made locks have their owner, that. */
static const struct rlk_script script_look = {
    .text = "local y=redis.call('TYPE',KEYS[1]).ok\n"
            "if y=='hash' then\n"
            "  local f=redis.call('HRANDFIELD',KEYS[1],2)\n"
            "  return f[2] and y or 'hash '..f[1]:sub(1,64)\n"
            "end\n"
            "local top=y=='zset' and redis.call('ZRANGE',KEYS[1],-1,-1)[1] or ''\n"
            "if not top:find('^rl:%x+$') then return y end\n"
            "local t=redis.call('TIME')\n"
            "local now=t[1]*1000+math.floor(t[2]/1000)\n"
            "return 'shared '..redis.call('ZCOUNT',KEYS[1],now,'+inf')..' '..top:sub(4,131)"};

void rlk_holder_drop(redlock_lock *lock)
{
  free(lock->holder);
  lock->holder = NULL;
}

/* NULL when memory is out: then the holder stays unknown. */
static struct rlk_holder *holder_of(redlock_lock *lock)
{
  if (!lock->holder)
    lock->holder = calloc(1, sizeof *lock->holder);
  return lock->holder;
}

static struct rlk_claim *claim_of(const redlock_lock *lock)
{
  return lock->op.probe ? lock->op.probe : lock->claim;
}

/* The number of the client that made the token. */
static int64_t client_of(const char *token)
{
  char digits[RLK_TOKEN_CLIENT_DIGITS + 1] = "";
  memcpy(digits, token, RLK_TOKEN_CLIENT_DIGITS);
  return strtoll(digits, NULL, 16);
}

static struct rlk_request request_of(const redlock_lock *lock, const struct rlk_ask *row, int64_t now)
{
  struct rlk_request request = rlk_request_of(lock, claim_of(lock), row, now);
  request.of.client = client_of(lock->holder->token);
  return request;
}

/* Of several resources the one that is held there. */
static const struct rlk_key *part_of(const redlock_lock *lock, const struct rlk_node *n)
{
  return rlk_key_part(claim_of(lock)->key, lock->node_answers[n->index].part);
}

int rlk_holder_ask_value(struct rlk_node *n, const redlock_lock *lock, struct rlk_request request)
{
  const struct rlk_key *part = part_of(lock, n);
  struct rlk_out out;
  if (rlk_out_begin(&out, n->line, part->bulk_size + 64) != 0)
    return -1;
  RLK_OUT_TEXT(&out, "*4\r\n$8\r\nGETRANGE\r\n");
  rlk_out_bytes(&out, part->bulk, part->bulk_size);
  RLK_OUT_TEXT(&out, "$1\r\n0\r\n$2\r\n63\r\n");
  rlk_ask_end(&out, request);
  return 0;
}

void rlk_holder_look(redlock_lock *lock, struct rlk_node *n, int64_t now)
{
  const struct rlk_key *part = part_of(lock, n);
  struct rlk_out out;
  if (!holder_of(lock) || n->state != RLK_NODE_READY ||
      rlk_out_script(&out, n->line, &script_look, 1, 0, part->bulk_size + 64) != 0)
    return;
  rlk_out_bytes(&out, part->bulk, part->bulk_size);
  rlk_ask_end(&out, request_of(lock, &rlk_row_type, now));
  lock->op.looking |= UINT64_C(1) << n->index;
}

void rlk_holder_ask_behind(redlock_lock *lock, struct rlk_node *n, int64_t now)
{
  /* without memory the node has shown none */
  if (rlk_holder_ask_value(n, lock, rlk_request_of(lock, lock->claim, &rlk_row_behind, now)) == 0)
    lock->op.looking |= UINT64_C(1) << n->index;
}

static void ask_entry(redlock_lock *lock, struct rlk_node *n, int64_t now)
{
  char key[320];
  const char *words[] = {"GETRANGE", key, "0", "255"};
  entry_key(n->net, lock->holder->token, key, sizeof key);
  if (n->state != RLK_NODE_READY || rlk_out_words(n->line, 4, words, request_of(lock, &rlk_row_entry, now)) != 0)
    return;
  claim_of(lock)->in_flight++;
  lock->holder->awaited |= UINT64_C(1) << n->index;
}

/* Of several tokens the one that most nodes have reported. */
static int is_outvoted(const redlock_lock *lock, const char *value)
{
  int nodes = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    nodes += lock->node_answers[i].value && strcmp(lock->node_answers[i].value, value) == 0;
  if (nodes <= lock->holder->nodes)
    return 1;
  lock->holder->nodes = nodes;
  return 0;
}

static void seen(redlock_lock *lock, struct rlk_node *n, const char *value, size_t size, int64_t now)
{
  int is_same_client;
  if (rlk_token_permits(value, size) < 0 || !holder_of(lock) || is_outvoted(lock, value))
    return;
  is_same_client = strncmp(lock->holder->token, value, RLK_TOKEN_CLIENT_DIGITS) == 0;
  memcpy(lock->holder->token, value, RLK_TOKEN_SIZE);
  if (is_same_client && lock->holder->entry[0])
    return;
  lock->holder->entry[0] = 0;
  if (!is_same_client)
    lock->holder->awaited = 0;
  ask_entry(lock, n, now);
}

static void show_value(redlock_lock *lock, const struct rlk_node *n, const char *words)
{
  free(lock->node_answers[n->index].value);
  lock->node_answers[n->index].value = strdup(words); /* without memory it is not shown */
}

void rlk_holder_value(redlock_lock *lock, struct rlk_node *n, const char *value, size_t size, int64_t now)
{
  char words[300];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  rlk_text_escaped(&text, value, size);
  show_value(lock, n, words);
  seen(lock, n, value, size, now);
}

/* The answer may be late, and be of another client than the one that is asked for now. */
static void told(redlock_lock *lock, const struct rlk_node *n, const struct rlk_outcome *out)
{
  struct rlk_holder *holder = lock->holder;
  const char *entry = out->reply->text.data;
  size_t size = out->reply->text.end;
  if (!holder || client_of(holder->token) != out->request.of.client)
    return;
  holder->awaited &= ~(UINT64_C(1) << n->index);
  if (size >= sizeof holder->entry || strncmp(entry, VERSION, sizeof VERSION - 1) != 0)
    return;
  memcpy(holder->entry, entry, size);
  holder->entry[size] = 0;
  holder->awaited = 0;
}

/* Reported once; it does not matter to any lock. */
static void refused(struct rlk_node *n, const struct rlk_outcome *out)
{
  char words[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  if (out->request.ask == &rlk_row_show)
    n->entry_until_ns = RLK_NEVER; /* it is not sent again on this connection */
  if (rlk_peer_of(n)->holder_refused)
    return;
  rlk_peer_of(n)->holder_refused = 1;
  rlk_text_add(&text, "cannot tell who holds a lock on this node; allow ");
  rlk_text_clean(&text, RLK_STRING(n->net, KEY_PREFIX));
  rlk_text_add(&text, CLIENT_PREFIX "*: ");
  rlk_text_clean(&text, out->reply->text.data);
  rlk_text_mark_cut(&text);
  rlk_event_add(&n->net->events, RLK_EVENT_WARNING, n->index, words);
}

/* "shared", how many, and the token of the longest lease; "hash" and its field; or another type. */
static void looked(redlock_lock *lock, struct rlk_node *n, const struct rlk_reply *reply, int64_t now)
{
  static const char shared[] = "shared ", hash[] = "hash ";
  const char *text = reply->text.data;
  size_t size = reply->text.end;
  char *token;
  int64_t readers;
  if (rlk_is_single(lock)) {
    show_value(lock, n, text);
    return;
  }
  if (size > sizeof hash - 1 && memcmp(text, hash, sizeof hash - 1) == 0)
    rlk_holder_value(lock, n, text + sizeof hash - 1, size - (sizeof hash - 1), now);
  if (strncmp(text, shared, sizeof shared - 1) != 0 || !holder_of(lock))
    return;
  readers = strtoll(text + sizeof shared - 1, &token, 10);
  if (readers < 0 || *token++ != ' ')
    return;
  lock->node_answers[n->index].readers = readers;
  show_value(lock, n, token);
  seen(lock, n, token, strlen(token), now);
  if (lock->holder)
    lock->holder->readers = readers;
}

/* Its type, or the fact that it is unknown: 1 if the operation waits for it. */
static int type_outcome(redlock_lock *lock, struct rlk_node *n, const struct rlk_outcome *out)
{
  if (!lock)
    return 0;
  lock->op.looking &= ~(UINT64_C(1) << n->index);
  if (!rlk_in_flight(lock))
    return 0;
  if (!out->fault && out->reply->type == RLK_REPLY_STRING)
    looked(lock, n, out->reply, out->now_ns);
  return 1;
}

/* What a single attempt has met there. What cannot be told apart is taken for the same: readers, keys of other types,
 * those that may not be read. Only hashes may be of single attempts, too. */
static int met(redlock_lock *lock, struct rlk_node *n, const struct rlk_outcome *out)
{
  char words[300] = "?";
  struct rlk_text text = rlk_text_in(words, sizeof words);
  const struct rlk_reply *reply = out->reply;
  if (!lock || lock->round.number != out->request.round || !rlk_in_flight(lock))
    return 0;
  lock->op.looking &= ~(UINT64_C(1) << n->index);
  if (out->fault || (reply->type == RLK_REPLY_STRING && reply->text.end == 0))
    return 1;
  if (reply->type == RLK_REPLY_STRING)
    rlk_text_escaped(&text, reply->text.data, reply->text.end);
  else if (lock->kind->form == 'h')
    rlk_holder_look(lock, n, out->now_ns);
  if (!(lock->op.looking >> n->index & 1))
    show_value(lock, n, words);
  return 1;
}

int rlk_holder_outcome(redlock_lock *lock, struct rlk_node *n, const struct rlk_outcome *out)
{
  const struct rlk_reply *reply = out->reply;
  if (out->request.ask == &rlk_row_form)
    return rlk_form_told(lock, n, out);
  if (out->request.ask == &rlk_row_type)
    return type_outcome(lock, n, out);
  if (out->request.ask == &rlk_row_behind)
    return met(lock, n, out);
  if (out->fault)
    return 0;
  if (reply->type == RLK_REPLY_ERROR && rlk_fault_of(reply->text.data) == RLK_FAULT_PERMISSION)
    refused(n, out);
  else if (reply->type != RLK_REPLY_STRING)
    return 0;
  if (!lock || !rlk_in_flight(lock))
    return 0;
  told(lock, n, out);
  return 1;
}

/* A key of another type has no value to compare; nodes may differ in the members of a set of readers. */
static int is_same(const struct rlk_node_answer *a, const struct rlk_node_answer *b)
{
  if (a->readers || b->readers)
    return a->readers && b->readers;
  return a->value && b->value ? strcmp(a->value, b->value) == 0 : a->value == b->value;
}

int rlk_holder_count_like(const redlock_lock *lock, int node, int64_t *ends_ns)
{
  int count = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int is_like = lock->votes[i] == RLK_BUSY && is_same(&lock->node_answers[i], &lock->node_answers[node]);
    if (ends_ns)
      ends_ns[i] = is_like ? lock->node_answers[i].until_ns : 0;
    count += is_like;
  }
  return count;
}

int rlk_holder_is_seen(const redlock_lock *lock)
{
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int shows = lock->votes[i] == RLK_BUSY && lock->node_answers[i].value;
    if (shows && rlk_holder_count_like(lock, i, NULL) >= lock->engine->quorum)
      return 1;
  }
  return 0;
}

int rlk_holder_is_awaited(const redlock_lock *lock)
{
  return lock->op.looking || (lock->holder && lock->holder->awaited);
}

void rlk_holder_stop_waiting(redlock_lock *lock)
{
  lock->op.looking = 0;
  if (lock->holder)
    lock->holder->awaited = 0;
}

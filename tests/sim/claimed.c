/* Keys that are taken by a script, on a model server: of several resources, sets of readers, and hashes. */
#include "server.h"
#include "../../core/src/base/mutant.h"

#include <stdio.h>
#include <string.h>

/* script n key.. token ttl form how, or script n key.. token form */
struct claim {
  struct key *keys[KEYS_MAX];
  int count;
  const struct argument *token;
  char text[TOKEN_SIZE + 1];
  int64_t ttl_ms, now_ms;
  int shares, is_hash, begins, exact;
};

static int read_claim(struct request *request, int arguments, struct claim *claim)
{
  int64_t count = server_number(request, 2);
  memset(claim, 0, sizeof *claim);
  if (count < 1 || count > KEYS_MAX || request->count != 3 + count + arguments)
    return -1;
  claim->count = (int)count;
  claim->token = &request->arguments[3 + count];
  claim->shares = is(request, 3 + (int)count + (arguments == 4 ? 2 : 1), "s");
  claim->is_hash = is(request, 3 + (int)count + (arguments == 4 ? 2 : 1), "h");
  claim->now_ms = server_clock_ms(request->world, request->node);
  if (arguments == 4) {
    claim->ttl_ms = server_number(request, 4 + (int)count);
    claim->begins = is(request, 6 + (int)count, "1");
    claim->exact = is(request, 6 + (int)count, "2");
  }
  for (int i = 0; i < count; i++)
    if (!(claim->keys[i] = server_key(request, 3 + i)))
      return -1;
  if (claim->token->size != TOKEN_SIZE)
    return -1;
  memcpy(claim->text, claim->token->bytes, TOKEN_SIZE);
  return 0;
}

/* ---- readers ---- */

struct reader *claimed_reader(struct key *key, const char *token)
{
  for (int i = 0; key->live && i < key->reader_count; i++)
    if (!memcmp(key->readers[i].token, token, TOKEN_SIZE))
      return &key->readers[i];
  return NULL;
}

static void take_out(struct key *key, struct reader *reader)
{
  *reader = key->readers[--key->reader_count];
}

/* The set lives as long as the longest lease in it. */
static void end_with_the_longest(struct request *request, struct key *key)
{
  int64_t last_ms = 0;
  for (int i = 0; i < key->reader_count; i++)
    if (key->readers[i].expire_ms > last_ms)
      last_ms = key->readers[i].expire_ms;
  server_end_key_at(request->node, key, last_ms);
}

static void become_a_set(struct request *request, struct key *key)
{
  memset(key, 0, sizeof *key);
  key->live = 1;
  key->set_at = request->world->now;
}

static void end_reader_at(struct request *request, struct reader *reader, int64_t clock_ms)
{
  struct key scratch = {0};
  server_end_key_at(request->node, &scratch, clock_ms);
  reader->expire_ms = scratch.expire_ms;
  reader->expires_at = scratch.expires_at;
}

/* The own string becomes a set; of a set those go whose leases are over, when somebody joins. */
static void make_ready(struct request *request, struct key *key, const struct claim *claim, int64_t *until_ms,
                       uint8_t *links)
{
  if (key->live && !key->reader_count) {
    memcpy(links, key->links, PROCESSES_MAX);
    if (key->expire_ms > *until_ms && !claim->exact && !RLK_MUTANT(DOWNGRADE_SHORTENS))
      *until_ms = key->expire_ms;
    become_a_set(request, key);
  } else if (!key->live) {
    become_a_set(request, key);
  } else if (claim->begins) {
    for (int i = key->reader_count; i-- > 0;)
      if (key->readers[i].expire_ms < claim->now_ms)
        take_out(key, &key->readers[i]);
  }
}

static void share(struct request *request, struct key *key, const struct claim *claim)
{
  int64_t until_ms = claim->now_ms + claim->ttl_ms;
  uint8_t links[PROCESSES_MAX] = {0};
  make_ready(request, key, claim, &until_ms, links);
  struct reader *reader = claimed_reader(key, claim->text);
  if (!reader && key->reader_count == READERS_MAX) {
    world_violation(request->world, "more readers than the model can hold");
    return;
  }
  int is_first = key->reader_count == 0;
  if (!reader) {
    reader = &key->readers[key->reader_count++];
    memset(reader, 0, sizeof *reader);
    memcpy(reader->token, claim->text, TOKEN_SIZE);
    memcpy(reader->links, links, sizeof links);
  }
  reader->links[request->connection->process->index] |= (uint8_t)(1u << request->connection->link_node);
  if (reader->expire_ms < until_ms || claim->exact)
    end_reader_at(request, reader, until_ms);
  if (RLK_MUTANT(ENDS_WITH_THE_LAST))
    server_end_key_at(request->node, key, until_ms);
  else if (!RLK_MUTANT(ENDS_WITH_THE_FIRST) || is_first)
    end_with_the_longest(request, key);
}

/* ---- CLAIM ---- */

static int is_own(struct key *key, const struct claim *claim)
{
  if (!key->live)
    return claim->begins;
  if (key->is_hash || claim->is_hash)
    return claim->is_hash && server_hash_holds(key, claim->token);
  if (!key->reader_count)
    return server_key_holds(key, claim->token);
  return claim->shares && (claim->begins || claimed_reader(key, claim->text));
}

/* The first that is not: its number from 1; 0: all are. */
static int first_of_others(const struct claim *claim)
{
  int others = 0, first = 0;
  for (int i = claim->count; i-- > 0;)
    if (!is_own(claim->keys[i], claim)) {
      first = i + 1;
      others++;
    }
  if (RLK_MUTANT(EXTENDED_BY_ANY_KEY) && !claim->begins && others < claim->count)
    return 0;
  return RLK_MUTANT(TAKES_WHAT_IS_FREE) && claim->begins && others < claim->count ? 0 : first;
}

static void hold(struct request *request, struct key *key, const struct claim *claim)
{
  int64_t until_ms = claim->now_ms + claim->ttl_ms;
  if (!key->live) {
    server_set_key(request, key, claim->token, claim->ttl_ms);
    key->is_hash = claim->is_hash;
    return;
  }
  server_note_told(request, key);
  if (claim->exact || key->expire_ms < until_ms)
    server_end_key_at(request->node, key, until_ms);
}

static void refuse(struct request *request, const struct claim *claim, int number)
{
  struct key *key = claim->keys[number - 1];
  int64_t pttl_ms = key->live ? key->expire_ms - claim->now_ms : -2;
  ptrdiff_t resource = key - request->node->keys;
  server_reply_number(request, '*', 3);
  server_reply_number(request, ':', claim->begins ? 0 : -1);
  server_reply_number(request, ':', number);
  server_reply_number(request, ':', pttl_ms);
  if (!claim->begins && resource >= 0 && resource < request->world->key_count)
    backing_gone(request->connection, (int)resource, claim->text,
                 request->connection->replies_total + request->reply->end);
}

static int is_full(const struct request *request, const struct claim *claim)
{
  int is_node = request->node->error == NODE_ERROR_OOM && request->node->error_until > request->world->now;
  return (is_node && (claim->begins || claim->shares)) ||
         (claim->begins && world_refuses(request->world, claim->ttl_ms));
}

void claimed_claim(struct request *request)
{
  struct claim claim;
  int number;
  if (read_claim(request, 4, &claim) != 0 || claim.ttl_ms <= 0) {
    world_violation(request->world, "a claim that is not: script n key.. token ttl form how");
    return;
  }
  marker_check_ttl(request, claim.ttl_ms);
  if (claim.begins) {
    oracle_token(request->world, claim.text, request->connection->life);
    network_note_set(request->connection, claim.text);
  } else {
    server_check_speaker(request, claim.token);
  }
  if (is_full(request, &claim)) {
    server_reply(request, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    return;
  }
  if ((number = first_of_others(&claim))) {
    refuse(request, &claim, number);
    return;
  }
  for (int i = 0; i < claim.count; i++) {
    if (!is_own(claim.keys[i], &claim))
      continue; /* a broken rule */
    claim.shares ? share(request, claim.keys[i], &claim) : hold(request, claim.keys[i], &claim);
  }
  request->world->changes += (uint64_t)claim.exact;
  server_reply(request, "*1\r\n:1\r\n");
  for (int i = 0; i < claim.count; i++)
    if (claim.keys[i]->serial == request->connection->serial)
      claim.keys[i]->reply_end = request->connection->replies_total + request->reply->end;
}

/* ---- DROP ---- */

static int drop(struct request *request, struct key *key, const struct claim *claim)
{
  struct reader *reader = claimed_reader(key, claim->text);
  if (server_key_holds(key, claim->token) || (claim->is_hash && server_hash_holds(key, claim->token))) {
    server_free(request->world, key);
    return 1;
  }
  if (!reader || !claim->shares)
    return 0;
  take_out(key, reader);
  request->world->changes++;
  if (!key->reader_count || RLK_MUTANT(READER_DELETES))
    server_free(request->world, key);
  else
    end_with_the_longest(request, key);
  if (key->live && key->expire_ms <= claim->now_ms) /* only readers that have died are left */
    server_free(request->world, key);
  return 1;
}

void claimed_drop(struct request *request)
{
  struct claim claim;
  int had_all = 1;
  if (read_claim(request, 2, &claim) != 0) {
    world_violation(request->world, "a release that is not: script n key.. token form");
    return;
  }
  network_check_release(request->connection, claim.text, request->size);
  server_check_speaker(request, claim.token);
  for (int i = 0; i < claim.count; i++)
    had_all &= drop(request, claim.keys[i], &claim);
  server_reply_integer(request, had_all);
}

/* ---- LOOK ---- */

void claimed_look(struct request *request)
{
  struct key *key = server_key(request, 3);
  const struct reader *longest = NULL;
  int64_t now_ms = server_clock_ms(request->world, request->node);
  char text[96];
  int count = 0;
  for (int i = 0; key && key->live && i < key->reader_count; i++) {
    const struct reader *reader = &key->readers[i];
    count += reader->expire_ms >= now_ms;
    longest = !longest || reader->expire_ms > longest->expire_ms ? reader : longest;
  }
  if (longest)
    snprintf(text, sizeof text, "shared %d %s", count, longest->token);
  else if (key && key->live && key->is_hash)
    snprintf(text, sizeof text, "hash %s", key->token);
  else
    snprintf(text, sizeof text, "%s", key && key->live ? "string" : "none");
  server_reply_bulk(request, text, strlen(text));
}

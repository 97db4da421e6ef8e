/* Tokens: no two are equal, also not in copies of a process that go on from one snapshot. And what is remembered of
 * them is forgotten when their keys have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/client.h"
#include "lock/asking.h"

enum { TOKENS = 300 };

struct party {
  redlock_client *client;
  redlock_lock *lock;
};

static struct party join(void)
{
  struct party party = {redlock_client_new(), NULL};
  assert_int_equal(redlock_client_set(party.client, "nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(party.client), REDLOCK_OK);
  party.lock = redlock_lock_new(party.client, "r", 1);
  assert_non_null(party.lock);
  return party;
}

static void leave(struct party *party)
{
  redlock_lock_free(party->lock);
  redlock_client_free(party->client);
}

static void take(struct party *party, char *token)
{
  struct rlk_claim *claim = rlk_claim_new(party->lock);
  assert_non_null(claim);
  memcpy(token, rlk_claim_token(claim), RLK_TOKEN_SIZE);
  rlk_claim_let_go(&party->client->engine, &claim);
}

static int compare(const void *a, const void *b)
{
  return memcmp(a, b, RLK_TOKEN_SIZE);
}

static void copies_of_a_process_have_tokens_of_their_own(void **state)
{
  static char tokens[2 * TOKENS][RLK_TOKEN_SIZE];
  struct party one = join(), other = join();
  (void)state;
  take(&one, tokens[0]);
  other.client->engine.token_seed = one.client->engine.token_seed; /* as if it were the same memory */
  other.client->engine.token_count = one.client->engine.token_count;
  other.client->engine.net.random_state = one.client->engine.net.random_state;
  for (int i = 0; i < TOKENS; i++) {
    take(&one, tokens[2 * i]);
    take(&other, tokens[2 * i + 1]);
  }
  qsort(tokens, 2 * TOKENS, RLK_TOKEN_SIZE, compare);
  for (int i = 1; i < 2 * TOKENS; i++)
    assert_memory_not_equal(tokens[i - 1], tokens[i], RLK_TOKEN_SIZE);
  leave(&one);
  leave(&other);
}

static void copies_part_for_good(void **state)
{
  struct party one = join(), other = join();
  char token[RLK_TOKEN_SIZE];
  (void)state;
  other.client->engine.token_seed = one.client->engine.token_seed;
  for (int i = 0; i < TOKENS; i++) {
    take(&one, token);
    take(&other, token);
  }
  assert_true(one.client->engine.token_seed != other.client->engine.token_seed);
  leave(&one);
  leave(&other);
}

/* Of a lock that was handed over and freed, whose SET was answered after that. */
static void a_token_that_nobody_has_is_forgotten_after_its_time(void **state)
{
  struct party party = join();
  struct rlk_engine *engine = &party.client->engine;
  struct rlk_claim *claim = rlk_claim_new(party.lock);
  (void)state;
  assert_non_null(claim);
  rlk_claim_may_be_at(claim, 0, 1000);
  rlk_claim_let_go(engine, &claim);
  rlk_claims_expire(engine, 999);
  assert_non_null(engine->claims);
  rlk_claims_expire(engine, 1000);
  assert_null(engine->claims);
  leave(&party);
}

/* As many as may be in flight; those for a node that does not answer are sent when it does. */
static void a_delete_waits_where_too_much_is_unanswered(void **state)
{
  struct party party = join();
  struct rlk_node *node = &party.client->engine.net.nodes[0];
  struct rlk_requests *requests = &node->line->requests;
  struct rlk_claim *claim = rlk_claim_new(party.lock);
  (void)state;
  assert_non_null(claim);
  assert_int_equal(rlk_requests_reserve(requests, RLK_REQUESTS_MAX), 0);
  requests->count = RLK_REQUESTS_MAX;
  assert_int_equal(rlk_ask_delete(node, claim, 0, 0, 0), -1);
  assert_int_equal(requests->count, RLK_REQUESTS_MAX);
  assert_int_equal(claim->in_flight, 0);
  requests->count = 0;
  rlk_claim_let_go(&party.client->engine, &claim);
  leave(&party);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_of_a_process_have_tokens_of_their_own),
      cmocka_unit_test(copies_part_for_good),
      cmocka_unit_test(a_token_that_nobody_has_is_forgotten_after_its_time),
      cmocka_unit_test(a_delete_waits_where_too_much_is_unanswered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

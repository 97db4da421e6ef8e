/* Tokens: no two are equal, also not in copies of a process that go on from one snapshot. And what is remembered of
 * them is forgotten when their keys have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/client.h"
#include "kinds/kinds.h"
#include "lock/asking.h"
#include "lock/cleanup.h"
#include "lock/dispatch.h"

enum { TOKENS = 300 };

struct party {
  redlock_client *client;
  redlock_lock *lock;
};

static struct party join(void)
{
  struct party party = {redlock_client_new(), NULL};
  assert_int_equal(redlock_client_set(party.client, "nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  assert_int_equal(redlock_client_set(party.client, "guard", "off"), REDLOCK_OK);
  assert_int_equal(redlock_client_set(party.client, "holder_info", "false"), REDLOCK_OK);
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

static void a_token_tells_how_many_permits_there_are(void **state)
{
  static const struct {
    const char *text;
    int permits;
  } tokens[] = {
      {"0123456789abcdef0123456789abcdef01234p03", 4},  {"0123456789abcdef0123456789abcdef01234pff", 256},
      {"0123456789abcdef0123456789abcdef01234567", 0},  {"0123456789abcdef0123456789abcdef01234p0g", -1},
      {"0123456789abcdef0123456789abcdef0123p403", -1}, {"0123456789abcdef0123456789abcdeF01234p03", -1},
      {"0123456789abcdef0123456789abcdef01234p3", -1},  {"0123456789abcdef0123456789abcdef01234p033", -1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
    assert_int_equal(rlk_token_permits(tokens[i].text, strlen(tokens[i].text)), tokens[i].permits);
  assert_int_equal(rlk_token_permits("0123456789abcdef0123456789abcdef01234p0\0", 40), -1);
}

/* Of a lock that was handed over and freed, whose SET was answered after that. */
static void a_token_found_on_no_node_is_forgotten_in_time(void **state)
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

/* The server has lost its scripts, so nothing was executed. */
static void a_delete_that_met_no_script_is_asked_again_with_its_text(void **state)
{
  struct party party = join();
  struct rlk_node *node = &party.client->engine.net.nodes[0];
  struct rlk_requests *requests = &node->line->requests;
  struct rlk_claim *claim = rlk_claim_new(party.lock);
  struct rlk_outcome outcome = {.kind = RLK_OUTCOME_ANSWER, .vote = RLK_ERROR, .fault = RLK_FAULT_NO_SCRIPT};
  (void)state;
  assert_non_null(claim);
  rlk_claim_may_be_at(claim, 0, 1000);
  node->line->scripts_known = ~UINT32_C(0);
  assert_int_equal(rlk_ask_delete(node, claim, 0, 0), 0);
  rlk_requests_take(requests, &outcome.request);
  rlk_buffer_consume(&node->line->out, rlk_buffer_size(&node->line->out));
  rlk_dispatch(&party.client->engine, node, &outcome);
  assert_int_equal(requests->count, 1);
  assert_ptr_equal(rlk_request_at(requests, 0)->ask, &rlk_row_delete);
  assert_memory_equal(node->line->out.data + node->line->out.start, "*5\r\n$4\r\nEVAL\r\n", 14);
  assert_int_equal(claim->in_flight, 1);
  requests->count = 0;
  claim->in_flight = 0;
  rlk_claim_let_go(&party.client->engine, &claim);
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
  assert_int_equal(rlk_ask_delete(node, claim, 0, 0), -1);
  assert_int_equal(requests->count, RLK_REQUESTS_MAX);
  assert_int_equal(claim->in_flight, 0);
  requests->count = 0;
  rlk_claim_let_go(&party.client->engine, &claim);
  leave(&party);
}

/* By a server that was stopped when the SET came: the key lives as much longer. */
static void a_token_that_was_set_late_is_remembered_longer(void **state)
{
  struct party party = join();
  struct rlk_engine *engine = &party.client->engine;
  struct rlk_claim *claim = rlk_claim_new(party.lock);
  struct rlk_outcome outcome = {.kind = RLK_OUTCOME_ANSWER, .vote = RLK_GRANTED, .now_ns = 800};
  (void)state;
  assert_non_null(claim);
  rlk_claim_may_be_at(claim, 0, 1000);
  claim->in_flight++;
  outcome.request = (struct rlk_request){.ask = &rlk_row_set, .claim = claim, .sent_ns = 100};
  rlk_dispatch(engine, &engine->net.nodes[0], &outcome);
  rlk_claim_let_go(engine, &claim);
  rlk_claims_expire(engine, 1699);
  assert_non_null(engine->claims);
  rlk_claims_expire(engine, 1700);
  assert_null(engine->claims);
  leave(&party);
}

/* With a fencing number a token is confirmed by the script that tells the number of its node. */
static void a_confirmed_lock_has_its_number(void **state)
{
  struct party party = join();
  struct rlk_node *node = &party.client->engine.net.nodes[0];
  struct rlk_buffer *out = &node->line->out;
  static const char number[] = "libredlock:f:r";
  (void)state;
  party.lock->claim = rlk_claim_new(party.lock);
  assert_non_null(party.lock->claim);
  rlk_number_set(&party.lock->attempt.ttl_text, 1000);
  assert_int_equal(rlk_ask_confirm(node, party.lock, 0), 0);
  assert_null(memmem(out->data + out->start, rlk_buffer_size(out), number, sizeof number - 1));
  rlk_claim_let_go(&party.client->engine, &party.lock->claim);
  assert_int_equal(redlock_lock_set(party.lock, "fence", "true"), REDLOCK_OK);
  party.lock->claim = rlk_claim_new(party.lock);
  assert_non_null(party.lock->claim);
  party.lock->attempt.proposal = 1;
  assert_int_equal(rlk_ask_confirm(node, party.lock, 0), 0);
  assert_non_null(memmem(out->data + out->start, rlk_buffer_size(out), number, sizeof number - 1));
  leave(&party);
}

/* What a renewal puts back may be there already: that it was not sent after all says nothing about the first SET. */
static void an_unresent_token_is_still_deleted(void **state)
{
  const struct rlk_terms terms = {.ttl_ms = 1000, .lease_ns = 900 * RLK_NS_PER_MS};
  struct party party = join();
  struct rlk_node *node = &party.client->engine.net.nodes[0];
  struct rlk_claim *claim = party.lock->claim = rlk_claim_new(party.lock);
  (void)state;
  assert_non_null(claim);
  assert_int_equal(rlk_ask_heal(node, party.lock, &terms, 0), 0);
  rlk_ask_not(node, claim);
  assert_int_equal(claim->holders, 0);
  rlk_claim_may_be_at(claim, 0, 1000 * RLK_NS_PER_MS);
  assert_int_equal(rlk_ask_heal(node, party.lock, &terms, 0), 0);
  rlk_ask_not(node, claim);
  assert_int_equal(node->line->requests.count, 0);
  assert_int_equal(claim->holders, 1);
  leave(&party);
}

static void answer_set(struct party *party, int vote)
{
  struct rlk_engine *engine = &party->client->engine;
  struct rlk_outcome outcome = {.kind = RLK_OUTCOME_ANSWER, .vote = vote};
  rlk_requests_take(&engine->net.nodes[0].line->requests, &outcome.request);
  assert_ptr_equal(outcome.request.ask, &rlk_row_set);
  rlk_dispatch(engine, &engine->net.nodes[0], &outcome);
}

/* SET key token NX PX ttl, and nothing else. */
static void a_set_is_written_whole(void **state)
{
  struct party party = join();
  struct rlk_node *node = &party.client->engine.net.nodes[0];
  struct rlk_buffer *out = &node->line->out;
  struct rlk_claim *claim = party.lock->claim = rlk_claim_new(party.lock);
  char expected[160];
  (void)state;
  assert_non_null(claim);
  rlk_number_set(&party.lock->attempt.ttl_text, 1000);
  assert_int_equal(rlk_ask_set(node, party.lock, 0), 0);
  snprintf(expected, sizeof expected,
           "*6\r\n$3\r\nSET\r\n$1\r\nr\r\n$40\r\n%.40s\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1000\r\n", claim->token);
  assert_int_equal(rlk_buffer_size(out), strlen(expected));
  assert_memory_equal(out->data + out->start, expected, strlen(expected));
  leave(&party);
}

/* As on the second connection of a node that has gone silent and speaks again. */
static void a_second_set_may_meet_its_own_token(void **state)
{
  struct party party = join();
  struct rlk_node *node = &party.client->engine.net.nodes[0];
  struct rlk_claim *claim = party.lock->claim = rlk_claim_new(party.lock);
  (void)state;
  assert_non_null(claim);
  party.lock->op.asked = (struct rlk_terms){.ttl_ms = 1000, .lease_ns = 900 * RLK_NS_PER_MS};
  rlk_number_set(&party.lock->attempt.ttl_text, 1000);
  node->state = RLK_NODE_READY;
  assert_int_equal(rlk_ask_set(node, party.lock, 0), 0);
  assert_int_equal(rlk_ask_set(node, party.lock, 0), 0);
  answer_set(&party, RLK_GRANTED);
  answer_set(&party, RLK_BUSY);
  assert_int_equal(claim->holders, 1);
  node->state = RLK_NODE_OFF;
  leave(&party);
}

/* A token that is put back where it is keeps the life that an extension has confirmed there; where it was gone it has a
 * new one. Only the script of a fencing number does not tell which. */
static int64_t counts_after_it_was_put_back(int64_t fence, int64_t before_ms)
{
  struct party party = join();
  struct rlk_engine *engine = &party.client->engine;
  struct rlk_claim *claim = party.lock->claim = rlk_claim_new(party.lock);
  struct rlk_reply reply = {.type = RLK_REPLY_ARRAY, .count = 2, .integers = {1, 5}};
  struct rlk_outcome outcome = {
      .kind = RLK_OUTCOME_ANSWER, .vote = RLK_GRANTED, .reply = &reply, .now_ns = RLK_NS_PER_MS};
  int64_t counts_until_ns;
  assert_non_null(claim);
  engine->net.nodes[0].state = RLK_NODE_READY;
  party.lock->state = REDLOCK_STATE_HELD;
  party.lock->hold.valid_until_ns = claim->node[0].counts_until_ns = before_ms * RLK_NS_PER_MS;
  claim->number = fence;
  claim->kind = fence ? &rlk_fenced : &rlk_mutex;
  outcome.request = (struct rlk_request){
      .ask = fence ? &rlk_row_fenced : &rlk_row_set, .claim = claim, .lease_ns = 100 * RLK_NS_PER_MS};
  claim->in_flight++;
  rlk_dispatch(engine, &engine->net.nodes[0], &outcome);
  counts_until_ns = claim->node[0].counts_until_ns;
  engine->net.nodes[0].state = RLK_NODE_OFF;
  leave(&party);
  return counts_until_ns / RLK_NS_PER_MS;
}

static void a_token_that_is_put_back_keeps_its_longer_life(void **state)
{
  (void)state;
  assert_int_equal(counts_after_it_was_put_back(5, 50), 100);
  assert_int_equal(counts_after_it_was_put_back(5, 200), 200);
  assert_int_equal(counts_after_it_was_put_back(0, 200), 100);
}

/* The oldest go first. The result of a release under way does not change by that. */
static void the_oldest_of_too_many_debts_is_forgotten(void **state)
{
  struct party party = join();
  struct rlk_engine *engine = &party.client->engine;
  struct rlk_claim *first = rlk_claim_new(party.lock), *second = rlk_claim_new(party.lock);
  (void)state;
  engine->net.nodes[0].state = RLK_NODE_OFF;
  rlk_claim_may_be_at(first, 0, INT64_MAX - 1);
  rlk_claim_may_be_at(second, 0, INT64_MAX - 1);
  rlk_claim_give_up(engine, second, 0, 0);
  rlk_claim_give_up(engine, first, 0, 0);
  assert_ptr_equal(engine->owed, second); /* in the order in which they were given up */
  for (int i = 2; i < RLK_OWED_MAX; i++) {
    struct rlk_claim *claim = rlk_claim_new(party.lock);
    assert_non_null(claim);
    rlk_claim_may_be_at(claim, 0, INT64_MAX - 1);
    rlk_claim_give_up(engine, claim, 0, 0);
    rlk_claim_let_go(engine, &claim);
  }
  assert_int_equal(engine->owed_count, RLK_OWED_MAX);
  assert_int_equal(second->holders, 1);
  assert_int_equal(engine->forgotten_until_ns, 0);
  struct rlk_claim *last = rlk_claim_new(party.lock);
  rlk_claim_may_be_at(last, 0, INT64_MAX - 1);
  rlk_claim_give_up(engine, last, 0, 0);
  assert_int_equal(engine->owed_count, RLK_OWED_MAX);
  assert_int_equal(second->holders, 0);
  assert_int_equal(first->holders, 1);
  assert_true(engine->forgotten_until_ns == INT64_MAX - 1);
  rlk_claim_let_go(engine, &first);
  rlk_claim_let_go(engine, &second);
  rlk_claim_let_go(engine, &last);
  assert_int_equal(redlock_client_drain(party.client, 0), REDLOCK_TIMED_OUT);
  leave(&party);
}

/* The node was silent, and what is owed to it is sent before the release asks it. */
static void a_release_learns_what_a_debt_has_found(void **state)
{
  struct party party = join();
  struct rlk_engine *engine = &party.client->engine;
  struct rlk_node *node = &engine->net.nodes[0];
  struct rlk_claim *claim = party.lock->claim = rlk_claim_new(party.lock);
  (void)state;
  rlk_claim_may_be_at(claim, 0, INT64_MAX - 1);
  node->state = RLK_NODE_OFF;
  rlk_claim_give_up(engine, claim, 7, 0);
  party.lock->op.kind = REDLOCK_RELEASE;
  party.lock->op.status = REDLOCK_PENDING;
  party.lock->round.number = 7;
  party.lock->votes[0] = RLK_WAITING;
  node->state = RLK_NODE_READY;
  rlk_claims_pay(engine, node, 0);
  assert_int_equal(party.lock->votes[0], RLK_ASKED);
  assert_int_equal(rlk_request_at(&node->line->requests, node->line->requests.count - 1)->round, 7);
  party.lock->op.status = REDLOCK_OK;
  node->state = RLK_NODE_OFF;
  claim->in_flight = 0;
  leave(&party);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_of_a_process_have_tokens_of_their_own),
      cmocka_unit_test(copies_part_for_good),
      cmocka_unit_test(a_token_tells_how_many_permits_there_are),
      cmocka_unit_test(a_token_found_on_no_node_is_forgotten_in_time),
      cmocka_unit_test(a_delete_that_met_no_script_is_asked_again_with_its_text),
      cmocka_unit_test(a_delete_waits_where_too_much_is_unanswered),
      cmocka_unit_test(a_token_that_was_set_late_is_remembered_longer),
      cmocka_unit_test(a_confirmed_lock_has_its_number),
      cmocka_unit_test(an_unresent_token_is_still_deleted),
      cmocka_unit_test(a_set_is_written_whole),
      cmocka_unit_test(a_second_set_may_meet_its_own_token),
      cmocka_unit_test(a_token_that_is_put_back_keeps_its_longer_life),
      cmocka_unit_test(the_oldest_of_too_many_debts_is_forgotten),
      cmocka_unit_test(a_release_learns_what_a_debt_has_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

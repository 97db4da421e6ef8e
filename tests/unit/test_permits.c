/* What is sent for one of several permits, and which answers count. */
#include "../sim/sha1.h"
#include "lock_world.h"

static int begin_permits(void **state)
{
  int status = begin(state);
  assert_int_equal(redlock_lock_set(lock, "permits", "3"), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 5000);
  return status;
}

/* The node that was asked to pick. */
static int home(void)
{
  int home = lock->attempt.home;
  assert_in_range(home, 0, NODES - 1);
  for (int i = 0; i < NODES; i++)
    assert_int_equal(asked(i), i == home ? 1 : 0);
  return home;
}

static int others_of(int node)
{
  return (node + 1) % NODES;
}

/* The vote that such an answer to the oldest request of the node is; it is dispatched as that. */
static int picked(int node, int64_t first, int64_t second, int elements)
{
  struct rlk_reply reply = {
      .type = RLK_REPLY_ARRAY, .elements = elements, .count = elements, .integers = {first, second}};
  struct rlk_outcome outcome = {.kind = RLK_OUTCOME_ANSWER, .reply = &reply, .now_ns = now_ns};
  struct rlk_meaning meaning;
  rlk_requests_take(requests_of(node), &outcome.request);
  assert_ptr_equal(outcome.request.ask, &rlk_row_permit);
  meaning = rlk_meaning_of(&outcome.request, &reply);
  outcome.vote = meaning.vote;
  outcome.fault = meaning.fault;
  rlk_dispatch(&client->engine, &client->engine.net.nodes[node], &outcome);
  return meaning.vote;
}

static int was_sent(int node, const char *text)
{
  struct rlk_buffer *out = &client->engine.net.nodes[node].line->out;
  return memmem(out->data + out->start, rlk_buffer_size(out), text, strlen(text)) != NULL;
}

static void home_picks_and_the_others_are_asked_for_that(void **state)
{
  int node = home();
  (void)state;
  assert_true(was_sent(node, "$16\r\nlibredlock:s:1:r\r\n"));
  assert_true(was_sent(node, "libredlock:s:2:r") && was_sent(node, "p02\r\n"));
  write_all();
  assert_int_equal(picked(node, 1, 2, 2), RLK_GRANTED);
  for (int i = 0; i < NODES; i++)
    assert_int_equal(was_sent(i, "*6\r\n$3\r\nSET\r\n$16\r\nlibredlock:s:2:r\r\n"), i != node);
  answer(others_of(node), &rlk_row_permit, RLK_GRANTED);
  assert_int_equal(lock->state, REDLOCK_STATE_HELD);
  assert_int_equal(redlock_lock_slot(lock), 2);
}

static void the_hash_is_that_of_the_text(void **state)
{
  struct rlk_buffer *out = &client->engine.net.nodes[home()].line->out;
  const char *size = strstr(out->data + out->start, "EVAL\r\n$") + 7, *text = strstr(size, "\r\n") + 2;
  char hex[41], call_by_hash[120];
  int node = home();
  (void)state;
  rlk_sha1_hex(text, strtoul(size, NULL, 10), hex);
  write_all();
  assert_int_equal(picked(node, 0, 0, 1), RLK_BUSY);
  rlk_acquire_attempt(lock, now_ns);
  snprintf(call_by_hash, sizeof call_by_hash, "EVALSHA\r\n$40\r\n%s\r\n", hex);
  assert_true(was_sent(lock->attempt.home, call_by_hash));
}

static void an_answer_for_another_slot_is_no_vote(void **state)
{
  int node = home();
  (void)state;
  write_all();
  assert_int_equal(picked(node, 1, 2, 2), RLK_GRANTED);
  assert_int_equal(picked(others_of(node), 1, 1, 2), RLK_ERROR);
  assert_int_equal(lock->claim->slots.chosen, 3);
  assert_int_not_equal(lock->state, REDLOCK_STATE_HELD);
}

static void a_slot_that_there_is_not_is_no_answer(void **state)
{
  (void)state;
  write_all();
  assert_int_equal(picked(home(), 1, 3, 2), RLK_ERROR);
}

static void a_pick_that_is_given_up_is_dropped_everywhere(void **state)
{
  int node = home();
  (void)state;
  write_all();
  rlk_operation_cancel(lock, now_ns);
  assert_true(was_sent(node, "'MGET'") && was_sent(node, "libredlock:s:2:r"));
  assert_int_equal(picked(node, 1, 1, 2), RLK_GRANTED); /* late */
  assert_int_equal(lock->state, REDLOCK_STATE_FREE);
  assert_int_equal(lock->claim->slots.chosen, 0);
}

static void another_number_of_permits_is_refused(void **state)
{
  char message[400];
  (void)state;
  write_all();
  assert_int_equal(picked(home(), 2, 5, 2), RLK_REFUSED);
  assert_int_equal(redlock_lock_status(lock), REDLOCK_REFUSED_CONFIG);
  redlock_lock_message(lock, message, sizeof message);
  assert_non_null(strstr(message, "permits is 3; others that use the resource have 5"));
}

/* Whatever was deleted meanwhile. */
static void next_attempt(void)
{
  struct rlk_request request;
  for (int i = 0; i < NODES; i++)
    while (asked(i) > 0)
      rlk_requests_take(requests_of(i), &request);
  write_all();
  rlk_acquire_attempt(lock, now_ns);
}

static void busy_everywhere(void)
{
  write_all();
  for (int i = 0; i < NODES && lock->op.phase == RLK_ASKING_ALL; i++)
    picked(i, 0, 0, 1);
  assert_int_equal(lock->op.phase, RLK_SLEEPING);
  next_attempt();
}

/* Home picks this slot, and the others have it taken. */
static void offered_in_vain(int64_t slot)
{
  int node = home();
  write_all();
  assert_int_equal(picked(node, 1, slot, 2), RLK_GRANTED);
  for (int i = 0; i < NODES; i++)
    if (i != node && lock->op.phase == RLK_ASKING_ALL)
      answer(i, &rlk_row_permit, RLK_BUSY);
  assert_int_equal(lock->op.phase, RLK_SLEEPING);
  next_attempt();
}

/* The slots that it asks all nodes for, in this attempt. */
static int asks_all_for(int slot)
{
  return lock->attempt.home < 0 && lock->claim->slots.chosen == slot + 1;
}

/* A dead holder's keys of the other slots are left on home, and a majority has these free. */
static void home_alone_does_not_keep_slots_from_it(void **state)
{
  (void)state;
  offered_in_vain(2);
  offered_in_vain(2);
  assert_true(asks_all_for(0));
  busy_everywhere();
  offered_in_vain(2);
  assert_true(asks_all_for(1));
}

/* Home has all of them held, and waits are over after which all nodes are asked. */
static void all_nodes_are_asked_for_one_slot_after_the_other(void **state)
{
  int slots = 0;
  (void)state;
  for (int i = 0; i < 3; i++) {
    write_all();
    assert_int_equal(picked(home(), 0, 0, 1), RLK_BUSY);
    now_ns += 800 * MS;
    next_attempt();
    assert_int_equal(lock->attempt.home, -1);
    slots |= 1 << (lock->claim->slots.chosen - 1);
    busy_everywhere();
  }
  assert_int_equal(slots, 7);
}

/* Each of two that are free at home is asked for once. */
static void what_home_offers_by_turns_is_not_in_vain(void **state)
{
  (void)state;
  offered_in_vain(2);
  offered_in_vain(1);
  offered_in_vain(2);
  assert_in_range(lock->attempt.home, 0, NODES - 1);
}

static int begin_chosen(void **state)
{
  int status = begin(state);
  assert_int_equal(redlock_lock_set(lock, "permits", "3"), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(lock, "slot", "2"), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 0);
  return status;
}

/* Each node looks at all slots before it takes this one: those of another number have a majority of them. */
static void a_slot_of_the_client_is_picked_by_all(void **state)
{
  (void)state;
  for (int i = 0; i < NODES; i++)
    assert_true(was_sent(i, "$16\r\nlibredlock:s:1:r\r\n") && was_sent(i, "p02\r\n$") &&
                was_sent(i, "$1\r\n2\r\n$1\r\n1\r\n"));
  write_all();
  assert_int_equal(picked(0, 1, 2, 2), RLK_GRANTED);
  for (int i = 1; i < NODES && lock->op.status == REDLOCK_PENDING; i++)
    assert_int_equal(picked(i, 2, 5, 2), RLK_REFUSED);
  assert_int_equal(redlock_lock_status(lock), REDLOCK_REFUSED_CONFIG);
}

static int begin_single(void **state)
{
  int status = begin(state);
  assert_int_equal(redlock_lock_set(lock, "permits", "3"), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 0);
  return status;
}

/* Others may hide from it that a slot is free. */
static void without_a_wait_a_majority_must_have_none_free(void **state)
{
  int first = home(), second;
  (void)state;
  write_all();
  assert_int_equal(picked(first, 0, 0, 1), RLK_BUSY);
  assert_int_equal(lock->op.status, REDLOCK_PENDING);
  second = lock->attempt.home;
  assert_int_not_equal(second, first);
  write_all();
  assert_int_equal(picked(second, 0, 0, 1), RLK_BUSY);
  assert_int_equal(lock->op.status, REDLOCK_BUSY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_permits, end)
  const struct CMUnitTest tests[] = {
      TEST(home_picks_and_the_others_are_asked_for_that),
      TEST(the_hash_is_that_of_the_text),
      TEST(an_answer_for_another_slot_is_no_vote),
      TEST(a_slot_that_there_is_not_is_no_answer),
      TEST(a_pick_that_is_given_up_is_dropped_everywhere),
      TEST(another_number_of_permits_is_refused),
      TEST(home_alone_does_not_keep_slots_from_it),
      TEST(all_nodes_are_asked_for_one_slot_after_the_other),
      TEST(what_home_offers_by_turns_is_not_in_vain),
      cmocka_unit_test_setup_teardown(a_slot_of_the_client_is_picked_by_all, begin_chosen, end),
      cmocka_unit_test_setup_teardown(without_a_wait_a_majority_must_have_none_free, begin_single, end),
  };
  return cmocka_run_group_tests_name("permits", tests, NULL, NULL);
}

/* When a waiter takes a lock that is free: at its turn, or when those before it have had theirs. */
#include "lock_world.h"

enum { OVERSLEPT_MS = 50, FREE = -2 }; /* as core/src/lock/queue.c and PTTL have it */

static int begin_waiting(void **state)
{
  int status = begin(state);
  assert_int_equal(redlock_lock_set(lock, "queue", "true"), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 60000);
  write_all();
  for (int i = 0; i < NODES; i++)
    answer(i, &rlk_row_set, RLK_BUSY);
  assert_int_equal(lock->op.phase, RLK_ASKING_QUEUE);
  return status;
}

/* The home node answers the waiter's question for its place; what else was asked does not matter. */
static void placed(int64_t rank, int64_t pttl)
{
  struct rlk_reply reply = {.type = RLK_REPLY_ARRAY, .elements = 2, .count = 2, .integers = {rank, pttl}};
  struct rlk_outcome outcome = {.kind = RLK_OUTCOME_ANSWER, .vote = RLK_FITS, .reply = &reply, .now_ns = now_ns};
  struct rlk_request request;
  write_all();
  for (int i = 0; i < NODES; i++)
    while (asked(i) > 0) {
      rlk_requests_take(requests_of(i), &request);
      if (request.ask == &rlk_row_join)
        outcome.request = request;
    }
  assert_non_null(outcome.request.ask);
  rlk_dispatch(&client->engine, &client->engine.net.nodes[lock->wait.home], &outcome);
}

/* The waiter asks again. */
static void ask_again(void)
{
  assert_int_equal(lock->op.phase, RLK_SLEEPING);
  now_ns = lock->op.timer.at_ns;
  rlk_operation_timer(lock, now_ns);
}

/* ... late: the machine is busy. */
static void ask_again_in_ms(int64_t pause_ms)
{
  lock->op.timer.at_ns = now_ns + pause_ms * MS;
  ask_again();
}

/* How long it leaves a lock to those before it that is free at every question. */
static int64_t left_for_ms(int64_t rank)
{
  int64_t since_ns = now_ns;
  placed(rank, FREE);
  while (lock->op.phase != RLK_ASKING_ALL) {
    ask_again();
    placed(rank, FREE);
  }
  return (now_ns - since_ns) / MS;
}

static void the_first_takes_it_at_once(void **state)
{
  (void)state;
  assert_int_equal(left_for_ms(0), 0);
}

static void the_next_leaves_it_to_one_that_may_have_overslept(void **state)
{
  (void)state;
  assert_in_range(left_for_ms(1), OVERSLEPT_MS, 3 * OVERSLEPT_MS);
}

static void the_dead_are_not_waited_for(void **state)
{
  (void)state;
  placed(7, 20000);
  ask_again();
  assert_in_range(left_for_ms(7), 300, 500);
}

/* Each question takes one of them out, and none of them has held the lock. */
static void the_dead_are_not_waited_for_one_by_one(void **state)
{
  int64_t since_ns = now_ns, rank = 200;
  (void)state;
  placed(rank, FREE);
  while (lock->op.phase != RLK_ASKING_ALL) {
    ask_again();
    placed(--rank, FREE);
  }
  assert_in_range((now_ns - since_ns) / MS, 300, 500);
}

static void the_heir_of_the_first_place_takes_it_at_once(void **state)
{
  (void)state;
  placed(2, 20000);
  ask_again();
  placed(2, FREE);
  ask_again();
  assert_int_equal(left_for_ms(0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_waiting, end)
  const struct CMUnitTest tests[] = {
      TEST(the_first_takes_it_at_once),
      TEST(the_next_leaves_it_to_one_that_may_have_overslept),
      TEST(the_dead_are_not_waited_for),
      TEST(the_dead_are_not_waited_for_one_by_one),
      TEST(the_heir_of_the_first_place_takes_it_at_once),
  };
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}

/* When a waiter makes an attempt: when it is the first and the lock is free, and not before. */
#include "lock_world.h"

enum { VAIN_MAX_MS = 100, WOKEN_MS = 150, FREE = -2 }; /* as core/src/lock/queue.c and PTTL have it */

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
      if (request.ask == &rlk_row_place)
        outcome.request = request;
    }
  assert_non_null(outcome.request.ask);
  rlk_dispatch(&client->engine, &client->engine.net.nodes[lock->wait->home], &outcome);
}

/* The waiter asks again. */
static void ask_again(void)
{
  assert_int_equal(lock->op.phase, RLK_SLEEPING);
  now_ns = lock->op.timer.at_ns;
  rlk_operation_timer(lock, now_ns);
}

static void is_refused(void)
{
  write_all();
  for (int i = 0; i < NODES; i++)
    answer(i, &rlk_row_set, RLK_BUSY);
}

static void the_first_takes_what_is_free_at_once(void **state)
{
  (void)state;
  placed(0, FREE);
  assert_int_equal(lock->op.phase, RLK_ASKING_ALL);
}

static void those_behind_leave_it_to_the_first(void **state)
{
  int64_t since_ns = now_ns;
  (void)state;
  placed(2, FREE);
  while (now_ns - since_ns < 10000 * MS) {
    ask_again();
    placed(2, FREE);
    assert_int_equal(lock->op.phase, RLK_SLEEPING);
  }
}

/* One before it may have been woken, and hang. */
static void those_behind_come_back_soon_while_nobody_takes_it(void **state)
{
  (void)state;
  for (int i = 0; i < NODES; i++)
    client->engine.net.nodes[i].lines[2].state = RLK_NODE_READY; /* it listens */
  placed(9, 20000);
  ask_again();
  placed(9, 20000);
  ask_again(); /* for its second place, too */
  placed(9, FREE);
  assert_in_range((lock->op.timer.at_ns - now_ns) / MS, WOKEN_MS, 2 * WOKEN_MS);
}

/* Others hold it, though home says that it is free. */
static void each_attempt_in_vain_doubles_the_pause(void **state)
{
  int64_t pause_ms = 0;
  (void)state;
  placed(0, FREE);
  for (int i = 0; i < 12; i++) {
    is_refused();
    assert_int_equal(lock->op.phase, RLK_SLEEPING);
    assert_true((lock->op.timer.at_ns - now_ns) / MS >= pause_ms);
    pause_ms = (lock->op.timer.at_ns - now_ns) / MS;
    ask_again();
    placed(0, FREE);
    assert_int_equal(lock->op.phase, RLK_ASKING_ALL);
  }
  assert_in_range(pause_ms, VAIN_MAX_MS, VAIN_MAX_MS + 1);
}

static void an_answer_that_it_is_held_ends_the_pauses(void **state)
{
  (void)state;
  placed(0, FREE);
  for (int i = 0; i < 8; i++) {
    is_refused();
    ask_again();
    placed(0, FREE);
  }
  is_refused();
  ask_again();
  placed(0, 20000);
  ask_again();
  placed(0, FREE);
  is_refused();
  assert_in_range((lock->op.timer.at_ns - now_ns) / MS, 1, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_waiting, end)
  const struct CMUnitTest tests[] = {
      TEST(the_first_takes_what_is_free_at_once),
      TEST(those_behind_leave_it_to_the_first),
      TEST(those_behind_come_back_soon_while_nobody_takes_it),
      TEST(each_attempt_in_vain_doubles_the_pause),
      TEST(an_answer_that_it_is_held_ends_the_pauses),
  };
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}

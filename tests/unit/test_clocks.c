/* The clocks of several nodes: one that is ahead of the others, and what this machine's clock may say of it. */
#include "lock_world.h"

#include "vote/clocks.h"
#include "vote/eligible.h"

static struct rlk_link_ops elsewhere;
static int64_t wall_us; /* once, as now_ns stands still, too */

static int begin_guarded(void **state)
{
  int status = begin(state);
  RLK_INT(&client->engine.net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&client->engine.net.options, MAX_TTL_MS) = 30000;
  elsewhere = rlk_link_sockets;
  elsewhere.is_local = NULL;
  wall_us = client->engine.net.env.platform->wall_ns(client->engine.net.env.context) / 1000;
  return status;
}

static struct rlk_node *node_at(int i)
{
  return &client->engine.net.nodes[i];
}

/* Read just now; its clock differs by so much from that of this machine. */
static void read_clock(int node, int64_t apart_ms)
{
  struct rlk_clock_sample sample = {wall_us + apart_ms * 1000, now_ns, now_ns};
  rlk_clocks_note(node_at(node), &sample);
}

static void compare(void)
{
  rlk_clocks_compare(&client->engine.net, now_ns, now_ns);
}

static int waits(int node)
{
  return rlk_guard_waits(node_at(node), now_ns);
}

static void a_node_that_is_ahead_does_not_vote(void **state)
{
  (void)state;
  read_clock(0, 5000);
  read_clock(1, 0);
  compare();
  assert_true(waits(0) && !waits(1));
  read_clock(2, 5000);
  compare();
  assert_false(waits(0) || waits(2)); /* most of them say so */
}

static void without_the_guard_no_clock_is_compared(void **state)
{
  (void)state;
  RLK_INT(&client->engine.net.options, GUARD) = RLK_GUARD_OFF;
  read_clock(0, 5000);
  read_clock(1, 0);
  compare();
  assert_int_equal(node_at(0)->voter->ahead_until_ns, 0);
}

static void a_reading_of_an_earlier_round_is_not_compared(void **state)
{
  (void)state;
  read_clock(0, 5000);
  now_ns += 1000 * MS;
  read_clock(1, 0);
  compare();
  assert_false(waits(0));
}

/* Whether it is ahead shows when another clock is read. */
static void a_clock_that_drift_makes_useless_proves_nothing(void **state)
{
  (void)state;
  RLK_FLOAT(&client->engine.net.options, DRIFT_FACTOR) = 0.1;
  read_clock(0, 0);
  read_clock(1, 0);
  now_ns += 60000 * MS;
  read_clock(0, 67000);
  rlk_clocks_compare(&client->engine.net, now_ns - RLK_CLOCK_OLD_NS, now_ns);
  assert_false(waits(0));
  read_clock(1, 60000);
  compare();
  assert_true(waits(0));
}

static void a_child_knows_the_clocks_that_its_parent_has_read(void **state)
{
  struct rlk_node *node = node_at(0);
  (void)state;
  strcpy(node->run_id, "0123456789");
  read_clock(0, 0);
  rlk_node_abandon(node);
  strcpy(node->line->facts.run_id, "0123456789");
  rlk_eligible_note_server(node->line);
  now_ns += 100 * MS;
  read_clock(0, 5100);
  assert_true(waits(0));
}

/* One clock that is behind makes the good one look ahead. */
static void this_machine_vouches_for_a_node_elsewhere(void **state)
{
  (void)state;
  read_clock(0, 0);
  read_clock(1, -2000);
  compare(); /* it may be here, and have the same clock */
  assert_true(waits(0));
  node_at(0)->line->link.ops = &elsewhere;
  compare();
  assert_false(waits(0) || waits(1));
}

/* The node whose clock has not changed is not ahead of it. */
static void a_clock_that_was_right_stays_right_when_another_is_set_back(void **state)
{
  (void)state;
  read_clock(0, 0);
  read_clock(1, 0);
  compare();
  now_ns += 1000 * MS;
  read_clock(0, 1000);
  read_clock(1, -60000);
  compare();
  assert_false(waits(0));
}

static void this_machine_vouches_for_no_node_that_differs_from_it(void **state)
{
  (void)state;
  read_clock(0, 5000);
  read_clock(1, 0);
  node_at(0)->line->link.ops = &elsewhere;
  compare();
  assert_true(waits(0));
}

/* Its clock stood still for 400 ms, which all nodes show, one after the other: none votes before the last has. */
static void begin_a_pause(void)
{
  for (int i = 0; i < NODES; i++)
    read_clock(i, 0);
  now_ns += 100 * MS;
  read_clock(0, 500);
  read_clock(1, 500);
  assert_true(waits(0) && waits(1));
}

static void a_pause_of_this_machine_is_known_when_all_nodes_show_it(void **state)
{
  (void)state;
  begin_a_pause();
  read_clock(2, 500);
  assert_false(waits(0) || waits(1) || waits(2));
}

static void a_node_that_was_not_stepped_shows_that_the_others_were(void **state)
{
  (void)state;
  begin_a_pause();
  read_clock(2, 100);
  assert_true(waits(0) && waits(1) && !waits(2));
}

/* Its last reading is from before the pause. */
static void a_silent_node_is_not_awaited(void **state)
{
  (void)state;
  node_at(2)->silent_ns = now_ns;
  for (int i = 0; i < NODES; i++)
    read_clock(i, 0);
  now_ns += 100 * MS;
  read_clock(0, 500);
  assert_true(waits(0));
  read_clock(1, 500);
  assert_false(waits(0) || waits(1));
  read_clock(2, 100); /* it comes back, and was not stepped */
  assert_true(waits(0) && waits(1) && !waits(2));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_node_that_is_ahead_does_not_vote, begin_guarded, end),
      cmocka_unit_test_setup_teardown(without_the_guard_no_clock_is_compared, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_reading_of_an_earlier_round_is_not_compared, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_clock_that_drift_makes_useless_proves_nothing, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_child_knows_the_clocks_that_its_parent_has_read, begin_guarded, end),
      cmocka_unit_test_setup_teardown(this_machine_vouches_for_a_node_elsewhere, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_clock_that_was_right_stays_right_when_another_is_set_back, begin_guarded, end),
      cmocka_unit_test_setup_teardown(this_machine_vouches_for_no_node_that_differs_from_it, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_pause_of_this_machine_is_known_when_all_nodes_show_it, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_node_that_was_not_stepped_shows_that_the_others_were, begin_guarded, end),
      cmocka_unit_test_setup_teardown(a_silent_node_is_not_awaited, begin_guarded, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The restart guard of a node: what its marker, its clock and an operator do to its vote. */
#include "node_world.h"

static void a_stepped_clock_costs_the_longest_ttl_at_once(void **state)
{
  (void)state;
  get_ready();
  RLK_INT(&net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&net.options, MAX_TTL_MS) = 30000;
  ask(&rlk_row_clock, 0);
  hear("*2\r\n$4\r\n5000\r\n$1\r\n0\r\n");
  expect(RLK_OUTCOME_ANSWER);
  assert_false(rlk_guard_waits(&node, world.now_ns));
  ask(&rlk_row_clock, 0);
  hear("*2\r\n$4\r\n5003\r\n$1\r\n0\r\n");
  expect(RLK_OUTCOME_ANSWER);
  expect(RLK_OUTCOME_STEPPED);
  assert_true(rlk_guard_waits(&node, world.now_ns + 30000 * MS));
  assert_false(rlk_guard_waits(&node, world.now_ns + 40000 * MS));
}

#define MARKER(since, nonce, max_ttl_ms) "v2 " RUN_ID " " since " 1 0 " nonce " " max_ttl_ms " -"

/* As it was read in a set-up 5 s ago. */
static void have_marker(void)
{
  get_ready();
  RLK_INT(&net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&net.options, MAX_TTL_MS) = 30000;
  strcpy(node.voter->marker, MARKER("1000", "a1", "20000"));
  assert_int_equal(rlk_marker_read(node.voter->marker, &node.voter->mark), 1);
  node.voter->since_ns = world.now_ns - 5000 * MS;
  node.voter->quarantined_until_ns = world.now_ns + 25000 * MS;
  node.voter->marker_read_ns = world.now_ns - 5000 * MS;
  node.voter->ttl_limit_ms = 20000;
}

static void look_and_hear(const char *marker)
{
  char reply[RLK_MARKER_SIZE + 16];
  snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(marker), marker);
  ask(&rlk_row_look, RLK_LOOK_MARKER);
  hear(reply);
  while (rlk_voter_next(&node, &outcome, world.now_ns))
    ;
}

static void an_operator_ends_a_quarantine(void **state)
{
  (void)state;
  have_marker();
  node.voter->changed_ns = world.now_ns - 500 * MS; /* this process has seen it lose keys, too */
  look_and_hear(MARKER("1000", "a1", "20000"));
  assert_true(rlk_guard_waits(&node, world.now_ns));
  look_and_hear(MARKER("0", "a1", "20000"));
  assert_false(rlk_guard_waits(&node, world.now_ns));
  assert_int_equal(node.state, RLK_NODE_READY);
}

static void an_operator_raises_the_number(void **state)
{
  (void)state;
  have_marker();
  look_and_hear(MARKER("1000", "a1", "30000"));
  assert_int_equal(node.voter->ttl_limit_ms, 30000);
  assert_int_equal(node.state, RLK_NODE_READY);
  assert_true(rlk_guard_waits(&node, world.now_ns));
}

/* The marker has no date of what this process saw half a second ago. */
static void a_number_that_is_rewritten_ends_no_quarantine(void **state)
{
  (void)state;
  have_marker();
  node.voter->since_ns -= 40000 * MS;
  node.voter->changed_ns = world.now_ns - 500 * MS;
  look_and_hear(MARKER("1000", "a1", "30000"));
  assert_int_equal(node.voter->ttl_limit_ms, 30000);
  assert_true(rlk_guard_waits(&node, world.now_ns));
}

/* What was asked before is answered by a node whose marker says that now: a lease that counts goes on to, another one
 * may begin only as a vote does. */
static void expect_vote_behind(const char *marker, int64_t ttl_ms, int vote)
{
  char reply[RLK_MARKER_SIZE + 16];
  snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(marker), marker);
  ask(&rlk_row_marker, 0);
  hear(reply);
  expect(RLK_OUTCOME_ANSWER);
  assert_int_equal(outcome.vote, RLK_GRANTED);
  assert_int_equal(rlk_guard_vote(&node, ttl_ms, world.now_ns), vote);
  assert_int_equal(node.state, RLK_NODE_READY);
}

/* The connection stays: locks are renewed over it. */
static void an_operator_lowers_the_number(void **state)
{
  (void)state;
  have_marker();
  node.voter->quarantined_until_ns = 0;
  node.voter->since_ns -= 40000 * MS;
  expect_vote_behind(MARKER("1000", "a1", "10000"), 20000, RLK_REFUSED);
  assert_int_equal(node.state, RLK_NODE_READY);
  assert_int_equal(node.voter->ttl_limit_ms, 10000);
  expect_vote_behind(MARKER("1000", "a1", "10000"), 20000, RLK_REFUSED);
  expect_vote_behind(MARKER("1000", "a1", "10000"), 10000, RLK_GRANTED);
}

static void a_number_above_the_clients_ends_its_votes_alone(void **state)
{
  struct rlk_reason why;
  (void)state;
  have_marker();
  node.voter->quarantined_until_ns = 0;
  node.voter->since_ns -= 40000 * MS;
  expect_vote_behind(MARKER("1000", "a1", "40000"), 20, RLK_REFUSED);
  rlk_guard_limit(&node, 20, &why);
  assert_string_equal(why.words, "allows leases of 40 s, and max_ttl_ms is 30 s here: give this program the same");
  assert_int_equal(rlk_guard_cap_ms(&node, 30000), 30000);
  assert_int_equal(node.voter->changed_ns, 0);
  expect_vote_behind(MARKER("1000", "a1", "30000"), 30000, RLK_GRANTED);
}

static void a_smaller_number_caps_extensions(void **state)
{
  (void)state;
  have_marker();
  node.voter->finding = RLK_FOUND_SMALLER;
  assert_int_equal(rlk_guard_cap_ms(&node, 30000), 20000);
  assert_int_equal(rlk_guard_cap_ms(&node, 10000), 10000);
}

/* It may have lost them long ago: the marker alone says since when it is to be kept out. */
static void what_a_process_finds_after_a_pause_has_no_date(void **state)
{
  (void)state;
  have_marker();
  node.voter->marker_read_ns = world.now_ns - 31000 * MS;
  look_and_hear(MARKER("0", "b2", "20000"));
  assert_int_equal(node.state, RLK_NODE_OFF);
  assert_int_equal(node.voter->quarantined_until_ns, RLK_NEVER); /* until its set-up is judged */
  assert_int_equal(node.voter->changed_ns, 0);
}

static void another_marker_is_a_loss(void **state)
{
  (void)state;
  have_marker();
  look_and_hear(MARKER("0", "b2", "20000"));
  assert_int_equal(node.state, RLK_NODE_OFF);
  assert_int_equal(node.voter->quarantined_until_ns, RLK_NEVER);
  assert_int_equal(node.voter->changed_ns, world.now_ns);
}

static int is_taken(const char *marker)
{
  struct rlk_reason why;
  strcpy(node.line->marker, marker);
  assert_int_equal(rlk_guard_judge(node.line, &why, world.now_ns), RLK_SESSION_READY);
  return node.voter->finding == RLK_FOUND_OURS;
}

/* The server was set back to what it had saved before: what was written since is gone. */
static void a_marker_that_another_one_has_followed_is_a_loss(void **state)
{
  static char none[] = "-";
  (void)state;
  get_ready();
  RLK_INT(&net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&net.options, MAX_TTL_MS) = 20000;
  RLK_STRING(&net, CLUSTER) = none;
  net.looks = 1; /* nothing is written */
  node.line->time = (struct rlk_clock_sample){5000000, world.now_ns, world.now_ns};
  assert_true(is_taken(MARKER("1000", "a1", "20000")));
  assert_true(is_taken(MARKER("1000", "b2", "20000")));
  assert_true(is_taken(MARKER("1000", "b2", "20000")));
  assert_false(is_taken(MARKER("1000", "a1", "20000")));
}

static void assert_quarantine_says(const char *reason, const char *words)
{
  char said[200];
  struct rlk_text text = rlk_text_in(said, sizeof said);
  rlk_guard_words(&node, &text, world.now_ns);
  assert_string_equal(said, words);
  assert_string_equal(rlk_guard_reason(&node, world.now_ns), reason);
}

static void a_quarantine_is_described(void **state)
{
  char left[200] = "";
  struct rlk_text text = rlk_text_in(left, sizeof left);
  (void)state;
  node.voter->quarantined_until_ns = RLK_NEVER;
  assert_quarantine_says("lost_keys", "its marker has changed: it may have lost keys");
  rlk_guard_left_words(&node, &text, world.now_ns);
  assert_string_equal(left, ""); /* when that ends is not known */
  node.voter->quarantined_until_ns = world.now_ns + 12300 * MS;
  node.voter->mark.since_ms = INT64_C(1700000000000);
  assert_quarantine_says("new",
                         "quarantined for another 12.3 s: new, or may have lost keys, since 2023-11-14T22:13:20Z");
  node.voter->step = (struct rlk_step){3100 * MS, 3100 * MS, 0, world.now_ns};
  assert_quarantine_says("clock_stepped", "quarantined for another 12.3 s: its clock was stepped forward by 3.1 s");
  node.voter->ahead_until_ns = world.now_ns + 15000 * MS;
  assert_quarantine_says("clock_ahead",
                         "quarantined for another 15.0 s: its clock is more than 1 s ahead of the other nodes'");
}

/* Only a marker that was read tells whether the server has lost keys. */
static void an_error_in_place_of_the_marker_is_no_loss(void **state)
{
  (void)state;
  get_ready();
  ask(&rlk_row_look, RLK_LOOK_MARKER);
  hear("-NOPERM this user has no permissions to run the 'get' command\r\n");
  while (rlk_voter_next(&node, &outcome, world.now_ns))
    ;
  assert_int_equal(node.voter->quarantined_until_ns, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_stepped_clock_costs_the_longest_ttl_at_once, begin, end),
      cmocka_unit_test_setup_teardown(an_operator_ends_a_quarantine, begin, end),
      cmocka_unit_test_setup_teardown(an_operator_raises_the_number, begin, end),
      cmocka_unit_test_setup_teardown(a_number_that_is_rewritten_ends_no_quarantine, begin, end),
      cmocka_unit_test_setup_teardown(an_operator_lowers_the_number, begin, end),
      cmocka_unit_test_setup_teardown(a_number_above_the_clients_ends_its_votes_alone, begin, end),
      cmocka_unit_test_setup_teardown(a_smaller_number_caps_extensions, begin, end),
      cmocka_unit_test_setup_teardown(what_a_process_finds_after_a_pause_has_no_date, begin, end),
      cmocka_unit_test_setup_teardown(another_marker_is_a_loss, begin, end),
      cmocka_unit_test_setup_teardown(a_marker_that_another_one_has_followed_is_a_loss, begin, end),
      cmocka_unit_test_setup_teardown(a_quarantine_is_described, begin, end),
      cmocka_unit_test_setup_teardown(an_error_in_place_of_the_marker_is_no_loss, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a client tells people of its nodes: JSON, metrics and advice. */
#include "lock_world.h"

#include "vote/eligible.h"

static char said[65536];

static void use_guard(void)
{
  RLK_INT(&client->engine.net.options, GUARD) = RLK_GUARD_MARKER;
}

static int has(const char *words)
{
  return strstr(said, words) != NULL;
}

/* A reply that takes long says less of it: what is shown is the middle of what it may be. */
static void the_offset_of_a_clock_is_the_middle_of_its_bounds(void **state)
{
  static const char name[] = "\"clock_offset_ms\":";
  const char *offset, *other;
  (void)state;
  for (int i = 0; i < 2; i++)
    client->engine.net.nodes[i].voter->clock =
        (struct rlk_clock){.low_ns = i ? 2000 * MS : 0, .high_ns = i ? 2000 * MS : 4000 * MS, .at_ns = now_ns};
  assert_true(redlock_client_describe(client, said, sizeof said) > 0);
  offset = strstr(said, name);
  assert_non_null(offset);
  other = strstr(offset + 1, name);
  assert_non_null(other);
  offset += sizeof name - 1, other += sizeof name - 1;
  /* the clock here is read for each */
  assert_in_range(llabs(strtoll(offset, NULL, 10) - strtoll(other, NULL, 10)), 0, 1000);
}

static void the_metrics_have_the_quarantine_of_each_node(void **state)
{
  (void)state;
  use_guard();
  client->engine.net.nodes[0].voter->quarantined_until_ns = RLK_NEVER;
  client->engine.net.nodes[2].voter->quarantined_until_ns = RLK_NEVER;
  assert_true(redlock_client_metrics(client, said, sizeof said) > 0);
  assert_true(has("redlock_node_quarantine_seconds{node=\"127.0.0.1:1\",reason=\"lost_keys\"} +Inf\n"));
  assert_true(has("redlock_node_quarantine_seconds{node=\"127.0.0.1:2\",reason=\"\"} 0\n"));
  assert_true(has("redlock_node_quarantine_seconds{node=\"127.0.0.1:3\",reason=\"lost_keys\"} +Inf\n"));
}

static void the_metrics_have_all_statuses_and_all_times(void **state)
{
  struct rlk_figures *figures = &client->engine.figures;
  (void)state;
  rlk_histogram_add(&figures->wait_us, rlk_time_bounds_us, 1);
  rlk_histogram_add(&figures->wait_us, rlk_time_bounds_us, INT64_C(3600000000));
  figures->acquisitions[RLK_COUNTED_STATUSES - 1] = 7;
  assert_true(redlock_client_metrics(client, said, sizeof said) > 0);
  assert_true(has("redlock_wait_seconds_bucket{le=\"300.0\"} 1\nredlock_wait_seconds_bucket{le=\"+Inf\"} 2\n"));
  assert_true(has("{status=\"QUARANTINED\"} 7\n# "));
}

/* Somebody else must do it if no majority votes. */
static void a_new_node_beside_a_majority_only_has_to_wait(void **state)
{
  struct rlk_net *net = &client->engine.net;
  (void)state;
  use_guard();
  net->nodes[0].voter->quarantined_until_ns = RLK_NEVER;
  assert_string_equal(rlk_advice(net, RLK_WHY_NEW, now_ns), "wait: it votes by itself");
  net->nodes[1].voter->quarantined_until_ns = RLK_NEVER;
  assert_string_equal(rlk_advice(net, RLK_WHY_NEW, now_ns), rlk_why_advice(RLK_WHY_NEW));
}

/* Of a lock that is held by others there is nothing to be done about the nodes. */
static void a_message_advises_where_the_nodes_are_the_reason(void **state)
{
  static const int statuses[] = {REDLOCK_NO_QUORUM, REDLOCK_REFUSED_CONFIG, REDLOCK_TIMED_OUT, REDLOCK_BUSY};
  const char *advice = rlk_why_advice(RLK_WHY_MISCONF);
  (void)state;
  call(REDLOCK_ACQUIRE, 0);
  write_all();
  for (int i = 0; i < NODES; i++)
    answer_with(i, &rlk_row_set, RLK_ERROR, RLK_FAULT_UNWRITABLE);
  for (int i = 0; i < NODES; i++)
    lock->node_answers[i].error = strdup("MISCONF Redis is configured to save RDB snapshots");
  assert_int_equal(lock->op.status, REDLOCK_NO_QUORUM);
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    lock->op.status = statuses[i];
    redlock_lock_message(lock, said, sizeof said);
    assert_int_equal(has(advice), statuses[i] != REDLOCK_BUSY);
  }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(the_offset_of_a_clock_is_the_middle_of_its_bounds), CASE(the_metrics_have_the_quarantine_of_each_node),
      CASE(the_metrics_have_all_statuses_and_all_times),       CASE(a_new_node_beside_a_majority_only_has_to_wait),
      CASE(a_message_advises_where_the_nodes_are_the_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A node alone: bytes of a server in, outcomes out. No socket, no client, no lock. */
#include "node_world.h"

static void a_node_becomes_ready(void **state)
{
  (void)state;
  get_ready();
  assert_int_equal(node.state, RLK_NODE_READY);
  assert_string_equal(node.run_id, RUN_ID);
}

static void votes_come_in_order_however_the_bytes_are_cut(void **state)
{
  static const char bytes[] = "+OK\r\n$-1\r\n:1\r\n";
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  ask(&rlk_row_set, 2);
  ask(&rlk_row_delete, 3);
  for (size_t i = 0; i + 1 < sizeof bytes; i++) {
    hear((char[]){bytes[i], 0});
    if (i == 4)
      expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 1);
    if (i == 9)
      expect_vote(RLK_BUSY, RLK_FAULT_NONE, 2);
    if (i == 13)
      expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 3);
    expect_no_more();
  }
}

static void requests_on_a_broken_connection_are_lost(void **state)
{
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  ask(&rlk_row_set, 2);
  hear("+OK\r\n");
  world.is_closed = 1;
  hear("");
  expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 1); /* what has come is read first */
  rlk_node_event(&node, node.line->link.generation, RLK_READABLE, world.now_ns);
  expect_vote(RLK_WAITING, RLK_FAULT_LOST, 2); /* the connection is made anew at once */
  expect_no_more();
  assert_int_equal(node.state, RLK_NODE_OFF);
}

static void a_server_that_talks_nonsense_is_dropped(void **state)
{
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  ask(&rlk_row_set, 2);
  hear(":7\r\n+OK\r\n");
  expect_vote(RLK_ERROR, RLK_FAULT_MISFIT, 1);
  expect_vote(RLK_DROPPED, RLK_FAULT_LOST, 2); /* its OK can not be trusted */
  expect(RLK_OUTCOME_DOWN);
  expect_no_more();
  assert_string_equal(node.why.words, "an unexpected reply to SET");
}

static void a_protocol_error_ends_the_connection_at_once(void **state)
{
  static const char *const bytes[] = {"?what\r\n", "$abc\r\n", "$-2\r\n", "*-2\r\n", ":12x\r\n"};
  for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
    get_ready();
    ask(&rlk_row_set, 1);
    hear(bytes[i]);
    expect_vote(RLK_DROPPED, RLK_FAULT_LOST, 1);
    expect(RLK_OUTCOME_DOWN);
    assert_string_not_equal(node.why.words, "");
    end(state);
    begin(state);
  }
}

/* It is never too large for what was not parsed yet: its elements are taken as they come. */
static void a_reply_without_end_ends_the_connection(void **state)
{
  char elements[16000];
  (void)state;
  for (size_t i = 0; i < sizeof elements; i += 4)
    memcpy(elements + i, ":1\r\n", 4);
  get_ready();
  ask(&rlk_row_set, 1);
  hear("*2147483647\r\n");
  expect_no_more();
  for (int i = 0; i < 200 && node.state == RLK_NODE_READY; i++) { /* 3.2 MB */
    hear_bytes(elements, sizeof elements);
    while (rlk_voter_next(&node, &outcome, world.now_ns))
      ;
  }
  assert_int_equal(node.state, RLK_NODE_OFF);
  assert_string_equal(node.why.words, "a reply too large");
}

/* The other nodes, and the threads that wait for the client's mutex, have their turn between two events. */
static void a_flood_is_read_in_parts(void **state)
{
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  hear("*2147483647\r\n");
  expect_no_more();
  world.is_flood = 1;
  for (int i = 0; i < 2; i++) {
    world.reads = 0;
    hear("");
    expect_no_more();
    assert_in_range(world.reads, 1, 16);
  }
  assert_int_equal(node.state, RLK_NODE_READY);
}

static void a_master_that_is_one_no_more_ends_when_its_replies_are_read(void **state)
{
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  ask(&rlk_row_set, 2);
  hear("-READONLY You can't write against a read only replica.\r\n$-1\r\n");
  expect_vote(RLK_ERROR, RLK_FAULT_ROLE, 1);
  expect_vote(RLK_BUSY, RLK_FAULT_NONE, 2);
  expect(RLK_OUTCOME_DOWN);
  expect_no_more();
}

static void a_restart_is_reported_before_the_node_is_asked(void **state)
{
  (void)state;
  get_ready();
  world.is_closed = 1;
  hear("");
  expect_no_more();
  connect();
  hear_setup(OTHER_ID, "master");
  expect(RLK_OUTCOME_FORGOTTEN);
  assert_int_equal(outcome.reason, REDLOCK_LOSS_RESTARTED);
  expect(RLK_OUTCOME_READY);
  expect_no_more();
}

/* Which does not know HELLO. A connection that cannot tell its number has none, lest another one be ended for it. */
static void every_connection_has_a_number_of_its_own(void **state)
{
  (void)state;
  node.no_hello = 1;
  connect();
  hear(":7\r\n");
  expect_no_more();
  hear_setup(RUN_ID, "master");
  expect(RLK_OUTCOME_READY);
  expect_no_more();
  assert_int_equal(node.line->client_id, 7);
  world.is_closed = 1;
  hear("");
  expect_no_more();
  connect();
  hear("-NOPERM this user has no permissions to run the 'client|id' command\r\n");
  expect_no_more();
  hear_setup(RUN_ID, "master");
  expect(RLK_OUTCOME_READY);
  assert_int_equal(node.line->client_id, 0);
}

static void a_node_is_looked_at_again_once_a_ttl(void **state)
{
  static const int ttl_ms[] = {100, 8000, 60000}, pause_ms[] = {1000, 8000, 30000};
  (void)state;
  for (int i = 0; i < 3; i++) {
    RLK_INT(&net.options, TTL_MS) = ttl_ms[i];
    assert_int_equal(rlk_session_pause_ns(&node), pause_ms[i] * MS);
  }
}

static void a_replica_is_refused_but_deletes(void **state)
{
  (void)state;
  connect();
  hear_setup(RUN_ID, "slave");
  expect(RLK_OUTCOME_FORGOTTEN);
  assert_int_equal(outcome.reason, REDLOCK_LOSS_REFUSED);
  expect(RLK_OUTCOME_PAYABLE);
  ask(&rlk_row_delete, 1);
  expect(RLK_OUTCOME_DOWN);
  expect_no_more();
  assert_int_equal(node.state, RLK_NODE_REFUSED);
  hear(":1\r\n");
  expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 1);
  expect(RLK_OUTCOME_DOWN);
  expect_no_more();
  assert_int_equal(node.state, RLK_NODE_OFF);
}

/* Nobody has driven the client since, so the server may be a master again: who asks now waits for the next look. */
static void a_refusal_of_long_ago_is_looked_into_at_once(void **state)
{
  (void)state;
  connect();
  hear_setup(RUN_ID, "slave");
  expect(RLK_OUTCOME_FORGOTTEN);
  expect(RLK_OUTCOME_PAYABLE);
  ask(&rlk_row_delete, 1);
  expect(RLK_OUTCOME_DOWN);
  world.now_ns += 3600 * 1000 * MS;
  rlk_node_timer(&node, world.now_ns);
  expect_vote(RLK_WAITING, RLK_FAULT_LOST, 1);
  expect_no_more();
  assert_true(rlk_timers_next(&net.timers) <= world.now_ns);
  rlk_node_timer(&node, world.now_ns);
  assert_int_equal(rlk_node_can_ask(&node, 1000 * MS, world.now_ns), RLK_RETRYING);
}

static void fall_silent(void)
{
  world.now_ns += 300 * MS;
  rlk_node_timer(&node, world.now_ns);
  assert_int_equal(node.silent_ns, 0);
  world.now_ns += 50 * MS;
  rlk_node_timer(&node, world.now_ns);
  assert_int_not_equal(node.silent_ns, 0);
}

static void a_process_that_stood_still_makes_no_server_silent(void **state)
{
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  rlk_voter_flush(&node, world.now_ns);
  world.now_ns += 2000 * MS;
  rlk_node_timer(&node, world.now_ns);
  hear("+OK\r\n");
  expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 1);
  expect_no_more();
  assert_null(node.second);
}

static void a_silent_connection_gets_a_second_one_beside_it(void **state)
{
  (void)state;
  get_ready();
  for (int times = 0; times < 2; times++) {
    node.rtt_ns = 0;
    ask(&rlk_row_set, 1);
    rlk_voter_flush(&node, world.now_ns);
    fall_silent(); /* the second is opened */
    expect_no_more();
    assert_non_null(node.second);
    hear("+OK\r\n"); /* but the first one speaks */
    expect(RLK_OUTCOME_SPOKE);
    expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 1);
    expect_no_more();
    assert_null(node.second);
  }
}

/* Requests of long ago are answered late, but one after the other: a drain may have queued them all at once. */
static void a_server_that_works_off_a_long_queue_is_not_given_up(void **state)
{
  enum { COUNT = 100 };
  (void)state;
  get_ready();
  for (uint32_t i = 1; i <= COUNT; i++)
    ask(&rlk_row_delete, i);
  rlk_voter_flush(&node, world.now_ns);
  for (uint32_t i = 1; i <= COUNT; i++) {
    world.now_ns += 200 * MS;
    rlk_node_timer(&node, world.now_ns);
    hear(":1\r\n");
    expect_vote(RLK_GRANTED, RLK_FAULT_NONE, i);
    expect_no_more();
  }
}

static void answers_of_a_silent_connection_do_not_count_after_a_change(void **state)
{
  static const struct {
    const char *run_id, *role;
    int is_change;
  } cases[] = {{RUN_ID, "master", 0}, {OTHER_ID, "master", 1}, {RUN_ID, "slave", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    end(state);
    assert_int_equal(begin(state), 0);
    get_ready();
    ask(&rlk_row_set, 1);
    rlk_voter_flush(&node, world.now_ns);
    fall_silent();
    world.on_old = "+OK\r\n"; /* was on its way for long */
    hear_setup_on(node.second, cases[i].run_id, cases[i].role);
    if (cases[i].is_change) {
      expect_vote(RLK_WAITING, RLK_FAULT_LOST, 1);
      expect(RLK_OUTCOME_FORGOTTEN);
    } else {
      expect(RLK_OUTCOME_SPOKE);
      expect_vote(RLK_GRANTED, RLK_FAULT_NONE, 1);
    }
    expect_no_more();
  }
}

static const struct {
  const char *bytes;
  size_t size;
} nonsense[] = {
#define BYTES(literal) {literal, sizeof literal - 1}
    BYTES("+O"),
    BYTES("$100\r\nabc"),
    BYTES("*5\r\n:1\r\n"),
    BYTES("$999999999999999999\r\n"),
    BYTES("$99999999999999999999999999\r\n"),
    BYTES("$1073741824\r\nabc"),
    BYTES("$-2\r\n"),
    BYTES("*-2\r\n"),
    BYTES("*2147483647\r\n"),
    BYTES("$abc\r\n"),
    BYTES("$\r\n"),
    BYTES(":12x\r\n"),
    BYTES(":999999999999999999999999\r\n"),
    BYTES("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
    BYTES("?what\r\n"),
    BYTES("\0\0\0\0\0\0\0\0"),
    BYTES("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    BYTES("\x15\x03\x03\x00\x02\x02\x28"),
    BYTES("$3\r\nabcdef"),
    BYTES("+OK\r\n+OK\r\n+OK\r\n+OK\r\n"),
    BYTES("+OK\r\n-ERR going away\r\n"),
    BYTES("\r\n\r\n\r\n"),
    BYTES("*2\r\n+OK\r\n+OK\r\n"),
    BYTES(":1\r\n"),
    BYTES("*-1\r\n"),
    BYTES("-\r\n"),
    BYTES("-ERR \x1b[31m\x00\xff\r\n"),
    BYTES("%1\r\n+a\r\n:1\r\n"),
    BYTES("_\r\n"),
    BYTES(">2\r\n+message\r\n+x\r\n"),
    BYTES("-\x1b[31m\x00X\r\n"),
    BYTES("-NOAUTH \x1b[31m\x07\r\n"),
};

/* The final result of the request: exactly one vote, whatever arrives and when. */
static int votes_until_the_connection_ends(void)
{
  int votes = 0, pulls = 0;
  for (int i = 0; i < 2; i++) {
    for (; rlk_voter_next(&node, &outcome, world.now_ns); pulls++) {
      votes += outcome.kind == RLK_OUTCOME_ANSWER;
      assert_true(pulls < 100);
    }
    world.is_closed = 1;
    rlk_node_event(&node, node.line->link.generation, RLK_READABLE, world.now_ns);
  }
  for (const char *s = node.why.words; *s; s++)
    assert_true((unsigned char)*s >= 0x20);
  return votes;
}

static void nonsense_for_a_vote_is_one_vote(void **state)
{
  static const struct rlk_ask *rows[] = {&rlk_row_set, &rlk_row_extend, &rlk_row_delete};
  for (size_t i = 0; i < 3 * sizeof nonsense / sizeof nonsense[0]; i++) {
    get_ready();
    ask(rows[i % 3], 1);
    hear_bytes(nonsense[i / 3].bytes, nonsense[i / 3].size);
    if (votes_until_the_connection_ends() != 1 || node.state != RLK_NODE_OFF)
      fail_msg("request %zu: %s", i % 3, nonsense[i / 3].bytes);
    end(state);
    begin(state);
  }
}

static void nonsense_in_the_set_up_makes_no_voter(void **state)
{
  for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
    connect();
    ask(&rlk_row_set, 1); /* it joins the set-up */
    hear_bytes(nonsense[i].bytes, nonsense[i].size);
    if (votes_until_the_connection_ends() != 1 || node.state != RLK_NODE_OFF)
      fail_msg("%zu: %s", i, nonsense[i].bytes);
    end(state);
    begin(state);
  }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(a_node_becomes_ready),
      CASE(votes_come_in_order_however_the_bytes_are_cut),
      CASE(requests_on_a_broken_connection_are_lost),
      CASE(a_server_that_talks_nonsense_is_dropped),
      CASE(a_protocol_error_ends_the_connection_at_once),
      CASE(a_reply_without_end_ends_the_connection),
      CASE(a_flood_is_read_in_parts),
      CASE(a_master_that_is_one_no_more_ends_when_its_replies_are_read),
      CASE(a_restart_is_reported_before_the_node_is_asked),
      CASE(every_connection_has_a_number_of_its_own),
      CASE(a_node_is_looked_at_again_once_a_ttl),
      CASE(a_replica_is_refused_but_deletes),
      CASE(a_refusal_of_long_ago_is_looked_into_at_once),
      CASE(a_process_that_stood_still_makes_no_server_silent),
      CASE(a_silent_connection_gets_a_second_one_beside_it),
      CASE(a_server_that_works_off_a_long_queue_is_not_given_up),
      CASE(answers_of_a_silent_connection_do_not_count_after_a_change),
      CASE(nonsense_for_a_vote_is_one_vote),
      CASE(nonsense_in_the_set_up_makes_no_voter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

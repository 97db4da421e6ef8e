/* A node alone: bytes of a server in, outcomes out. No socket, no client, no lock. */
#include "node_world.h"

#include "node/listener.h"

static void assert_row(const char *name, const char *is, const char *expected)
{
  if (strcmp(is, expected) != 0)
    fail_msg("%s: \"%s\" instead of \"%s\"", name, is, expected);
}

/* Requests 1 and 2 are SETs in flight, then these bytes come. */
static const struct {
  const char *name, *bytes;
  const char *outcomes;
  enum rlk_node_state state;
  const char *words; /* are in those that say why it is not ready */
} replies[] = {
    {"votes", "+OK\r\n$-1\r\n", "1 granted, 2 busy", RLK_NODE_READY, ""},
    /* the OK behind it cannot be trusted */
    {"no reply to SET", ":7\r\n+OK\r\n", "1 error misfit, 2 dropped lost, down", RLK_NODE_OFF,
     "an unexpected reply to SET"},
    {"a replica now", "-READONLY You can't write against a read only replica.\r\n$-1\r\n",
     "1 refused role, 2 busy, down", RLK_NODE_OFF, "READONLY"},
    {"an unknown type", "?what\r\n", "1 dropped lost, 2 dropped lost, down", RLK_NODE_OFF, ""},
    {"a size of letters", "$abc\r\n", "1 dropped lost, 2 dropped lost, down", RLK_NODE_OFF, ""},
    {"a size below -1", "$-2\r\n", "1 dropped lost, 2 dropped lost, down", RLK_NODE_OFF, ""},
    {"a count below -1", "*-2\r\n", "1 dropped lost, 2 dropped lost, down", RLK_NODE_OFF, ""},
    {"a number with letters", ":12x\r\n", "1 dropped lost, 2 dropped lost, down", RLK_NODE_OFF, ""},
};

static void replies_are_votes_or_end_the_connection(void **state)
{
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    get_ready();
    ask(&rlk_row_set, 1);
    ask(&rlk_row_set, 2);
    hear(replies[i].bytes);
    assert_row(replies[i].name, outcomes(), replies[i].outcomes);
    if (node.state != replies[i].state || !strstr(node.why.words, replies[i].words) ||
        !*node.why.words != (node.state == RLK_NODE_READY))
      fail_msg("%s: state %d, %s", replies[i].name, node.state, node.why.words);
    end(state);
    begin(state);
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
  expect_outcomes("1 granted"); /* what has come is read first */
  hear("");
  expect_outcomes("2 waiting lost"); /* the connection is made anew at once */
  assert_int_equal(node.state, RLK_NODE_OFF);
}

static void a_vote_comes_with_the_last_byte_of_its_reply(void **state)
{
  static const char bytes[] = "+OK\r\n$-1\r\n:1\r\n";
  (void)state;
  get_ready();
  ask(&rlk_row_set, 1);
  ask(&rlk_row_set, 2);
  ask(&rlk_row_delete, 3);
  for (size_t i = 0; i + 1 < sizeof bytes; i++) {
    hear((char[]){bytes[i], 0});
    expect_outcomes(i == 4 ? "1 granted" : i == 9 ? "2 busy" : i == 13 ? "3 granted" : "");
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
  expect_outcomes("");
  for (int i = 0; i < 200 && node.state == RLK_NODE_READY; i++) { /* 3.2 MB */
    hear_bytes(elements, sizeof elements);
    outcomes();
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
  expect_outcomes("");
  world.is_flood = 1;
  for (int i = 0; i < 2; i++) {
    world.reads = 0;
    hear("");
    expect_outcomes("");
    assert_in_range(world.reads, 1, 16);
  }
  assert_int_equal(node.state, RLK_NODE_READY);
}

/* Which does not know HELLO. A connection that cannot tell its number has none, lest another one be ended for it. */
static void every_connection_has_a_number_of_its_own(void **state)
{
  (void)state;
  node.no_hello = 1;
  connect();
  hear(":7\r\n");
  expect_outcomes("");
  hear_setup(RUN_ID, "master");
  expect_outcomes("ready");
  assert_int_equal(node.line->client_id, 7);
  world.is_closed = 1;
  hear("");
  expect_outcomes("");
  connect();
  hear("-NOPERM this user has no permissions to run the 'client|id' command\r\n");
  expect_outcomes("");
  hear_setup(RUN_ID, "master");
  expect_outcomes("ready");
  assert_int_equal(node.line->client_id, 0);
}

static void a_node_is_looked_at_again_once_a_ttl(void **state)
{
  static const struct {
    int ttl_ms, pause_ms;
  } cases[] = {{100, 1000}, {8000, 8000}, {60000, 30000}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    RLK_INT(&net.options, TTL_MS) = cases[i].ttl_ms;
    if (rlk_session_pause_ns(&node) != cases[i].pause_ms * MS)
      fail_msg("ttl_ms = %d: %lld ns", cases[i].ttl_ms, (long long)rlk_session_pause_ns(&node));
  }
}

static void refuse_a_replica_with_a_delete(void)
{
  connect();
  hear_setup(RUN_ID, "slave");
  expect(RLK_OUTCOME_FORGOTTEN);
  assert_int_equal(outcome.reason, REDLOCK_LOSS_REFUSED);
  expect(RLK_OUTCOME_PAYABLE);
  ask(&rlk_row_delete, 1);
  expect_outcomes("down");
  assert_int_equal(node.state, RLK_NODE_REFUSED);
}

static void a_replica_is_refused_but_deletes(void **state)
{
  (void)state;
  refuse_a_replica_with_a_delete();
  hear(":1\r\n");
  expect_outcomes("1 granted, down");
  assert_int_equal(node.state, RLK_NODE_OFF);
}

/* Nobody has driven the client since, so the server may be a master again: who asks now waits for the next look. */
static void a_refusal_of_long_ago_is_looked_into_at_once(void **state)
{
  (void)state;
  refuse_a_replica_with_a_delete();
  world.now_ns += 3600 * 1000 * MS;
  rlk_node_timer(&node, world.now_ns);
  expect_outcomes("1 waiting lost");
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
  expect_outcomes("1 granted");
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
    expect_outcomes("");
    assert_non_null(node.second);
    hear("+OK\r\n"); /* but the first one speaks */
    expect_outcomes("spoke, 1 granted");
    assert_null(node.second);
  }
}

/* Requests of long ago are answered late, but one after the other: a drain may have queued them all at once. */
static void a_server_that_works_off_a_long_queue_is_not_given_up(void **state)
{
  enum { COUNT = 100 };
  char expected[20];
  (void)state;
  get_ready();
  for (uint32_t i = 1; i <= COUNT; i++)
    ask(&rlk_row_delete, i);
  rlk_voter_flush(&node, world.now_ns);
  for (uint32_t i = 1; i <= COUNT; i++) {
    world.now_ns += 200 * MS;
    rlk_node_timer(&node, world.now_ns);
    hear(":1\r\n");
    snprintf(expected, sizeof expected, "%u granted", i);
    expect_outcomes(expected);
  }
}

/* ---- set-ups ---- */

static void lose_the_connection(void)
{
  get_ready();
  world.is_closed = 1;
  hear("");
  expect_outcomes("");
  connect();
}

/* The second connection is opened; the answer has been on its way for long. */
static void answer_behind_a_silence(void)
{
  get_ready();
  ask(&rlk_row_set, 1);
  rlk_voter_flush(&node, world.now_ns);
  fall_silent();
  world.on_old = "+OK\r\n";
}

static const struct {
  const char *name;
  void (*given)(void);
  const char *run_id, *role; /* what the server says of itself then */
  const char *outcomes;
  enum rlk_node_state state;
} set_ups[] = {
    {"first", connect, RUN_ID, "master", "ready", RLK_NODE_READY},
    {"another connection", lose_the_connection, RUN_ID, "master", "ready", RLK_NODE_READY},
    {"a restart", lose_the_connection, OTHER_ID, "master", "forgotten restarted, ready", RLK_NODE_READY},
    {"a silence", answer_behind_a_silence, RUN_ID, "master", "spoke, 1 granted", RLK_NODE_READY},
    {"a restart in a silence", answer_behind_a_silence, OTHER_ID, "master", "1 waiting lost, forgotten restarted",
     RLK_NODE_OFF},
    {"a replica since a silence", answer_behind_a_silence, RUN_ID, "slave", "1 waiting lost, forgotten refused",
     RLK_NODE_OFF},
};

static void a_set_up_reports_a_restart_and_a_demotion(void **state)
{
  for (size_t i = 0; i < sizeof set_ups / sizeof *set_ups; i++) {
    set_ups[i].given();
    hear_setup_on(node.second ? node.second : node.line, set_ups[i].run_id, set_ups[i].role);
    assert_row(set_ups[i].name, outcomes(), set_ups[i].outcomes);
    if (node.state != set_ups[i].state)
      fail_msg("%s: state %d", set_ups[i].name, node.state);
    if (node.state == RLK_NODE_READY)
      assert_row(set_ups[i].name, node.run_id, set_ups[i].run_id);
    end(state);
    begin(state);
  }
}

/* ---- nonsense ---- */

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

static void nonsense_is_one_vote_and_ends_the_connection(void **state)
{
  static const struct {
    const char *name;
    void (*given)(void);
    const struct rlk_ask *row;
  } requests[] = {{"SET", get_ready, &rlk_row_set},
                  {"extend", get_ready, &rlk_row_extend},
                  {"delete", get_ready, &rlk_row_delete},
                  {"SET that has joined the set-up", connect, &rlk_row_set}};
  for (size_t i = 0; i < 4 * sizeof nonsense / sizeof *nonsense; i++) {
    requests[i % 4].given();
    ask(requests[i % 4].row, 1);
    hear_bytes(nonsense[i / 4].bytes, nonsense[i / 4].size);
    if (votes_until_the_connection_ends() != 1 || node.state != RLK_NODE_OFF)
      fail_msg("%s, nonsense %zu: %s", requests[i % 4].name, i / 4, nonsense[i / 4].bytes);
    end(state);
    begin(state);
  }
}

/* As a Unix socket does. */
static void a_listener_that_is_connected_at_once_subscribes(void **state)
{
  const struct rlk_buffer *out = &rlk_listener_line(&node)->out;
  (void)state;
  get_ready();
  assert_int_equal(rlk_timers_reserve(&net.timers, 1), 0);
  snprintf(net.channel, sizeof net.channel, "mine");
  rlk_listener_want(&node, world.now_ns);
  assert_int_equal(rlk_listener_line(&node)->state, RLK_NODE_SETUP);
  assert_non_null(memmem(out->data + out->start, rlk_buffer_size(out), "SUBSCRIBE\r\n$4\r\nmine\r\n", 21));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(replies_are_votes_or_end_the_connection),
      CASE(requests_on_a_broken_connection_are_lost),
      CASE(a_vote_comes_with_the_last_byte_of_its_reply),
      CASE(a_reply_without_end_ends_the_connection),
      CASE(a_flood_is_read_in_parts),
      CASE(every_connection_has_a_number_of_its_own),
      CASE(a_node_is_looked_at_again_once_a_ttl),
      CASE(a_replica_is_refused_but_deletes),
      CASE(a_refusal_of_long_ago_is_looked_into_at_once),
      CASE(a_process_that_stood_still_makes_no_server_silent),
      CASE(a_silent_connection_gets_a_second_one_beside_it),
      CASE(a_server_that_works_off_a_long_queue_is_not_given_up),
      CASE(a_set_up_reports_a_restart_and_a_demotion),
      CASE(a_listener_that_is_connected_at_once_subscribes),
      CASE(nonsense_is_one_vote_and_ends_the_connection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

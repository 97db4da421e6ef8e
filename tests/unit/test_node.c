/* A node alone: bytes of a server in, outcomes out. No socket, no client, no lock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../core/include/redlock.h"
#include "node/command.h"
#include "node/guard.h"
#include "node/node.h"
#include "node/session.h"

#define MS RLK_NS_PER_MS
#define RUN_ID "0123456789012345678901234567890123456789"
#define OTHER_ID "9876543210987654321098765432109876543210"

static struct {
  int64_t now_ns;
  char in[65536]; /* what the server has sent and nobody has read */
  size_t in_size;
  const char *on_old;  /* what has come on a connection with a second one beside it, to be read after that one */
  int is_closed;       /* by the server */
  int is_flood, reads; /* there is always more: elements of an array; and how often some was read */
} world;

static int64_t now_ns(void *context)
{
  (void)context;
  return world.now_ns;
}

static uint64_t random_bits(void *context)
{
  (void)context;
  return 42;
}

static int link_open(struct rlk_link *link, const struct rlk_address *address)
{
  (void)address;
  link->fd = 1;
  return 0;
}

static ssize_t link_write(struct rlk_link *link, const char *data, size_t size)
{
  (void)link;
  (void)data;
  return (ssize_t)size;
}

static struct rlk_node node;

static ssize_t read_old(char *data)
{
  size_t size = strlen(world.on_old);
  memcpy(data, world.on_old, size);
  world.on_old = NULL;
  return (ssize_t)size;
}

static ssize_t link_read(struct rlk_link *link, char *data, size_t size)
{
  size_t taken = world.in_size < size ? world.in_size : size;
  world.reads++;
  if (world.on_old && link == &node.line->link)
    return read_old(data);
  if (world.is_flood) {
    for (size_t i = 0; i < size; i++)
      data[i] = ":1\r\n"[i % 4];
    return (ssize_t)size;
  }
  if (!taken)
    return world.is_closed ? 0 : -EAGAIN;
  memcpy(data, world.in, taken);
  memmove(world.in, world.in + taken, world.in_size - taken);
  world.in_size -= taken;
  return (ssize_t)taken;
}

static void link_close(struct rlk_link *link)
{
  link->fd = -1;
  world.in_size = 0;
  world.is_closed = 0;
}

static void link_want_write(struct rlk_link *link, int on)
{
  link->writing = on;
}

static void link_nothing(struct rlk_link *link)
{
  (void)link;
}

static int64_t process(void *context, char *host, size_t size)
{
  (void)context;
  snprintf(host, size, "here");
  return 1;
}

static const struct rlk_platform platform = {now_ns, random_bits, now_ns, process};
static const struct rlk_link_ops links = {link_open,  NULL,         link_write, link_read, link_want_write,
                                          link_close, link_nothing, NULL,       NULL};

static struct rlk_net net;
static struct rlk_outcome outcome;
static char no_text[1];

static int begin(void **state)
{
  char why[200];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  (void)state;
  memset(&world, 0, sizeof world);
  memset(&net, 0, sizeof net);
  memset(&node, 0, sizeof node);
  world.now_ns = 1000 * MS;
  net.state = RLK_NET_OPEN;
  net.env = (struct rlk_env){&platform, &links, NULL, 1};
  RLK_STRING(&net, CLIENT_NAME) = RLK_STRING(&net, KEY_PREFIX) = RLK_STRING(&net, PASSWORD_FILE) = no_text;
  net.nodes = &node;
  net.node_count = 1;
  net.events.bell = RLK_NO_BELL;
  rlk_options_defaults(&net.options);
  RLK_INT(&net.options, GUARD) = RLK_GUARD_OFF;
  assert_int_equal(rlk_url_parse(&node.url, "redis://127.0.0.1:1", 19, &text), REDLOCK_OK);
  rlk_node_init(&node, &net, 0);
  return rlk_timers_reserve(&net.timers, 1);
}

static int end(void **state)
{
  (void)state;
  rlk_node_free(&node);
  rlk_timers_free(&net.timers);
  return 0;
}

static void expect(enum rlk_outcome_kind kind)
{
  if (!rlk_node_next(&node, &outcome, world.now_ns))
    fail_msg("no outcome; %d was expected (%s)", kind, node.why);
  assert_int_equal(outcome.kind, kind);
}

static void expect_no_more(void)
{
  if (rlk_node_next(&node, &outcome, world.now_ns))
    fail_msg("outcome %d", outcome.kind);
}

static void expect_vote(int vote, enum rlk_fault fault, uint32_t round)
{
  expect(RLK_OUTCOME_VOTE);
  assert_int_equal(outcome.vote, vote);
  assert_int_equal(outcome.fault, fault);
  assert_int_equal(outcome.request.round, round);
}

static void hear_on(const struct rlk_line *l, const char *bytes, size_t size)
{
  assert_true(world.in_size + size < sizeof world.in);
  memcpy(world.in + world.in_size, bytes, size);
  world.in_size += size;
  rlk_node_event(&node, l->link.generation, RLK_READABLE, world.now_ns);
}

static void hear_bytes(const char *bytes, size_t size)
{
  hear_on(node.line, bytes, size);
}

static void hear(const char *bytes)
{
  hear_bytes(bytes, strlen(bytes));
}

/* The answers to all that the set-up asks: its kinds of requests stand in the line. */
static void hear_setup_on(const struct rlk_line *l, const char *run_id, const char *role)
{
  char info[256], bulk[300];
  snprintf(info, sizeof info, "run_id:%s\r\nredis_mode:standalone\r\nredis_version:7.0.15\r\nrole:%s\r\n", run_id,
           role);
  snprintf(bulk, sizeof bulk, "$%zu\r\n%s\r\n", strlen(info), info);
  for (uint32_t left = l->requests.count; left > 0; left--)
    hear_on(l, bulk, strlen(bulk));
}

static void hear_setup(const char *run_id, const char *role)
{
  hear_setup_on(node.line, run_id, role);
}

static void ask(enum rlk_request_kind kind, uint32_t round)
{
  static char owner[64]; /* a node does not look into claims */
  size_t before = rlk_buffer_size(&node.line->out);
  const char *words[] = {"SOMETHING"};
  struct rlk_request request = {.kind = kind, .round = round, .sent_ns = world.now_ns};
  request.claim = (struct rlk_claim *)owner;
  assert_int_equal(rlk_requests_reserve(&node.line->requests, 1), 0);
  assert_int_equal(rlk_command_argv(&node.line->out, 1, words), 0);
  rlk_request_add(node.line, before, request);
}

static void connect(void)
{
  rlk_node_connect(&node, world.now_ns);
  expect(RLK_OUTCOME_JOINABLE);
  expect_no_more();
}

static void get_ready(void)
{
  connect();
  hear_setup(RUN_ID, "master");
  expect(RLK_OUTCOME_READY);
  expect_no_more();
  rlk_node_flush(&node, world.now_ns);
}

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
  ask(RLK_REQUEST_SET, 1);
  ask(RLK_REQUEST_SET, 2);
  ask(RLK_REQUEST_DELETE, 3);
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

static void what_was_asked_on_a_broken_connection_is_lost(void **state)
{
  (void)state;
  get_ready();
  ask(RLK_REQUEST_SET, 1);
  ask(RLK_REQUEST_SET, 2);
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
  ask(RLK_REQUEST_SET, 1);
  ask(RLK_REQUEST_SET, 2);
  hear(":7\r\n+OK\r\n");
  expect_vote(RLK_ERROR, RLK_FAULT_MISFIT, 1);
  expect_vote(RLK_DROPPED, RLK_FAULT_LOST, 2); /* its OK can not be trusted */
  expect(RLK_OUTCOME_DOWN);
  expect_no_more();
  assert_string_equal(node.why, "an unexpected reply to SET");
}

static void what_breaks_the_protocol_ends_the_connection_at_once(void **state)
{
  static const char *const bytes[] = {"?what\r\n", "$abc\r\n", "$-2\r\n", "*-2\r\n", ":12x\r\n"};
  for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
    get_ready();
    ask(RLK_REQUEST_SET, 1);
    hear(bytes[i]);
    expect_vote(RLK_DROPPED, RLK_FAULT_LOST, 1);
    expect(RLK_OUTCOME_DOWN);
    assert_string_not_equal(node.why, "");
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
  ask(RLK_REQUEST_SET, 1);
  hear("*2147483647\r\n");
  expect_no_more();
  for (int i = 0; i < 200 && node.state == RLK_NODE_READY; i++) { /* 3.2 MB */
    hear_bytes(elements, sizeof elements);
    while (rlk_node_next(&node, &outcome, world.now_ns))
      ;
  }
  assert_int_equal(node.state, RLK_NODE_OFF);
  assert_string_equal(node.why, "a reply too large");
}

/* The other nodes, and the threads that wait for the client's mutex, have their turn between two events. */
static void a_flood_is_read_in_parts(void **state)
{
  (void)state;
  get_ready();
  ask(RLK_REQUEST_SET, 1);
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
  ask(RLK_REQUEST_SET, 1);
  ask(RLK_REQUEST_SET, 2);
  hear("-READONLY You can't write against a read only replica.\r\n$-1\r\n");
  expect_vote(RLK_ERROR, RLK_FAULT_ROLE, 1);
  expect_vote(RLK_BUSY, RLK_FAULT_NONE, 2);
  expect(RLK_OUTCOME_DOWN);
  expect_no_more();
}

static void a_restart_is_told_before_the_node_may_be_asked(void **state)
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

static void a_stepped_clock_costs_the_longest_ttl_at_once(void **state)
{
  (void)state;
  get_ready();
  RLK_INT(&net.options, GUARD) = RLK_GUARD_MARKER;
  RLK_INT(&net.options, MAX_TTL_MS) = 30000;
  ask(RLK_REQUEST_CLOCK, 0);
  hear("*2\r\n$4\r\n5000\r\n$1\r\n0\r\n");
  expect(RLK_OUTCOME_NOTHING);
  assert_false(rlk_guard_waits(&node, world.now_ns));
  ask(RLK_REQUEST_CLOCK, 0);
  hear("*2\r\n$4\r\n5003\r\n$1\r\n0\r\n");
  expect(RLK_OUTCOME_NOTHING);
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
  strcpy(node.marker, MARKER("1000", "a1", "20000"));
  assert_int_equal(rlk_marker_read(node.marker, &node.mark), 1);
  node.since_ns = world.now_ns - 5000 * MS;
  node.quarantined_until_ns = world.now_ns + 25000 * MS;
  node.ttl_limit_ms = 20000;
}

static void look_and_hear(const char *marker)
{
  char reply[RLK_MARKER_SIZE + 16];
  snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(marker), marker);
  ask(RLK_REQUEST_LOOK, RLK_LOOK_MARKER);
  hear(reply);
  while (rlk_node_next(&node, &outcome, world.now_ns))
    ;
}

static void an_operator_ends_a_quarantine(void **state)
{
  (void)state;
  have_marker();
  node.changed_ns = world.now_ns - 1000 * MS; /* this process has seen it lose keys, too */
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
  assert_int_equal(node.ttl_limit_ms, 30000);
  assert_int_equal(node.state, RLK_NODE_READY);
  assert_true(rlk_guard_waits(&node, world.now_ns));
}

static void expect_another_number(const char *marker)
{
  have_marker();
  look_and_hear(marker);
  assert_int_equal(node.state, RLK_NODE_OFF);
  assert_string_equal(node.why, "its marker has another max_ttl_ms now");
  assert_int_equal(node.changed_ns, 0);
}

/* The set-up of a new connection judges it. */
static void a_smaller_number_is_judged_anew(void **state)
{
  (void)state;
  expect_another_number(MARKER("1000", "a1", "10000"));
}

static void a_number_above_the_clients_is_judged_anew(void **state)
{
  (void)state;
  expect_another_number(MARKER("1000", "a1", "40000"));
}

static void another_marker_is_a_loss(void **state)
{
  (void)state;
  have_marker();
  look_and_hear(MARKER("0", "b2", "20000"));
  assert_int_equal(node.state, RLK_NODE_OFF);
  assert_int_equal(node.quarantined_until_ns, RLK_NEVER);
  assert_int_equal(node.changed_ns, world.now_ns);
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

static void assert_quarantine_says(const char *words)
{
  char said[200];
  struct rlk_text text = rlk_text_in(said, sizeof said);
  rlk_guard_words(&node, &text, world.now_ns);
  assert_string_equal(said, words);
}

static void a_quarantine_is_described(void **state)
{
  (void)state;
  node.quarantined_until_ns = world.now_ns + 12300 * MS;
  node.mark.since_ms = INT64_C(1700000000000);
  assert_quarantine_says("quarantined for another 12.3 s: new, or without its keys, since 2023-11-14T22:13:20Z; "
                         "redlock bootstrap ends it if no lock is live");
  node.step_ns = 3100 * MS;
  assert_quarantine_says("quarantined for another 12.3 s: its clock was stepped forward by 3.1 s");
  node.ahead_until_ns = world.now_ns + 15000 * MS;
  assert_quarantine_says("quarantined for another 15.0 s: its clock is more than 1 s ahead of the other nodes'");
}

/* Only a marker that was read tells whether the server has lost keys. */
static void an_error_in_place_of_the_marker_is_no_loss(void **state)
{
  (void)state;
  get_ready();
  ask(RLK_REQUEST_LOOK, RLK_LOOK_MARKER);
  hear("-NOPERM this user has no permissions to run the 'get' command\r\n");
  while (rlk_node_next(&node, &outcome, world.now_ns))
    ;
  assert_int_equal(node.quarantined_until_ns, 0);
}

static void a_replica_is_refused_but_deletes(void **state)
{
  (void)state;
  connect();
  hear_setup(RUN_ID, "slave");
  expect(RLK_OUTCOME_FORGOTTEN);
  assert_int_equal(outcome.reason, REDLOCK_LOSS_REFUSED);
  expect(RLK_OUTCOME_PAYABLE);
  ask(RLK_REQUEST_DELETE, 1);
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
  ask(RLK_REQUEST_DELETE, 1);
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
  ask(RLK_REQUEST_SET, 1);
  rlk_node_flush(&node, world.now_ns);
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
    ask(RLK_REQUEST_SET, 1);
    rlk_node_flush(&node, world.now_ns);
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
    ask(RLK_REQUEST_SET, 1);
    rlk_node_flush(&node, world.now_ns);
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

/* What the request is told in the end: exactly one vote, whatever comes and whenever. */
static int votes_until_the_connection_ends(void)
{
  int votes = 0, pulls = 0;
  for (int i = 0; i < 2; i++) {
    for (; rlk_node_next(&node, &outcome, world.now_ns); pulls++) {
      votes += outcome.kind == RLK_OUTCOME_VOTE;
      assert_true(pulls < 100);
    }
    world.is_closed = 1;
    rlk_node_event(&node, node.line->link.generation, RLK_READABLE, world.now_ns);
  }
  for (const char *s = node.why; *s; s++)
    assert_true((unsigned char)*s >= 0x20);
  return votes;
}

static void nonsense_for_a_vote_is_one_vote(void **state)
{
  static const enum rlk_request_kind kinds[] = {RLK_REQUEST_SET, RLK_REQUEST_EXTEND, RLK_REQUEST_DELETE};
  for (size_t i = 0; i < 3 * sizeof nonsense / sizeof nonsense[0]; i++) {
    get_ready();
    ask(kinds[i % 3], 1);
    hear_bytes(nonsense[i / 3].bytes, nonsense[i / 3].size);
    if (votes_until_the_connection_ends() != 1 || node.state != RLK_NODE_OFF)
      fail_msg("request %d: %s", kinds[i % 3], nonsense[i / 3].bytes);
    end(state);
    begin(state);
  }
}

static void nonsense_in_the_set_up_makes_no_voter(void **state)
{
  for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
    connect();
    ask(RLK_REQUEST_SET, 1); /* it joins the set-up */
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
      CASE(what_was_asked_on_a_broken_connection_is_lost),
      CASE(a_server_that_talks_nonsense_is_dropped),
      CASE(what_breaks_the_protocol_ends_the_connection_at_once),
      CASE(a_reply_without_end_ends_the_connection),
      CASE(a_flood_is_read_in_parts),
      CASE(a_master_that_is_one_no_more_ends_when_its_replies_are_read),
      CASE(a_restart_is_told_before_the_node_may_be_asked),
      CASE(every_connection_has_a_number_of_its_own),
      CASE(a_stepped_clock_costs_the_longest_ttl_at_once),
      CASE(an_operator_ends_a_quarantine),
      CASE(an_operator_raises_the_number),
      CASE(a_smaller_number_is_judged_anew),
      CASE(a_number_above_the_clients_is_judged_anew),
      CASE(another_marker_is_a_loss),
      CASE(a_node_is_looked_at_again_once_a_ttl),
      CASE(a_quarantine_is_described),
      CASE(an_error_in_place_of_the_marker_is_no_loss),
      CASE(a_replica_is_refused_but_deletes),
      CASE(a_refusal_of_long_ago_is_looked_into_at_once),
      CASE(a_process_that_stood_still_makes_no_server_silent),
      CASE(a_silent_connection_gets_a_second_one_beside_it),
      CASE(answers_of_a_silent_connection_do_not_count_after_a_change),
      CASE(nonsense_for_a_vote_is_one_vote),
      CASE(nonsense_in_the_set_up_makes_no_voter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

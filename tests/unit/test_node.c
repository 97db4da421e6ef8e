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
#include "node/node.h"

#define MS RL_NS_PER_MS
#define RUN_ID "0123456789012345678901234567890123456789"
#define OTHER_ID "9876543210987654321098765432109876543210"

static struct {
  int64_t now_ns;
  char in[65536]; /* what the server has sent and nobody has read */
  size_t in_size;
  int is_closed; /* by the server */
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

static int link_open(struct rl_link *link, const struct rl_address *address)
{
  (void)address;
  link->fd = 1;
  return 0;
}

static ssize_t link_write(struct rl_link *link, const char *data, size_t size)
{
  (void)link;
  (void)data;
  return (ssize_t)size;
}

static ssize_t link_read(struct rl_link *link, char *data, size_t size)
{
  size_t taken = world.in_size < size ? world.in_size : size;
  (void)link;
  if (!taken)
    return world.is_closed ? 0 : -EAGAIN;
  memcpy(data, world.in, taken);
  memmove(world.in, world.in + taken, world.in_size - taken);
  world.in_size -= taken;
  return (ssize_t)taken;
}

static void link_close(struct rl_link *link)
{
  link->fd = -1;
  world.in_size = 0;
  world.is_closed = 0;
}

static void link_want_write(struct rl_link *link, int on)
{
  link->writing = on;
}

static void link_nothing(struct rl_link *link)
{
  (void)link;
}

static const struct rl_platform platform = {now_ns, random_bits, now_ns};
static const struct rl_link_ops links = {link_open,       NULL,         link_write, link_read,
                                         link_want_write, link_nothing, link_close, link_nothing};

static struct rl_net net;
static struct rl_node node;
static struct rl_outcome outcome;
static char no_text[1];

static int begin(void **state)
{
  char why[200];
  struct rl_text text = rl_text_in(why, sizeof why);
  (void)state;
  memset(&world, 0, sizeof world);
  memset(&net, 0, sizeof net);
  memset(&node, 0, sizeof node);
  world.now_ns = 1000 * MS;
  net.state = RL_NET_OPEN;
  net.env = (struct rl_env){&platform, &links, NULL, 1};
  net.client_name = net.key_prefix = no_text;
  net.nodes = &node;
  net.node_count = 1;
  net.events.fd = -1;
  rl_options_defaults(&net.options);
  assert_int_equal(rl_url_parse(&node.url, "redis://127.0.0.1:1", 19, &text), REDLOCK_OK);
  rl_node_init(&node, &net, 0);
  return rl_timers_reserve(&net.timers, 1);
}

static int end(void **state)
{
  (void)state;
  rl_node_free(&node);
  rl_timers_free(&net.timers);
  return 0;
}

static void expect(enum rl_outcome_kind kind)
{
  if (!rl_node_next(&node, &outcome, world.now_ns))
    fail_msg("no outcome; %d was expected (%s)", kind, node.why);
  assert_int_equal(outcome.kind, kind);
}

static void expect_no_more(void)
{
  if (rl_node_next(&node, &outcome, world.now_ns))
    fail_msg("outcome %d", outcome.kind);
}

static void expect_vote(int vote, enum rl_fault fault, uint32_t round)
{
  expect(RL_OUTCOME_VOTE);
  assert_int_equal(outcome.vote, vote);
  assert_int_equal(outcome.fault, fault);
  assert_int_equal(outcome.request.round, round);
}

static void hear(const char *bytes)
{
  size_t size = strlen(bytes);
  assert_true(world.in_size + size < sizeof world.in);
  memcpy(world.in + world.in_size, bytes, size);
  world.in_size += size;
  rl_node_event(&node, node.line->link.generation, RL_READABLE, world.now_ns);
}

/* The answers to all that the set-up asks: its kinds of requests stand in the line. */
static void hear_setup(const char *run_id, const char *role)
{
  char info[256], bulk[300];
  snprintf(info, sizeof info, "run_id:%s\r\nredis_mode:standalone\r\nredis_version:7.0.15\r\nrole:%s\r\n", run_id,
           role);
  snprintf(bulk, sizeof bulk, "$%zu\r\n%s\r\n", strlen(info), info);
  for (uint32_t left = node.line->requests.count; left > 0; left--)
    hear(bulk);
}

static void ask(enum rl_request_kind kind, uint32_t round)
{
  static char owner[64]; /* a node does not look into claims */
  size_t before = rl_buffer_size(&node.line->out);
  const char *words[] = {"SOMETHING"};
  struct rl_request request = {.kind = kind, .round = round, .sent_ns = world.now_ns};
  request.claim = (struct rl_claim *)owner;
  assert_int_equal(rl_requests_reserve(&node.line->requests, 1), 0);
  assert_int_equal(rl_command_argv(&node.line->out, 1, words), 0);
  rl_request_add(node.line, before, request);
}

static void connect(void)
{
  rl_node_connect(&node, world.now_ns);
  expect(RL_OUTCOME_JOINABLE);
  expect_no_more();
}

static void get_ready(void)
{
  connect();
  hear_setup(RUN_ID, "master");
  expect(RL_OUTCOME_READY);
  expect_no_more();
  rl_node_flush(&node, world.now_ns);
}

static void a_node_becomes_ready(void **state)
{
  (void)state;
  get_ready();
  assert_int_equal(node.state, RL_NODE_READY);
  assert_string_equal(node.run_id, RUN_ID);
}

static void votes_come_in_order_however_the_bytes_are_cut(void **state)
{
  static const char bytes[] = "+OK\r\n$-1\r\n:1\r\n";
  (void)state;
  get_ready();
  ask(RL_REQUEST_SET, 1);
  ask(RL_REQUEST_SET, 2);
  ask(RL_REQUEST_DELETE, 3);
  for (size_t i = 0; i + 1 < sizeof bytes; i++) {
    hear((char[]){bytes[i], 0});
    if (i == 4)
      expect_vote(RL_GRANTED, RL_FAULT_NONE, 1);
    if (i == 9)
      expect_vote(RL_BUSY, RL_FAULT_NONE, 2);
    if (i == 13)
      expect_vote(RL_GRANTED, RL_FAULT_NONE, 3);
    expect_no_more();
  }
}

static void what_was_asked_on_a_broken_connection_is_lost(void **state)
{
  (void)state;
  get_ready();
  ask(RL_REQUEST_SET, 1);
  ask(RL_REQUEST_SET, 2);
  hear("+OK\r\n");
  world.is_closed = 1;
  hear("");
  expect_vote(RL_GRANTED, RL_FAULT_NONE, 1); /* what has come is read first */
  rl_node_event(&node, node.line->link.generation, RL_READABLE, world.now_ns);
  expect_vote(RL_WAITING, RL_FAULT_LOST, 2); /* the connection is made anew at once */
  expect_no_more();
  assert_int_equal(node.state, RL_NODE_OFF);
}

static void a_server_that_talks_nonsense_is_dropped(void **state)
{
  (void)state;
  get_ready();
  ask(RL_REQUEST_SET, 1);
  ask(RL_REQUEST_SET, 2);
  hear(":7\r\n+OK\r\n");
  expect_vote(RL_ERROR, RL_FAULT_MISFIT, 1);
  expect_vote(RL_DROPPED, RL_FAULT_LOST, 2); /* its OK can not be trusted */
  expect(RL_OUTCOME_DOWN);
  expect_no_more();
  assert_string_equal(node.why, "an unexpected reply to SET");
}

static void a_master_that_is_one_no_more_ends_when_its_replies_are_read(void **state)
{
  (void)state;
  get_ready();
  ask(RL_REQUEST_SET, 1);
  ask(RL_REQUEST_SET, 2);
  hear("-READONLY You can't write against a read only replica.\r\n$-1\r\n");
  expect_vote(RL_ERROR, RL_FAULT_ROLE, 1);
  expect_vote(RL_BUSY, RL_FAULT_NONE, 2);
  expect(RL_OUTCOME_DOWN);
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
  expect(RL_OUTCOME_FORGOTTEN);
  assert_int_equal(outcome.reason, REDLOCK_LOSS_RESTARTED);
  expect(RL_OUTCOME_READY);
  expect_no_more();
}

static void a_replica_is_refused_but_deletes(void **state)
{
  (void)state;
  connect();
  hear_setup(RUN_ID, "slave");
  expect(RL_OUTCOME_FORGOTTEN);
  assert_int_equal(outcome.reason, REDLOCK_LOSS_REFUSED);
  expect(RL_OUTCOME_PAYABLE);
  ask(RL_REQUEST_DELETE, 1);
  expect(RL_OUTCOME_DOWN);
  expect_no_more();
  assert_int_equal(node.state, RL_NODE_REFUSED);
  hear(":1\r\n");
  expect_vote(RL_GRANTED, RL_FAULT_NONE, 1);
  expect(RL_OUTCOME_DOWN);
  expect_no_more();
  assert_int_equal(node.state, RL_NODE_OFF);
}

static void a_silent_connection_gets_a_second_one_beside_it(void **state)
{
  (void)state;
  get_ready();
  ask(RL_REQUEST_SET, 1);
  rl_node_flush(&node, world.now_ns);
  world.now_ns += 400 * MS;
  rl_node_timer(&node, world.now_ns); /* silent: the second is opened */
  expect_no_more();
  assert_non_null(node.second);
  hear("+OK\r\n"); /* but the first one speaks */
  expect(RL_OUTCOME_SPOKE);
  expect_vote(RL_GRANTED, RL_FAULT_NONE, 1);
  expect_no_more();
  assert_null(node.second);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(a_node_becomes_ready),
      CASE(votes_come_in_order_however_the_bytes_are_cut),
      CASE(what_was_asked_on_a_broken_connection_is_lost),
      CASE(a_server_that_talks_nonsense_is_dropped),
      CASE(a_master_that_is_one_no_more_ends_when_its_replies_are_read),
      CASE(a_restart_is_told_before_the_node_may_be_asked),
      CASE(a_replica_is_refused_but_deletes),
      CASE(a_silent_connection_gets_a_second_one_beside_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

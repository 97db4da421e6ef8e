/* A node alone: bytes of a server in, outcomes out. No socket, no client, no lock. */
#ifndef NODE_WORLD_H
#define NODE_WORLD_H

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
#include "node/out.h"
#include "vote/guard.h"
#include "node/node.h"
#include "node/session.h"
#include "vote/voter.h"
#include "kinds/kinds.h"
#include "lock/asking.h"
#include "lock/lease.h"

#pragma GCC diagnostic ignored "-Wunused-function"

#define MS RLK_NS_PER_MS
#define RUN_ID "0123456789012345678901234567890123456789"
#define OTHER_ID "9876543210987654321098765432109876543210"

static struct {
  int64_t now_ns;
  char in[65536]; /* sent by the server and not read yet */
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
static struct rlk_voter voter;

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
                                          link_close, link_nothing, NULL,       NULL,      NULL};

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
  voter = (struct rlk_voter){.finding = RLK_FOUND_NOTHING};
  rlk_node_init(&node, &net, 0);
  node.voter = &voter;
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
  if (!rlk_voter_next(&node, &outcome, world.now_ns))
    fail_msg("no outcome; %d was expected (%s)", kind, node.why.words);
  assert_int_equal(outcome.kind, kind);
}

static void put_outcome(struct rlk_text *text)
{
  static const char *const kinds[] = {
      [RLK_OUTCOME_DOWN] = "down",   [RLK_OUTCOME_FORGOTTEN] = "forgotten", [RLK_OUTCOME_JOINABLE] = "joinable",
      [RLK_OUTCOME_READY] = "ready", [RLK_OUTCOME_SPOKE] = "spoke",
  };
  static const char *const votes[RLK_VOTES] = {
      [RLK_BUSY] = "busy",       [RLK_DROPPED] = "dropped", [RLK_ERROR] = "error",
      [RLK_GRANTED] = "granted", [RLK_REFUSED] = "refused", [RLK_WAITING] = "waiting",
  };
  static const char *const faults[RLK_FAULT_LOST + 1] = {
      [RLK_FAULT_NONE] = "", [RLK_FAULT_LOST] = " lost", [RLK_FAULT_MISFIT] = " misfit", [RLK_FAULT_ROLE] = " role"};
  const char *kind = kinds[outcome.kind], *vote = votes[outcome.vote], *fault = faults[outcome.fault];
  rlk_text_add(text, text->length ? ", " : "");
  if (outcome.kind == RLK_OUTCOME_ANSWER)
    rlk_text_format(text, "%u %s%s", outcome.request.round, vote ? vote : "?", fault ? fault : " ?");
  else
    rlk_text_add(text, kind ? kind : "?");
  if (outcome.kind == RLK_OUTCOME_FORGOTTEN)
    rlk_text_format(text, " %s", rlk_loss_name(outcome.reason));
}

/* All that there are, as "1 granted, 2 dropped lost, down": an answer has the number of its request first. */
static const char *outcomes(void)
{
  static char said[500];
  struct rlk_text text = rlk_text_in(said, sizeof said);
  said[0] = 0;
  while (rlk_voter_next(&node, &outcome, world.now_ns))
    put_outcome(&text);
  return said;
}

static void expect_outcomes(const char *expected)
{
  assert_string_equal(outcomes(), expected);
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

static void ask(const struct rlk_ask *row, uint32_t round)
{
  static char owner[64]; /* a node does not look into claims */
  const char *words[] = {"SOMETHING"};
  struct rlk_request request = {.ask = row, .round = round, .of.step = (int)round, .sent_ns = world.now_ns};
  request.claim = (struct rlk_claim *)owner;
  assert_int_equal(rlk_out_words(node.line, 1, words, request), 0);
}

static void connect(void)
{
  rlk_node_connect(&node, world.now_ns);
  expect_outcomes("joinable");
}

static void get_ready(void)
{
  connect();
  hear_setup(RUN_ID, "master");
  expect_outcomes("ready");
  rlk_voter_flush(&node, world.now_ns);
}

#endif

/* How nodes agree on a longer TTL: what is written to their markers, and when it counts. Nothing is sent: the requests
 * stand in the lines of the nodes, and the tests answer them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/client.h"
#include "node/growth.h"
#include "node/guard.h"

enum { NODES = 3, FLOOR_MS = 10000, LONG_MS = 30000 };

static redlock_client *client;
static struct rlk_net *net;
static int64_t now_ns;

static int begin(void **state)
{
  (void)state;
  client = redlock_client_new();
  assert_int_equal(redlock_client_set(client, "nodes", "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3"),
                   REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "guard", "marker"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  net = &client->engine.net;
  now_ns = rlk_client_now(client);
  for (int i = 0; i < NODES; i++) {
    struct rlk_node *n = &net->nodes[i];
    struct rlk_text text = rlk_text_in(n->marker, sizeof n->marker);
    n->state = n->line->state = RLK_NODE_READY;
    n->mark = (struct rlk_marker){.run_id = "a", .since_ms = 1, .nodes = NODES, .nonce = "1"};
    n->mark.quarantine_ms = n->mark.max_ttl_ms = n->mark.agreed_ms = FLOOR_MS;
    rlk_marker_write(&n->mark, &text);
  }
  return 0;
}

static int end(void **state)
{
  (void)state;
  for (int i = 0; i < NODES; i++)
    net->nodes[i].state = net->nodes[i].line->state = RLK_NODE_OFF;
  redlock_client_free(client);
  return 0;
}

/* What the node is asked to do with its marker, or "". */
static const char *asked(int node)
{
  const struct rlk_buffer *out = &net->nodes[node].line->out;
  static const char get[] = "\r\nGET\r\n";
  if (net->nodes[node].line->requests.count == 0)
    return "";
  return memmem(out->data + out->start, rlk_buffer_size(out), get, sizeof get - 1) ? "read" : "change";
}

static void assert_asked(int node, const char *what)
{
  assert_string_equal(asked(node), what);
}

/* It says what its marker is now. */
static void reply(int node, int64_t max_ttl_ms, int64_t agreed_ms)
{
  struct rlk_node *n = &net->nodes[node];
  struct rlk_line *line = n->line;
  struct rlk_marker marker = n->mark;
  struct rlk_request request;
  char said[RLK_MARKER_SIZE];
  struct rlk_text text = rlk_text_in(said, sizeof said);
  marker.max_ttl_ms = max_ttl_ms;
  marker.agreed_ms = agreed_ms;
  rlk_marker_write(&marker, &text);
  rlk_requests_take(&line->requests, &request);
  rlk_buffer_consume(&line->out, rlk_buffer_size(&line->out));
  line->reply.type = RLK_REPLY_STRING;
  line->reply.text = (struct rlk_buffer){.data = said, .end = strlen(said)};
  rlk_guard_growth_replied(line, &request, now_ns);
  line->reply.text = (struct rlk_buffer){.data = NULL};
}

static void a_longer_ttl_is_agreed_on_when_all_have_had_it_at_one_time(void **state)
{
  (void)state;
  assert_int_equal(rlk_growth_want(&net->nodes[0], LONG_MS, now_ns), RLK_WAITING);
  for (int i = 0; i < NODES; i++) {
    assert_asked(i, "change");
    assert_int_equal(net->nodes[i].ttl_limit_ms, FLOOR_MS);
  }
  for (int i = 0; i < NODES; i++)
    reply(i, LONG_MS, FLOOR_MS);
  for (int i = 0; i < NODES; i++)
    assert_asked(i, "read"); /* another may have lost its keys meanwhile */
  reply(0, LONG_MS, FLOOR_MS);
  reply(1, LONG_MS, FLOOR_MS);
  assert_asked(0, "");
  reply(2, LONG_MS, FLOOR_MS);
  for (int i = 0; i < NODES; i++) {
    assert_asked(i, "change");
    assert_int_equal(net->nodes[i].ttl_limit_ms, FLOOR_MS);
  }
  reply(1, LONG_MS, LONG_MS);
  assert_int_equal(net->nodes[0].ttl_limit_ms, FLOOR_MS);
  assert_int_equal(net->nodes[1].ttl_limit_ms, LONG_MS);
}

static void all_nodes_are_needed(void **state)
{
  (void)state;
  net->nodes[2].state = net->nodes[2].line->state = RLK_NODE_OFF;
  assert_int_equal(rlk_growth_want(&net->nodes[0], LONG_MS, now_ns), RLK_QUARANTINED);
  for (int i = 0; i < NODES; i++)
    assert_asked(i, "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(a_longer_ttl_is_agreed_on_when_all_have_had_it_at_one_time),
      CASE(all_nodes_are_needed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

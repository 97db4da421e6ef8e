/* A client whose nodes are ready, but nothing is sent: requests stand in their lines, and the tests answer them. */
#ifndef LOCK_WORLD_H
#define LOCK_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "client/client.h"
#include "kinds/kinds.h"
#include "lock/asking.h"
#include "lock/dispatch.h"
#include "lock/holder.h"
#include "lock/lease.h"
#include "lock/operation.h"
#include "lock/renewal.h"
#include "node/state.h"
#include "wait/acquire.h"
#include "wait/place.h"

#pragma GCC diagnostic ignored "-Wunused-function"

#define MS RLK_NS_PER_MS

enum { NODES = 3 };

static redlock_client *client;
static redlock_lock *lock;
static int64_t now_ns;

static int begin(void **state)
{
  (void)state;
  client = redlock_client_new();
  assert_int_equal(redlock_client_set(client, "nodes", "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3"),
                   REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "guard", "off"), REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "max_ttl_ms", "3600000"), REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "queue", "false"), REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "holder_info", "false"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  lock = redlock_lock_new(client, "r", 1);
  for (int i = 0; i < NODES; i++)
    rlk_node_be(client->engine.net.nodes[i].line, RLK_NODE_READY);
  now_ns = rlk_client_now(client);
  for (int i = 0; i < NODES; i++)
    client->engine.net.nodes[i].role_asked_ns = RLK_NEVER; /* no request has another in front of it */
  return lock ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  for (int i = 0; i < NODES; i++)
    rlk_node_be(client->engine.net.nodes[i].line, RLK_NODE_OFF);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return 0;
}

static struct rlk_requests *requests_of(int node)
{
  return &client->engine.net.nodes[node].line->requests;
}

static int asked(int node)
{
  return (int)requests_of(node)->count;
}

static void call(int operation, int64_t argument)
{
  assert_int_equal(rlk_operation_begin(lock, rlk_verb_of(operation), argument, now_ns), REDLOCK_OK);
}

/* The oldest request of the node is answered. */
static void answer_reply(int node, const struct rlk_ask *row, int vote, enum rlk_fault fault,
                         const struct rlk_reply *reply)
{
  struct rlk_outcome outcome = {
      .kind = RLK_OUTCOME_ANSWER, .vote = vote, .fault = fault, .reply = reply, .now_ns = now_ns};
  assert_true(asked(node) > 0);
  rlk_requests_take(requests_of(node), &outcome.request);
  assert_ptr_equal(outcome.request.ask, row);
  rlk_dispatch(&client->engine, &client->engine.net.nodes[node], &outcome);
}

static void answer_with(int node, const struct rlk_ask *row, int vote, enum rlk_fault fault)
{
  struct rlk_reply reply = {.type = row == &rlk_row_hint ? RLK_REPLY_NIL : RLK_REPLY_INTEGER};
  answer_reply(node, row, vote, fault, &reply);
}

static void answer(int node, const struct rlk_ask *row, int vote)
{
  answer_with(node, row, vote, RLK_FAULT_NONE);
}

static void tell(int node, enum rlk_outcome_kind kind)
{
  struct rlk_outcome outcome = {.kind = kind, .now_ns = now_ns};
  rlk_dispatch(&client->engine, &client->engine.net.nodes[node], &outcome);
}

static void write_all(void)
{
  for (int i = 0; i < NODES; i++) {
    struct rlk_line *line = client->engine.net.nodes[i].line;
    rlk_buffer_consume(&line->out, rlk_buffer_size(&line->out));
    line->written = line->queued;
  }
}

static void answer_all(const struct rlk_ask *row)
{
  for (int i = 0; i < NODES; i++)
    answer(i, row, RLK_GRANTED);
}

static void hold(void)
{
  call(REDLOCK_ACQUIRE, 5000);
  write_all();
  answer_all(&rlk_row_set);
  assert_int_equal(lock->state, REDLOCK_STATE_HELD);
}

#endif

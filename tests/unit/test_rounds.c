/* What a lock asks of which nodes, and what comes of the answers. */
#include "lock_world.h"

#include "lock/round.h"

#include <stdio.h>

static int no_memory;

int __real_rlk_buffer_grow(struct rlk_buffer *buffer, size_t size);
int __wrap_rlk_buffer_grow(struct rlk_buffer *buffer, size_t size);

int __wrap_rlk_buffer_grow(struct rlk_buffer *buffer, size_t size)
{
  return no_memory ? -1 : __real_rlk_buffer_grow(buffer, size);
}

static void a_free_lock_costs_one_round_trip(void **state)
{
  (void)state;
  for (int times = 0; times < 2; times++) {
    call(REDLOCK_ACQUIRE, 5000);
    for (int i = 0; i < NODES; i++)
      assert_int_equal(asked(i), 1);
    answer_all(&rlk_row_set);
    assert_int_equal(lock->op.status, REDLOCK_OK);
    call(REDLOCK_RELEASE, 0);
    answer_all(&rlk_row_delete);
  }
}

/* Operations on a lock that is free, adopted if it is extended, or held if it is released. */
static const struct {
  const char *name;
  int operation, wait_ms;
  const struct rlk_ask *row;
  const char *answers; /* node and vote, to a fenced SET with its number. Before the last one nothing is decided */
  const char *result;  /* status and state; the lease on each node (+: counts, !: an error); the number */
} rounds[] = {
    {"one token on a majority", REDLOCK_ACQUIRE, 0, &rlk_row_set, "0 busy, 0 shows 7, 2 busy, 2 shows 7",
     "BUSY, free --- 0"},
    /* others may have failed as it has (rule F.4) */
    {"a token on each of two nodes", REDLOCK_ACQUIRE, 0, &rlk_row_set,
     "0 busy, 0 shows 7, 2 busy, 2 shows 8, 1 granted, 1 shows 9", "SLEEPING, free --- 0"},
    {"a token of its own beside one", REDLOCK_ACQUIRE, 0, &rlk_row_set,
     "0 granted, 0 shows 9, 1 busy, 1 shows 9, 2 busy, 2 shows 8", "SLEEPING, free --- 0"},
    {"a key that has gone meanwhile", REDLOCK_ACQUIRE, 0, &rlk_row_set,
     "0 busy, 0 shows 7, 1 busy, 1 shows 0, 2 busy, 2 shows 0", "SLEEPING, free --- 0"},
    {"a connection that breaks behind its vote", REDLOCK_ACQUIRE, 5000, &rlk_row_set, "0 granted, 0 down, 1 granted",
     "OK, held ++- 0"},
    /* somebody else may have held the lock in between (rule D.2) */
    {"a token that is gone when its number is raised", REDLOCK_ACQUIRE, 60000, &rlk_row_raise,
     "0 granted 5, 1 granted 9, 0 gone, 2 granted 9", "SLEEPING, free --- 0"},
    /* if locks were removed by force, another holder may have had the number that was the largest so far (rule D.1) */
    {"a larger number while the other one is raised to 9", REDLOCK_ACQUIRE, 60000, &rlk_row_raise,
     "0 granted 5, 1 granted 9, 2 granted 12, 0 granted, 1 granted", "OK, held +++ 12"},
    /* unless a majority has one as large (rule D.3) */
    {"a number beyond the clocks", REDLOCK_ACQUIRE, 60000, &rlk_row_raise,
     "0 granted 9223372036854775807, 1 granted 9, 2 granted 9", "OK, held !++ 9"},
    {"an extension that is confirmed late", REDLOCK_EXTEND, 0, &rlk_row_extend, "0 late, 0 granted, 1 granted",
     "LOST, lost --- 0"},
    /* it may have lost the keys that kept others away (rule C.3.1) */
    {"an extension beside a quarantine", REDLOCK_EXTEND, 0, &rlk_row_extend,
     "2 quarantined, 2 granted, 0 granted, 1 granted", "OK, held ++- 0"},
    {"a release", REDLOCK_RELEASE, 0, &rlk_row_delete, "0 granted, 1 granted", "OK, free --- 0"},
    /* whether a majority had the token is for the last to say */
    {"a release where one token is gone", REDLOCK_RELEASE, 0, &rlk_row_delete, "0 granted, 2 gone, 1 granted",
     "OK, free --- 0"},
    {"a release where two tokens are gone", REDLOCK_RELEASE, 0, &rlk_row_delete, "0 granted, 2 gone, 1 gone",
     "LOST, free --- 0"},
};

static const char *result(void)
{
  static const char *const states[] = {[REDLOCK_STATE_FREE] = "free",
                                       [REDLOCK_STATE_HELD] = "held",
                                       [REDLOCK_STATE_ADOPTED] = "adopted",
                                       [REDLOCK_STATE_LOST] = "lost"};
  static char said[80];
  char leases[NODES + 1] = "---";
  int sleeps = lock->op.status == REDLOCK_PENDING && lock->op.phase == RLK_SLEEPING;
  for (int i = 0; i < NODES; i++)
    if (lock->claim && lock->claim->node[i].counts_until_ns > now_ns)
      leases[i] = '+';
    else if (lock->votes[i] == RLK_ERROR)
      leases[i] = '!';
  snprintf(said, sizeof said, "%s, %s %s %lld", sleeps ? "SLEEPING" : redlock_status_name(lock->op.status),
           states[lock->state], leases, (long long)redlock_lock_fence(lock));
  return said;
}

static void apply(const struct rlk_ask *row, int node, const char *what, int64_t number)
{
  struct rlk_node *n = &client->engine.net.nodes[node];
  struct rlk_reply reply = {.type = RLK_REPLY_ARRAY, .count = 2, .integers = {1, number}};
  char token[8] = "";
  if (strcmp(what, "shows") == 0) {
    if (number)
      snprintf(token, sizeof token, "%lld", (long long)number);
    reply = (struct rlk_reply){.type = RLK_REPLY_STRING, .text = {.data = token, .end = strlen(token)}};
    while (rlk_request_at(requests_of(node), 0)->ask != &rlk_row_behind)
      answer(node, rlk_request_at(requests_of(node), 0)->ask, RLK_NOT_ASKED);
    answer_reply(node, &rlk_row_behind, RLK_NOT_ASKED, RLK_FAULT_NONE, &reply);
  } else if (number) {
    answer_reply(node, &rlk_row_fenced, RLK_GRANTED, RLK_FAULT_NONE, &reply);
  } else if (strcmp(what, "late") == 0) {
    now_ns += lock->op.asked.ttl_ms * MS;
  } else if (strcmp(what, "quarantined") == 0) {
    n->voter->quarantined_until_ns = RLK_NEVER;
  } else if (strcmp(what, "down") == 0) {
    n->state = RLK_NODE_OFF;
    tell(node, RLK_OUTCOME_DOWN);
  } else {
    assert_non_null(strstr("granted gone busy", what));
    answer(node, row, strcmp(what, "granted") == 0 ? RLK_GRANTED : strcmp(what, "gone") == 0 ? RLK_GONE : RLK_BUSY);
  }
}

static void answer_round(size_t i)
{
  const char *next = rounds[i].answers;
  int node, size;
  char what[12];
  long long number = 0;
  for (; sscanf(next, "%d %11[a-z]%n %lld%n", &node, what, &size, &number, &size) > 1; number = 0) {
    if (lock->op.status != REDLOCK_PENDING || lock->state == REDLOCK_STATE_HELD)
      fail_msg("%s: %s before %s", rounds[i].name, result(), next);
    apply(rounds[i].row, node, what, number);
    next += size + strspn(next + size, ", ");
    if (strcmp(what, "gone") == 0 && lock->claim->node[node].counts_until_ns)
      fail_msg("%s: the lease counts on node %d", rounds[i].name, node);
  }
}

static void a_round_ends_by_its_answers(void **state)
{
  for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
    if (rounds[i].operation == REDLOCK_RELEASE)
      hold();
    if (rounds[i].operation == REDLOCK_EXTEND)
      assert_int_equal(redlock_lock_adopt(lock, "a token of another library"), REDLOCK_OK);
    assert_int_equal(redlock_lock_set(lock, "fence", rounds[i].row == &rlk_row_raise ? "true" : "false"), REDLOCK_OK);
    call(rounds[i].operation, rounds[i].wait_ms);
    write_all();
    answer_round(i);
    if (strcmp(result(), rounds[i].result) != 0)
      fail_msg("%s: %s instead of %s", rounds[i].name, result(), rounds[i].result);
    end(state);
    begin(state);
  }
}

/* Replies may come apart. */
static void a_refusal_waits_for_what_stands_behind_it(void **state)
{
  (void)state;
  call(REDLOCK_ACQUIRE, 0);
  write_all();
  rlk_round_written(lock, now_ns);
  now_ns += MS;
  answer_with(1, &rlk_row_set, RLK_ERROR, RLK_FAULT_FULL);
  answer(0, &rlk_row_set, RLK_BUSY);
  answer(2, &rlk_row_set, RLK_BUSY);
  assert_int_equal(lock->op.status, REDLOCK_PENDING);
  assert_true(lock->op.timer.at_ns > now_ns);
}

/* By the first attempt behind its failure, by every other one behind its SET. */
static void how_long_a_key_lives_is_asked_once_per_attempt(void **state)
{
  (void)state;
  call(REDLOCK_ACQUIRE, 60000);
  write_all();
  for (int i = 0; i < NODES; i++)
    answer(i, &rlk_row_set, RLK_BUSY);
  assert_int_equal(lock->op.phase, RLK_SLEEPING);
  for (int i = 0; i < NODES; i++) {
    while (rlk_request_at(requests_of(i), 0)->ask == &rlk_row_delete)
      answer(i, &rlk_row_delete, RLK_GONE);
    assert_int_equal(asked(i), 1);
    answer(i, &rlk_row_hint, RLK_NOT_ASKED);
  }
  now_ns = lock->op.timer.at_ns;
  rlk_operation_timer(lock, now_ns);
  write_all();
  for (int i = 0; i < NODES; i++) {
    answer(i, &rlk_row_set, RLK_BUSY);
    assert_ptr_equal(rlk_request_at(requests_of(i), 0)->ask, &rlk_row_hint);
    answer(i, &rlk_row_hint, RLK_NOT_ASKED);
    while (asked(i) > 0)
      answer(i, &rlk_row_delete, RLK_GONE);
  }
}

/* That others wait is no answer of a majority. */
static void an_outage_is_reported_even_if_others_wait(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_set(lock, "queue", "true"), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 60000);
  write_all();
  lock->wait->others.are_waiting = 1;
  answer_with(0, &rlk_row_set, RLK_ERROR, RLK_FAULT_FULL);
  answer_with(1, &rlk_row_set, RLK_ERROR, RLK_FAULT_FULL);
  assert_int_equal(lock->attempt.verdict, REDLOCK_NO_QUORUM);
}

static void all_locks_that_wait_for_a_node_ask_it(void **state)
{
  struct rlk_node *n = &client->engine.net.nodes[2];
  redlock_lock *other = redlock_lock_new(client, "s", 1);
  (void)state;
  n->state = RLK_NODE_CONNECTING;
  call(REDLOCK_ACQUIRE, 5000);
  assert_int_equal(rlk_operation_begin(other, &rlk_acquire, 5000, now_ns), REDLOCK_OK);
  assert_int_equal(asked(2), 0);
  n->state = RLK_NODE_READY;
  tell(2, RLK_OUTCOME_READY);
  assert_int_equal(asked(2), 2);
  redlock_lock_free(other);
}

static void a_round_waits_for_its_connections_for_connect_timeout(void **state)
{
  int64_t timeout_ns = RLK_INT(&client->engine.net.options, CONNECT_TIMEOUT_MS) * MS;
  (void)state;
  for (int i = 0; i < NODES; i++)
    client->engine.net.nodes[i].state = RLK_NODE_CONNECTING;
  call(REDLOCK_ACQUIRE, 60000);
  assert_int_equal(lock->op.timer.at_ns, now_ns + timeout_ns);
}

/* A connection that is being made is waited for only by what is asked of every node. */
static void only_inspect_and_remove_wait_for_a_connection(void **state)
{
  static const struct {
    int operation, waits;
  } cases[] = {{REDLOCK_ACQUIRE, 0}, {REDLOCK_REMOVE, 1}, {REDLOCK_INSPECT, 1}};
  (void)state;
  client->engine.net.nodes[2].state = RLK_NODE_CONNECTING;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    call(cases[i].operation, 0);
    if (lock->round.is_tight == cases[i].waits)
      fail_msg("operation %d: it %s", cases[i].operation, cases[i].waits ? "does not wait" : "waits");
    rlk_operation_cancel(lock, now_ns);
  }
}

/* As long as the round could have waited for it: a lock on a bare majority survives no failure. */
static void a_node_that_comes_soon_after_the_win_is_asked(void **state)
{
  static const struct {
    int after_ms, asked;
  } cases[] = {{100, 1}, {100000, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    client->engine.net.nodes[2].state = RLK_NODE_CONNECTING;
    assert_int_equal(redlock_lock_set(lock, "ttl_ms", "200000"), REDLOCK_OK);
    call(REDLOCK_ACQUIRE, 5000);
    answer(0, &rlk_row_set, RLK_GRANTED);
    answer(1, &rlk_row_set, RLK_GRANTED);
    assert_int_equal(lock->op.status, REDLOCK_OK);
    now_ns += cases[i].after_ms * MS;
    client->engine.net.nodes[2].state = RLK_NODE_READY;
    tell(2, RLK_OUTCOME_READY);
    if (asked(2) != cases[i].asked)
      fail_msg("%d ms after the win: %d requests", cases[i].after_ms, asked(2));
    end(state);
    begin(state);
  }
}

static void where_nothing_was_executed_nothing_is_deleted(void **state)
{
  (void)state;
  call(REDLOCK_ACQUIRE, 5000);
  write_all();
  answer(0, &rlk_row_set, RLK_GRANTED);
  answer(1, &rlk_row_set, RLK_GRANTED);
  answer_with(2, &rlk_row_set, RLK_ERROR, RLK_FAULT_FULL);
  call(REDLOCK_RELEASE, 0);
  assert_int_equal(asked(0), 1);
  assert_int_equal(asked(2), 0);
  answer(0, &rlk_row_delete, RLK_GRANTED);
  answer(1, &rlk_row_delete, RLK_GRANTED);
  assert_int_equal(client->engine.pending_deletes, 0);
}

/* Also where the server of the third address votes under the first one. */
static void a_token_that_was_deleted_is_no_longer_owed(void **state)
{
  struct rlk_node *nodes = client->engine.net.nodes;
  (void)state;
  call(REDLOCK_ACQUIRE, 5000);
  write_all();
  nodes[2].state = RLK_NODE_SETUP;
  nodes[2].line->shared = &nodes[0];
  rlk_operation_cancel(lock, now_ns);
  assert_int_equal(client->engine.pending_deletes, 1);
  for (int i = 0; i < NODES; i++) {
    answer(i, &rlk_row_set, RLK_GRANTED);
    answer(i, &rlk_row_delete, RLK_GRANTED);
  }
  assert_int_equal(client->engine.pending_deletes, 0);
}

/* Whether what it met was its own key: it is deleted anyway. */
static void a_token_that_was_given_up_is_not_confirmed(void **state)
{
  (void)state;
  call(REDLOCK_ACQUIRE, 5000);
  write_all();
  lock->claim->node[0].flags |= RLK_SET_LOST;
  rlk_operation_cancel(lock, now_ns);
  answer(0, &rlk_row_set, RLK_BUSY);
  assert_int_equal(asked(0), 1);
  answer(0, &rlk_row_delete, RLK_GONE);
}

/* Its first SET was lost with its connection, and may have been executed. */
static void a_key_that_may_be_its_own_is_confirmed(void **state)
{
  (void)state;
  call(REDLOCK_ACQUIRE, 5000);
  write_all();
  lock->claim->node[0].flags |= RLK_SET_LOST;
  answer(0, &rlk_row_set, RLK_BUSY);
  answer(1, &rlk_row_set, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_PENDING);
  answer(0, &rlk_row_confirm, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_OK);
}

/* Later no thread may be there to send the script where its hash is not known. */
static void a_release_waits_for_nodes_that_may_have_lost_its_script(void **state)
{
  (void)state;
  hold();
  call(REDLOCK_RELEASE, 0);
  answer_with(0, &rlk_row_delete, RLK_ERROR, RLK_FAULT_NO_SCRIPT);
  answer(0, &rlk_row_delete, RLK_GRANTED);
  answer(1, &rlk_row_delete, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_PENDING);
  answer(2, &rlk_row_delete, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_OK);
}

static void a_release_waits_for_a_hand_over_that_may_be_denied(void **state)
{
  (void)state;
  for (int works = 0; works < 2; works++) {
    hold();
    assert_int_equal(redlock_lock_set(lock, "queue", "true"), REDLOCK_OK);
    call(REDLOCK_RELEASE, 0);
    for (int i = 0; i < NODES; i++) {
      client->engine.peers[i].queue_works = works;
      assert_int_equal(lock->op.status, works && i > 1 ? REDLOCK_OK : REDLOCK_PENDING);
      answer(i, rlk_request_at(requests_of(i), 0)->ask, RLK_GRANTED);
    }
    assert_int_equal(lock->op.status, REDLOCK_OK);
    assert_int_equal(redlock_lock_set(lock, "queue", "false"), REDLOCK_OK);
  }
}

/* A renewal puts it back while the extension is under way. */
static void an_extension_is_asked_again_where_the_token_was_put_back(void **state)
{
  (void)state;
  hold();
  call(REDLOCK_EXTEND, 0);
  assert_int_equal(rlk_ask_heal(&client->engine.net.nodes[2], lock, &lock->hold.terms, now_ns), 0);
  answer(0, &rlk_row_extend, RLK_GRANTED);
  answer(2, &rlk_row_extend, RLK_GONE);
  answer(2, &rlk_row_set, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_PENDING);
  rlk_operation_timer(lock, now_ns);
  answer(2, &rlk_row_extend, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_OK);
}

static void extensions_are_counted(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_set(lock, "max_extensions", "1"), REDLOCK_OK);
  hold();
  call(REDLOCK_EXTEND, 0);
  answer_all(&rlk_row_extend);
  assert_int_equal(rlk_operation_begin(lock, &rlk_extend, 0, now_ns), REDLOCK_LIMIT);
  assert_string_equal(lock->refusal, "no further extension: " RLK_NAMED("max_extensions") " is 1");
}

static void an_extension_forgets_earlier_errors(void **state)
{
  (void)state;
  hold();
  lock->node_answers[1].error = strdup("an error of the last operation");
  call(REDLOCK_EXTEND, 0);
  assert_null(lock->node_answers[1].error);
}

/* As long as the lease lasts. */
static void an_extension_that_fails_is_asked_again_and_again(void **state)
{
  (void)state;
  hold();
  call(REDLOCK_EXTEND, 0);
  answer(0, &rlk_row_extend, RLK_GRANTED);
  for (int i = 0; i < 3; i++) {
    answer_with(1, &rlk_row_extend, RLK_ERROR, RLK_FAULT_PAUSE);
    answer_with(2, &rlk_row_extend, RLK_ERROR, RLK_FAULT_PAUSE);
    assert_true(lock->op.timer.at_ns < now_ns + 1000 * MS);
    now_ns = lock->op.timer.at_ns;
    rlk_operation_timer(lock, now_ns);
  }
  answer(1, &rlk_row_extend, RLK_GRANTED);
  assert_int_equal(lock->op.status, REDLOCK_OK);
}

/* One that is needed for a majority: outage_wait_ms is not for it. */
static void a_node_in_quarantine_is_no_outage(void **state)
{
  struct rlk_node *nodes = client->engine.net.nodes;
  (void)state;
  nodes[1].voter->quarantined_until_ns = RLK_NEVER;
  call(REDLOCK_ACQUIRE, 60000);
  write_all();
  answer(0, &rlk_row_set, RLK_GRANTED);
  answer_with(2, &rlk_row_set, RLK_ERROR, RLK_FAULT_FULL);
  now_ns += 30000 * MS;
  rlk_operation_timer(lock, now_ns);
  assert_int_equal(lock->op.status, REDLOCK_PENDING);
}

static void assert_asked_now(const struct rlk_ask *row)
{
  for (int i = 0; i < NODES; i++)
    for (uint32_t k = 0; k < requests_of(i)->count; k++) {
      const struct rlk_request *request = rlk_request_at(requests_of(i), k);
      assert_int_equal(request->sent_ns, now_ns);
      assert_int_equal(request->round, lock->round.number);
    }
  assert_ptr_equal(rlk_request_at(requests_of(0), 0)->ask, row);
}

/* By its time a silent server is known, and a lease begins; by its round an answer of another operation. */
static void every_request_has_its_time_and_its_round(void **state)
{
  static const struct {
    int operation;
    const struct rlk_ask *row, *second;
  } cases[] = {{REDLOCK_EXTEND, &rlk_row_extend, NULL},
               {REDLOCK_EXPIRE, &rlk_row_expire, NULL},
               {REDLOCK_RELEASE, &rlk_row_delete, NULL},
               {REDLOCK_REMOVE, &rlk_row_remove, NULL},
               {REDLOCK_INSPECT, &rlk_row_value, &rlk_row_ttl}};
  (void)state;
  hold();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    now_ns += MS;
    call(cases[i].operation, 0);
    assert_asked_now(cases[i].row);
    for (int node = 0; node < NODES; node++) {
      answer(node, cases[i].row, cases[i].second ? RLK_NOT_ASKED : RLK_GRANTED);
      if (cases[i].second)
        answer(node, cases[i].second, RLK_FREE);
    }
  }
  now_ns += MS;
  assert_int_equal(redlock_lock_set(lock, "queue", "true"), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 60000);
  assert_asked_now(&rlk_row_set);
  assert_in_range(asked(0) + asked(1) + asked(2), NODES + 1, 2 * NODES); /* and whether others wait */
}

/* Although it leaves less than min_validity_ms. */
static void an_extension_has_the_rest_of_the_lease(void **state)
{
  (void)state;
  hold();
  now_ns = lock->hold.valid_until_ns - lock->hold.terms.min_validity_ns + MS;
  call(REDLOCK_EXTEND, 0);
  assert_int_equal(lock->op.deadline_ns, lock->hold.valid_until_ns);
}

/* Without the names of its keys nothing can be handed over: the delete is sent later. */
static void a_delete_without_memory_is_owed(void **state)
{
  (void)state;
  hold();
  lock->claim->queues = 1; /* node 0 */
  no_memory = 1;
  assert_int_equal(rlk_ask_delete(&client->engine.net.nodes[0], lock->claim, 0, now_ns), -1);
  assert_int_equal(asked(0), 0);
  no_memory = 0;
  assert_int_equal(rlk_ask_delete(&client->engine.net.nodes[0], lock->claim, 0, now_ns), 0);
  assert_int_equal(asked(0), 1);
}

static void a_loss_has_its_reason(void **state)
{
  (void)state;
  hold();
  now_ns += lock->hold.terms.ttl_ms * MS;
  assert_int_equal(rlk_operation_begin(lock, &rlk_extend, 0, now_ns), REDLOCK_LOST);
  assert_int_equal(lock->state, REDLOCK_STATE_LOST);
  assert_int_equal(lock->hold.loss, REDLOCK_LOSS_EXPIRED);
  assert_string_equal(lock->refusal, "extend: \"r\" is no longer held");
  for (int i = 0; i < NODES; i++)
    assert_int_equal(asked(i), 0);
}

static void the_votes_of_a_lost_lock_say_why_nodes_do_not_count(void **state)
{
  static const struct {
    int cut, vote;
  } cases[] = {{REDLOCK_LOSS_GONE, RLK_GONE},
               {REDLOCK_LOSS_RESTARTED, RLK_GONE},
               {REDLOCK_LOSS_REFUSED, RLK_REFUSED},
               {REDLOCK_LOSS_CLOCK, RLK_QUARANTINED}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hold();
    rlk_lock_cut(lock, 0, 0, cases[i].cut, now_ns);
    rlk_lock_cut(lock, 2, 0, cases[i].cut, now_ns);
    assert_int_equal(lock->state, REDLOCK_STATE_LOST);
    assert_int_equal(lock->votes[0], cases[i].vote);
    assert_int_equal(lock->votes[1], RLK_GRANTED);
    assert_int_equal(lock->votes[2], cases[i].vote);
    end(state);
    begin(state);
  }
}

static void every_loss_is_described(void **state)
{
  static const char *const words[] = {
      [REDLOCK_LOSS_NONE] = "",
      [REDLOCK_LOSS_EXPIRED] = "the lease expired",
      [REDLOCK_LOSS_GONE] = "the token was gone on 2 of 3 nodes",
      [REDLOCK_LOSS_RESTARTED] = "restarted since the lock was acquired: 2 of 3 nodes",
      [REDLOCK_LOSS_REFUSED] = "ineligible to vote now: 2 of 3 nodes",
      [REDLOCK_LOSS_LIMIT] = "the lease expired: max_hold_ms allowed no further renewal",
      [REDLOCK_LOSS_CLOCK] = "the clock was stepped forward on 2 of 3 nodes",
      [REDLOCK_LOSS_CLOSED] = "the client was closed",
  };
  char said[200];
  (void)state;
  hold();
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    struct rlk_text text = {said, sizeof said, .is_plain = 1};
    lock->hold.loss = (int)i;
    lock->claim->node[0].cut = lock->claim->node[2].cut = (uint8_t)i;
    lock->claim->node[1].cut = (uint8_t)(i + 1);
    rlk_loss_words(lock, &text);
    assert_string_equal(said, words[i]);
  }
  lock->hold.loss = REDLOCK_LOSS_GONE;
  lock->claim->node[0].cut = REDLOCK_LOSS_GONE;
  {
    struct rlk_text text = {said, sizeof said, .is_plain = 1};
    rlk_loss_words(lock, &text);
    assert_string_equal(said, "the token was gone on 1 of 3 nodes, and others did not count");
  }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(a_free_lock_costs_one_round_trip),
      CASE(a_round_ends_by_its_answers),
      CASE(a_refusal_waits_for_what_stands_behind_it),
      CASE(how_long_a_key_lives_is_asked_once_per_attempt),
      CASE(an_outage_is_reported_even_if_others_wait),
      CASE(all_locks_that_wait_for_a_node_ask_it),
      CASE(a_round_waits_for_its_connections_for_connect_timeout),
      CASE(only_inspect_and_remove_wait_for_a_connection),
      CASE(a_node_that_comes_soon_after_the_win_is_asked),
      CASE(where_nothing_was_executed_nothing_is_deleted),
      CASE(a_token_that_was_deleted_is_no_longer_owed),
      CASE(a_token_that_was_given_up_is_not_confirmed),
      CASE(a_key_that_may_be_its_own_is_confirmed),
      CASE(a_release_waits_for_nodes_that_may_have_lost_its_script),
      CASE(a_release_waits_for_a_hand_over_that_may_be_denied),
      CASE(an_extension_is_asked_again_where_the_token_was_put_back),
      CASE(extensions_are_counted),
      CASE(an_extension_forgets_earlier_errors),
      CASE(an_extension_that_fails_is_asked_again_and_again),
      CASE(a_node_in_quarantine_is_no_outage),
      CASE(every_request_has_its_time_and_its_round),
      CASE(an_extension_has_the_rest_of_the_lease),
      CASE(a_delete_without_memory_is_owed),
      CASE(a_loss_has_its_reason),
      CASE(the_votes_of_a_lost_lock_say_why_nodes_do_not_count),
      CASE(every_loss_is_described),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every reason has its words, advice and cause, and every row is reached by what happens to a node. */
#include "node_world.h"

#include "api/answer.h"
#include "client/client.h"
#include "node/admit.h"
#include "node/connect.h"
#include "vote/eligible.h"
#include "node/openssl.h"
#include "node/tls.h"

static int seen[RLK_WHY_COUNT];

static void note(enum rlk_why why, enum rlk_why expected)
{
  if (why != expected)
    fail_msg("reason %s instead of %s", rlk_why_name(why), rlk_why_name(expected));
  seen[why] = 1;
}

static void run_out(void)
{
  while (rlk_voter_next(&node, &outcome, world.now_ns))
    ;
}

static void expect_why(enum rlk_why expected)
{
  run_out();
  note(node.why.why, expected);
  assert_string_not_equal(node.why.words, "");
}

static void begin_again(void **state)
{
  end(state);
  assert_int_equal(begin(state), 0);
}

/* ---- connections ---- */

static int open_error;

static int open_fails(struct rlk_link *link, const struct rlk_address *address)
{
  (void)link;
  (void)address;
  return -open_error;
}

static void a_connection_fails(void **state)
{
  static const struct {
    int error;
    enum rlk_why why;
  } cases[] = {{ECONNREFUSED, RLK_WHY_REFUSED},     {ENOENT, RLK_WHY_NO_SOCKET}, {ETIMEDOUT, RLK_WHY_CONNECT_TIMEOUT},
               {EHOSTUNREACH, RLK_WHY_UNREACHABLE}, {ECONNRESET, RLK_WHY_RESET}, {EMFILE, RLK_WHY_SYSTEM},
               {EACCES, RLK_WHY_SOCKET_DENIED}};
  static struct rlk_link_ops failing;
  failing = links;
  failing.open = open_fails;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin_again(state);
    node.line->link.ops = &failing;
    open_error = cases[i].error;
    node.url.is_unix = open_error == ENOENT || open_error == EACCES;
    rlk_node_connect(&node, world.now_ns);
    expect_why(cases[i].why);
  }
}

static void a_connection_ends(void **state)
{
  connect();
  world.is_closed = 1;
  hear("");
  expect_why(RLK_WHY_MAY_EXPECT_TLS);
  begin_again(state);
  get_ready();
  world.is_closed = 1;
  hear("");
  expect_why(RLK_WHY_CLOSED);
  begin_again(state);
  get_ready();
  ask(&rlk_row_set, 1);
  hear(":7\r\n");
  expect_why(RLK_WHY_MISFIT);
  begin_again(state);
  get_ready();
  rlk_node_close(&node, world.now_ns);
  expect_why(RLK_WHY_LEAVING);
}

static void a_connection_takes_too_long(void **state)
{
  struct rlk_reason why;
  connect();
  rlk_node_timer(&node, world.now_ns);
  expect_why(RLK_WHY_SETUP_TIMEOUT);
  begin_again(state);
  node.line->state = RLK_NODE_RESOLVING;
  note(rlk_connect_timed_out(node.line, &why), RLK_WHY_NAME);
  node.line->state = RLK_NODE_OFF;
  get_ready();
  ask(&rlk_row_set, 1);
  rlk_voter_flush(&node, world.now_ns);
  world.now_ns += 60000 * MS;
  rlk_node_timer(&node, world.now_ns);
  expect_why(RLK_WHY_SILENT);
}

static void memory_runs_out(void **state)
{
  struct rlk_reason why;
  (void)state;
  get_ready();
  node.line->reply.why = RLK_WHY_MEMORY; /* as the parser leaves it */
  node.line->reply.fault = "out of memory";
  note(rlk_line_unparsed(node.line, &why), RLK_WHY_MEMORY);
}

/* ---- TLS ---- */

static void tls_fails(void **state)
{
  static const struct {
    struct rlk_tls_failure failed;
    enum rlk_why why;
  } cases[] = {
      {{.words = "certificate verify failed", .name = "a", .verdict = RLK_X509_V_ERR_HOSTNAME_MISMATCH},
       RLK_WHY_TLS_NAME},
      {{.words = "certificate verify failed", .verdict = RLK_X509_V_ERR_CERT_HAS_EXPIRED}, RLK_WHY_TLS_EXPIRED},
      {{.words = "certificate verify failed", .verdict = RLK_X509_V_ERR_CERT_NOT_YET_VALID}, RLK_WHY_TLS_NOT_YET},
      {{.words = "certificate verify failed", .verdict = 19, .verdict_words = "self-signed"}, RLK_WHY_TLS_UNTRUSTED},
      {{.words = "no reason given", .is_at_end = 1}, RLK_WHY_TLS_CLOSED},
      {{.words = "tlsv13 alert certificate required"}, RLK_WHY_TLS_WANTS_CERT},
      {{.words = "tlsv1 alert unknown ca"}, RLK_WHY_TLS_ALERT},
      {{.words = "wrong version number"}, RLK_WHY_NO_TLS},
      {{.words = "wrong version number", .is_set_up = 1}, RLK_WHY_TLS}};
  struct rlk_reason why;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    note(rlk_tls_because(&why, &cases[i].failed), cases[i].why);
  note(rlk_tls_silence(&why, 1), RLK_WHY_TLS_SILENT);
  note(rlk_tls_silence(&why, 0), RLK_WHY_MAY_BE_PLAIN);
}

/* ---- what a server says ---- */

static void hear_info(const char *info)
{
  char bulk[400];
  snprintf(bulk, sizeof bulk, "$%zu\r\n%s\r\n", strlen(info), info);
  for (uint32_t left = node.line->requests.count; left > 0; left--)
    hear(bulk);
}

static void a_server_is_ineligible(void **state)
{
  static const struct {
    const char *info;
    enum rlk_why why;
  } cases[] = {{"redis_version:7.0.15\r\n", RLK_WHY_NO_IDENTITY},
               {"run_id:" RUN_ID "\r\nrole:slave\r\n", RLK_WHY_REPLICA},
               {"run_id:" RUN_ID "\r\nrole:master\r\nredis_mode:cluster\r\n", RLK_WHY_CLUSTER},
               {"run_id:" RUN_ID "\r\nrole:master\r\nredis_mode:sentinel\r\n", RLK_WHY_MODE},
               {"run_id:" RUN_ID "\r\nrole:master\r\nmaxmemory:9\r\nmaxmemory_policy:allkeys-lru\r\n", RLK_WHY_EVICTS}};
  struct rlk_node other = {.state = RLK_NODE_READY, .run_id = RUN_ID, .url = {.name = (char[]){"other:1"}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin_again(state);
    connect();
    hear_info(cases[i].info);
    expect_why(cases[i].why);
  }
  begin_again(state);
  net.nodes = &other;
  connect();
  hear_setup(RUN_ID, "master");
  expect_why(RLK_WHY_SAME_SERVER);
  begin_again(state);
  get_ready();
  memcpy(node.line->facts.run_id, OTHER_ID, sizeof OTHER_ID);
  note(rlk_session_change(node.line), RLK_WHY_OTHER_SERVER);
}

static void a_refusal_is_reported_once(void **state)
{
  struct rlk_reason why;
  const struct rlk_event *event;
  (void)state;
  assert_int_equal(rlk_events_init(&net.events), 0);
  rlk_because(&why, RLK_WHY_REPLICA, NULL);
  for (int times = 0; times < 2; times++)
    rlk_node_refuse(&node, &why, world.now_ns);
  event = rlk_event_first(&net.events);
  assert_non_null(event);
  assert_int_equal(event->kind, RLK_EVENT_NODE_REFUSED);
  assert_string_equal(event->detail, rlk_why_words(RLK_WHY_REPLICA));
  rlk_event_pop(&net.events);
  assert_null(rlk_event_first(&net.events));
  rlk_events_free(&net.events);
}

/* What refuses every connection is not put down to the login. */
static const char *of_the_login(enum rlk_why why)
{
  switch (why) {
  case RLK_WHY_NOAUTH:
  case RLK_WHY_LOADING:
  case RLK_WHY_MAX_CLIENTS:
  case RLK_WHY_PROTECTED: return "";
  default: return ": the login failed";
  }
}

static void a_server_answers_with_an_error(void **state)
{
  static const struct {
    const char *error;
    enum rlk_why why;
  } cases[] = {{"NOAUTH Authentication required.", RLK_WHY_NOAUTH},
               {"WRONGPASS invalid username-password pair", RLK_WHY_WRONGPASS},
               {"NOPERM this user has no permissions to run the 'hello' command", RLK_WHY_NOPERM},
               {"ERR DB index is out of range", RLK_WHY_DATABASE},
               {"LOADING Redis is loading the dataset in memory", RLK_WHY_LOADING},
               {"ERR max number of clients reached", RLK_WHY_MAX_CLIENTS},
               {"DENIED Redis is running in protected mode", RLK_WHY_PROTECTED},
               {"READONLY You can't write against a read only replica.", RLK_WHY_READONLY},
               {"MASTERDOWN Link with MASTER is down", RLK_WHY_READONLY},
               {"MOVED 3999 127.0.0.1:6381", RLK_WHY_IN_CLUSTER},
               {"CROSSSLOT Keys in request don't hash to the same slot", RLK_WHY_IN_CLUSTER},
               {"OOM command not allowed when used memory > 'maxmemory'.", RLK_WHY_OOM},
               {"BUSY Redis is busy running a script.", RLK_WHY_BUSY_SCRIPT},
               {"MISCONF Redis is configured to save RDB snapshots", RLK_WHY_MISCONF},
               {"NOREPLICAS Not enough good replicas to write.", RLK_WHY_NOREPLICAS},
               {"ERR Protocol version is not an integer", RLK_WHY_UNKNOWN_COMMAND},
               {"WRONGTYPE Operation against a key", RLK_WHY_WRONGTYPE},
               {"ERR something else", RLK_WHY_ERROR}};
  char error[200];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin_again(state);
    connect();
    snprintf(error, sizeof error, "-%s\r\n", cases[i].error);
    for (uint32_t left = node.line->requests.count; left > 0; left--)
      hear(error);
    expect_why(cases[i].why);
    snprintf(error, sizeof error, "%s%s", rlk_why_words(cases[i].why), of_the_login(cases[i].why));
    assert_string_equal(node.why.words, error); /* none of the server's, which may repeat the password */
  }
  begin_again(state);
  connect();
  hear("$2\r\nok\r\n"); /* HELLO */
  for (uint32_t left = node.line->requests.count; left > 0; left--)
    hear("-LOADING Redis is loading\r\n");
  expect_why(RLK_WHY_LOADING);
  assert_string_equal(node.why.words, "LOADING Redis is loading");
  begin_again(state);
  connect();
  hear("$2\r\nok\r\n"); /* HELLO */
  for (uint32_t left = node.line->requests.count; left > 1; left--)
    hear("-NOPERM this user has no permissions to run the 'info' command\r\n");
  expect_why(RLK_WHY_FORBIDS);
}

static void a_server_does_not_know_a_command(void **state)
{
  (void)state;
  connect();
  hear("$2\r\nok\r\n"); /* HELLO */
  for (uint32_t left = node.line->requests.count; left > 0; left--)
    hear("-ERR unknown command 'INFO', with args beginning with: 'server'\r\n");
  expect_why(RLK_WHY_NO_IDENTITY);
  assert_string_equal(node.why.words, "it does not know INFO: it is a proxy or no such server, or INFO was renamed");
}

/* A server repeats the arguments of what it does not know: the words have no script in them. */
static void a_server_does_not_know_scripts(void **state)
{
  static const char info[] = "run_id:" RUN_ID "\r\nredis_mode:standalone\r\nrole:master\r\n";
  char bulk[200];
  (void)state;
  snprintf(bulk, sizeof bulk, "$%zu\r\n%s\r\n", sizeof info - 1, info);
  connect();
  for (uint32_t left = node.line->requests.count; left > 2; left--)
    hear(bulk);
  hear("-ERR unknown command 'EVAL', with args beginning with: 'for _,c in ipairs({' \r\n");
  hear("-ERR unknown command 'EVALSHA', with args beginning with: '00' \r\n");
  expect_why(RLK_WHY_UNKNOWN_COMMAND);
  assert_string_equal(node.why.words, "it does not know EVAL or EVALSHA");
}

static void a_file_with_the_password_is_missing(void **state)
{
  char path[] = "/nonexistent/password";
  (void)state;
  RLK_STRING(&net, PASSWORD_FILE) = path;
  rlk_node_connect(&node, world.now_ns);
  expect_why(RLK_WHY_FILE);
}

static void a_server_stores_no_key(void **state)
{
  struct rlk_reason why;
  struct rlk_line *l = node.line;
  (void)state;
  get_ready();
  strcpy(l->facts.snapshot, "err");
  note(rlk_refusal(&node, &why, world.now_ns), RLK_WHY_SNAPSHOT);
  strcpy(l->facts.aof_write, "err");
  note(rlk_refusal(&node, &why, world.now_ns), RLK_WHY_AOF);
  node.refused_set_ns = world.now_ns;
  rlk_because_of(&node.refused_set_why, RLK_WHY_ERROR, "ERR no");
  note(rlk_refusal(&node, &why, world.now_ns), RLK_WHY_STORES_NO_KEY);
  assert_string_equal(why.words, "it refuses to store a key: ERR no");
  l->facts.maxmemory = l->facts.used_memory = 9;
  note(rlk_refusal(&node, &why, world.now_ns), RLK_WHY_FULL);
}

/* ---- the guard ---- */

static void a_marker_keeps_a_node_out(void **state)
{
  static const struct {
    enum rlk_finding finding;
    enum rlk_why why;
  } cases[] = {{RLK_FOUND_LARGER, RLK_WHY_ALLOWS_MORE},
               {RLK_FOUND_OTHER_NODES, RLK_WHY_OTHER_NODES},
               {RLK_FOUND_OTHER_CLUSTER, RLK_WHY_OTHER_CLUSTER},
               {RLK_FOUND_FOREIGN, RLK_WHY_FOREIGN_MARKER}};
  struct rlk_reason why;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    node.voter->finding = cases[i].finding;
    note(rlk_guard_finding(&node, &why), cases[i].why);
  }
  note(rlk_guard_limit(&node, 60000, &why), RLK_WHY_ALLOWS_LESS);
}

#define MARKER(max_ttl_ms) "v2 " RUN_ID " 1000 1 0 a1 " max_ttl_ms " -"

static void a_set_up_is_dropped_by_the_guard(void **state)
{
  static char none[] = "-";
  struct rlk_reason why;
  struct rlk_line *l = node.line;
  (void)state;
  get_ready();
  RLK_STRING(&net, CLUSTER) = none;
  RLK_INT(&net.options, GUARD) = RLK_GUARD_MARKER;
  assert_int_equal(rlk_guard_judge(l, &why, world.now_ns), RLK_SESSION_DROP);
  note(why.why, RLK_WHY_NO_TIME);
  l->time = (struct rlk_clock_sample){5000000, world.now_ns, world.now_ns};
  l->is_registered = 1;
  assert_int_equal(rlk_guard_judge(l, &why, world.now_ns), RLK_SESSION_DROP);
  note(why.why, RLK_WHY_MARKER_RACE);
  strcpy(l->marker, MARKER("20000"));
  ask(&rlk_row_set, 1);
  rlk_request_at(&l->requests, 0)->ttl_ms = 30000;
  assert_int_equal(rlk_guard_judge(l, &why, world.now_ns), RLK_SESSION_DROP);
  note(why.why, RLK_WHY_SHORTER_LEASES);
}

static void hear_marker(const char *marker)
{
  char reply[300];
  get_ready();
  RLK_INT(&net.options, GUARD) = RLK_GUARD_MARKER;
  strcpy(node.voter->marker, MARKER("20000"));
  assert_int_equal(rlk_marker_read(node.voter->marker, &node.voter->mark), 1);
  snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(marker), marker);
  ask(&rlk_row_look, RLK_LOOK_MARKER);
  hear(reply);
}

static void a_marker_changes(void **state)
{
  struct rlk_reason why;
  hear_marker(MARKER("40000"));
  run_out();
  assert_int_equal(node.state, RLK_NODE_READY);
  note(rlk_guard_limit(&node, 10000, &why), RLK_WHY_ALLOWS_MORE);
  begin_again(state);
  hear_marker("?");
  expect_why(RLK_WHY_MARKER_CHANGED);
}

static void a_node_is_quarantined(void **state)
{
  (void)state;
  node.voter->quarantined_until_ns = RLK_NEVER;
  net.looks = 1;
  note(rlk_guard_why(&node, world.now_ns), RLK_WHY_NOT_REGISTERED);
  node.voter->quarantined_until_ns = world.now_ns + 1;
  note(rlk_guard_why(&node, world.now_ns), RLK_WHY_LOST_KEYS);
  node.voter->mark.since_ms = 1;
  note(rlk_guard_why(&node, world.now_ns), RLK_WHY_NEW);
  node.voter->step.high_ns = 1;
  note(rlk_guard_why(&node, world.now_ns), RLK_WHY_CLOCK_STEPPED);
  node.voter->ahead_until_ns = world.now_ns + 1;
  note(rlk_guard_why(&node, world.now_ns), RLK_WHY_CLOCK_AHEAD);
}

/* ---- votes ---- */

static void a_node_has_no_vote(void **state)
{
  static const struct {
    int vote;
    enum rlk_why why;
  } cases[] = {{RLK_LATE, RLK_WHY_LATE}, {RLK_OVERLOADED, RLK_WHY_OVERLOADED}, {RLK_DROPPED, RLK_WHY_DROPPED}};
  redlock_client *client = redlock_client_new();
  redlock_lock *lock;
  struct rlk_said said;
  (void)state;
  assert_int_equal(redlock_client_set(client, "nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  lock = redlock_lock_new(client, "r", 1);
  client->engine.net.nodes[0].state = RLK_NODE_READY;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lock->votes[0] = (uint8_t)cases[i].vote;
    rlk_answer_said(lock, 0, &said, world.now_ns);
    note(said.why, cases[i].why);
  }
  client->engine.net.nodes[0].state = RLK_NODE_OFF;
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* ---- the rows ---- */

static void a_reason_passes_or_not(void **state)
{
  static const enum rlk_why by_itself[] = {RLK_WHY_REPLICA,     RLK_WHY_READONLY,    RLK_WHY_LOADING,
                                           RLK_WHY_BUSY_SCRIPT, RLK_WHY_MISCONF,     RLK_WHY_NOREPLICAS,
                                           RLK_WHY_OOM,         RLK_WHY_MAX_CLIENTS, RLK_WHY_OTHER_SERVER,
                                           RLK_WHY_MARKER_RACE, RLK_WHY_NONE},
                            by_a_person[] = {RLK_WHY_NOAUTH,      RLK_WHY_WRONGPASS,   RLK_WHY_NOPERM,
                                             RLK_WHY_FORBIDS,     RLK_WHY_EVICTS,      RLK_WHY_SAME_SERVER,
                                             RLK_WHY_ALLOWS_MORE, RLK_WHY_OTHER_NODES, RLK_WHY_OTHER_CLUSTER},
                            never[] = {RLK_WHY_CLUSTER,    RLK_WHY_IN_CLUSTER,      RLK_WHY_MODE,
                                       RLK_WHY_DATABASE,   RLK_WHY_UNKNOWN_COMMAND, RLK_WHY_FOREIGN_MARKER,
                                       RLK_WHY_ALLOWS_LESS};
  (void)state;
  for (size_t i = 0; i < sizeof by_itself / sizeof *by_itself; i++)
    assert_int_equal(rlk_why_passes(by_itself[i]), RLK_PASSES_BY_ITSELF);
  for (size_t i = 0; i < sizeof by_a_person / sizeof *by_a_person; i++)
    assert_int_equal(rlk_why_passes(by_a_person[i]), RLK_PASSES_BY_A_PERSON);
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    assert_int_equal(rlk_why_passes(never[i]), RLK_PASSES_NEVER);
}

/* Whoever looks for the words of an error on the page, or in what `redlock help` prints, finds its row. */
static void the_words_of_an_error_are_in_its_row(void **state)
{
  static const struct {
    const char *error, *words;
  } cases[] = {{"MASTERDOWN Link with MASTER is down", "MASTERDOWN"},
               {"ASK 3999 127.0.0.1:6381", "ASK"},
               {"CLUSTERDOWN Hash slot not served", "CLUSTERDOWN"},
               {"CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT"},
               {"UNKILLABLE Sorry the script already executed write commands", "UNKILLABLE"},
               {"DENIED Redis is running in protected mode", "protected mode"},
               {"ERR The user executing the script can't run this command", "can't run this command"},
               {"ERR ACL failure in script: User app has no permissions", "ACL failure in script"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int row = (int)rlk_why_of(cases[i].error) - 1;
    if (!strstr(redlock_reason_at(row, REDLOCK_REASON_WORDS), cases[i].words) &&
        !strstr(redlock_reason_at(row, REDLOCK_REASON_CAUSE), cases[i].words))
      fail_msg("%s is not in the row of %s", cases[i].words, redlock_reason_at(row, REDLOCK_REASON_NAME));
  }
  assert_non_null(strstr(redlock_reason_at(RLK_WHY_MISFIT - 1, REDLOCK_REASON_CAUSE), "Protocol error")); /* hiredis */
}

/* A number of a line in a script of the library means nothing to its users. */
static void the_place_in_a_script_is_not_told(void **state)
{
  struct rlk_reason reason;
  (void)state;
  rlk_because_of(&reason, RLK_WHY_ERROR, "OOM command not allowed script: ac7e43, on @user_script:6.");
  assert_string_equal(reason.words, "OOM command not allowed");
  rlk_because_of(&reason, RLK_WHY_ERROR, "ERR no script: of ours");
  assert_string_equal(reason.words, "ERR no script: of ours");
}

static void every_row_is_reached_and_complete(void **state)
{
  int count = 0;
  (void)state;
  for (int why = 1; why < RLK_WHY_COUNT; why++, count++) {
    if (!seen[why])
      fail_msg("no case reaches %s", rlk_why_name((enum rlk_why)why));
    for (int field = REDLOCK_REASON_NAME; field <= REDLOCK_REASON_CAUSE; field++)
      assert_string_not_equal(redlock_reason_at(count, field), "");
    for (int other = 0; other < count; other++)
      assert_string_not_equal(redlock_reason_at(count, REDLOCK_REASON_NAME),
                              redlock_reason_at(other, REDLOCK_REASON_NAME));
  }
  assert_null(redlock_reason_at(count, REDLOCK_REASON_NAME));
  assert_null(redlock_reason_at(-1, REDLOCK_REASON_NAME));
  assert_null(redlock_reason_at(0, REDLOCK_REASON_CAUSE + 1));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(a_connection_fails),
      CASE(a_connection_ends),
      CASE(a_connection_takes_too_long),
      CASE(memory_runs_out),
      CASE(tls_fails),
      CASE(a_server_is_ineligible),
      CASE(a_refusal_is_reported_once),
      CASE(a_server_answers_with_an_error),
      CASE(a_server_does_not_know_a_command),
      CASE(a_server_does_not_know_scripts),
      CASE(a_file_with_the_password_is_missing),
      CASE(a_server_stores_no_key),
      CASE(a_marker_keeps_a_node_out),
      CASE(a_set_up_is_dropped_by_the_guard),
      CASE(a_marker_changes),
      CASE(a_node_is_quarantined),
      CASE(a_node_has_no_vote),
      CASE(a_reason_passes_or_not),
      CASE(the_words_of_an_error_are_in_its_row),
      CASE(the_place_in_a_script_is_not_told),
      CASE(every_row_is_reached_and_complete), /* the last: what the others have reached */
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

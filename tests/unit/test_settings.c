/* What a program may set, through the public functions: options, node URLs, arguments. No server is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redlock.h"

#define NODE "redis://127.0.0.1:1"

static redlock_client *client;
static redlock_lock *lock;
static char said[4096];

static int fresh_client(void **state)
{
  (void)state;
  client = redlock_client_new();
  lock = NULL;
  return client ? 0 : -1;
}

static int open_client(void **state)
{
  fresh_client(state);
  assert_int_equal(redlock_client_set(client, "nodes", NODE), REDLOCK_OK);
  assert_int_equal(redlock_client_set(client, "node_timeout_ms", "2000"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  lock = redlock_lock_new(client, "r", 1);
  return lock ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  redlock_lock_free(lock);
  redlock_client_free(client);
  return 0;
}

static const char *message(void)
{
  redlock_client_message(client, said, sizeof said);
  return said;
}

static const char *lock_message(void)
{
  redlock_lock_message(lock, said, sizeof said);
  return said;
}

static const char *get(const char *name)
{
  static char value[8192];
  assert_true(redlock_client_get(client, name, value, sizeof value) >= 0);
  return value;
}

static void assert_says(const char *text, const char *word)
{
  if (!strstr(text, word))
    fail_msg("\"%s\" does not say \"%s\"", text, word);
}

static int set(const char *name, const char *value)
{
  return redlock_client_set(client, name, value);
}

static const char *range_of(const char *name)
{
  for (int i = 0; redlock_option_at(i, REDLOCK_OPTION_NAME); i++)
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_NAME), name) == 0)
      return redlock_option_at(i, REDLOCK_OPTION_RANGE);
  fail_msg("there is no option %s", name);
  return "";
}

static void assert_refused(const char *name, const char *value)
{
  assert_int_equal(set(name, value), REDLOCK_INVALID);
  assert_says(message(), name);
  assert_says(message(), value);
  assert_says(message(), range_of(name));
}

/* ---- options of a client ---- */

static void every_option_has_its_default(void **state)
{
  const char *name;
  (void)state;
  for (int i = 0; (name = redlock_option_at(i, REDLOCK_OPTION_NAME)); i++) {
    const char *initial = redlock_option_at(i, REDLOCK_OPTION_DEFAULT);
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_TYPE), "float") == 0)
      assert_true(atof(get(name)) == atof(initial));
    else
      assert_string_equal(get(name), initial);
    assert_int_equal(set(name, initial), REDLOCK_OK);
  }
}

/* Which values are numbers in range is a matter of test_options.c. */
static void a_refusal_names_option_value_and_range_and_changes_nothing(void **state)
{
  (void)state;
  assert_int_equal(set("ttl_ms", "8000"), REDLOCK_OK);
  assert_string_equal(message(), "");
  assert_refused("ttl_ms", "19");
  assert_string_equal(get("ttl_ms"), "8000");
  assert_refused("retry_jitter", "2");
  assert_refused("node_timeout_ms", "soon");
  assert_refused("client_name", "two words");
  assert_int_equal(set("ttl_ms", "9000"), REDLOCK_OK);
  assert_string_equal(message(), "");
}

static void truth_has_several_words(void **state)
{
  static const char *const yes[] = {"true", "1", "YES", "on"}, *const no[] = {"false", "0", "No", "off"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(set("renew", yes[i]), REDLOCK_OK);
    assert_string_equal(get("renew"), "true");
    assert_int_equal(set("renew", no[i]), REDLOCK_OK);
    assert_string_equal(get("renew"), "false");
  }
  assert_refused("strict_release", "");
  assert_refused("strict_release", "maybe");
  assert_refused("strict_release", "2");
  assert_refused("strict_release", "truex");
}

static void texts_have_a_longest_size(void **state)
{
  static const struct {
    const char *name;
    int size_max;
  } texts[] = {{"client_name", 64}, {"key_prefix", 256}};
  char value[300];
  (void)state;
  for (int i = 0; i < 2; i++) {
    memset(value, 'x', sizeof value);
    value[texts[i].size_max] = 0;
    assert_int_equal(set(texts[i].name, value), REDLOCK_OK);
    value[texts[i].size_max] = 'x';
    value[texts[i].size_max + 1] = 0;
    assert_int_equal(set(texts[i].name, value), REDLOCK_INVALID);
    assert_says(message(), texts[i].name);
    assert_says(message(), range_of(texts[i].name));
  }
}

static void an_unknown_option_gets_the_nearest(void **state)
{
  (void)state;
  assert_int_equal(set("tll_ms", "5"), REDLOCK_INVALID);
  assert_says(message(), "tll_ms");
  assert_says(message(), "did you mean ttl_ms?");
  assert_int_equal(set("ttl", "5"), REDLOCK_INVALID);
  assert_says(message(), "did you mean ttl_ms?");
  assert_int_equal(redlock_client_get(client, "no_such", NULL, 0), -REDLOCK_INVALID);
  assert_int_equal(set(NULL, "5"), REDLOCK_INVALID);
  assert_int_equal(set("ttl_ms", NULL), REDLOCK_INVALID);
}

static void options_that_contradict_each_other_are_refused_by_open(void **state)
{
  static const struct {
    const char *options[3][2];
    const char *words[4];
  } cases[] = {
      {{{"ttl_ms", "40000"}, {"max_ttl_ms", "30000"}}, {"ttl_ms", "40000", "max_ttl_ms", "30000"}},
      {{{"ttl_ms", "1000"}, {"node_timeout_ms", "251"}}, {"node_timeout_ms", "251", "1000", "250"}},
      {{{"ttl_ms", "1000"}, {"min_validity_ms", "990"}}, {"ttl_ms", "1000", "min_validity_ms", "990"}},
      {{{"nodes", ""}}, {"nodes", "", "", ""}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    redlock_client_free(client);
    client = redlock_client_new();
    set("nodes", NODE);
    for (int j = 0; j < 3 && cases[i].options[j][0]; j++)
      assert_int_equal(set(cases[i].options[j][0], cases[i].options[j][1]), REDLOCK_OK);
    assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
    for (int j = 0; j < 4; j++)
      assert_says(message(), cases[i].words[j]);
  }
}

static void the_environment_has_the_default_of_guard(void **state)
{
  (void)state;
  assert_string_equal(get("guard"), "marker");
  redlock_client_free(client);
  setenv("REDLOCK_GUARD", "", 1);
  client = redlock_client_new();
  assert_string_equal(get("guard"), "marker");
  redlock_client_free(client);
  setenv("REDLOCK_GUARD", "off", 1);
  client = redlock_client_new();
  unsetenv("REDLOCK_GUARD");
  assert_string_equal(get("guard"), "off");
  assert_int_equal(set("guard", "external"), REDLOCK_OK);
  assert_string_equal(get("guard"), "external");
}

static void the_environment_has_the_default_of_max_ttl_ms(void **state)
{
  (void)state;
  assert_string_equal(get("max_ttl_ms"), "30000");
  redlock_client_free(client);
  setenv("REDLOCK_MAX_TTL_MS", "60000", 1);
  client = redlock_client_new();
  assert_string_equal(get("max_ttl_ms"), "60000");
  assert_int_equal(set("nodes", "redis://a?max_ttl=5m"), REDLOCK_OK); /* a default is no contradiction */
  assert_string_equal(get("max_ttl_ms"), "300000");
  redlock_client_free(client);
  setenv("REDLOCK_MAX_TTL_MS", "0", 1);
  client = redlock_client_new();
  unsetenv("REDLOCK_MAX_TTL_MS");
  assert_int_equal(set("nodes", NODE), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_string_equal(message(), "REDLOCK_MAX_TTL_MS is \"0\"; allowed: 20 to 86400000");
}

static void max_ttl_may_end_the_list_of_nodes(void **state)
{
  static const char *const lists[][2] = {
      {"redis://a,redis://b,redis://c?max_ttl=5m", "300000"},
      {"redis://a,redis://c/1?max_ttl=20ms", "20"},
      {"unix:///r.sock?db=2&max_ttl=24h", "86400000"},
      {"unix:///r.sock?max_ttl=90s&db=2", "90000"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    char again[8192];
    assert_int_equal(set("nodes", lists[i][0]), REDLOCK_OK);
    assert_string_equal(get("max_ttl_ms"), lists[i][1]);
    snprintf(again, sizeof again, "%s", get("nodes"));
    assert_int_equal(set("nodes", again), REDLOCK_OK);
    assert_string_equal(get("max_ttl_ms"), lists[i][1]);
  }
  assert_int_equal(set("nodes", "redis://a"), REDLOCK_OK);
  assert_string_equal(get("max_ttl_ms"), "30000");
}

static void max_ttl_in_a_list_is_refused_in_words(void **state)
{
  static const char *const lists[][2] = {
      {"redis://a?max_ttl=5m,redis://b", "max_ttl belongs at the end of the list"},
      {"redis://a?max_ttl=5", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=0s", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=19ms", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=25h", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=365d", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl=999999999999h", "max_ttl is not a duration from 20ms to 24h"},
      {"redis://a?max_ttl", "the only parameters are db and max_ttl"},
      {"redis://a?x=1", "the only parameters are db and max_ttl"},
      {"redis://a?ttl_ms=1000", "ttl_ms is an option of the client: a URL takes no option but max_ttl"},
      {"redis://a?max_ttl_ms=1000", "max_ttl_ms is an option of the client"},
      {"redis://a?guard=off", "guard is an option of the client"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    assert_int_equal(set("nodes", lists[i][0]), REDLOCK_INVALID);
    assert_says(message(), lists[i][1]);
    assert_string_equal(get("max_ttl_ms"), "30000");
  }
}

static void max_ttl_is_given_once(void **state)
{
  (void)state;
  assert_int_equal(set("max_ttl_ms", "60000"), REDLOCK_OK);
  assert_int_equal(set("nodes", "redis://a?max_ttl=5m"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_string_equal(message(), "max_ttl_ms is 60000, and the list of nodes ends in max_ttl=300000ms: give it once");
  assert_int_equal(set("max_ttl_ms", "300000"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
}

static void values_of_an_earlier_version_warn(void **state)
{
  (void)state;
  assert_int_equal(set("nodes", NODE), REDLOCK_OK);
  assert_int_equal(set("max_ttl_ms", "auto"), REDLOCK_OK);
  assert_string_equal(get("max_ttl_ms"), "30000");
  assert_int_equal(set("guard", "uptime"), REDLOCK_OK);
  assert_string_equal(get("guard"), "marker");
  assert_int_equal(set("guard", "bootstrap"), REDLOCK_INVALID);
  assert_int_equal(set("guard", "look"), REDLOCK_INVALID);
  assert_says(message(), "allowed: marker, external or off");
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  for (int i = 0; i < 2; i++) {
    char event[300];
    assert_true(redlock_client_event(client, event, sizeof event) > 0);
    assert_says(event, i ? "guard = uptime is marker now" : "max_ttl_ms = auto is 30000 now");
  }
}

static void names_of_clusters(void **state)
{
  (void)state;
  assert_string_equal(get("cluster"), "-");
  assert_int_equal(set("cluster", "a.b_c-9"), REDLOCK_OK);
  assert_int_equal(set("cluster", ""), REDLOCK_INVALID);
  assert_int_equal(set("cluster", "a b"), REDLOCK_INVALID);
  assert_int_equal(set("cluster", "abcdefghijklmnopqrstuvwxyzabcdefg"), REDLOCK_INVALID);
  assert_says(message(), "allowed: at most 32 bytes");
  assert_string_equal(get("cluster"), "a.b_c-9");
}

static void a_wrong_guard_in_the_environment_is_refused_at_open(void **state)
{
  static const char said_of_it[] = "REDLOCK_GUARD is \"on\\x0a\"; allowed: marker, external or off";
  (void)state;
  redlock_client_free(client);
  setenv("REDLOCK_GUARD", "on\n", 1);
  client = redlock_client_new();
  unsetenv("REDLOCK_GUARD");
  assert_int_equal(set("nodes", NODE), REDLOCK_OK);
  assert_int_equal(set("guard", "on"), REDLOCK_INVALID);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
    assert_string_equal(message(), said_of_it);
  }
  assert_int_equal(set("guard", "off"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
}

static void an_open_client_is_not_changed(void **state)
{
  (void)state;
  assert_int_equal(set("ttl_ms", "1000"), REDLOCK_INVALID);
  assert_says(message(), "ttl_ms");
  assert_int_equal(redlock_client_open(client), REDLOCK_INVALID);
  assert_true(strlen(message()) > 0);
}

/* ---- nodes ---- */

static void urls_are_taken_and_shown_without_their_secrets(void **state)
{
  static const char *const urls[][2] = {
      {"redis://h", "redis://h:6379"},
      {"redis://127.0.0.1:7001", "redis://127.0.0.1:7001"},
      {"redis://h:7001/3", "redis://h:7001/3"},
      {"redis://:sesame@h:1", "redis://:***@h:1"},
      {"redis://user:sesame%40%2C@h:1", "redis://user:***@h:1"},
      {"redis://[::1]:7001", "redis://[::1]:7001"},
      {"rediss://h", "rediss://h:6379"},
      {"rediss://user:sesame@[::1]:7001/2", "rediss://user:***@[::1]:7001/2"},
      {"unix:///run/r.sock", "unix:///run/r.sock"},
      {"unix://:sesame@/run/r.sock?db=2", "unix://:***@/run/r.sock?db=2"},
      {" redis://a , redis://b ", "redis://a:6379,redis://b:6379"},
  };
  char name[200];
  (void)state;
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    assert_int_equal(set("nodes", urls[i][0]), REDLOCK_OK);
    assert_string_equal(get("nodes"), urls[i][1]);
    assert_true(redlock_client_node_name(client, 0, name, sizeof name) > 0);
    assert_null(strstr(name, "sesame"));
  }
  assert_int_equal(redlock_client_node_count(client), 2);
}

static void a_refused_url_has_the_reason(void **state)
{
  static const char *const urls[][2] = {
      {"rediss://h:0", "port"},
      {"http://h", "redis://"},
      {"127.0.0.1:7001", "redis://"},
      {"redis://", "host"},
      {"redis://h:0", "port"},
      {"redis://h:65536", "port"},
      {"redis://u:sesame@h:99999", "port"},
      {"redis://h:x", "port"},
      {"redis://h/x", "database"},
      {"redis://h/-1", "database"},
      {"redis://[::1", "bracket"},
      {"redis://u%zz:p@h", "%"},
      {"redis://user@h", "password"},
      {"unix://run/r.sock", "/"},
      {"unix:///r.sock?x=1", "db"},
      {"redis://h :1", "space"},
      {"redis://h,,redis://i", "nodes"},
      {"redis://h:1,", "nodes"},
      {"a", "redis://"},
      {"redis:/a", "redis://"},
      {"redis://:6379", "host"},
      {"redis://[]", "host"},
      {"redis://[::1]x", "port"},
      {"redis://u:sesame%2@a", "%"},
      {"redis://u:sesame%00@a", "%"},
      {"redis://sesame@a", "password"},
      {"redis://u:sesame@", "host"},
      {"redis://a:1:2", "port"},
      {"redis://a?x=1", "redis://"},
      {"unix://", "/"},
      {",", "nodes"},
  };
  char deep[300] = "unix:///";
  (void)state;
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    assert_int_equal(set("nodes", urls[i][0]), REDLOCK_INVALID);
    assert_says(message(), urls[i][1]);
    assert_says(message(), "nodes");
    assert_says(message(), "redis://");
    assert_null(strstr(message(), "sesame"));
  }
  memset(deep + 8, 'p', 200);
  assert_int_equal(set("nodes", deep), REDLOCK_INVALID);
  assert_says(message(), "107");
}

static void there_may_be_64_nodes(void **state)
{
  char urls[65 * 32] = "";
  (void)state;
  for (int i = 1; i <= 65; i++) {
    snprintf(urls + strlen(urls), 32, "%sredis://127.0.0.1:%d", i > 1 ? "," : "", i);
    assert_int_equal(set("nodes", urls), i <= 64 ? REDLOCK_OK : REDLOCK_INVALID);
    if (i <= 64)
      assert_int_equal(redlock_client_node_count(client), i);
  }
  assert_says(message(), "64");
}

static void a_server_is_listed_once(void **state)
{
  static const char *const twice[][2] = {
      {"redis://127.0.0.1:7001,redis://127.0.0.1:7001", "127.0.0.1:7001"},
      {"redis://h,redis://h:6379", "h:6379"},
      {"redis://h/1,redis://h/2", "h:6379"},
      {"redis://:a@h,redis://:b@h", "h:6379"},
      {"unix:///r.sock,unix:///r.sock", "/r.sock"},
      {"redis://H,redis://h", "h:6379"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++) {
    assert_int_equal(set("nodes", twice[i][0]), REDLOCK_INVALID);
    assert_says(message(), twice[i][1]);
    assert_says(message(), "twice");
  }
}

/* ---- locks ---- */

static void a_locks_options_are_its_own(void **state)
{
  redlock_lock *other = redlock_lock_new(client, "s", 1);
  const char *name;
  char value[64];
  (void)state;
  for (int i = 0; (name = redlock_option_at(i, REDLOCK_OPTION_NAME)); i++) {
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_SCOPE), "both") == 0) {
      assert_true(redlock_lock_get(lock, name, value, sizeof value) > 0);
      assert_string_equal(value, get(name));
      assert_int_equal(redlock_lock_set(lock, name, value), REDLOCK_OK);
    } else {
      assert_int_equal(redlock_lock_set(lock, name, "1"), REDLOCK_INVALID);
      assert_says(lock_message(), name);
      assert_says(lock_message(), "an option of the client");
    }
  }
  assert_int_equal(redlock_lock_set(lock, "ttl_ms", "9000"), REDLOCK_OK);
  redlock_lock_get(other, "ttl_ms", value, sizeof value);
  assert_string_equal(value, "10000");
  assert_string_equal(get("ttl_ms"), "10000");
  assert_int_equal(redlock_lock_set(lock, "retry_jitter", "2"), REDLOCK_INVALID);
  assert_says(lock_message(), range_of("retry_jitter"));
  redlock_lock_free(other);
}

static void a_locks_options_are_checked_before_anything_is_sent(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_check(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_check(lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(lock, "ttl_ms", "1000"), REDLOCK_OK); /* the client's node_timeout_ms is 2000 */
  assert_int_equal(redlock_lock_check(lock), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_acquire(lock, 0), REDLOCK_INVALID);
  assert_says(lock_message(), "node_timeout_ms is 2000");
  assert_says(lock_message(), "1000");
  assert_int_equal(redlock_lock_set(lock, "node_timeout_ms", "auto"), REDLOCK_OK);
  assert_int_equal(redlock_lock_check(lock), REDLOCK_OK);
}

static void waits_and_operations_have_a_range(void **state)
{
  static const int64_t waits[] = {-3, -1000, INT64_C(31536000001)};
  static const int operations[] = {0, 7, -1};
  char number[32];
  (void)state;
  for (int i = 0; i < 3; i++) {
    snprintf(number, sizeof number, "%lld", (long long)waits[i]);
    assert_int_equal(redlock_lock_acquire(lock, waits[i]), REDLOCK_INVALID);
    assert_says(lock_message(), "wait");
    assert_says(lock_message(), number);
    assert_int_equal(redlock_lock_start(lock, REDLOCK_ACQUIRE, waits[i]), REDLOCK_INVALID);
    snprintf(number, sizeof number, "%d", operations[i]);
    assert_int_equal(redlock_lock_start(lock, operations[i], 0), REDLOCK_INVALID);
    assert_says(lock_message(), number);
  }
}

static void assert_unusable(redlock_lock *made, const char *word)
{
  redlock_lock *kept = lock;
  lock = made;
  assert_int_equal(redlock_lock_state(made), REDLOCK_STATE_INVALID);
  assert_says(lock_message(), word);
  assert_int_equal(redlock_lock_acquire(made, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_extend(made, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_release(made), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_start(made, REDLOCK_INSPECT, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_status(made), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_wait(made, 0), REDLOCK_INVALID);
  redlock_lock_free(made);
  lock = kept;
}

static void a_resource_has_1_byte_to_512_mb(void **state)
{
  (void)state;
  assert_unusable(redlock_lock_new(client, "", 0), "resource");
  assert_unusable(redlock_lock_new(client, NULL, 3), "resource");
  assert_unusable(redlock_lock_new(client, "r", ((size_t)512 << 20) + 1), "1 to 536870912");
}

static void a_lock_needs_an_open_client(void **state)
{
  (void)state;
  assert_unusable(redlock_lock_new(client, "r", 1), "open");
}

static void a_token_has_1_to_128_bytes(void **state)
{
  static const size_t sizes[] = {0, 129};
  char token[129], number[32];
  (void)state;
  memset(token, 'a', sizeof token);
  for (int i = 0; i < 2; i++) {
    snprintf(number, sizeof number, "%zu", sizes[i]);
    assert_int_equal(redlock_lock_adopt_bytes(lock, token, sizes[i]), REDLOCK_INVALID);
    assert_says(lock_message(), number);
    assert_says(lock_message(), "1 to 128");
    assert_int_equal(redlock_lock_state(lock), REDLOCK_STATE_FREE);
  }
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, fresh_client, end)
#define OPEN(test) cmocka_unit_test_setup_teardown(test, open_client, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
      FRESH(every_option_has_its_default),
      FRESH(a_refusal_names_option_value_and_range_and_changes_nothing),
      FRESH(truth_has_several_words),
      FRESH(texts_have_a_longest_size),
      FRESH(an_unknown_option_gets_the_nearest),
      FRESH(options_that_contradict_each_other_are_refused_by_open),
      FRESH(the_environment_has_the_default_of_guard),
      FRESH(the_environment_has_the_default_of_max_ttl_ms),
      FRESH(max_ttl_may_end_the_list_of_nodes),
      FRESH(max_ttl_in_a_list_is_refused_in_words),
      FRESH(max_ttl_is_given_once),
      FRESH(values_of_an_earlier_version_warn),
      FRESH(names_of_clusters),
      FRESH(a_wrong_guard_in_the_environment_is_refused_at_open),
      OPEN(an_open_client_is_not_changed),
      FRESH(urls_are_taken_and_shown_without_their_secrets),
      FRESH(a_refused_url_has_the_reason),
      FRESH(there_may_be_64_nodes),
      FRESH(a_server_is_listed_once),
      OPEN(a_locks_options_are_its_own),
      OPEN(a_locks_options_are_checked_before_anything_is_sent),
      OPEN(waits_and_operations_have_a_range),
      OPEN(a_resource_has_1_byte_to_512_mb),
      FRESH(a_lock_needs_an_open_client),
      OPEN(a_token_has_1_to_128_bytes),
  };
  unsetenv("REDLOCK_GUARD"); /* other tests are without a guard; these are of the defaults */
  return cmocka_run_group_tests(tests, NULL, NULL);
}

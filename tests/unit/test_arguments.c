/* What a program may give, through the public functions: node URLs, and what a lock takes. No server is asked. */
#include "settings_world.h"

/* ---- nodes ---- */

static void urls_are_taken_and_shown_without_their_secrets(void **state)
{
  static const struct {
    const char *url, *shown, *name;
  } urls[] = {
      {"redis://h", "redis://h:6379", "h:6379"},
      {"redis://127.0.0.1:7001", "redis://127.0.0.1:7001", "127.0.0.1:7001"},
      {"redis://h:7001/3", "redis://h:7001/3", "h:7001/3"},
      {"redis://:sesame@h:1", "redis://:***@h:1", "h:1"},
      {"redis://user:sesame%40%2C@h:1", "redis://user:***@h:1", "h:1"},
      {"redis://[::1]:7001", "redis://[::1]:7001", "[::1]:7001"},
      {"rediss://h", "rediss://h:6379", "h:6379"},
      {"rediss://user:sesame@[::1]:7001/2", "rediss://user:***@[::1]:7001/2", "[::1]:7001/2"},
      {"unix:///run/r.sock", "unix:///run/r.sock", "unix:/run/r.sock"},
      {"unix://:sesame@/run/r.sock?db=12", "unix://:***@/run/r.sock?db=12", "unix:/run/r.sock?db=12"},
      {" redis://a , redis://b ", "redis://a:6379,redis://b:6379", "a:6379"},
  };
  char name[200];
  (void)state;
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    assert_int_equal(set("nodes", urls[i].url), REDLOCK_OK);
    assert_string_equal(get("nodes"), urls[i].shown);
    assert_true(redlock_client_node_name(client, 0, name, sizeof name) > 0);
    assert_string_equal(name, urls[i].name);
  }
  assert_int_equal(redlock_client_node_count(client), 2);
}

static void a_path_of_a_unix_socket_has_107_bytes(void **state)
{
  char deep[300] = "unix:///";
  (void)state;
  memset(deep + 8, 'p', 106);
  assert_int_equal(set("nodes", deep), REDLOCK_OK);
  deep[8 + 106] = 'p';
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

static void bootstrap_refuses_other_modes(void **state)
{
  static const int modes[] = {0, 4, REDLOCK_BOOTSTRAP_DRY, REDLOCK_BOOTSTRAP_DRY + 4, 32 + 1, -1};
  char words[120];
  (void)state;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    assert_int_equal(redlock_client_bootstrap(client, modes[i]), REDLOCK_INVALID);
    snprintf(words, sizeof words, "mode is %d; allowed: 1 to 3, and %d added (enum redlock_bootstrap)", modes[i],
             REDLOCK_BOOTSTRAP_DRY);
    assert_string_equal(message(), words);
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
  for (int times = 0; times < 2; times++) {
    assert_int_equal(times ? redlock_lock_acquire(lock, 0) : redlock_lock_check(lock), REDLOCK_INVALID);
    assert_says(lock_message(), "node_timeout_ms is 2000");
    assert_says(lock_message(), "1000");
  }
  assert_int_equal(redlock_lock_set(lock, "node_timeout_ms", "auto"), REDLOCK_OK);
  assert_int_equal(redlock_lock_check(lock), REDLOCK_OK);
}

static void waits_and_operations_have_a_range(void **state)
{
  static const int64_t waits[] = {-3, -1000, INT64_C(31536000001)};
  static const int operations[] = {0, REDLOCK_EXAMINE + 1, -1};
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

static void only_a_client_that_looks_runs_scripts(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_start(lock, REDLOCK_EXAMINE, 0), REDLOCK_INVALID);
  assert_says(lock_message(), "examine");
  assert_says(lock_message(), "opened to look");
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

static void a_copy_of_what_can_not_be_used_can_not_either(void **state)
{
  redlock_lock *unusable = redlock_lock_new(client, "", 0);
  (void)state;
  assert_unusable(redlock_lock_copy(unusable), "resource");
  redlock_lock_free(unusable);
}

static void a_lock_needs_an_open_client(void **state)
{
  (void)state;
  assert_unusable(redlock_lock_new(client, "r", 1), "open");
}

static void a_lock_made_before_its_nodes_can_be_looked_at(void **state)
{
  redlock_lock *early = redlock_lock_new(client, "r", 1);
  char nodes[64 * 32] = "";
  (void)state;
  for (int i = 1; i <= 64; i++)
    snprintf(nodes + strlen(nodes), 32, "%sredis://127.0.0.1:%d", i > 1 ? "," : "", i);
  assert_int_equal(set("nodes", nodes), REDLOCK_OK);
  for (int i = 0; i < 64; i++)
    assert_int_equal(redlock_lock_vote(early, i), REDLOCK_NOT_HELD);
  assert_int_equal(redlock_lock_answer(early, 63, REDLOCK_ANSWER_TOKEN, said, sizeof said), 0);
  redlock_lock_free(early);
}

static void a_limit_is_any_time_or_none(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_start(lock, REDLOCK_WHO, INT64_MAX), REDLOCK_OK);
  redlock_lock_cancel(lock);
  assert_int_equal(redlock_lock_start(lock, REDLOCK_LIST, INT64_MAX), REDLOCK_OK);
  redlock_lock_cancel(lock);
  assert_int_equal(redlock_lock_start(lock, REDLOCK_WHO, -2), REDLOCK_INVALID);
  assert_says(lock_message(), "who: the limit");
  assert_int_equal(redlock_lock_start(lock, REDLOCK_LIST, -2), REDLOCK_INVALID);
  assert_says(lock_message(), "list: the limit");
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

int main(void)
{
  const struct CMUnitTest tests[] = {
      FRESH(urls_are_taken_and_shown_without_their_secrets),
      FRESH(a_path_of_a_unix_socket_has_107_bytes),
      FRESH(there_may_be_64_nodes),
      FRESH(bootstrap_refuses_other_modes),
      OPEN(a_locks_options_are_its_own),
      OPEN(a_locks_options_are_checked_before_anything_is_sent),
      OPEN(waits_and_operations_have_a_range),
      OPEN(only_a_client_that_looks_runs_scripts),
      OPEN(a_resource_has_1_byte_to_512_mb),
      OPEN(a_copy_of_what_can_not_be_used_can_not_either),
      FRESH(a_lock_needs_an_open_client),
      FRESH(a_lock_made_before_its_nodes_can_be_looked_at),
      OPEN(a_limit_is_any_time_or_none),
      OPEN(a_token_has_1_to_128_bytes),
  };
  unsetenv("REDLOCK_GUARD"); /* other tests are without a guard; these are of the defaults */
  return cmocka_run_group_tests(tests, NULL, NULL);
}

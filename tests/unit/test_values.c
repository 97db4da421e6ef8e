/* Values and texts of the public functions: statuses, the option table, NULL handles, buffers. No server is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lock/figures.h"
#include "redlock.h"

static void statuses_have_names_texts_and_traits(void **state)
{
  enum { E = 1, R = 2, U = 4 };
  static const struct {
    const char *name;
    int traits;
  } statuses[] = {
      {"OK", 0},
      {"PENDING", 0},
      {"BUSY", E | R},
      {"NO_QUORUM", E | R},
      {"TIMED_OUT", E | R},
      {"CANCELLED", E | R},
      {"LOST", E},
      {"NOT_HELD", E | U},
      {"LIMIT", E},
      {"FORKED", E | U},
      {"IN_FLIGHT", E | U},
      {"INVALID", E | U},
      {"REFUSED_CONFIG", E | U},
      {"NO_MEMORY", E | R},
      {"INTERNAL", E},
      {"UNREACHABLE", E | R},
      {"QUARANTINED", E | R},
  };
  static const int unknown[] = {-1, 17, 1000};
  (void)state;
  for (int i = 0; i < 17; i++) {
    assert_string_equal(redlock_status_name(i), statuses[i].name);
    assert_true(strlen(redlock_status_text(i)) > 3);
    assert_int_equal(redlock_status_is(i, REDLOCK_IS_ERROR), (statuses[i].traits & E) != 0);
    assert_int_equal(redlock_status_is(i, REDLOCK_IS_RETRIABLE), (statuses[i].traits & R) != 0);
    assert_int_equal(redlock_status_is(i, REDLOCK_IS_USAGE), (statuses[i].traits & U) != 0);
  }
  for (int i = 0; i < 3; i++) {
    assert_string_equal(redlock_status_name(unknown[i]), "UNKNOWN");
    assert_true(strlen(redlock_status_text(unknown[i])) > 3);
    assert_int_equal(redlock_status_is(unknown[i], REDLOCK_IS_ERROR), 0);
  }
  assert_int_equal(redlock_status_is(REDLOCK_BUSY, 99), 0);
}

static void assert_one_of(const char *value, const char *words)
{
  const char *at = strstr(words, value);
  if (!at || (at != words && at[-1] != ' ') || (at[strlen(value)] != ' ' && at[strlen(value)] != 0))
    fail_msg("\"%s\" is none of: %s", value, words);
}

static void the_option_table_is_whole(void **state)
{
  int count = 0;
  (void)state;
  for (const char *name; (name = redlock_option_at(count, REDLOCK_OPTION_NAME)); count++) {
    size_t size = strlen(name);
    int is_ms = size > 3 && strcmp(name + size - 3, "_ms") == 0;
    assert_one_of(redlock_option_at(count, REDLOCK_OPTION_TYPE), "int float bool string nodes");
    assert_one_of(redlock_option_at(count, REDLOCK_OPTION_SCOPE), "client both");
    assert_one_of(redlock_option_at(count, REDLOCK_OPTION_PURPOSE), "node tls kind grant wait lease hold handle");
    assert_string_equal(redlock_option_at(count, REDLOCK_OPTION_UNIT), is_ms ? "ms" : "");
    assert_true(strlen(redlock_option_at(count, REDLOCK_OPTION_RANGE)) > 0);
    assert_true(strlen(redlock_option_at(count, REDLOCK_OPTION_HELP)) > 0);
    assert_null(redlock_option_at(count, 99));
  }
  assert_true(count >= 19);
  assert_null(redlock_option_at(-1, REDLOCK_OPTION_NAME));
}

static void a_null_handle_is_invalid(void **state)
{
  char buf[10];
  uint64_t tag;
  redlock_lock *lock = redlock_lock_new(NULL, "r", 1);
  (void)state;
  redlock_client_free(NULL);
  redlock_lock_free(NULL);
  assert_int_equal(redlock_client_set(NULL, "ttl_ms", "1000"), REDLOCK_INVALID);
  assert_int_equal(redlock_client_open(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_client_process(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_client_drain(NULL, 10), REDLOCK_INVALID);
  assert_int_equal(redlock_client_get(NULL, "ttl_ms", buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_event(NULL, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_describe(NULL, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_message(NULL, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_node_name(NULL, 0, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_fd(NULL), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_event_fd(NULL), -REDLOCK_INVALID);
  assert_int_equal(redlock_client_next(NULL, &tag), 0);
  assert_int_equal(redlock_client_advance(NULL, &tag), 0);
  assert_int_equal(redlock_client_node_count(NULL), 0);
  assert_int_equal(redlock_lock_set(NULL, "ttl_ms", "1000"), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_check(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_set_tag(NULL, 1), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_acquire(NULL, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_extend(NULL, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_release(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_expire(NULL, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_remove(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_settle(NULL, 10), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_start(NULL, REDLOCK_ACQUIRE, 0), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_status(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_wait(NULL, 10), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_cancel(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_adopt(NULL, "t"), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_adopt_bytes(NULL, "t", 1), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_detach(NULL), REDLOCK_INVALID);
  assert_int_equal(redlock_lock_get(NULL, "ttl_ms", buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_token(NULL, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_answer(NULL, 0, 0, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_message(NULL, buf, 10), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_vote(NULL, 0), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_validity_ms(NULL), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_state(NULL), REDLOCK_STATE_INVALID);
  assert_int_equal(redlock_lock_loss(NULL), REDLOCK_LOSS_NONE);
  assert_int_equal(redlock_lock_verdict(NULL), REDLOCK_VERDICT_UNKNOWN);
  assert_int_equal(redlock_lock_state(lock), REDLOCK_STATE_INVALID);
  assert_int_equal(redlock_lock_acquire(lock, 0), REDLOCK_INVALID);
  redlock_lock_free(lock);
}

static void texts_are_cut_and_counted(void **state)
{
  char buf[] = "xxxxxxxxxx";
  redlock_client *client = redlock_client_new();
  (void)state;
  assert_int_equal(redlock_client_set(client, "ttl_ms", "8000"), REDLOCK_OK);
  assert_int_equal(redlock_client_get(client, "ttl_ms", NULL, 0), 4);
  assert_int_equal(redlock_client_get(client, "ttl_ms", buf, 3), 4);
  assert_string_equal(buf, "80");
  assert_int_equal(redlock_client_node_name(client, 0, buf, sizeof buf), -REDLOCK_INVALID);
  redlock_client_free(client); /* one that was never opened */
}

static void a_lock_is_free_before_its_first_operation(void **state)
{
  char buf[64];
  redlock_client *client = redlock_client_new();
  redlock_lock *lock;
  (void)state;
  assert_int_equal(redlock_client_set(client, "nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  lock = redlock_lock_new(client, "r", 1);
  assert_int_equal(redlock_lock_status(lock), REDLOCK_NOT_HELD);
  assert_int_equal(redlock_lock_state(lock), REDLOCK_STATE_FREE);
  assert_int_equal(redlock_lock_token(lock, buf, sizeof buf), 0);
  assert_int_equal(redlock_lock_validity_ms(lock), 0);
  assert_int_equal(redlock_lock_vote(lock, 0), REDLOCK_NOT_HELD);
  assert_int_equal(redlock_lock_vote(lock, 1), -REDLOCK_INVALID);
  assert_int_equal(redlock_lock_detach(lock), REDLOCK_NOT_HELD);
  assert_int_equal(redlock_lock_extend(lock, 0), REDLOCK_NOT_HELD);
  assert_int_equal(redlock_lock_start(lock, REDLOCK_RELEASE, 0), REDLOCK_NOT_HELD);
  assert_true(redlock_lock_message(lock, buf, sizeof buf) > 0);
  assert_string_equal(buf, "release: \"r\" is not held by this handle");
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void every_reason_of_a_loss_has_a_name(void **state)
{
  static const char *const names[] = {"expired", "gone", "restarted", "refused", "limit", "clock"};
  static char metrics[65536];
  char row[100];
  redlock_client *client = redlock_client_new();
  (void)state;
  assert_int_equal(redlock_client_set(client, "nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(client), REDLOCK_OK);
  assert_in_range(redlock_client_metrics(client, metrics, sizeof metrics), 1, sizeof metrics - 1);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(row, sizeof row, "\nredlock_losses_total{reason=\"%s\"} 0\n", names[i]);
    assert_non_null(strstr(metrics, row));
  }
  redlock_client_free(client);
}

static void every_status_has_a_counter(void **state)
{
  (void)state;
  assert_string_equal(redlock_status_name(RLK_COUNTED_STATUSES), "UNKNOWN");
}

static void a_text_is_escaped_as_in_messages(void **state)
{
  char text[32];
  (void)state;
  assert_int_equal(redlock_escape("a\x1b[2J\n\xc3\xa9\xff", text, sizeof text), 18);
  assert_string_equal(text, "a\\x1b[2J\\x0a\xc3\xa9\\xff");
  assert_int_equal(redlock_escape("orders", text, 4), 6);
  assert_string_equal(text, "ord");
  assert_int_equal(redlock_escape(NULL, text, sizeof text), -REDLOCK_INVALID);
}

static void a_child_has_another_generation(void **state)
{
  uint32_t generation = redlock_fork_generation();
  int status = -1;
  pid_t child;
  (void)state;
  assert_int_equal(redlock_fork_generation(), generation);
  child = fork();
  if (child == 0)
    _exit(redlock_fork_generation() != generation ? 0 : 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(redlock_fork_generation(), generation);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_status_has_a_counter),        cmocka_unit_test(statuses_have_names_texts_and_traits),
      cmocka_unit_test(the_option_table_is_whole),         cmocka_unit_test(a_null_handle_is_invalid),
      cmocka_unit_test(texts_are_cut_and_counted),         cmocka_unit_test(a_lock_is_free_before_its_first_operation),
      cmocka_unit_test(every_reason_of_a_loss_has_a_name), cmocka_unit_test(a_text_is_escaped_as_in_messages),
      cmocka_unit_test(a_child_has_another_generation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

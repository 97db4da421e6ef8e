/* Ranges and terms of options, what node URLs say, texts and commands: what test_settings.c and test_arguments.c
 * cannot see from outside. */
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
#include "rules/options.h"
#include "rules/url.h"

static char why[512];

static int parse(struct rlk_numbers *n, const char *name, const char *value)
{
  struct rlk_text text = {why, sizeof why, .is_plain = 1};
  return rlk_option_parse(n, rlk_option_find(name, 0), value, &text);
}

/* The range in words and the range that is checked are the same: its two ends pass, what lies outside does not. */
static void ranges_in_words_are_the_ranges_that_are_checked(void **state)
{
  struct rlk_numbers n;
  (void)state;
  rlk_options_defaults(&n);
  for (int i = 0; redlock_option_at(i, REDLOCK_OPTION_NAME); i++) {
    const char *range = redlock_option_at(i, REDLOCK_OPTION_RANGE);
    const char *numbers = strstr(range, "auto, or ") ? range + 9 : range;
    char low[32], high[32], outside[40];
    if (sscanf(numbers, "%31s to %31[0-9.-]", low, high) != 2 || rlk_option_is_text(i) || !strcmp(low, "true"))
      continue;
    assert_int_equal(parse(&n, redlock_option_at(i, 0), low), REDLOCK_OK);
    assert_int_equal(parse(&n, redlock_option_at(i, 0), high), REDLOCK_OK);
    snprintf(outside, sizeof outside, "%g", atof(low) - 1);
    assert_int_equal(parse(&n, redlock_option_at(i, 0), outside), REDLOCK_INVALID);
    snprintf(outside, sizeof outside, "%.0f", atof(high) + 1);
    assert_int_equal(parse(&n, redlock_option_at(i, 0), outside), REDLOCK_INVALID);
    assert_non_null(strstr(why, redlock_option_at(i, 0)));
    assert_non_null(strstr(why, outside));
    assert_non_null(strstr(why, range));
  }
}

static void a_value_that_is_no_number_is_refused(void **state)
{
  static const char *const values[] = {"", " 5", "5 ", "5x", "0x10", "1e3", "nan", "inf", "9999999999999999999", "--1"};
  struct rlk_numbers n;
  (void)state;
  rlk_options_defaults(&n);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    assert_int_equal(parse(&n, "max_hold_ms", values[i]), REDLOCK_INVALID);
    if (strcmp(values[i], "1e3") != 0)
      assert_int_equal(parse(&n, "retry_jitter", values[i]), REDLOCK_INVALID);
  }
  assert_int_equal(parse(&n, "retry_jitter", "0.30000000000000004"), REDLOCK_OK); /* what languages write */
  assert_int_equal(parse(&n, "retry_jitter", "."), REDLOCK_INVALID);
}

static int terms(struct rlk_numbers *n, int64_t ttl_ms, struct rlk_terms *t)
{
  struct rlk_text text = {why, sizeof why, .is_plain = 1};
  return rlk_terms_for(n, ttl_ms, t, &text);
}

static void options_are_checked_against_each_other(void **state)
{
  struct rlk_numbers n;
  struct rlk_terms t;
  (void)state;
  rlk_options_defaults(&n);
  assert_int_equal(terms(&n, 0, &t), REDLOCK_OK);
  assert_int_equal(t.node_timeout_ns, 1000 * 1000000);
  assert_int_equal(t.patience_min_ns, 50 * 1000000);
  assert_int_equal(t.patience_max_ns, 1000 * 1000000);
  assert_int_equal(t.min_validity_ns, 1000 * 1000000);
  assert_int_equal(t.lease_ns, (10000 - 102) * INT64_C(1000000));
  assert_int_equal(terms(&n, 20, &t), REDLOCK_OK);
  assert_int_equal(t.node_timeout_ns, 5 * 1000000);
  assert_int_equal(t.min_validity_ns, 5 * 1000000);
  assert_int_equal(terms(&n, 3600000, &t), REDLOCK_INVALID);
  assert_string_equal(why, "ttl_ms 3600000 is above max_ttl_ms, 30000: renew a shorter lock, or give all programs of "
                           "these nodes a max_ttl_ms of 3600000 (a node that loses its keys is out for as long)");
  assert_int_equal(parse(&n, "max_ttl_ms", "86400000"), REDLOCK_OK);
  assert_int_equal(terms(&n, 3600000, &t), REDLOCK_OK);
  assert_int_equal(t.node_timeout_ns, 1000 * 1000000); /* a long TTL is no reason to wait long for a hung node */
  assert_int_equal(terms(&n, 19, &t), REDLOCK_INVALID);
  assert_int_equal(terms(&n, 86400001, &t), REDLOCK_INVALID);
  assert_non_null(strstr(why, "max_ttl_ms (86400000)"));
  assert_int_equal(parse(&n, "node_timeout_ms", "60"), REDLOCK_OK);
  assert_int_equal(terms(&n, 200, &t), REDLOCK_INVALID);
  assert_non_null(strstr(why, "node_timeout_ms is 60"));
  assert_int_equal(parse(&n, "min_validity_ms", "9900"), REDLOCK_OK);
  assert_int_equal(terms(&n, 10000, &t), REDLOCK_INVALID);
  assert_non_null(strstr(why, "too short"));
}

/* What is in a text when it is freed. */
static const char *watched;
static int is_wiped;

void __real_free(void *object);
__attribute__((visibility("default"))) void __wrap_free(void *object); /* libraries that are linked in use it, too */

void __wrap_free(void *object)
{
  if (object && object == watched)
    is_wiped = watched[0] == 0;
  __real_free(object);
}

static int url(const char *text, struct rlk_url *u)
{
  struct rlk_text reason = {why, sizeof why, .is_plain = 1};
  return rlk_url_parse(u, text, strlen(text), &reason);
}

static void passwords_are_wiped(void **state)
{
  struct rlk_url u;
  (void)state;
  assert_int_equal(url("redis://:secret@localhost", &u), REDLOCK_OK);
  watched = u.password;
  is_wiped = 0;
  rlk_url_free(&u);
  assert_true(is_wiped);
  watched = NULL;
}

static void append(struct rlk_buffer *b, const char *text)
{
  assert_int_equal(rlk_buffer_reserve(b, strlen(text)), 0);
  rlk_buffer_append(b, text, strlen(text));
}

/* Commands to log in pass through buffers. */
static void buffers_are_wiped(void **state)
{
  struct rlk_buffer b = {0};
  char zeros[8] = {0};
  (void)state;
  append(&b, "secret");
  watched = b.data;
  is_wiped = 0;
  assert_int_equal(rlk_buffer_reserve(&b, 5000), 0);
  assert_true(is_wiped);
  assert_memory_equal(b.data, "secret", 6);
  b.start = 100; /* what was before has been sent */
  b.end = 107;
  memcpy(b.data + 100, "another", 7);
  assert_int_equal(rlk_buffer_reserve(&b, b.capacity - 107 + 1), 0); /* it moves to the front */
  assert_memory_equal(b.data, "another", 7);
  assert_memory_equal(b.data + 100, zeros, 7);
  watched = b.data;
  is_wiped = 0;
  rlk_buffer_free(&b);
  assert_true(is_wiped);
  watched = NULL;
}

static void urls_are_read(void **state)
{
  struct rlk_url u;
  char shown[200];
  struct rlk_text text;
  (void)state;
  assert_int_equal(url("redis://us%40er:p%3aw@db1.example:7001/3", &u), REDLOCK_OK);
  assert_string_equal(u.host, "db1.example");
  assert_string_equal(u.user, "us@er");
  assert_string_equal(u.password, "p:w");
  assert_int_equal(u.port, 7001);
  assert_int_equal(u.database, 3);
  assert_string_equal(u.name, "db1.example:7001/3");
  text = rlk_text_in(shown, sizeof shown);
  rlk_url_format(&u, &text);
  assert_null(strstr(shown, "p:w"));
  rlk_url_free(&u);
  assert_int_equal(url("redis://:secret@[::1]:7002", &u), REDLOCK_OK);
  assert_string_equal(u.host, "::1");
  assert_string_equal(u.password, "secret");
  assert_null(u.user);
  assert_string_equal(u.name, "[::1]:7002");
  rlk_url_free(&u);
  assert_int_equal(url("redis://[::1]", &u), REDLOCK_OK);
  assert_int_equal(u.port, 6379);
  rlk_url_free(&u);
  assert_int_equal(url("redis://[::1]:", &u), REDLOCK_INVALID);
  assert_int_equal(url("unix://:pw@/run/redis%20a.sock?db=2", &u), REDLOCK_OK);
  assert_string_equal(u.host, "/run/redis a.sock");
  assert_int_equal(u.database, 2);
  assert_true(u.is_unix);
  rlk_url_free(&u);
  assert_int_equal(url("REDIS://a", &u), REDLOCK_OK);
  rlk_url_free(&u);
}

static void texts_are_escaped_and_cut(void **state)
{
  char buf[256];
  struct rlk_text t = rlk_text_in(buf, sizeof buf);
  (void)state;
  rlk_text_escaped(&t, "a\0b\n\xff\\\xc3\xa9", 8);
  assert_string_equal(buf, "a\\x00b\\x0a\\xff\\\\\xc3\xa9");
  t = rlk_text_in(buf, sizeof buf);
  rlk_text_json(&t, "\"\\\n", 3, 64);
  assert_string_equal(buf, "\"\\\"\\\\\\\\\\\\x0a\"");
  t = rlk_text_in(buf, sizeof buf);
  rlk_text_json_clean(&t, "\"\\x0a", 5);
  assert_string_equal(buf, "\"\\\"\\\\x0a\"");
  t = rlk_text_in(buf, 5);
  rlk_text_add(&t, "123456789");
  assert_string_equal(buf, "1234");
  assert_int_equal(t.length, 9);
  t = rlk_text_in(NULL, 0);
  rlk_text_add(&t, "123");
  assert_int_equal(t.length, 3);
}

static void bulk_strings_are_well_formed(void **state)
{
  struct rlk_number ttl = {0};
  struct rlk_buffer key = {0};
  (void)state;
  assert_int_equal(rlk_buffer_reserve(&key, 64), 0);
  rlk_bulk_name(&key, "p:", "", "a\0b", 3);
  assert_int_equal(key.end, 11);
  assert_memory_equal(key.data, "$5\r\np:a\0b\r\n", 11);
  rlk_number_set(&ttl, 9999);
  rlk_number_set(&ttl, 10000);
  assert_int_equal(ttl.size, 11);
  assert_memory_equal(ttl.bulk, "$5\r\n10000\r\n", 11);
  rlk_buffer_free(&key);
}

static void bytes_are_cut_out_of_buffers(void **state)
{
  struct rlk_buffer out = {0};
  (void)state;
  assert_int_equal(rlk_buffer_reserve(&out, 16), 0);
  rlk_buffer_append(&out, "012345678", 9);
  rlk_buffer_cut(&out, 2, 3);
  assert_int_equal(rlk_buffer_size(&out), 6);
  assert_memory_equal(out.data, "015678", 6);
  rlk_buffer_free(&out);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges_in_words_are_the_ranges_that_are_checked),
      cmocka_unit_test(a_value_that_is_no_number_is_refused),
      cmocka_unit_test(options_are_checked_against_each_other),
      cmocka_unit_test(urls_are_read),
      cmocka_unit_test(passwords_are_wiped),
      cmocka_unit_test(buffers_are_wiped),
      cmocka_unit_test(texts_are_escaped_and_cut),
      cmocka_unit_test(bulk_strings_are_well_formed),
      cmocka_unit_test(bytes_are_cut_out_of_buffers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The marker of the restart guard: what is one, and what of it may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/marker.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"

static void what_was_written_is_read(void **state)
{
  static const char *const texts[] = {
      "v1 " RUN_ID " 1795438658011 3 46a245bbf6aa95d0 auto 10000 3600000 3600000",
      "v1 " RUN_ID " 1795438658011 5 46a245bbf6aa95d0 auto 0 0 0",
      "v1 " RUN_ID " 0 64 46a245bbf6aa95d0 86400000 86400000 86400000 86400000",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct rlk_marker marker;
    char text[RLK_MARKER_SIZE];
    struct rlk_text out = rlk_text_in(text, sizeof text);
    assert_int_equal(rlk_marker_read(texts[i], &marker), 1);
    rlk_marker_write(&marker, &out);
    assert_string_equal(text, texts[i]);
  }
}

static void anything_else_is_no_marker(void **state)
{
  static const char *const texts[] = {
      "",
      "v1",
      "v2 " RUN_ID " 1 3 46a2 auto 1 1 1",
      "v1 " RUN_ID " 1 3 46a2 auto 1 1",
      "v1 " RUN_ID " 1 3 46a2 auto 1 1 1 ",
      "v1 " RUN_ID " 1 3 46a2 auto 1 1 1 1",
      "v1 " RUN_ID " 1 3 46a2 none 1 1 1",
      "v1 " RUN_ID " 1 3 46a2 0 1 1 1",
      "v1 " RUN_ID " -1 3 46a2 auto 1 1 1",
      "v1 " RUN_ID " 1 3 46a2 auto -1 1 1",
      "v1 " RUN_ID " 1 3 46a2 auto 2 1 1",
      "v1 " RUN_ID " 1 3 46a2 auto 1 1 2",
      "v1 " RUN_ID " 1 3 46a2 auto 1 1 -1",
      "v1 " RUN_ID "0 1 3 46a2 auto 1 1 1",
      "v1 " RUN_ID " 1 3 XYZ auto 1 1 1",
      "v1 " RUN_ID " 1 3 46a2 auto 1 9999999999 1",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct rlk_marker marker;
    if (rlk_marker_read(texts[i], &marker))
      fail_msg("\"%s\" is read", texts[i]);
  }
}

static int is_same(const char *text)
{
  struct rlk_marker one, other;
  assert_int_equal(rlk_marker_read("v1 " RUN_ID " 7 3 46a2 auto 1 2 1", &one), 1);
  assert_int_equal(rlk_marker_read(text, &other), 1);
  return rlk_marker_is_same(&one, &other);
}

/* It is another one where keys were lost and it was written again, and the same one where it was raised or completed.
 */
static void which_is_the_same(void **state)
{
  (void)state;
  assert_true(is_same("v1 " RUN_ID " 7 3 46a2 auto 1 2 1"));
  assert_true(is_same("v1 " RUN_ID " 7 3 46a2 auto 1 9 9"));
  assert_true(is_same("v1 " RUN_ID " 7 3 46a2 auto 0 0 0"));
  assert_false(is_same("v1 " RUN_ID " 8 3 46a2 auto 1 2 1"));
  assert_false(is_same("v1 " RUN_ID " 7 3 46a3 auto 1 2 1"));
  assert_false(is_same("v1 1123456789abcdef0123456789abcdef01234567 7 3 46a2 auto 1 2 1"));
}

static void the_part_that_never_changes_ends_behind_the_nonce(void **state)
{
  const char *text = "v1 " RUN_ID " 7 3 46a2 auto 1 2 1";
  (void)state;
  assert_int_equal(rlk_marker_beginning(text), strlen("v1 " RUN_ID " 7 3 46a2 "));
  assert_int_equal(rlk_marker_beginning("v1 " RUN_ID), strlen("v1 " RUN_ID));
  assert_int_equal(rlk_marker_beginning(""), 0);
}

static void the_longest_fits(void **state)
{
  struct rlk_marker marker = {RUN_ID, 999999999999999, 64, "46a245bbf6aa95d0", 86400000, 86400000, 86400000, 86400000},
                    again;
  char text[RLK_MARKER_SIZE];
  struct rlk_text out = rlk_text_in(text, sizeof text);
  (void)state;
  rlk_marker_write(&marker, &out);
  assert_int_equal(rlk_marker_read(text, &again), 1);
  assert_int_equal(again.agreed_ms, marker.agreed_ms);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_written_is_read), cmocka_unit_test(anything_else_is_no_marker),
      cmocka_unit_test(which_is_the_same),        cmocka_unit_test(the_part_that_never_changes_ends_behind_the_nonce),
      cmocka_unit_test(the_longest_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The marker of the restart guard: what is one, and what of it an operator may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/marker.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define REPLID2 "0123456789abcdef"
#define LONGEST_CLUSTER "abcdefghijklmnopqrstuvwxyzABCDEF"

static void write(const struct rlk_marker *marker, char *out)
{
  struct rlk_text text = rlk_text_in(out, RLK_MARKER_SIZE);
  rlk_marker_head(marker, &text);
  rlk_text_format(&text, "%lld", (long long)marker->since_ms);
  rlk_marker_tail(marker, &text);
}

static void a_written_marker_is_read_back(void **state)
{
  static const char *const texts[] = {
      "v2 " RUN_ID " 1795438658011 3 0 46a245bbf6aa95d0 30000 -",
      "v2 " RUN_ID " 0 64 15 46a245bbf6aa95d0 86400000 " LONGEST_CLUSTER,
      "v2 " RUN_ID " 999999999999999 5 1000000 46a2 31536000000 a.b_c-9",
      "v2 " RUN_ID " 0 3 0 46a245bbf6aa95d0 30000 - 0000000000000000",
      "v2 " RUN_ID " 999999999999999 64 15 46a245bbf6aa95d0 86400000 " LONGEST_CLUSTER " 0123456789abcdef",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct rlk_marker marker;
    char text[RLK_MARKER_SIZE];
    assert_int_equal(rlk_marker_read(texts[i], &marker), 1);
    write(&marker, text);
    assert_string_equal(text, texts[i]);
  }
}

static void fields_of_a_later_version_are_tolerated(void **state)
{
  struct rlk_marker marker;
  (void)state;
  assert_int_equal(rlk_marker_read("v2 " RUN_ID " 7 3 0 46a2 30000 - " REPLID2 " more", &marker), 1);
  assert_int_equal(marker.max_ttl_ms, 30000);
  assert_string_equal(marker.cluster, "-");
}

static void anything_else_is_no_marker(void **state)
{
  static const char *const texts[] = {
      "",
      "v2",
      "v1 " RUN_ID " 7 3 46a2 auto 1 1 1",
      "v3 " RUN_ID " 7 3 0 46a2 30000 -",
      "v2 " RUN_ID " 7 3 0 46a2 30000",
      "v2 " RUN_ID " 7 3 0 46a2 30000 ",
      "v2 " RUN_ID " 7 3 0 46a2 0 -",
      "v2 " RUN_ID " 7 3 0 46a2 -1 -",
      "v2 " RUN_ID " 7 3 0 46a2 auto -",
      "v2 " RUN_ID " 7 3 0 46a2 999999999999 -",
      "v2 " RUN_ID " -1 3 0 46a2 30000 -",
      "v2 " RUN_ID " 7 0 0 46a2 30000 -",
      "v2 " RUN_ID " 7 3 -1 46a2 30000 -",
      "v2 " RUN_ID "0 7 3 0 46a2 30000 -",
      "v2 " RUN_ID " 7 3 0 XYZ 30000 -",
      "v2 " RUN_ID " 7 3 0 46a2 30000 " LONGEST_CLUSTER "x",
      "v2 " RUN_ID " 7 3 0 46a2 30000 a/b",
      "v2 " RUN_ID " 7 3 0 46a2 30000 - ",
      "v2 " RUN_ID " 7 3 0 46a2 30000 - more",
      "v2 " RUN_ID " 7 3 0 46a2 30000 - 0123456789abcde",
      "v2 " RUN_ID " 7 3 0 46a2 30000 - 0123456789abcde more",
      "v2 " RUN_ID " 7 3 0 46a2 30000 - " REPLID2 "0",
      "v2 " RUN_ID " 7 3 0 46a2 30000 -  " REPLID2,
      "v2 " RUN_ID " 7 3 0 46a2 30000 - 0123456789ABCDEF",
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
  assert_int_equal(rlk_marker_read("v2 " RUN_ID " 7 3 0 46a2 30000 a", &one), 1);
  assert_int_equal(rlk_marker_read(text, &other), 1);
  return rlk_marker_is_same(&one, &other);
}

/* It is another one where keys were lost and it was written again, and the same one where an operator has changed it.
 */
static void only_number_and_quarantine_of_a_marker_may_change(void **state)
{
  (void)state;
  assert_true(is_same("v2 " RUN_ID " 7 3 0 46a2 30000 a"));
  assert_true(is_same("v2 " RUN_ID " 7 3 0 46a2 60000 a"));
  assert_true(is_same("v2 " RUN_ID " 0 3 0 46a2 30000 a"));
  assert_false(is_same("v2 " RUN_ID " 8 3 0 46a2 30000 a"));
  assert_false(is_same("v2 " RUN_ID " 7 3 0 46a3 30000 a"));
  assert_false(is_same("v2 " RUN_ID " 7 5 0 46a2 30000 a"));
  assert_false(is_same("v2 " RUN_ID " 7 3 1 46a2 30000 a"));
  assert_false(is_same("v2 " RUN_ID " 7 3 0 46a2 30000 b"));
  assert_false(is_same("v2 1123456789abcdef0123456789abcdef01234567 7 3 0 46a2 30000 a"));
}

/* Data from before an operator's word does not count as that word. */
static void an_older_marker_is_another_one(void **state)
{
  struct rlk_marker now, older;
  (void)state;
  assert_int_equal(rlk_marker_read("v2 " RUN_ID " 0 3 0 46a2 30000 a", &now), 1);
  assert_int_equal(rlk_marker_read("v2 " RUN_ID " 7 3 0 46a2 30000 a", &older), 1);
  assert_false(rlk_marker_is_same(&now, &older));
}

static void a_server_with_another_history_is_another_one(void **state)
{
  (void)state;
  assert_false(rlk_replid2_is_same(RLK_REPLID2_NONE, REPLID2));
  assert_false(rlk_replid2_is_same("fedcba9876543210", REPLID2));
  assert_true(rlk_replid2_is_same(REPLID2, REPLID2));
  assert_true(rlk_replid2_is_same(REPLID2, RLK_REPLID2_NONE)); /* it was forgotten */
  assert_true(rlk_replid2_is_same("", REPLID2));               /* the marker does not name it */
  assert_true(rlk_replid2_is_same(REPLID2, ""));               /* the server does not show it */
}

static void names_of_clusters_are_short_and_plain(void **state)
{
  (void)state;
  assert_true(rlk_cluster_is_valid("-"));
  assert_true(rlk_cluster_is_valid(LONGEST_CLUSTER));
  assert_false(rlk_cluster_is_valid(""));
  assert_false(rlk_cluster_is_valid(LONGEST_CLUSTER "x"));
  assert_false(rlk_cluster_is_valid("a b"));
  assert_false(rlk_cluster_is_valid("\xc3\xa4"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_written_marker_is_read_back),
      cmocka_unit_test(fields_of_a_later_version_are_tolerated),
      cmocka_unit_test(anything_else_is_no_marker),
      cmocka_unit_test(only_number_and_quarantine_of_a_marker_may_change),
      cmocka_unit_test(an_older_marker_is_another_one),
      cmocka_unit_test(a_server_with_another_history_is_another_one),
      cmocka_unit_test(names_of_clusters_are_short_and_plain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

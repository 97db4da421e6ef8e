/* What an operator finds on a node, and what is written there: over all states and modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/quorum.h"
#include "vote/plan.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba98"
#define NUMBER_MS 30000

enum { NEW = REDLOCK_BOOTSTRAP_NEW, YES = REDLOCK_BOOTSTRAP_YES, REPLACE = REDLOCK_BOOTSTRAP_REPLACE };
enum { DRY = REDLOCK_BOOTSTRAP_DRY };

static const int64_t clock_ms = INT64_C(1795438658011);
static const struct rlk_common common = {3, "-", NUMBER_MS, 0.01};
static struct rlk_plan plan;
static const char *replid2 = "";

static void write(const struct rlk_marker *m, char *out)
{
  struct rlk_text text = rlk_text_in(out, RLK_MARKER_SIZE);
  rlk_marker_head(m, &text);
  rlk_text_format(&text, "%lld", (long long)m->since_ms);
  rlk_marker_tail(m, &text);
}

static struct rlk_planned *see(int node, const char *marker, int mode)
{
  struct rlk_planned *p = &plan.nodes[node];
  struct rlk_sight sight = {marker, RUN_ID, replid2, 0, clock_ms};
  rlk_plan_look(p, &sight, &common, mode);
  snprintf(p->seen, sizeof p->seen, "%s", marker);
  snprintf(p->run_id, sizeof p->run_id, RUN_ID);
  p->did = REDLOCK_DID_LEFT_ALONE;
  return p;
}

/* When a program that knows nothing but the marker counts the node, by the number that the marker names; 0: at once. */
static int64_t waits_until_ms(const struct rlk_marker *m)
{
  return m->since_ms ? m->since_ms + m->max_ttl_ms + rlk_drift_ns(m->max_ttl_ms, 0.01) / RLK_NS_PER_MS : 0;
}

static const int64_t ages_ms[] = {0, 1, 1000, 19999, 29000, 30400, 59000, 61000, 119000, 125000, 86400000, -900};
static const int64_t numbers_ms[] = {20, 20000, NUMBER_MS, 60000, 120000};
static const struct {
  int nodes;
  const char *cluster;
} lists[] = {{3, "-"}, {5, "-"}, {3, "b"}, {1, "orders"}};

/* Calls a check with each marker of this server, and the mode; the server shows its history, or does not. */
static void with_all_of(void (*check)(const struct rlk_marker *, int mode))
{
  for (size_t age = 0; age <= sizeof ages_ms / sizeof *ages_ms; age++)
    for (size_t number = 0; number < sizeof numbers_ms / sizeof *numbers_ms; number++)
      for (size_t list = 0; list < sizeof lists / sizeof *lists; list++)
        for (int mode = NEW; mode <= REPLACE; mode++) {
          int has_age = age < sizeof ages_ms / sizeof *ages_ms;
          struct rlk_marker m = {.run_id = RUN_ID,
                                 .since_ms = has_age ? clock_ms - ages_ms[age] : 0,
                                 .nodes = lists[list].nodes,
                                 .nonce = "a1",
                                 .max_ttl_ms = numbers_ms[number]};
          snprintf(m.cluster, sizeof m.cluster, "%s", lists[list].cluster);
          snprintf(m.replid2, sizeof m.replid2, "%s", replid2);
          check(&m, mode);
          check(&m, mode | DRY);
        }
}

static void with_all(void (*check)(const struct rlk_marker *, int mode))
{
  with_all_of(check);
  replid2 = RLK_REPLID2_NONE;
  with_all_of(check);
  replid2 = "";
}

static struct rlk_planned *plan_for(const struct rlk_marker *m, int mode)
{
  char text[RLK_MARKER_SIZE];
  struct rlk_planned *p;
  write(m, text);
  p = see(0, text, mode);
  rlk_plan_make(&plan, 1, &common, mode);
  return p;
}

/* The question "is no lock live?" is asked where a node is to be registered. */
static void check_quarantine(const struct rlk_marker *m, int mode)
{
  struct rlk_planned *p = plan_for(m, mode);
  int is_quarantined = waits_until_ms(m) > clock_ms;
  if (!p->wanted.nodes)
    return;
  if (is_quarantined && waits_until_ms(&p->wanted) < waits_until_ms(m)) {
    assert_int_equal(p->will, REDLOCK_DID_REGISTERED);
    assert_int_equal(mode & ~DRY, YES);
  }
  if ((mode & ~DRY) == REPLACE)
    assert_int_equal(p->wanted.since_ms, m->since_ms);
  assert_int_equal(p->did, p->will);
}

static void no_quarantine_ends_unless_no_lock_is_live(void **state)
{
  (void)state;
  with_all(check_quarantine);
}

static int is_ours(const struct rlk_marker *m)
{
  return m->nodes == common.nodes && strcmp(m->cluster, common.cluster) == 0;
}

static void check_what_changes(const struct rlk_marker *m, int mode)
{
  struct rlk_planned *p = plan_for(m, mode);
  const struct rlk_marker *w = &p->wanted;
  int is_quarantined = waits_until_ms(m) > clock_ms, differs = !is_ours(m) || m->max_ttl_ms != NUMBER_MS;
  switch (mode & ~DRY) {
  case YES:
    assert_int_equal(w->nodes > 0, is_quarantined && is_ours(m));
    assert_true(!w->nodes || (w->max_ttl_ms == m->max_ttl_ms && is_ours(w) && w->since_ms == 0));
    break;
  case REPLACE:
    assert_int_equal(w->nodes > 0, differs && !(is_quarantined && m->max_ttl_ms > NUMBER_MS));
    assert_true(!w->nodes || (w->max_ttl_ms == NUMBER_MS && is_ours(w)));
    break;
  default: assert_int_equal(w->nodes, 0);
  }
  if (w->nodes) {
    assert_string_equal(w->run_id, m->run_id);
    assert_string_equal(w->nonce, m->nonce);
  }
}

static void each_mode_changes_what_it_is_for(void **state)
{
  (void)state;
  with_all(check_what_changes);
}

static void words_name_a_quarantine(const struct rlk_marker *m, int mode)
{
  struct rlk_planned *p = plan_for(m, mode);
  int says = strstr(p->words, "quarantined for another ") || strstr(p->words, "votes in ");
  assert_int_equal(says, waits_until_ms(m) > clock_ms);
  assert_int_equal(says, p->left_ms > 0);
}

static void a_quarantine_is_named_beside_all_else(void **state)
{
  (void)state;
  with_all(words_name_a_quarantine);
}

static void what_is_no_marker_of_this_server_is_told_apart(void **state)
{
  static const struct {
    const char *marker;
    int found, yes;
  } cases[] = {
      {"", REDLOCK_FOUND_NEW, 1},
      {"v2 " OTHER_ID " 0 3 0 a1 30000 -", REDLOCK_FOUND_NEW, 1},
      {"v2 " RUN_ID " 0 3 1 a1 30000 -", REDLOCK_FOUND_NEW, 1},
      {"v2 " RUN_ID " 1795438660000 3 0 a1 30000 -", REDLOCK_FOUND_NEW, 1},
      {"v2 " RUN_ID " 1795438660000 3 0 a1 60000 b", REDLOCK_FOUND_NEW, 1},
      {"mine", REDLOCK_FOUND_FOREIGN, 0},
      {"v2 " RUN_ID " 0 3 0 a1 30000", REDLOCK_FOUND_FOREIGN, 0},
  };
  (void)state;
  replid2 = RLK_REPLID2_NONE;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int mode = NEW; mode <= REPLACE; mode++) {
      struct rlk_planned *p = see(0, cases[i].marker, mode);
      int is_wanted = mode == NEW ? !cases[i].marker[0] : mode == YES && cases[i].yes;
      assert_int_equal(p->found, cases[i].found);
      assert_int_equal(rlk_plan_make(&plan, 1, &common, mode), is_wanted);
      assert_int_equal(p->wanted.nodes > 0, is_wanted);
      if (is_wanted)
        assert_true(p->wanted.since_ms == 0 && !p->wanted.run_id[0]);
    }
  replid2 = "";
}

static void replace_adds_the_history_that_a_marker_lacks(void **state)
{
  static const char marker[] = "v2 " RUN_ID " 0 3 0 a1 30000 -";
  struct rlk_planned *p = see(0, marker, REPLACE);
  (void)state;
  assert_int_equal(rlk_plan_make(&plan, 1, &common, REPLACE), 0); /* the server shows none */
  replid2 = "0123456789abcdef";
  p = see(0, marker, REPLACE);
  replid2 = "";
  assert_int_equal(rlk_plan_make(&plan, 1, &common, YES), 0);
  assert_int_equal(rlk_plan_make(&plan, 1, &common, REPLACE | DRY), 1);
  assert_int_equal(p->found, REDLOCK_FOUND_VOTES);
  assert_int_equal(p->did, REDLOCK_DID_REPLACED);
  assert_string_equal(p->wanted.replid2, "0123456789abcdef");
  assert_string_equal(p->wanted.nonce, "a1");
}

/* A server forgets it when no replica has been there for long. */
static void replace_keeps_the_history_that_a_marker_names(void **state)
{
  static const char *const shown[] = {"", RLK_REPLID2_NONE, "0123456789abcdef"};
  (void)state;
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    struct rlk_planned *p;
    replid2 = shown[i];
    p = see(0, "v2 " RUN_ID " 0 3 0 a1 20000 - 0123456789abcdef", REPLACE);
    assert_int_equal(rlk_plan_make(&plan, 1, &common, REPLACE), 1);
    assert_string_equal(p->wanted.replid2, "0123456789abcdef");
  }
  replid2 = "";
}

static void new_ones_are_registered_only_if_all_are(void **state)
{
  static const char *const others[] = {"v2 " RUN_ID " 0 3 0 a1 30000 -", "v2 " OTHER_ID " 0 3 0 a1 30000 -", "mine"};
  (void)state;
  for (int node = 0; node < 3; node++)
    see(node, "", NEW);
  assert_int_equal(rlk_plan_make(&plan, 3, &common, NEW), 1);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    see(1, others[i], NEW);
    assert_int_equal(rlk_plan_make(&plan, 3, &common, NEW), 0);
    assert_int_equal(rlk_plan_make(&plan, 3, &common, YES), 1);
  }
  see(1, "", NEW)->found = REDLOCK_FOUND_NOTHING;
  assert_int_equal(rlk_plan_make(&plan, 3, &common, NEW), 0);
}

static void a_dry_call_plans_one_subject(void **state)
{
  static const char *const markers[] = {"v2 " RUN_ID " 0 5 0 a1 30000 -", "v2 " RUN_ID " 0 3 0 a1 60000 -",
                                        "v2 " RUN_ID " 0 3 0 a1 20000 -", "v2 " RUN_ID " 0 3 0 a1 10000 -"};
  static const int planned[] = {0, 0, 1, 1};
  (void)state;
  for (int node = 0; node < 4; node++)
    see(node, markers[node], REPLACE);
  assert_int_equal(rlk_plan_make(&plan, 4, &common, REPLACE | DRY), 1);
  for (int node = 0; node < 4; node++)
    assert_int_equal(plan.nodes[node].wanted.nodes > 0, planned[node]);
  assert_int_equal(rlk_plan_make(&plan, 4, &common, REPLACE), 1);
  for (int node = 0; node < 4; node++)
    assert_int_equal(plan.nodes[node].wanted.nodes, 3);
}

/* A node that does not answer is no subject: lowering is asked for although raising, asked for first, could be. */
static void a_node_without_an_answer_hides_no_subject(void **state)
{
  (void)state;
  see(0, "v2 " RUN_ID " 0 3 0 a1 60000 -", REPLACE);
  see(1, "", REPLACE)->found = REDLOCK_FOUND_NOTHING;
  plan.nodes[1].mark = (struct rlk_marker){.nodes = 0};
  assert_int_equal(rlk_plan_make(&plan, 2, &common, REPLACE | DRY), 1);
  assert_true(plan.nodes[0].wanted.nodes > 0 && plan.nodes[0].did == REDLOCK_DID_REPLACED);
}

static void a_plan_for_one_node_writes(void **state)
{
  const struct rlk_common single = {1, "-", NUMBER_MS, 0.01};
  (void)state;
  see(0, "", YES);
  assert_int_equal(rlk_plan_make(&plan, 1, &single, YES), 1);
}

static void a_plan_has_no_more_nodes_than_it_is_asked_for(void **state)
{
  (void)state;
  see(1, "", YES);
  see(0, "", YES);
  plan.nodes[1].wanted.nodes = 0;
  rlk_plan_make(&plan, 1, &common, YES);
  assert_int_equal(plan.nodes[1].wanted.nodes, 0);
  assert_int_equal(plan.nodes[1].did, REDLOCK_DID_LEFT_ALONE);
}

static void a_plan_stands_while_the_server_shows_the_same(void **state)
{
  const struct rlk_sight same = {"", RUN_ID, "", 0, clock_ms + 60000}, restarted = {"", OTHER_ID, "", 0, clock_ms},
                         registered = {"v2 " RUN_ID " 0 3 0 a1 30000 -", RUN_ID, "", 0, clock_ms};
  struct rlk_planned *p = see(0, "", YES);
  (void)state;
  rlk_plan_make(&plan, 1, &common, YES | DRY);
  assert_int_equal(rlk_plan_stands(p, &same), 1);
  assert_int_equal(rlk_plan_stands(p, &restarted), 0);
  assert_int_equal(rlk_plan_stands(p, &registered), 0);
  assert_int_equal(rlk_plan_was_shown(&plan, YES), 1);
  assert_int_equal(rlk_plan_was_shown(&plan, YES | DRY), 0);
  assert_int_equal(rlk_plan_was_shown(&plan, REPLACE), 0);
  assert_int_equal(rlk_plan_was_shown(NULL, YES), 0);
  see(0, registered.marker, YES); /* shown as voting */
  rlk_plan_make(&plan, 1, &common, YES | DRY);
  assert_int_equal(rlk_plan_stands(p, &registered), 0);
  rlk_plan_make(&plan, 1, &common, YES);
  assert_int_equal(rlk_plan_was_shown(&plan, YES), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_quarantine_ends_unless_no_lock_is_live),
      cmocka_unit_test(each_mode_changes_what_it_is_for),
      cmocka_unit_test(a_quarantine_is_named_beside_all_else),
      cmocka_unit_test(what_is_no_marker_of_this_server_is_told_apart),
      cmocka_unit_test(replace_adds_the_history_that_a_marker_lacks),
      cmocka_unit_test(replace_keeps_the_history_that_a_marker_names),
      cmocka_unit_test(new_ones_are_registered_only_if_all_are),
      cmocka_unit_test(a_dry_call_plans_one_subject),
      cmocka_unit_test(a_node_without_an_answer_hides_no_subject),
      cmocka_unit_test(a_plan_for_one_node_writes),
      cmocka_unit_test(a_plan_has_no_more_nodes_than_it_is_asked_for),
      cmocka_unit_test(a_plan_stands_while_the_server_shows_the_same),
  };
  return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

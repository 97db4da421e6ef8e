/* Every order of every answer for 1 to 7 nodes, and the arithmetic of leases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../core/include/redlock.h"
#include "rules/quorum.h"

static const uint8_t kinds[] = {RLK_GRANTED, RLK_BUSY, RLK_ERROR, RLK_LATE};

static int count(const uint8_t *answers, int nodes, int what)
{
  int n = 0;
  for (int i = 0; i < nodes; i++)
    n += answers[i] == what;
  return n;
}

/* What the rules say of a state, derived by hand: can it still be won, is it known why not. */
static int expected(const uint8_t *answers, int nodes)
{
  int quorum = nodes / 2 + 1;
  int granted = count(answers, nodes, RLK_GRANTED), busy = count(answers, nodes, RLK_BUSY);
  int open = count(answers, nodes, RLK_ASKED);
  if (granted >= quorum)
    return REDLOCK_OK;
  if (granted + open >= quorum)
    return REDLOCK_PENDING;
  if (granted + busy >= quorum)
    return REDLOCK_BUSY;
  return granted + busy + open >= quorum ? REDLOCK_PENDING : REDLOCK_NO_QUORUM;
}

static int judge(const uint8_t *answers, int nodes)
{
  struct rlk_tally tally = rlk_count(answers, nodes);
  return rlk_judge_acquire(&tally, 1);
}

static uint8_t seen[78125]; /* states that were reached, as numbers to the base 5 */

static int was_seen(const uint8_t *answers, int nodes)
{
  long code = 0;
  int before;
  for (int i = 0; i < nodes; i++) {
    int digit = 4;
    for (int k = 0; k < 4; k++)
      if (answers[i] == kinds[k])
        digit = k;
    code = code * 5 + digit;
  }
  before = seen[code];
  seen[code] = 1;
  return before;
}

/* Lets every node that is open answer next, with every answer, until there is a verdict: all orders of all answers pass
 * through the states that are visited here, each of which needs to be looked at only once. The number of ends. */
static long explore(uint8_t *answers, int nodes)
{
  long ways = 0;
  int verdict = judge(answers, nodes);
  assert_int_equal(verdict, expected(answers, nodes));
  if (was_seen(answers, nodes))
    return 0;
  if (verdict != REDLOCK_PENDING)
    return 1;
  for (int i = 0; i < nodes; i++) {
    if (answers[i] != RLK_ASKED)
      continue;
    for (size_t k = 0; k < sizeof kinds; k++) {
      answers[i] = kinds[k];
      ways += explore(answers, nodes);
    }
    answers[i] = RLK_ASKED;
  }
  return ways;
}

static void every_order_of_answers_has_the_right_verdict(void **state)
{
  (void)state;
  for (int nodes = 1; nodes <= 7; nodes++) {
    uint8_t answers[7];
    memset(answers, RLK_ASKED, sizeof answers);
    memset(seen, 0, sizeof seen);
    assert_true(explore(answers, nodes) > 1);
  }
}

/* A verdict never changes with what comes later: no loss that could have been a win, no win by less than a majority. */
static void a_verdict_is_final(void **state)
{
  (void)state;
  for (int nodes = 1; nodes <= 7; nodes++) {
    long states = 1;
    for (int i = 0; i < nodes; i++)
      states *= 5;
    for (long s = 0; s < states; s++) {
      uint8_t answers[7], best[7];
      long rest = s;
      int verdict;
      for (int i = 0; i < nodes; i++, rest /= 5)
        answers[i] = rest % 5 == 4 ? RLK_ASKED : kinds[rest % 5];
      verdict = judge(answers, nodes);
      memcpy(best, answers, sizeof best);
      for (int i = 0; i < nodes; i++)
        if (best[i] == RLK_ASKED)
          best[i] = RLK_GRANTED;
      if (verdict == REDLOCK_OK)
        assert_true(count(answers, nodes, RLK_GRANTED) * 2 > nodes);
      else if (verdict != REDLOCK_PENDING)
        assert_int_not_equal(judge(best, nodes), REDLOCK_OK);
    }
  }
}

static void granted_too_late_is_no_win(void **state)
{
  uint8_t all[5] = {RLK_GRANTED, RLK_GRANTED, RLK_GRANTED, RLK_GRANTED, RLK_GRANTED};
  uint8_t some[5] = {RLK_GRANTED, RLK_GRANTED, RLK_GRANTED, RLK_ASKED, RLK_BUSY};
  struct rlk_tally tally = rlk_count(all, 5);
  (void)state;
  assert_int_equal(rlk_judge_acquire(&tally, 0), REDLOCK_NO_QUORUM);
  tally = rlk_count(some, 5);
  assert_int_equal(rlk_judge_acquire(&tally, 0), REDLOCK_PENDING);
}

static void reasons_not_to_vote_are_counted_apart(void **state)
{
  uint8_t three[5] = {RLK_REFUSED, RLK_REFUSED, RLK_REFUSED, RLK_ASKED, RLK_ASKED};
  uint8_t two[5] = {RLK_REFUSED, RLK_REFUSED, RLK_DOWN, RLK_GRANTED, RLK_GRANTED};
  struct rlk_tally tally = rlk_count(three, 5);
  (void)state;
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_REFUSED_CONFIG);
  tally = rlk_count(two, 5);
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_NO_QUORUM);
}

/* A node that has failed before is waited for only while no quorum could be asked. */
static void a_round_of_a_quorum_waits_for_no_failing_connection(void **state)
{
  uint8_t few[5] = {RLK_BUSY, RLK_BUSY, RLK_RETRYING, RLK_RETRYING, RLK_RETRYING};
  uint8_t enough[5] = {RLK_BUSY, RLK_BUSY, RLK_BUSY, RLK_RETRYING, RLK_RETRYING};
  uint8_t split[5] = {RLK_GRANTED, RLK_GRANTED, RLK_BUSY, RLK_RETRYING, RLK_DOWN};
  uint8_t fresh[5] = {RLK_GRANTED, RLK_GRANTED, RLK_BUSY, RLK_WAITING, RLK_DOWN};
  uint8_t more[5] = {RLK_GRANTED, RLK_GRANTED, RLK_BUSY, RLK_BUSY, RLK_RETRYING};
  struct rlk_tally tally = rlk_count(few, 5);
  (void)state;
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_PENDING);
  tally = rlk_count(more, 5);
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_BUSY);
  tally = rlk_count(enough, 5);
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_BUSY);
  tally = rlk_count(split, 5);
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_BUSY);
  tally = rlk_count(fresh, 5); /* a first connection may decide it */
  assert_int_equal(rlk_judge_acquire(&tally, 1), REDLOCK_PENDING);
}

/* Nodes as letters: + granted or deleted, b busy, 0 gone, f free, ? asked, w and r connecting, r after a failure,
 * - no answer, e an error, d no connection, q quarantined, x refused. */
static struct rlk_tally tally_of(const char *nodes)
{
  static const char letters[] = "+b0f?wr-edqx";
  static const uint8_t votes[] = {RLK_GRANTED,  RLK_BUSY, RLK_GONE,  RLK_FREE, RLK_ASKED,       RLK_WAITING,
                                  RLK_RETRYING, RLK_LATE, RLK_ERROR, RLK_DOWN, RLK_QUARANTINED, RLK_REFUSED};
  uint8_t answers[RLK_NODES_MAX];
  int n = (int)strlen(nodes);
  for (int i = 0; i < n; i++)
    answers[i] = votes[strchr(letters, nodes[i]) - letters];
  return rlk_count(answers, n);
}

static void votes_are_counted(void **state)
{
  struct rlk_tally t = tally_of("+++++bbbb000ff????wwrrr-eddqqxxx");
  (void)state;
  assert_int_equal(t.nodes, 32);
  assert_int_equal(t.quorum, 17);
  assert_int_equal(t.granted, 5);
  assert_int_equal(t.busy, 4);
  assert_int_equal(t.gone, 3);
  assert_int_equal(t.free, 2);
  assert_int_equal(t.asked, 4);
  assert_int_equal(t.waiting, 2);
  assert_int_equal(t.retrying, 3);
  assert_int_equal(t.quarantined, 2);
  assert_int_equal(t.refused, 3);
  assert_int_equal(t.answered, 14);
  assert_int_equal(t.reached, 18); /* asked, granted, busy, gone, late, or with an error */
}

static int judge_acquire(const char *nodes)
{
  struct rlk_tally tally = tally_of(nodes);
  return rlk_judge_acquire(&tally, 1);
}

/* It may vote in a later attempt; this one does not wait for it. */
static void a_quarantined_node_is_not_waited_for(void **state)
{
  (void)state;
  assert_int_equal(judge_acquire("+qq"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_acquire("++q"), REDLOCK_OK);
  assert_int_equal(judge_acquire("+++"), REDLOCK_OK);
  assert_int_equal(judge_acquire("bbq"), REDLOCK_BUSY);
  assert_int_equal(judge_acquire("+?q"), REDLOCK_PENDING);
  assert_int_equal(judge_acquire("xqq"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_acquire("xxq"), REDLOCK_REFUSED_CONFIG);
}

static int judge_extend(const char *nodes)
{
  struct rlk_tally tally = tally_of(nodes);
  return rlk_judge_extend(&tally);
}

static void extensions_are_judged(void **state)
{
  (void)state;
  assert_int_equal(judge_extend("+++??"), REDLOCK_OK);
  assert_int_equal(judge_extend("++???"), REDLOCK_PENDING);
  assert_int_equal(judge_extend("000??"), REDLOCK_LOST);
  assert_int_equal(judge_extend("++-00"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_extend("++000"), REDLOCK_LOST);
  assert_int_equal(judge_extend("00--?"), REDLOCK_PENDING); /* the last one may say that it is gone */
  assert_int_equal(judge_extend("-----"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_extend("++00"), REDLOCK_LOST); /* 3 of 4 needed, 2 gone: it cannot be held */
  assert_int_equal(judge_extend("+"), REDLOCK_OK);
  assert_int_equal(judge_extend("++w"), REDLOCK_OK);
  assert_int_equal(judge_extend("+++"), REDLOCK_OK);
  assert_int_equal(judge_extend("+w-"), REDLOCK_PENDING);
  assert_int_equal(judge_extend("+rd"), REDLOCK_PENDING); /* no majority was asked: even this one is waited for */
  assert_int_equal(judge_extend("+-r"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_extend("+xx"), REDLOCK_REFUSED_CONFIG);
  assert_int_equal(judge_extend("+qq"), REDLOCK_NO_QUORUM);
}

static int judge_release(const char *nodes, int adopted)
{
  struct rlk_tally tally = tally_of(nodes);
  return rlk_judge_release(&tally, adopted);
}

static void releases_are_judged(void **state)
{
  (void)state;
  assert_int_equal(judge_release("+++??", 0), REDLOCK_OK);
  assert_int_equal(judge_release("++???", 0), REDLOCK_PENDING);
  assert_int_equal(judge_release("++ddd", 0), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_release("++xxx", 0), REDLOCK_REFUSED_CONFIG);
  assert_int_equal(judge_release("++?dd", 0), REDLOCK_PENDING);
  assert_int_equal(judge_release("+00??", 0), REDLOCK_OK);
  assert_int_equal(judge_release("000??", 0), REDLOCK_LOST);
  assert_int_equal(judge_release("000??", 1), REDLOCK_PENDING); /* one of the others may still have had it */
  assert_int_equal(judge_release("000?d", 1), REDLOCK_PENDING);
  assert_int_equal(judge_release("000w-", 1), REDLOCK_PENDING);
  assert_int_equal(judge_release("000--", 1), REDLOCK_LOST);
  assert_int_equal(judge_release("0000+", 1), REDLOCK_OK);
  assert_int_equal(judge_release("00000", 1), REDLOCK_LOST);
  assert_int_equal(judge_release("00ddd", 1), REDLOCK_NO_QUORUM);
}

static int judge_remove(const char *nodes)
{
  struct rlk_tally tally = tally_of(nodes);
  return rlk_judge_remove(&tally);
}

/* Every node is waited for. */
static void removals_are_judged(void **state)
{
  (void)state;
  assert_int_equal(judge_remove("+++"), REDLOCK_OK);
  assert_int_equal(judge_remove("+0d"), REDLOCK_OK);
  assert_int_equal(judge_remove("00d"), REDLOCK_OK);
  assert_int_equal(judge_remove("000"), REDLOCK_OK);
  assert_int_equal(judge_remove("++?"), REDLOCK_PENDING);
  assert_int_equal(judge_remove("++w"), REDLOCK_PENDING);
  assert_int_equal(judge_remove("++r"), REDLOCK_PENDING);
  assert_int_equal(judge_remove("wr?"), REDLOCK_PENDING);
  assert_int_equal(judge_remove("+dd"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_remove("0xd"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_remove("+xx"), REDLOCK_REFUSED_CONFIG);
}

static int judge_inspect(const char *nodes)
{
  struct rlk_tally tally = tally_of(nodes);
  return rlk_judge_inspect(&tally);
}

static void inspections_are_judged(void **state)
{
  (void)state;
  assert_int_equal(judge_inspect("fff"), REDLOCK_OK);
  assert_int_equal(judge_inspect("ffb"), REDLOCK_OK);
  assert_int_equal(judge_inspect("ffd"), REDLOCK_OK);
  assert_int_equal(judge_inspect("fbb"), REDLOCK_BUSY);
  assert_int_equal(judge_inspect("bbb"), REDLOCK_BUSY);
  assert_int_equal(judge_inspect("fbd"), REDLOCK_BUSY);
  assert_int_equal(judge_inspect("+bd"), REDLOCK_BUSY);
  assert_int_equal(judge_inspect("++d"), REDLOCK_BUSY);
  assert_int_equal(judge_inspect("ff?"), REDLOCK_PENDING);
  assert_int_equal(judge_inspect("ffw"), REDLOCK_PENDING);
  assert_int_equal(judge_inspect("ffr"), REDLOCK_PENDING);
  assert_int_equal(judge_inspect("wr?"), REDLOCK_PENDING);
  assert_int_equal(judge_inspect("bdd"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_inspect("fed"), REDLOCK_NO_QUORUM);
  assert_int_equal(judge_inspect("fxx"), REDLOCK_REFUSED_CONFIG);
}

/* Nodes as letters: d deleted, g gone, ? no answer yet, - none in time, w connecting; D, G, ! and L are the same of
 * those that counted. */
static int judge_promise(const char *nodes)
{
  uint8_t answers[RLK_NODES_MAX];
  uint64_t counted = 0;
  int n = (int)strlen(nodes);
  for (int i = 0; i < n; i++) {
    static const char letters[] = "DdGg?!-Lw";
    static const uint8_t votes[] = {RLK_GRANTED, RLK_GRANTED, RLK_GONE, RLK_GONE,   RLK_ASKED,
                                    RLK_ASKED,   RLK_LATE,    RLK_LATE, RLK_WAITING};
    answers[i] = votes[strchr(letters, nodes[i]) - letters];
    counted |= (uint64_t)(strchr("DG!L", nodes[i]) != NULL) << i;
  }
  return rlk_judge_promise(answers, counted, n);
}

static void a_release_reports_whether_the_lock_was_held(void **state)
{
  (void)state;
  assert_int_equal(judge_promise("DDD"), REDLOCK_OK);
  assert_int_equal(judge_promise("DD?"), REDLOCK_OK);
  assert_int_equal(judge_promise("!!!"), REDLOCK_OK);      /* no node contradicts */
  assert_int_equal(judge_promise("DDg"), REDLOCK_OK);      /* it never granted: that it holds nothing is no news */
  assert_int_equal(judge_promise("G!!"), REDLOCK_PENDING); /* the others decide */
  assert_int_equal(judge_promise("GD!"), REDLOCK_PENDING);
  assert_int_equal(judge_promise("GDD"), REDLOCK_OK);
  assert_int_equal(judge_promise("GG!"), REDLOCK_LOST); /* certain before the third has answered */
  assert_int_equal(judge_promise("GDg"), REDLOCK_LOST);
  assert_int_equal(judge_promise("GDd"), REDLOCK_OK);      /* a late grant held it, too */
  assert_int_equal(judge_promise("GD?"), REDLOCK_PENDING); /* ... and may be told last */
  assert_int_equal(judge_promise("GGDD!"), REDLOCK_PENDING);
  assert_int_equal(judge_promise("DDG!!"), REDLOCK_PENDING); /* whoever answers first */
  assert_int_equal(judge_promise("GGDDD"), REDLOCK_OK);
  assert_int_equal(judge_promise("GGGDD"), REDLOCK_LOST);
  assert_int_equal(judge_promise("G"), REDLOCK_LOST);
  assert_int_equal(judge_promise("GDDD!"), REDLOCK_OK);
  assert_int_equal(judge_promise("GDDDD"), REDLOCK_OK);
  assert_int_equal(judge_promise("Dg?"), REDLOCK_OK); /* the others have not contradicted */
  assert_int_equal(judge_promise("D??"), REDLOCK_OK);
  assert_int_equal(judge_promise("Dgg"), REDLOCK_LOST);
  assert_int_equal(judge_promise("g!!"), REDLOCK_OK); /* it never granted */
  assert_int_equal(judge_promise("GD-"), REDLOCK_LOST);
  assert_int_equal(judge_promise("GDw"), REDLOCK_LOST); /* it was never asked, and did not count */
  assert_int_equal(judge_promise("DLL"), REDLOCK_OK);   /* silence contradicts nothing */
}

static void quorum_is_a_majority(void **state)
{
  (void)state;
  for (int n = 1; n <= RLK_NODES_MAX; n++) {
    assert_true(2 * rlk_quorum(n) > n);
    assert_true(2 * (rlk_quorum(n) - 1) <= n);
  }
}

static void drift_is_rounded_up_and_has_two_ms_more(void **state)
{
  (void)state;
  assert_int_equal(rlk_drift_ns(10000, 0.01), 102 * 1000000LL);
  assert_int_equal(rlk_drift_ns(20, 0.01), 3 * 1000000LL);
  assert_int_equal(rlk_drift_ns(150, 0.01), 4 * 1000000LL);
  assert_int_equal(rlk_drift_ns(1000, 0), 2 * 1000000LL);
}

static int descending(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x < y) - (x > y);
}

static void valid_until_is_the_qth_largest(void **state)
{
  unsigned seed = 7;
  (void)state;
  for (int round = 0; round < 200000; round++) {
    int64_t e[RLK_NODES_MAX], sorted[RLK_NODES_MAX];
    int n = 1 + rand_r(&seed) % (round % 10 ? 7 : RLK_NODES_MAX), q = rlk_quorum(n);
    for (int i = 0; i < n; i++)
      e[i] = sorted[i] = rand_r(&seed) % 9; /* many equal ones */
    qsort(sorted, (size_t)n, sizeof sorted[0], descending);
    assert_int_equal(rlk_valid_until(e, n, q), sorted[q - 1]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_order_of_answers_has_the_right_verdict),
      cmocka_unit_test(a_verdict_is_final),
      cmocka_unit_test(granted_too_late_is_no_win),
      cmocka_unit_test(reasons_not_to_vote_are_counted_apart),
      cmocka_unit_test(a_round_of_a_quorum_waits_for_no_failing_connection),
      cmocka_unit_test(votes_are_counted),
      cmocka_unit_test(a_quarantined_node_is_not_waited_for),
      cmocka_unit_test(extensions_are_judged),
      cmocka_unit_test(releases_are_judged),
      cmocka_unit_test(removals_are_judged),
      cmocka_unit_test(inspections_are_judged),
      cmocka_unit_test(a_release_reports_whether_the_lock_was_held),
      cmocka_unit_test(quorum_is_a_majority),
      cmocka_unit_test(drift_is_rounded_up_and_has_two_ms_more),
      cmocka_unit_test(valid_until_is_the_qth_largest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

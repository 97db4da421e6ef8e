/* Which leases are renewed together, and what comes of that. */
#include <sched.h>

#include "../../core/src/client/alarm.h"
#include "../../core/src/client/keeper.h"
#include "lock_world.h"

static redlock_lock *hold_renewed(const char *resource, const char *drift_factor)
{
  redlock_lock *made = redlock_lock_new(client, resource, strlen(resource)), *kept = lock;
  assert_non_null(made);
  assert_int_equal(redlock_lock_set(made, "renew", "true"), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(made, "drift_factor", drift_factor), REDLOCK_OK);
  lock = made;
  hold();
  lock = kept;
  return made;
}

/* Each is confirmed for no longer than its own drift allows. */
static void leases_of_different_drift_are_renewed_apart(void **state)
{
  redlock_lock *locks[] = {hold_renewed("a", "0.01"), hold_renewed("b", "0.05"), hold_renewed("c", "0.01")};
  int renewed = 0;
  (void)state;
  rlk_renewals_due(&client->engine, now_ns + locks[0]->hold.terms.ttl_ms * MS / 2);
  for (int i = 0; i < asked(0); i++) {
    const struct rlk_request *request = rlk_request_at(requests_of(0), (uint32_t)i);
    assert_ptr_equal(request->ask, &rlk_row_renew);
    for (int k = 0; k < request->of.batch->count; k++, renewed++)
      assert_int_equal(request->lease_ns, request->of.batch->claim[k]->lock->hold.terms.lease_ns);
  }
  assert_int_equal(renewed, 3);
  for (int i = 0; i < 3; i++)
    redlock_lock_free(locks[i]);
}

/* The renewal of a reader is a request of its own, and under way with the extension that made it one. */
static void a_repeated_renewal_leaves_out_locks_shared_since(void **state)
{
  redlock_lock *locks[] = {hold_renewed("a", "0.01"), hold_renewed("b", "0.01")}, *sharing, *other;
  const struct rlk_request *again;
  (void)state;
  rlk_renewals_due(&client->engine, now_ns + locks[0]->hold.terms.ttl_ms * MS / 2);
  sharing = rlk_request_at(requests_of(0), 0)->of.batch->claim[0]->lock;
  other = rlk_request_at(requests_of(0), 0)->of.batch->claim[1]->lock;
  assert_int_equal(redlock_lock_set(sharing, "shared", "true"), REDLOCK_OK);
  assert_int_equal(rlk_operation_begin(sharing, &rlk_extend, 0, now_ns), REDLOCK_OK);
  answer_with(0, &rlk_row_renew, RLK_ERROR, RLK_FAULT_NO_SCRIPT);
  again = rlk_request_at(requests_of(0), (uint32_t)asked(0) - 1);
  assert_ptr_equal(again->ask, &rlk_row_renew);
  assert_int_equal(again->of.batch->count, 1);
  assert_ptr_equal(again->of.batch->claim[0], other->claim);
  for (int i = 0; i < 2; i++)
    redlock_lock_free(locks[i]);
}

static void nothing_is_renewed_when_max_hold_is_reached(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_set(lock, "renew", "true"), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(lock, "max_hold_ms", "10000"), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(lock, "drift_factor", "0"), REDLOCK_OK);
  hold();
  rlk_renewals_due(&client->engine, now_ns + 9985 * MS);
  assert_int_equal(asked(0), 0);
  assert_int_equal(lock->renewal.is_on, 0);
  assert_int_equal(lock->hold.is_limited, 1);
}

/* Of a ttl_ms of 10000: it ends with the hold. */
static void the_last_renewal_ends_at_max_hold(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_set(lock, "renew", "true"), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(lock, "max_hold_ms", "12000"), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(lock, "drift_factor", "0"), REDLOCK_OK);
  hold();
  rlk_renewals_due(&client->engine, now_ns + 5000 * MS);
  for (int i = 0; i < NODES; i++) {
    assert_int_equal(asked(i), 1);
    assert_int_equal(rlk_request_at(requests_of(i), 0)->lease_ns, 7000 * MS - rlk_drift_ns(7000, 0));
  }
}

static void an_unconfirmed_renewal_is_tried_again_after_an_eighth(void **state)
{
  redlock_lock *renewed = hold_renewed("a", "0.01");
  int64_t ttl_ns = renewed->hold.terms.ttl_ms * MS, begun_ns = now_ns + ttl_ns / 2;
  (void)state;
  assert_in_range(renewed->hold.terms.node_timeout_ns, 1, ttl_ns / 10);
  rlk_renewals_due(&client->engine, begun_ns);
  assert_int_equal(asked(0), 1);
  rlk_renewals_due(&client->engine, begun_ns + ttl_ns / 8 - 1);
  assert_int_equal(asked(0), 1);
  rlk_renewals_due(&client->engine, begun_ns + ttl_ns / 8);
  assert_int_equal(asked(0), 2);
  redlock_lock_free(renewed);
}

static void an_unconfirmed_renewal_is_reported(void **state)
{
  redlock_lock *renewed = hold_renewed("a", "0.01");
  struct rlk_events *events = &client->engine.net.events;
  const struct rlk_event *event;
  int64_t ttl_ns = renewed->hold.terms.ttl_ms * MS;
  (void)state;
  assert_int_equal(rlk_events_init(events), 0);
  rlk_renewals_due(&client->engine, now_ns + ttl_ns / 2);
  assert_null(rlk_event_first(events));
  rlk_renewals_due(&client->engine, now_ns + ttl_ns * 3 / 4);
  event = rlk_event_first(events);
  assert_non_null(event);
  assert_int_equal(event->kind, RLK_EVENT_AT_RISK);
  assert_string_equal(event->detail, "a renewal was not confirmed in time");
  assert_int_equal(renewed->renewal.at_risk, 1);
  redlock_lock_free(renewed);
}

/* The renewal is due, and node 0 alone confirms it. Behind the SET to a node that has lost the token is its renewal. */
static void renew_on_one_node(redlock_lock *renewed)
{
  struct rlk_reply confirmed = {.type = RLK_REPLY_ARRAY, .integers = {1}};
  assert_int_equal(rlk_events_init(&client->engine.net.events), 0);
  lock = renewed;
  now_ns += renewed->hold.terms.ttl_ms * MS / 2;
  rlk_renewals_due(&client->engine, now_ns);
  answer_reply(0, &rlk_row_renew, RLK_FITS, RLK_FAULT_NONE, &confirmed);
  answer_with(1, &rlk_row_renew, RLK_ERROR, RLK_FAULT_OTHER);
}

/* Nor is it renewed again before its time. */
static void check_that_no_risk_is_told(redlock_lock *renewed)
{
  now_ns += renewed->hold.terms.ttl_ms * MS / 4;
  rlk_renewals_due(&client->engine, now_ns);
  assert_null(rlk_event_first(&client->engine.net.events));
  assert_int_equal(asked(0), 0);
}

static void an_extension_closes_a_renewal(void **state)
{
  redlock_lock *renewed = hold_renewed("a", "0.01"), *kept = lock;
  (void)state;
  renew_on_one_node(renewed);
  answer_with(2, &rlk_row_renew, RLK_ERROR, RLK_FAULT_OTHER);
  call(REDLOCK_EXTEND, 0);
  write_all();
  answer_all(&rlk_row_extend);
  assert_int_equal(renewed->op.status, REDLOCK_OK);
  check_that_no_risk_is_told(renewed);
  redlock_lock_free(renewed);
  lock = kept;
}

static void a_token_that_is_put_back_closes_a_renewal(void **state)
{
  redlock_lock *renewed = hold_renewed("a", "0.01"), *kept = lock;
  (void)state;
  rlk_lock_cut(renewed, 2, 0, REDLOCK_LOSS_GONE, now_ns);
  renew_on_one_node(renewed);
  answer(2, &rlk_row_set, RLK_GRANTED);
  answer_with(2, &rlk_row_renew, RLK_ERROR, RLK_FAULT_OTHER);
  check_that_no_risk_is_told(renewed);
  redlock_lock_free(renewed);
  lock = kept;
}

/* Once an hour, and again for the next hold. */
static void each_hour_of_a_renewed_hold_is_reported(void **state)
{
  redlock_lock *renewed = hold_renewed("a", "0.01");
  struct rlk_events *events = &client->engine.net.events;
  (void)state;
  assert_int_equal(rlk_events_init(events), 0);
  for (int hours = 1; hours <= 2; hours++) {
    int64_t at_ns = renewed->hold.acquired_ns + hours * 3600000 * MS;
    char said[80];
    snprintf(said, sizeof said, "held for %d h and renewed until it is released", hours);
    renewed->hold.valid_until_ns = RLK_NEVER - 1;
    rlk_timer_set(&client->engine.renewal_timers, &renewed->renewal.timer, at_ns - MS);
    rlk_renewals_due(&client->engine, at_ns - MS);
    assert_null(rlk_event_first(events));
    renewed->renewal.goal_ns = 0;
    for (int again = 0; again < 2; again++) {
      rlk_timer_set(&client->engine.renewal_timers, &renewed->renewal.timer, at_ns);
      rlk_renewals_due(&client->engine, at_ns);
      renewed->renewal.goal_ns = 0;
    }
    assert_int_equal(rlk_event_first(events)->kind, RLK_EVENT_HELD_LONG);
    assert_string_equal(rlk_event_first(events)->detail, said);
    rlk_event_pop(events);
    assert_null(rlk_event_first(events));
  }
  redlock_lock_free(renewed);
}

/* Else each of many short renewed holds, one after the other, would wake it. */
static void the_keeper_sleeps_on_where_a_hold_has_ended(void **state)
{
  redlock_client *idle = redlock_client_new();
  int64_t due_ns = rlk_platform_real.now_ns(NULL) + 1000000 * MS;
  (void)state;
  assert_int_equal(rlk_keeper_ensure(), REDLOCK_OK);
  while (atomic_load(&rlk_alarm.sleeps_until_ns) != RLK_NEVER)
    sched_yield();
  while (atomic_load(&rlk_alarm.sleeps_until_ns) != due_ns) { /* it may read the time before the bell, and look again */
    rlk_alarm_set(idle, due_ns);
    sched_yield();
  }
  redlock_client_free(idle);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      CASE(leases_of_different_drift_are_renewed_apart),
      CASE(a_repeated_renewal_leaves_out_locks_shared_since),
      CASE(nothing_is_renewed_when_max_hold_is_reached),
      CASE(the_last_renewal_ends_at_max_hold),
      CASE(an_unconfirmed_renewal_is_tried_again_after_an_eighth),
      CASE(an_unconfirmed_renewal_is_reported),
      CASE(an_extension_closes_a_renewal),
      CASE(a_token_that_is_put_back_closes_a_renewal),
      CASE(each_hour_of_a_renewed_hold_is_reported),
      cmocka_unit_test(the_keeper_sleeps_on_where_a_hold_has_ended), /* last: its thread stays */
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

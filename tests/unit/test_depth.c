/* A lock that is acquired again by its handle: the table of redlock.h, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/client.h"
#include "client/registry.h"
#include "lock/lease.h"

enum { FAR_MS = 3600000 };

static struct {
  redlock_client *client;
  redlock_lock *lock;
} world;

static int set_up(void **state)
{
  (void)state;
  world.client = redlock_client_new();
  assert_int_equal(redlock_client_set(world.client, "nodes", "redis://127.0.0.1:1"), REDLOCK_OK);
  assert_int_equal(redlock_client_set(world.client, "reentrant", "true"), REDLOCK_OK);
  assert_int_equal(redlock_client_open(world.client), REDLOCK_OK);
  world.lock = redlock_lock_new(world.client, "r", 1);
  assert_non_null(world.lock);
  return 0;
}

static int clean_up(void **state)
{
  (void)state;
  redlock_lock_free(world.lock);
  redlock_client_free(world.client);
  return 0;
}

/* As if the nodes had granted it. */
static void hold(void)
{
  int64_t now = rlk_client_now(world.client);
  world.lock->claim = rlk_claim_new(world.lock);
  assert_non_null(world.lock->claim);
  rlk_claim_may_be_at(world.lock->claim, 0, now + FAR_MS * RLK_NS_PER_MS);
  world.lock->claim->node[0].counts_until_ns = now + FAR_MS * RLK_NS_PER_MS;
  rlk_lock_hold(world.lock, now + FAR_MS * RLK_NS_PER_MS, now);
}

static void lose(void)
{
  rlk_lock_lost(world.lock, REDLOCK_LOSS_EXPIRED);
}

static void check_message(const char *part)
{
  char text[512] = "";
  redlock_lock_message(world.lock, text, sizeof text);
  if (!strstr(text, part))
    fail_msg("\"%s\" is not in: %s", part, text);
}

static void token_of(char *token)
{
  assert_int_equal(redlock_lock_token(world.lock, token, RLK_TOKEN_SIZE + 1), RLK_TOKEN_SIZE);
}

static void only_the_outermost_release_gives_it_up(void **state)
{
  char first[RLK_TOKEN_SIZE + 1], later[RLK_TOKEN_SIZE + 1];
  (void)state;
  hold();
  token_of(first);
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_acquire(world.lock, -1), REDLOCK_OK);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  token_of(later);
  assert_string_equal(later, first);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_HELD);
  assert_false(world.lock->claim->given_up);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_FREE);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_NOT_HELD);
}

static void without_the_option_it_is_refused(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_set(world.lock, "reentrant", "false"), REDLOCK_OK);
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_INVALID);
  check_message("already holds a lock");
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_FREE);
}

static void without_it_any_more_the_next_release_is_the_outermost(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_set(world.lock, "reentrant", "false"), REDLOCK_OK);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_FREE);
}

static void a_wait_that_is_not_allowed_is_refused(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, -3), REDLOCK_INVALID);
  check_message("wait_ms");
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_FREE);
}

/* A lease of which less than min_validity is left may still be entered again. */
static void no_validity_is_promised(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_set(world.lock, "min_validity_ms", "9000"), REDLOCK_OK);
  rlk_lock_cut(world.lock, 0, rlk_client_now(world.client) + 2000 * RLK_NS_PER_MS, REDLOCK_LOSS_GONE, 0);
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_HELD);
}

static void a_lost_lock_takes_nothing_until_its_outermost_release(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  lose();
  assert_int_equal(redlock_lock_acquire(world.lock, -1), REDLOCK_LOST);
  check_message("release it as often as it was acquired first");
  assert_int_equal(redlock_lock_start(world.lock, REDLOCK_ACQUIRE, -1), REDLOCK_LOST);
  assert_int_equal(redlock_lock_adopt(world.lock, "token"), REDLOCK_INVALID);
  check_message("release it as often as it was acquired first");
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_LOST);
  check_message("the lease expired");
  assert_int_equal(redlock_lock_acquire(world.lock, -1), REDLOCK_LOST);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_LOST);
  assert_int_equal(redlock_lock_loss(world.lock), REDLOCK_LOSS_EXPIRED);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_LOST);
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_NO_QUORUM); /* it asks the node, which is down */
}

static void a_lease_that_lapses_unseen_is_not_entered(void **state)
{
  (void)state;
  hold();
  world.lock->hold.valid_until_ns = 1;
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_LOST);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_LOST);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_FREE);
}

static void it_is_detached_at_depth_one_only(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_detach(world.lock), REDLOCK_INVALID);
  check_message("acquired 2 times");
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_detach(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_FREE);
}

static void a_started_one_ends_at_once(void **state)
{
  uint64_t tag = 0;
  (void)state;
  redlock_lock_set_tag(world.lock, 7);
  hold();
  assert_int_equal(redlock_lock_start(world.lock, REDLOCK_ACQUIRE, -1), REDLOCK_OK);
  assert_int_equal(redlock_client_next(world.client, &tag), 1);
  assert_int_equal(tag, 7);
  assert_int_equal(redlock_lock_status(world.lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_wait(world.lock, -1), REDLOCK_OK);
  lose();
  assert_int_equal(redlock_client_next(world.client, &tag), 1); /* of the loss */
  assert_int_equal(redlock_lock_status(world.lock), REDLOCK_LOST);
  assert_int_equal(redlock_lock_start(world.lock, REDLOCK_RELEASE | REDLOCK_AT_ONCE, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_next(world.client, &tag), 1);
  assert_int_equal(redlock_lock_status(world.lock), REDLOCK_LOST);
}

static void a_child_has_none_of_its_parents_depth(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  rlk_client_forked(world.client);
  assert_int_equal(redlock_lock_release(world.lock), REDLOCK_FORKED);
  assert_string_equal(world.lock->refusal, "release: \"r\" is held by the parent process");
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_NO_QUORUM);
}

static void a_drained_client_holds_it_at_no_depth(void **state)
{
  (void)state;
  hold();
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_OK);
  redlock_client_drain(world.client, 100);
  assert_int_equal(redlock_lock_state(world.lock), REDLOCK_STATE_LOST);
  assert_int_equal(redlock_lock_loss(world.lock), REDLOCK_LOSS_CLOSED);
  assert_int_equal(redlock_lock_acquire(world.lock, 0), REDLOCK_INVALID);
  assert_int_equal(world.lock->hold.depth, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void)
{
  const struct CMUnitTest tests[] = {
      CASE(only_the_outermost_release_gives_it_up),
      CASE(without_the_option_it_is_refused),
      CASE(without_it_any_more_the_next_release_is_the_outermost),
      CASE(a_wait_that_is_not_allowed_is_refused),
      CASE(no_validity_is_promised),
      CASE(a_lost_lock_takes_nothing_until_its_outermost_release),
      CASE(a_lease_that_lapses_unseen_is_not_entered),
      CASE(it_is_detached_at_depth_one_only),
      CASE(a_started_one_ends_at_once),
      CASE(a_child_has_none_of_its_parents_depth),
      CASE(a_drained_client_holds_it_at_no_depth),
  };
  return cmocka_run_group_tests_name("depth", tests, NULL, NULL);
}

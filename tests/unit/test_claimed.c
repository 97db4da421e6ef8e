/* What is sent for locks that are shared, of several resources or hashes; test_meaning.c has what the answers mean. */
#include "../sim/sha1.h"
#include "lock_world.h"

static int begin_claimed(void **state)
{
  int status = begin(state);
  assert_int_equal(redlock_lock_set(lock, "ttl_ms", "30000"), REDLOCK_OK);
  assert_int_equal(redlock_lock_add(lock, "b\0b", 3), REDLOCK_OK);
  return status;
}

static size_t put(char *out, size_t at, const char *bytes, size_t size)
{
  memcpy(out + at, bytes, size);
  return at + size;
}

/* A command that begins so, and ends with the keys and the token of the lock, and with that. */
static void assert_sent(int node, const char *head, const char *tail)
{
  struct rlk_buffer *out = &client->engine.net.nodes[node].line->out;
  static const char keys[] = "$1\r\n2\r\n$1\r\nr\r\n$3\r\nb\0b\r\n$40\r\n";
  char expected[400];
  size_t head_size = strlen(head), size = put(expected, 0, keys, sizeof keys - 1);
  size = put(expected, size, lock->claim->token, RLK_TOKEN_SIZE);
  size = put(expected, size, tail, strlen(tail));
  assert_true(rlk_buffer_size(out) >= head_size + size);
  assert_memory_equal(out->data + out->start, head, head_size);
  assert_memory_equal(out->data + out->end - size, expected, size);
}

/* The first call of a script brings its text, which the hash of later ones is of. */
static void hash_of_text(char *hex)
{
  struct rlk_buffer *out = &client->engine.net.nodes[0].line->out;
  const char *size = strstr(out->data + out->start, "EVAL\r\n$") + 7, *text = strstr(size, "\r\n") + 2;
  rlk_sha1_hex(text, strtoul(size, NULL, 10), hex);
}

static void check_calls(const char *form, const char *option, const char *value)
{
  char tail[60], head[80], claim[41], drop[41] = "";
  assert_int_equal(redlock_lock_set(lock, option, value), REDLOCK_OK);
  call(REDLOCK_ACQUIRE, 0);
  snprintf(tail, sizeof tail, "\r\n$5\r\n30000\r\n$1\r\n%s\r\n$1\r\n1\r\n", form);
  assert_sent(0, "*9\r\n$4\r\nEVAL\r\n$", tail);
  hash_of_text(claim);
  write_all();
  answer_all(&rlk_row_claim);
  assert_int_equal(lock->state, REDLOCK_STATE_HELD);

  call(REDLOCK_EXTEND, 0);
  snprintf(head, sizeof head, "*9\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", claim);
  snprintf(tail, sizeof tail, "\r\n$5\r\n30000\r\n$1\r\n%s\r\n$1\r\n0\r\n", form);
  assert_sent(0, head, tail);
  write_all();
  answer_all(&rlk_row_claim_on);

  call(REDLOCK_EXPIRE, 20000);
  snprintf(tail, sizeof tail, "\r\n$5\r\n20000\r\n$1\r\n%s\r\n$1\r\n2\r\n", form);
  assert_sent(0, "*9\r\n$4\r\nEVAL\r\n$", tail); /* rare */
  write_all();
  answer_all(&rlk_row_claim_cut);

  for (int times = 0; times < 2; times++) {
    call(REDLOCK_RELEASE, 0);
    snprintf(tail, sizeof tail, "\r\n$1\r\n%s\r\n", form);
    snprintf(head, sizeof head, "*7\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", drop);
    assert_sent(0, times == 0 ? "*7\r\n$4\r\nEVAL\r\n$" : head, tail);
    if (times == 0)
      hash_of_text(drop);
    write_all();
    answer_all(&rlk_row_drop);
    if (times == 0) {
      call(REDLOCK_ACQUIRE, 0);
      write_all();
      answer_all(&rlk_row_claim);
    }
  }
}

static void all_keys_of_a_set_are_called(void **state)
{
  (void)state;
  check_calls("x", "shared", "false");
}

static void a_shared_set_says_so(void **state)
{
  (void)state;
  check_calls("s", "shared", "true");
}

static void a_hash_says_so(void **state)
{
  (void)state;
  check_calls("h", "layout", "hash");
}

/* The server names the one that is not free by its place among them. */
static void the_parts_of_a_key_are_those_that_were_added(void **state)
{
  const char *at;
  (void)state;
  for (int i = lock->key->count; i < RLK_RESOURCES_MAX; i++) {
    char name[8];
    int size = snprintf(name, sizeof name, "%d", i);
    assert_int_equal(redlock_lock_add(lock, name, (size_t)size), REDLOCK_OK);
  }
  at = lock->key->bulk + rlk_key_part(lock->key, 0)->bulk_size;
  for (int i = 2; i < RLK_RESOURCES_MAX; i++) {
    const struct rlk_key *part = rlk_key_part(lock->key, i);
    char name[8];
    assert_int_equal(part->resource_size, snprintf(name, sizeof name, "%d", i));
    assert_memory_equal(rlk_key_resource(part), name, part->resource_size);
    at += rlk_key_part(lock->key, i - 1)->bulk_size;
    assert_memory_equal(at, part->bulk, part->bulk_size);
  }
  assert_ptr_equal(at + rlk_key_part(lock->key, RLK_RESOURCES_MAX - 1)->bulk_size,
                   lock->key->bulk + lock->key->all_size);
  assert_int_equal(redlock_lock_add(lock, "x", 1), REDLOCK_INVALID);
}

/* Answers all that was asked, every lock being free; others wait for that one of its resources. Returns how many
 * questions there were about queues. */
static int answer_everything(int waited_for)
{
  int questions = 0;
  write_all();
  for (int i = 0; i < NODES; i++)
    while (asked(i) > 0) {
      struct rlk_request *oldest = &requests_of(i)->ring[requests_of(i)->first];
      int is_left = oldest->ask == &rlk_row_part && oldest->of.part == waited_for;
      struct rlk_reply reply = {.type = RLK_REPLY_INTEGER, .integer = is_left ? 2 : 0, .integers = {0, -2}};
      questions += oldest->ask == &rlk_row_queued || oldest->ask == &rlk_row_part;
      answer_reply(i, oldest->ask, RLK_GRANTED, RLK_FAULT_NONE, &reply);
    }
  return questions;
}

/* Returns how many questions there were about queues. */
static int cycle(int waited_for)
{
  int questions;
  call(REDLOCK_ACQUIRE, 60000);
  questions = answer_everything(waited_for) + answer_everything(waited_for);
  assert_int_equal(lock->state, REDLOCK_STATE_HELD);
  call(REDLOCK_RELEASE, 0);
  return questions + answer_everything(waited_for);
}

static void queues_that_were_empty_a_moment_ago_are_not_asked_again(void **state)
{
  (void)state;
  assert_int_equal(redlock_lock_set(lock, "queue", "true"), REDLOCK_OK);
  for (int i = 0; i < NODES; i++)
    client->engine.net.nodes[i].run_id[0] = 'r'; /* it was connected */
  assert_int_equal(cycle(-1), 3);                /* their home once when it is taken, each when it is released */
  assert_int_equal(cycle(-1), 0);
  now_ns += 30 * MS;
  assert_int_equal(cycle(1), 3);
  assert_int_equal(cycle(-1), 2); /* it stands in both before it tries */
  assert_int_equal(cycle(-1), 0);
}

static void a_copy_has_resources_and_options_but_no_hold(void **state)
{
  redlock_lock *copy;
  char ttl[16];
  (void)state;
  call(REDLOCK_ACQUIRE, 60000);
  answer_everything(-1);
  assert_int_equal(lock->state, REDLOCK_STATE_HELD);
  copy = redlock_lock_copy(lock);
  assert_int_equal(redlock_lock_set(lock, "ttl_ms", "20000"), REDLOCK_OK);
  assert_int_equal(redlock_lock_get(copy, "ttl_ms", ttl, sizeof ttl), 5);
  assert_string_equal(ttl, "30000");
  assert_int_equal(redlock_lock_add(copy, "b\0b", 3), REDLOCK_INVALID); /* it has that */
  assert_int_equal(redlock_lock_state(copy), REDLOCK_STATE_FREE);
  assert_int_equal(redlock_lock_release(copy), REDLOCK_NOT_HELD);
  redlock_lock_free(copy);
  assert_int_equal(lock->state, REDLOCK_STATE_HELD);
  assert_null(redlock_lock_copy(NULL));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin_claimed, end)
  const struct CMUnitTest tests[] = {
      CASE(all_keys_of_a_set_are_called),
      CASE(a_shared_set_says_so),
      CASE(a_hash_says_so),
      CASE(the_parts_of_a_key_are_those_that_were_added),
      CASE(queues_that_were_empty_a_moment_ago_are_not_asked_again),
      CASE(a_copy_has_resources_and_options_but_no_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

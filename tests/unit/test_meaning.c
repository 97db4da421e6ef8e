/* What the bytes of a reply mean as the answer to each kind of request, and what an error of a server means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/meaning.h"
#include "rules/quorum.h"

#define ALL (sizeof rows / sizeof rows[0])

static const struct {
  enum rl_request_kind kind;
  const char *bytes;
  int outcome, vote, fault;
} rows[] = {
    {RL_REQUEST_SET, "+OK\r\n", RL_OUTCOME_VOTE, RL_GRANTED, RL_FAULT_NONE},
    {RL_REQUEST_SET, "$-1\r\n", RL_OUTCOME_VOTE, RL_BUSY, RL_FAULT_NONE},
    {RL_REQUEST_SET, "+QUEUED\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_SET, ":1\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_SET, "$2\r\nOK\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_SET, "*1\r\n:1\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_SET, "-OOM command not allowed\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_FULL},
    {RL_REQUEST_SET, "-WRONGTYPE Operation\r\n", RL_OUTCOME_VOTE, RL_BUSY, RL_FAULT_TYPE},
    {RL_REQUEST_SET, "-NOAUTH Authentication required.\r\n", RL_OUTCOME_VOTE, RL_REFUSED, RL_FAULT_CONFIG},
    {RL_REQUEST_SET, "-NOPERM No permissions\r\n", RL_OUTCOME_VOTE, RL_REFUSED, RL_FAULT_PERMISSION},
    {RL_REQUEST_DELETE, ":1\r\n", RL_OUTCOME_VOTE, RL_GRANTED, RL_FAULT_NONE},
    {RL_REQUEST_DELETE, ":0\r\n", RL_OUTCOME_VOTE, RL_GONE, RL_FAULT_NONE},
    {RL_REQUEST_DELETE, "$-1\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_DELETE, "-NOSCRIPT No matching script.\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_NO_SCRIPT},
    {RL_REQUEST_EXTEND, "*1\r\n:1\r\n", RL_OUTCOME_VOTE, RL_GRANTED, RL_FAULT_NONE},
    {RL_REQUEST_EXTEND, "*1\r\n:0\r\n", RL_OUTCOME_VOTE, RL_GONE, RL_FAULT_NONE},
    {RL_REQUEST_EXTEND, "*1\r\n:2\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_EXTEND, "*2\r\n:1\r\n:1\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_EXTEND, ":1\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_CONFIRM, "*1\r\n:1\r\n", RL_OUTCOME_VOTE, RL_GRANTED, RL_FAULT_NONE},
    {RL_REQUEST_CONFIRM, "*1\r\n:0\r\n", RL_OUTCOME_VOTE, RL_BUSY, RL_FAULT_NONE},
    {RL_REQUEST_EXPIRE, ":1\r\n", RL_OUTCOME_VOTE, RL_GRANTED, RL_FAULT_NONE},
    {RL_REQUEST_EXPIRE, ":0\r\n", RL_OUTCOME_VOTE, RL_GONE, RL_FAULT_NONE},
    {RL_REQUEST_EXPIRE, "+OK\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_REMOVE, ":1\r\n", RL_OUTCOME_VOTE, RL_GRANTED, RL_FAULT_NONE},
    {RL_REQUEST_REMOVE, ":0\r\n", RL_OUTCOME_VOTE, RL_GONE, RL_FAULT_NONE},
    {RL_REQUEST_RENEW, "*3\r\n:1\r\n:0\r\n:1\r\n", RL_OUTCOME_BATCH, 0, RL_FAULT_NONE},
    {RL_REQUEST_RENEW, "*2\r\n:1\r\n:0\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_RENEW, "*3\r\n:1\r\n$-1\r\n:1\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT},
    {RL_REQUEST_RENEW, "-NOSCRIPT No matching script.\r\n", RL_OUTCOME_BATCH, RL_ERROR, RL_FAULT_NO_SCRIPT},
    {RL_REQUEST_VALUE, "$3\r\nabc\r\n", RL_OUTCOME_VALUE, 0, RL_FAULT_NONE},
    {RL_REQUEST_VALUE, "$-1\r\n", RL_OUTCOME_VALUE, 0, RL_FAULT_NONE},
    {RL_REQUEST_VALUE, ":1\r\n", RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE},
    {RL_REQUEST_VALUE, "-WRONGTYPE Operation\r\n", RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE},
    {RL_REQUEST_VALUE, "-NOPERM No permissions\r\n", RL_OUTCOME_VOTE, RL_REFUSED, RL_FAULT_PERMISSION},
    {RL_REQUEST_TTL, ":2000\r\n", RL_OUTCOME_PTTL, RL_BUSY, RL_FAULT_NONE},
    {RL_REQUEST_TTL, ":-1\r\n", RL_OUTCOME_PTTL, RL_BUSY, RL_FAULT_NONE},
    {RL_REQUEST_TTL, ":-2\r\n", RL_OUTCOME_PTTL, RL_FREE, RL_FAULT_NONE},
    {RL_REQUEST_TTL, "-LOADING Redis\r\n", RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_LOADING},
    {RL_REQUEST_HINT, ":2000\r\n", RL_OUTCOME_PTTL, 0, RL_FAULT_NONE},
    {RL_REQUEST_HINT, "+what\r\n", RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE},
    {RL_REQUEST_HINT, "-LOADING Redis\r\n", RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE},
    {RL_REQUEST_NOTHING, ":1\r\n", RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE},
    {RL_REQUEST_NOTHING, "-NOPERM No permissions\r\n", RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE},
};

static void a_reply_means_what_the_table_says(void **state)
{
  (void)state;
  for (size_t i = 0; i < ALL; i++) {
    struct rl_reply reply = {0};
    struct rl_request request = {.kind = rows[i].kind, .count = 3};
    struct rl_meaning meaning;
    redisReader *reader = rl_reply_reader(&reply);
    void *parsed = NULL;
    assert_non_null(reader);
    assert_int_equal(redisReaderFeed(reader, rows[i].bytes, strlen(rows[i].bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &parsed), REDIS_OK);
    assert_non_null(parsed);
    meaning = rl_meaning_of(&request, &reply);
    if (meaning.kind != rows[i].outcome || meaning.vote != rows[i].vote || meaning.fault != rows[i].fault)
      fail_msg("request %d, %s: outcome %d, vote %d, fault %d", rows[i].kind, rows[i].bytes, meaning.kind, meaning.vote,
               meaning.fault);
    if (meaning.fault == RL_FAULT_MISFIT)
      assert_non_null(rl_misfit_words(rows[i].kind));
    redisReaderFree(reader);
    rl_buffer_free(&reply.text);
  }
}

static void an_error_is_known_by_its_first_word(void **state)
{
  static const struct {
    const char *text;
    enum rl_fault fault;
  } errors[] = {
      {"READONLY You can't write against a read only replica.", RL_FAULT_ROLE},
      {"MASTERDOWN Link with MASTER is down", RL_FAULT_ROLE},
      {"LOADING Redis is loading the dataset in memory", RL_FAULT_LOADING},
      {"ERR max number of clients reached", RL_FAULT_LOADING},
      {"DENIED Redis is running in protected mode", RL_FAULT_LOADING},
      {"OOM command not allowed when used memory > 'maxmemory'.", RL_FAULT_FULL},
      {"BUSY Redis is busy running a script.", RL_FAULT_PAUSE},
      {"UNKILLABLE Sorry", RL_FAULT_PAUSE},
      {"MISCONF Redis is configured to save RDB snapshots", RL_FAULT_UNWRITABLE},
      {"NOREPLICAS Not enough good replicas to write.", RL_FAULT_UNWRITABLE},
      {"NOAUTH Authentication required.", RL_FAULT_CONFIG},
      {"WRONGPASS invalid username-password pair", RL_FAULT_CONFIG},
      {"MOVED 3999 127.0.0.1:6381", RL_FAULT_CONFIG},
      {"ASK 3999 127.0.0.1:6381", RL_FAULT_CONFIG},
      {"CLUSTERDOWN Hash slot not served", RL_FAULT_CONFIG},
      {"ERR invalid DB index", RL_FAULT_CONFIG},
      {"NOPERM this user has no permissions", RL_FAULT_PERMISSION},
      {"ERR The user executing the script can't run this command", RL_FAULT_PERMISSION},
      {"NOSCRIPT No matching script.", RL_FAULT_NO_SCRIPT},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", RL_FAULT_TYPE},
      {"ERR unknown command `HELLO`, with args beginning with: ", RL_FAULT_UNKNOWN},
      {"ERR something else", RL_FAULT_OTHER},
      {"BUSYGROUP Consumer Group name already exists", RL_FAULT_OTHER}, /* only whole words */
      {"OOM", RL_FAULT_FULL},
      {"", RL_FAULT_OTHER},
  };
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (rl_fault_of(errors[i].text) != errors[i].fault)
      fail_msg("%s: %d", errors[i].text, rl_fault_of(errors[i].text));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_reply_means_what_the_table_says),
      cmocka_unit_test(an_error_is_known_by_its_first_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

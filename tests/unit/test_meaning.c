/* What the bytes of a reply mean as the answer to each kind of request, and what an error of a server means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "node/meaning.h"
#include "rules/quorum.h"

#define ALL (sizeof rows / sizeof rows[0])

static const struct {
  enum rlk_request_kind kind;
  const char *bytes;
  int outcome, vote, fault;
} rows[] = {
    {RLK_REQUEST_SET, "+OK\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_SET, "$-1\r\n", RLK_OUTCOME_VOTE, RLK_BUSY, RLK_FAULT_NONE},
    {RLK_REQUEST_SET, "+QUEUED\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "+ok\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "+NO\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "+OX\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "+O\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "+OK \r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "+\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, ":1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "$2\r\nOK\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "*1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_SET, "-OOM command not allowed\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_FULL},
    {RLK_REQUEST_SET, "-WRONGTYPE Operation\r\n", RLK_OUTCOME_VOTE, RLK_BUSY, RLK_FAULT_TYPE},
    {RLK_REQUEST_SET, "-MISCONF Redis\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_UNWRITABLE},
    {RLK_REQUEST_SET, "-NOAUTH Authentication required.\r\n", RLK_OUTCOME_VOTE, RLK_REFUSED, RLK_FAULT_CONFIG},
    {RLK_REQUEST_SET, "-NOPERM No permissions\r\n", RLK_OUTCOME_VOTE, RLK_REFUSED, RLK_FAULT_PERMISSION},
    {RLK_REQUEST_RAISE, ":1\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_RAISE, ":0\r\n", RLK_OUTCOME_VOTE, RLK_GONE, RLK_FAULT_NONE},
    {RLK_REQUEST_RAISE, "*1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_DELETE, ":1\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_DELETE, ":0\r\n", RLK_OUTCOME_VOTE, RLK_GONE, RLK_FAULT_NONE},
    {RLK_REQUEST_DELETE, ":3\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE}, /* and others wait */
    {RLK_REQUEST_DELETE, ":2\r\n", RLK_OUTCOME_VOTE, RLK_GONE, RLK_FAULT_NONE},
    {RLK_REQUEST_DELETE, "$-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_DELETE, "-NOSCRIPT No matching script.\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {RLK_REQUEST_EXTEND, "*1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_EXTEND, "*1\r\n:0\r\n", RLK_OUTCOME_VOTE, RLK_GONE, RLK_FAULT_NONE},
    {RLK_REQUEST_EXTEND, "*1\r\n:2\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*1\r\n:-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*1\r\n$1\r\n1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*1\r\n*1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*2\r\n:1\r\n$-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*2\r\n:1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, "*3\r\n:1\r\n:1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_EXTEND, ":1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CONFIRM, "*1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_CONFIRM, "*1\r\n:0\r\n", RLK_OUTCOME_VOTE, RLK_BUSY, RLK_FAULT_NONE},
    {RLK_REQUEST_EXPIRE, ":1\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_EXPIRE, ":0\r\n", RLK_OUTCOME_VOTE, RLK_GONE, RLK_FAULT_NONE},
    {RLK_REQUEST_EXPIRE, "+OK\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_REMOVE, ":1\r\n", RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE},
    {RLK_REQUEST_REMOVE, ":0\r\n", RLK_OUTCOME_VOTE, RLK_GONE, RLK_FAULT_NONE},
    {RLK_REQUEST_REMOVE, "+OK\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_REMOVE, "*2\r\n:0\r\n:-2\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_REMOVE, "-NOPERM No permissions\r\n", RLK_OUTCOME_VOTE, RLK_REFUSED, RLK_FAULT_PERMISSION},
    {RLK_REQUEST_QUEUED, ":0\r\n", RLK_OUTCOME_QUEUED, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_QUEUED, ":1\r\n", RLK_OUTCOME_QUEUED, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_QUEUED, "$-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_QUEUED, "+OK\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_QUEUED, "*2\r\n:0\r\n:-2\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_QUEUED, "-NOPERM No permissions\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_JOIN, "*2\r\n:0\r\n:-2\r\n", RLK_OUTCOME_PLACE, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_JOIN, "*2\r\n:1000000\r\n:9223372036854775807\r\n", RLK_OUTCOME_PLACE, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_JOIN, "*2\r\n:1000001\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*2\r\n:-1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*2\r\n:9223372036854775807\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*2\r\n:0\r\n:-3\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*2\r\n:0\r\n:-9223372036854775808\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*2\r\n:3\r\n$-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*3\r\n:3\r\n$-1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*3\r\n:3\r\n:2\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "*1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, ":1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "$-1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_JOIN, "-NOPERM No permissions\r\n", RLK_OUTCOME_PLACE, RLK_REFUSED, RLK_FAULT_PERMISSION},
    {RLK_REQUEST_JOIN, "-NOSCRIPT No matching script.\r\n", RLK_OUTCOME_PLACE, RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {RLK_REQUEST_RENEW, "*3\r\n:1\r\n:0\r\n:1\r\n", RLK_OUTCOME_BATCH, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_RENEW, "*2\r\n:1\r\n:0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_RENEW, "*3\r\n:1\r\n:2\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_RENEW, "*0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_RENEW, ":1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_RENEW, "*3\r\n:1\r\n$-1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_RENEW, "-NOSCRIPT No matching script.\r\n", RLK_OUTCOME_BATCH, RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {RLK_REQUEST_CLOCK, "*2\r\n$10\r\n1800000000\r\n$6\r\n999999\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_CLOCK, "*2\r\n$10\r\n1800000000\r\n$1\r\n7\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_CLOCK, "*2\r\n$10\r\n1800000000\r\n$7\r\n1000000\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*2\r\n$10\r\n9999999999\r\n$1\r\n0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*2\r\n$10\r\n18000x0000\r\n$1\r\n0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*2\r\n$11\r\n18000000000\r\n$1\r\n0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*2\r\n$0\r\n\r\n$1\r\n0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*1\r\n$10\r\n1800000000\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*2\r\n:1800000000\r\n:0\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "*2\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n:1\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "+OK\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT},
    {RLK_REQUEST_CLOCK, "-NOPERM No permissions\r\n", RLK_OUTCOME_VOTE, RLK_REFUSED, RLK_FAULT_PERMISSION},
    {RLK_REQUEST_VALUE, "$3\r\nabc\r\n", RLK_OUTCOME_VALUE, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_VALUE, "$-1\r\n", RLK_OUTCOME_VALUE, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_VALUE, "*0\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_VALUE, ":1\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_VALUE, "-WRONGTYPE Operation\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_VALUE, "-NOPERM No permissions\r\n", RLK_OUTCOME_VOTE, RLK_REFUSED, RLK_FAULT_PERMISSION},
    {RLK_REQUEST_TTL, ":2000\r\n", RLK_OUTCOME_PTTL, RLK_BUSY, RLK_FAULT_NONE},
    {RLK_REQUEST_TTL, ":-1\r\n", RLK_OUTCOME_PTTL, RLK_BUSY, RLK_FAULT_NONE},
    {RLK_REQUEST_TTL, ":-2\r\n", RLK_OUTCOME_PTTL, RLK_FREE, RLK_FAULT_NONE},
    {RLK_REQUEST_TTL, "-LOADING Redis\r\n", RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_LOADING},
    {RLK_REQUEST_HINT, ":2000\r\n", RLK_OUTCOME_PTTL, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_HINT, "$-1\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_HINT, "+what\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_HINT, "-LOADING Redis\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_HOLDER, "-NOPERM No permissions\r\n", RLK_OUTCOME_NO_ENTRY, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_HOLDER, "-WRONGTYPE Operation\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_ENTRY, "-NOPERM No permissions\r\n", RLK_OUTCOME_NO_ENTRY, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_SHOW, "-NOPERM No permissions\r\n", RLK_OUTCOME_NO_ENTRY, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_SHOW, "-OOM command not allowed\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_SHOW, "+OK\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_NOTHING, ":1\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
    {RLK_REQUEST_NOTHING, "-NOPERM No permissions\r\n", RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE},
};

static struct rlk_meaning meaning_of(enum rlk_request_kind kind, const char *bytes, int is_fenced)
{
  struct rlk_reply reply = {0};
  struct rlk_request request = {.kind = kind, .count = kind == RLK_REQUEST_SET ? is_fenced : 3};
  struct rlk_meaning meaning;
  redisReader *reader = rlk_reply_reader(&reply);
  void *parsed = NULL;
  assert_non_null(reader);
  assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
  assert_int_equal(redisReaderGetReply(reader, &parsed), REDIS_OK);
  assert_non_null(parsed);
  meaning = rlk_meaning_of(&request, &reply);
  redisReaderFree(reader);
  rlk_buffer_free(&reply.text);
  return meaning;
}

static void a_reply_means_what_the_table_says(void **state)
{
  (void)state;
  for (size_t i = 0; i < ALL; i++) {
    struct rlk_meaning meaning = meaning_of(rows[i].kind, rows[i].bytes, 0);
    if (meaning.kind != rows[i].outcome || meaning.vote != rows[i].vote || meaning.fault != rows[i].fault)
      fail_msg("request %d, %s: outcome %d, vote %d, fault %d", rows[i].kind, rows[i].bytes, meaning.kind, meaning.vote,
               meaning.fault);
    if (meaning.fault == RLK_FAULT_MISFIT)
      assert_non_null(rlk_misfit_words(rows[i].kind));
  }
}

static void a_set_with_a_fencing_number_is_answered_with_one(void **state)
{
  static const struct {
    const char *bytes;
    int vote, fault;
  } fenced[] = {
      {"*2\r\n:1\r\n:1800000000000000\r\n", RLK_GRANTED, RLK_FAULT_NONE},
      {"*2\r\n:0\r\n:0\r\n", RLK_BUSY, RLK_FAULT_NONE},
      {"*2\r\n:1\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*2\r\n:1\r\n:-5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*2\r\n:0\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*2\r\n:2\r\n:1800000000000000\r\n", RLK_GRANTED, RLK_FAULT_NONE}, /* without a number: its clock */
      {"*2\r\n:2\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*2\r\n:3\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*3\r\n:1\r\n:5\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"*3\r\n:1\r\n$-1\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
      {"-NOSCRIPT No matching script.\r\n", RLK_ERROR, RLK_FAULT_NO_SCRIPT},
      {"-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
      {"-OOM command not allowed\r\n", RLK_ERROR, RLK_FAULT_FULL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof fenced / sizeof fenced[0]; i++) {
    struct rlk_meaning meaning = meaning_of(RLK_REQUEST_SET, fenced[i].bytes, 1);
    if (meaning.kind != RLK_OUTCOME_VOTE || meaning.vote != fenced[i].vote || meaning.fault != fenced[i].fault)
      fail_msg("%s: outcome %d, vote %d, fault %d", fenced[i].bytes, meaning.kind, meaning.vote, meaning.fault);
  }
  assert_int_equal(meaning_of(RLK_REQUEST_SET, fenced[0].bytes, 0).fault, RLK_FAULT_MISFIT);
}

static void an_error_is_known_by_its_first_word(void **state)
{
  static const struct {
    const char *text;
    enum rlk_fault fault;
  } errors[] = {
      {"READONLY You can't write against a read only replica.", RLK_FAULT_ROLE},
      {"MASTERDOWN Link with MASTER is down", RLK_FAULT_ROLE},
      {"LOADING Redis is loading the dataset in memory", RLK_FAULT_LOADING},
      {"ERR max number of clients reached", RLK_FAULT_LOADING},
      {"DENIED Redis is running in protected mode", RLK_FAULT_LOADING},
      {"OOM command not allowed when used memory > 'maxmemory'.", RLK_FAULT_FULL},
      {"BUSY Redis is busy running a script.", RLK_FAULT_PAUSE},
      {"UNKILLABLE Sorry", RLK_FAULT_PAUSE},
      {"MISCONF Redis is configured to save RDB snapshots", RLK_FAULT_UNWRITABLE},
      {"NOREPLICAS Not enough good replicas to write.", RLK_FAULT_UNWRITABLE},
      {"NOAUTH Authentication required.", RLK_FAULT_CONFIG},
      {"WRONGPASS invalid username-password pair", RLK_FAULT_CONFIG},
      {"MOVED 3999 127.0.0.1:6381", RLK_FAULT_CONFIG},
      {"ASK 3999 127.0.0.1:6381", RLK_FAULT_CONFIG},
      {"CLUSTERDOWN Hash slot not served", RLK_FAULT_CONFIG},
      {"ERR invalid DB index", RLK_FAULT_CONFIG},
      {"ERR Protocol version is not an integer or out of range", RLK_FAULT_CONFIG},
      {"NOPERM this user has no permissions", RLK_FAULT_PERMISSION},
      {"ERR The user executing the script can't run this command", RLK_FAULT_PERMISSION},
      {"NOSCRIPT No matching script.", RLK_FAULT_NO_SCRIPT},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", RLK_FAULT_TYPE},
      {"ERR unknown command `HELLO`, with args beginning with: ", RLK_FAULT_UNKNOWN},
      {"ERR something else", RLK_FAULT_OTHER},
      {"BUSYGROUP Consumer Group name already exists", RLK_FAULT_OTHER}, /* only whole words */
      {"OOM", RLK_FAULT_FULL},
      {"", RLK_FAULT_OTHER},
  };
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    int is_refused = errors[i].fault == RLK_FAULT_CONFIG || errors[i].fault == RLK_FAULT_PERMISSION;
    char bytes[100];
    struct rlk_meaning meaning;
    snprintf(bytes, sizeof bytes, "-%s\r\n", errors[i].text);
    meaning = meaning_of(RLK_REQUEST_EXTEND, bytes, 0);
    if (meaning.fault != errors[i].fault || meaning.vote != (is_refused ? RLK_REFUSED : RLK_ERROR))
      fail_msg("%s: fault %d, vote %d", errors[i].text, meaning.fault, meaning.vote);
  }
}

static void a_key_ends_by_its_pttl(void **state)
{
  const int64_t now = INT64_C(5000000000), year_ms = INT64_C(31557600000);
  (void)state;
  assert_int_equal(rlk_pttl_end_ns(-2, now), 0);
  assert_int_equal(rlk_pttl_end_ns(-1, now), RLK_NEVER);
  assert_int_equal(rlk_pttl_end_ns(0, now), now);
  assert_int_equal(rlk_pttl_end_ns(1, now), now + RLK_NS_PER_MS);
  assert_int_equal(rlk_pttl_end_ns(100 * year_ms, now), now + 100 * year_ms * RLK_NS_PER_MS);
  assert_int_equal(rlk_pttl_end_ns(100 * year_ms + 1, now), RLK_NEVER);
  assert_int_equal(rlk_pttl_end_ns(INT64_MAX, now), RLK_NEVER);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_reply_means_what_the_table_says),
      cmocka_unit_test(a_set_with_a_fencing_number_is_answered_with_one),
      cmocka_unit_test(an_error_is_known_by_its_first_word),
      cmocka_unit_test(a_key_ends_by_its_pttl),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

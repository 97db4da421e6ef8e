/* What the bytes of a reply mean as the answer to each kind of request, and what an error of a server means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "kinds/kinds.h"
#include "lock/asking.h"
#include "wait/place.h"
#include "lock/holder.h"
#include "node/meaning.h"
#include "rules/quorum.h"

#define ALL (sizeof rows / sizeof rows[0])

static const struct {
  const struct rlk_ask *row;
  const char *bytes;
  int vote, fault;
} rows[] = {
    {&rlk_row_set, "+OK\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_set, "$-1\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_set, "+QUEUED\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "+ok\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "+NO\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "+OX\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "+O\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "+OK \r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "+\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "$2\r\nOK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "*1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_set, "-OOM command not allowed\r\n", RLK_ERROR, RLK_FAULT_FULL},
    {&rlk_row_set, "-WRONGTYPE Operation\r\n", RLK_BUSY, RLK_FAULT_TYPE},
    {&rlk_row_set, "-MISCONF Redis\r\n", RLK_ERROR, RLK_FAULT_UNWRITABLE},
    {&rlk_row_set, "-NOAUTH Authentication required.\r\n", RLK_REFUSED, RLK_FAULT_CONFIG},
    {&rlk_row_set, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_fenced, "*2\r\n:1\r\n:1800000000000000\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_fenced, "*2\r\n:0\r\n:0\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_fenced, "*2\r\n:1\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*2\r\n:1\r\n:-5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*2\r\n:0\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*2\r\n:2\r\n:1800000000000000\r\n", RLK_GRANTED, RLK_FAULT_NONE}, /* its clock, no number */
    {&rlk_row_fenced, "*2\r\n:2\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*2\r\n:3\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*3\r\n:1\r\n:5\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "*3\r\n:1\r\n$-1\r\n:5\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_fenced, "-WRONGTYPE Operation\r\n", RLK_BUSY, RLK_FAULT_TYPE},
    {&rlk_row_fenced, "-NOSCRIPT No matching script.\r\n", RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {&rlk_row_fenced, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_fenced, "-OOM command not allowed\r\n", RLK_ERROR, RLK_FAULT_FULL},
    {&rlk_row_set, "*2\r\n:1\r\n:1800000000000000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_raise, ":1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_raise, ":0\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_raise, "*1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*1\r\n:1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_claim, "*3\r\n:0\r\n:1\r\n:2000\r\n", RLK_BUSY, RLK_FAULT_NONE}, /* which key, and its PTTL */
    {&rlk_row_claim, "*3\r\n:0\r\n:2\r\n:-1\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_claim, "*3\r\n:0\r\n:2\r\n:-2\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_claim, "*3\r\n:0\r\n:2\r\n:-3\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*3\r\n:0\r\n:0\r\n:2000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*3\r\n:0\r\n:-1\r\n:2000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*3\r\n:0\r\n:3\r\n:2000\r\n", RLK_ERROR, RLK_FAULT_MISFIT}, /* it has two */
    {&rlk_row_claim, "*3\r\n:0\r\n:4294967297\r\n:2000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*3\r\n:-1\r\n:1\r\n:2000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*3\r\n:1\r\n:1\r\n:2000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*3\r\n:0\r\n$-1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*4\r\n:0\r\n:1\r\n:1\r\n$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*1\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*1\r\n:2\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "*0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim, "-WRONGTYPE Operation\r\n", RLK_ERROR, RLK_FAULT_TYPE}, /* the script asks for the type */
    {&rlk_row_claim, "-NOSCRIPT No matching script.\r\n", RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {&rlk_row_claim, "-OOM command not allowed\r\n", RLK_ERROR, RLK_FAULT_FULL},
    {&rlk_row_claim, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_claim_on, "*1\r\n:1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_claim_on, "*3\r\n:-1\r\n:2\r\n:-2\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_claim_on, "*3\r\n:0\r\n:2\r\n:-2\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim_on, "*1\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim_on, "*1\r\n:-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim_cut, "*1\r\n:1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_claim_cut, "*3\r\n:-1\r\n:1\r\n:2000\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_claim_cut, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim_renew, "*1\r\n:1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_claim_renew, "*3\r\n:-1\r\n:1\r\n:2000\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_claim_renew, "*3\r\n:1\r\n:1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_claim_renew, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_delete, ":1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_delete, ":0\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_delete, ":3\r\n", RLK_GRANTED, RLK_FAULT_NONE}, /* and others wait */
    {&rlk_row_delete, ":2\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_delete, "$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_delete, "-NOSCRIPT No matching script.\r\n", RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {&rlk_row_extend, "*1\r\n:1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_extend, "*1\r\n:0\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_extend, "*1\r\n:2\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*1\r\n:-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*1\r\n$1\r\n1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*1\r\n*1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*2\r\n:1\r\n$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*2\r\n:1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, "*3\r\n:1\r\n:1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_extend, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_confirm, "*1\r\n:1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_confirm, "*1\r\n:0\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_expire, ":1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_expire, ":0\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_expire, "+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_remove, ":1\r\n", RLK_GRANTED, RLK_FAULT_NONE},
    {&rlk_row_remove, ":0\r\n", RLK_GONE, RLK_FAULT_NONE},
    {&rlk_row_remove, "+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_remove, "*2\r\n:0\r\n:-2\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_remove, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_queued, ":0\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_queued, ":1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_queued, "$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_queued, "+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_queued, "*2\r\n:0\r\n:-2\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_queued, "-NOPERM No permissions\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_place, "*2\r\n:0\r\n:-2\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_place, "*2\r\n:1000000\r\n:9223372036854775807\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_place, "*2\r\n:1000001\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*2\r\n:-1\r\n:1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_place, "*2\r\n:-1000001\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*2\r\n:9223372036854775807\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*2\r\n:0\r\n:-3\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*2\r\n:0\r\n:-9223372036854775808\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*2\r\n:3\r\n$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*3\r\n:3\r\n$-1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*3\r\n:3\r\n:2\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "*1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "$-1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_place, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_place, "-NOSCRIPT No matching script.\r\n", RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {&rlk_row_renew, "*3\r\n:1\r\n:0\r\n:1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_renew, "*2\r\n:1\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_renew, "*3\r\n:1\r\n:2\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_renew, "*0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_renew, ":1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_renew, "*3\r\n:1\r\n$-1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_renew, "-NOSCRIPT No matching script.\r\n", RLK_ERROR, RLK_FAULT_NO_SCRIPT},
    {&rlk_row_clock, "*2\r\n$10\r\n1800000000\r\n$6\r\n999999\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_clock, "*2\r\n$10\r\n1800000000\r\n$1\r\n7\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_clock, "*2\r\n$10\r\n1800000000\r\n$7\r\n1000000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*2\r\n$10\r\n9999999999\r\n$1\r\n0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*2\r\n$10\r\n18000x0000\r\n$1\r\n0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*2\r\n$11\r\n18000000000\r\n$1\r\n0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*2\r\n$0\r\n\r\n$1\r\n0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*1\r\n$10\r\n1800000000\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*2\r\n:1800000000\r\n:0\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "*2\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n:1\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "+OK\r\n", RLK_ERROR, RLK_FAULT_MISFIT},
    {&rlk_row_clock, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_value, "$3\r\nabc\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_value, "$-1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_value, "*0\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_value, ":1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_value, "-WRONGTYPE Operation\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_value, "-NOPERM No permissions\r\n", RLK_REFUSED, RLK_FAULT_PERMISSION},
    {&rlk_row_ttl, ":2000\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_ttl, ":-1\r\n", RLK_BUSY, RLK_FAULT_NONE},
    {&rlk_row_ttl, ":-2\r\n", RLK_FREE, RLK_FAULT_NONE},
    {&rlk_row_ttl, "-LOADING Redis\r\n", RLK_ERROR, RLK_FAULT_LOADING},
    {&rlk_row_hint, ":2000\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_hint, "$-1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_hint, "+what\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_hint, "-LOADING Redis\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_entry, "-NOPERM No permissions\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_show, "-NOPERM No permissions\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_show, "-OOM command not allowed\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_show, "+OK\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_nothing, ":1\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
    {&rlk_row_nothing, "-NOPERM No permissions\r\n", RLK_NOT_ASKED, RLK_FAULT_NONE},
};

static struct rlk_batch batch_of_three = {.count = 3};
static struct rlk_key key_of_two = {.count = 2};
static struct rlk_claim claim_of_two = {.key = &key_of_two};

static struct rlk_meaning meaning_of(const struct rlk_ask *row, const char *bytes)
{
  struct rlk_reply reply = {0};
  struct rlk_request request = {.ask = row, .claim = &claim_of_two};
  struct rlk_meaning meaning;
  redisReader *reader = rlk_reply_reader(&reply);
  void *parsed = NULL;
  request.of.batch = &batch_of_three;
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
    struct rlk_meaning meaning = meaning_of(rows[i].row, rows[i].bytes);
    if (meaning.vote != rows[i].vote || meaning.fault != rows[i].fault)
      fail_msg("row %zu, %s: vote %d, fault %d", i, rows[i].bytes, meaning.vote, meaning.fault);
    if (meaning.fault == RLK_FAULT_MISFIT)
      assert_non_null(rows[i].row->name);
  }
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
      {"ERR AUTH <password> called without any password configured", RLK_FAULT_CONFIG},
      {"ERR Client sent AUTH, but no password is set", RLK_FAULT_CONFIG},
      {"ERR invalid password", RLK_FAULT_CONFIG},
      {"ERR SELECT is not allowed in cluster mode", RLK_FAULT_CONFIG},
      {"ERR invalid DB index", RLK_FAULT_CONFIG},
      {"ERR Protocol version is not an integer or out of range", RLK_FAULT_CONFIG},
      {"NOPERM this user has no permissions", RLK_FAULT_PERMISSION},
      {"ERR The user executing the script can't run this command", RLK_FAULT_PERMISSION},
      {"NOSCRIPT No matching script.", RLK_FAULT_NO_SCRIPT},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", RLK_FAULT_TYPE},
      {"ERR unknown command `HELLO`, with args beginning with: ", RLK_FAULT_UNKNOWN},
      {"ERR something else", RLK_FAULT_OTHER},
      {"ERR Error running script (call to f_0c66): @user_script:1: @user_script: 1: -OOM command not allowed",
       RLK_FAULT_FULL},
      {"ERR Error running script (call to f_0c66): @user_script:12: @user_script: 12: -READONLY You can't write",
       RLK_FAULT_ROLE},
      {"ERR Error running script (call to f_0c66): @user_script:1: WRONGTYPE Operation against a key", RLK_FAULT_TYPE},
      {"ERR Error running script (call to f_0c66): @user_script:1: something else", RLK_FAULT_OTHER},
      {"ERR Error running script (call to f_0c66): @user_script:2: @user_script: 2: The user executing the script "
       "can't "
       "run this command or subcommand",
       RLK_FAULT_PERMISSION},
      {"@user_script: 66: The user executing the script can't run this command or subcommand",
       RLK_FAULT_PERMISSION}, /* that redis.pcall has returned */
      {"ERR Error running script", RLK_FAULT_OTHER},
      {"BUSYGROUP Consumer Group name already exists", RLK_FAULT_OTHER}, /* only whole words */
      {"OOM", RLK_FAULT_FULL},
      {"", RLK_FAULT_OTHER},
  };
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    int is_refused = errors[i].fault == RLK_FAULT_CONFIG || errors[i].fault == RLK_FAULT_PERMISSION ||
                     errors[i].fault == RLK_FAULT_ROLE;
    char bytes[200];
    struct rlk_meaning meaning;
    snprintf(bytes, sizeof bytes, "-%s\r\n", errors[i].text);
    meaning = meaning_of(&rlk_row_extend, bytes);
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
      cmocka_unit_test(an_error_is_known_by_its_first_word),
      cmocka_unit_test(a_key_ends_by_its_pttl),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

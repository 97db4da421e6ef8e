#include "meaning.h"

#include <string.h>

#include "../base/macros.h"
#include "../base/platform.h"
#include "../rules/quorum.h"

#define RANK_MAX 1000000                   /* of a waiter: there are not that many */
#define PTTL_MAX_MS INT64_C(3155760000000) /* a hundred years: what lives longer does not end */

/* ---- errors ---- */

static const struct {
  const char *begins;
  enum rlk_fault fault;
} faults[] = {
    {"READONLY", RLK_FAULT_ROLE},
    {"MASTERDOWN", RLK_FAULT_ROLE},
    {"LOADING", RLK_FAULT_LOADING},
    {"ERR max number of clients", RLK_FAULT_LOADING},
    {"DENIED", RLK_FAULT_LOADING},
    {"OOM", RLK_FAULT_FULL},
    {"BUSY", RLK_FAULT_PAUSE},
    {"UNKILLABLE", RLK_FAULT_PAUSE},
    {"MISCONF", RLK_FAULT_UNWRITABLE},
    {"NOREPLICAS", RLK_FAULT_UNWRITABLE},
    {"NOAUTH", RLK_FAULT_CONFIG},
    {"WRONGPASS", RLK_FAULT_CONFIG},
    {"MOVED", RLK_FAULT_CONFIG},
    {"ASK", RLK_FAULT_CONFIG},
    {"CLUSTERDOWN", RLK_FAULT_CONFIG},
    {"CROSSSLOT", RLK_FAULT_CONFIG},
    {"ERR Protocol version", RLK_FAULT_CONFIG},
    {"ERR AUTH", RLK_FAULT_CONFIG},
    {"ERR Client sent AUTH", RLK_FAULT_CONFIG},
    {"ERR invalid password", RLK_FAULT_CONFIG},
    {"ERR DB index", RLK_FAULT_CONFIG},
    {"ERR invalid DB index", RLK_FAULT_CONFIG},
    {"ERR SELECT", RLK_FAULT_CONFIG},
    {"NOPERM", RLK_FAULT_PERMISSION},
    {"ERR The user executing the script", RLK_FAULT_PERMISSION},
    {"ERR ACL failure in script", RLK_FAULT_PERMISSION},
    {"NOSCRIPT", RLK_FAULT_NO_SCRIPT},
    {"WRONGTYPE", RLK_FAULT_TYPE},
    {"ERR unknown command", RLK_FAULT_UNKNOWN},
    {"ERR Unknown Redis command", RLK_FAULT_UNKNOWN}, /* in a script */
    {"ERR Unknown command", RLK_FAULT_UNKNOWN},
    {"NOPROTO", RLK_FAULT_UNKNOWN},
};

enum rlk_fault rlk_fault_of(const char *text)
{
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    size_t size = strlen(faults[i].begins);
    if (strncmp(text, faults[i].begins, size) == 0 && strchr(" ,:`'", text[size])) /* matches the end, too */
      return faults[i].fault;
  }
  return RLK_FAULT_OTHER;
}

/* ---- replies ---- */

/* The votes that a request can be answered with, per form of reply; 0: that form does not fit. */
static const struct {
  const char *misfit;
  uint8_t ok, nil;         /* +OK, nil */
  uint8_t some, none;      /* an odd integer, or an even one: 2 in it says that others wait */
  uint8_t one_yes, one_no; /* an array of one 1, or of one 0 */
} votes[RLK_REQUEST_NOTHING + 1] = {
    [RLK_REQUEST_SET] = {"an unexpected reply to SET", .ok = RLK_GRANTED, .nil = RLK_BUSY},
    [RLK_REQUEST_CLOCK] = {.misfit = "an unexpected reply to TIME"},
    [RLK_REQUEST_MARKER] = {.misfit = "an unexpected reply to GET"},
    [RLK_REQUEST_RAISE] = {"an unexpected reply to the script of the fence", .some = RLK_GRANTED, .none = RLK_GONE},
    [RLK_REQUEST_DELETE] = {"an unexpected reply to the release script", .some = RLK_GRANTED, .none = RLK_GONE},
    [RLK_REQUEST_CONFIRM] = {"an unexpected reply to the extend script", .one_yes = RLK_GRANTED, .one_no = RLK_BUSY},
    [RLK_REQUEST_EXTEND] = {"an unexpected reply to the extend script", .one_yes = RLK_GRANTED, .one_no = RLK_GONE},
    [RLK_REQUEST_EXPIRE] = {"an unexpected reply to the expire script", .some = RLK_GRANTED, .none = RLK_GONE},
    [RLK_REQUEST_RENEW] = {.misfit = "an unexpected reply to the extend script"},
    [RLK_REQUEST_QUEUED] = {.misfit = "an unexpected reply to EXISTS"},
    [RLK_REQUEST_JOIN] = {.misfit = "an unexpected reply to the script of the queue"},
    [RLK_REQUEST_REMOVE] = {"an unexpected reply to DEL", .some = RLK_GRANTED, .none = RLK_GONE},
};

static uint8_t vote_of(enum rlk_request_kind kind, const struct rlk_reply *reply)
{
  switch (reply->type) {
  case RLK_REPLY_STATUS: return reply->text.end == 2 && memcmp(reply->text.data, "OK", 2) == 0 ? votes[kind].ok : 0;
  case RLK_REPLY_NIL: return votes[kind].nil;
  case RLK_REPLY_INTEGER: return reply->integer & 1 ? votes[kind].some : votes[kind].none;
  case RLK_REPLY_ARRAY:
    if (!rlk_reply_is_answers(reply, 1))
      return 0;
    return reply->integers[0] == 1 ? votes[kind].one_yes : votes[kind].one_no;
  default: return 0;
  }
}

/* 1 and the number, 2 and the clock of a server that has no number yet, or 0 and 0. */
RLK_COLD static struct rlk_meaning fence_meaning(const struct rlk_reply *reply)
{
  struct rlk_meaning meaning = {RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT};
  if (reply->type != RLK_REPLY_ARRAY || reply->elements != 2 || reply->count != 2)
    return meaning;
  if ((reply->integers[0] == 1 || reply->integers[0] == 2) && reply->integers[1] > 0)
    meaning = (struct rlk_meaning){RLK_OUTCOME_VOTE, RLK_GRANTED, RLK_FAULT_NONE};
  else if (reply->integers[0] == 0 && reply->integers[1] == 0)
    meaning = (struct rlk_meaning){RLK_OUTCOME_VOTE, RLK_BUSY, RLK_FAULT_NONE};
  return meaning;
}

static const struct rlk_meaning nothing = {RLK_OUTCOME_NOTHING, 0, RLK_FAULT_NONE};
static const struct rlk_meaning no_entry = {RLK_OUTCOME_NO_ENTRY, 0, RLK_FAULT_NONE};

RLK_COLD static struct rlk_meaning error_meaning(enum rlk_request_kind kind, const char *text)
{
  enum rlk_fault fault = rlk_fault_of(text);
  int is_refused = fault == RLK_FAULT_CONFIG || fault == RLK_FAULT_PERMISSION;
  struct rlk_meaning meaning = {RLK_OUTCOME_VOTE, is_refused ? RLK_REFUSED : RLK_ERROR, (uint8_t)fault};
  int asks_holder = kind == RLK_REQUEST_HOLDER || kind == RLK_REQUEST_ENTRY || kind == RLK_REQUEST_SHOW;
  if (asks_holder)
    return fault == RLK_FAULT_PERMISSION ? no_entry : nothing;
  if (kind == RLK_REQUEST_HINT || kind == RLK_REQUEST_QUEUED || (kind == RLK_REQUEST_VALUE && fault == RLK_FAULT_TYPE))
    return nothing;
  if (kind == RLK_REQUEST_JOIN)
    meaning.kind = RLK_OUTCOME_PLACE;
  else if (kind == RLK_REQUEST_RENEW)
    meaning.kind = RLK_OUTCOME_BATCH;
  else if (kind == RLK_REQUEST_SET && fault == RLK_FAULT_TYPE)
    meaning.vote = RLK_BUSY;
  return meaning;
}

/* What is asked to be shown: what does not fit is not shown. */
RLK_COLD static struct rlk_meaning view_meaning(enum rlk_request_kind kind, const struct rlk_reply *reply)
{
  struct rlk_meaning meaning = nothing;
  if (kind == RLK_REQUEST_VALUE) {
    if (reply->type == RLK_REPLY_STRING || reply->type == RLK_REPLY_NIL)
      meaning.kind = RLK_OUTCOME_VALUE; /* the vote follows with the TTL */
  } else if (kind == RLK_REQUEST_HOLDER || kind == RLK_REQUEST_ENTRY) {
    if (reply->type == RLK_REPLY_STRING)
      meaning.kind = kind == RLK_REQUEST_HOLDER ? RLK_OUTCOME_HOLDER : RLK_OUTCOME_ENTRY;
  } else if (reply->type == RLK_REPLY_INTEGER) {
    meaning.kind = RLK_OUTCOME_PTTL;
    if (kind == RLK_REQUEST_TTL)
      meaning.vote = reply->integer == -2 ? RLK_FREE : RLK_BUSY;
  }
  return meaning;
}

int64_t rlk_pttl_end_ns(int64_t pttl_ms, int64_t now)
{
  if (pttl_ms == -2)
    return 0;
  if (pttl_ms == -1 || pttl_ms > PTTL_MAX_MS)
    return RLK_NEVER;
  return now + (pttl_ms > 0 ? pttl_ms * RLK_NS_PER_MS : 0);
}

/* A rank and a PTTL as JOIN returns them: sums of them with times do not overflow. */
static int is_place(const struct rlk_reply *reply)
{
  return reply->type == RLK_REPLY_ARRAY && reply->elements == 2 && reply->count == 2 && reply->integers[0] >= 0 &&
         reply->integers[0] <= RANK_MAX && reply->integers[1] >= -2;
}

RLK_COLD static struct rlk_meaning queue_meaning(enum rlk_request_kind kind, const struct rlk_reply *reply)
{
  struct rlk_meaning meaning = nothing;
  if (kind == RLK_REQUEST_QUEUED && reply->type == RLK_REPLY_INTEGER)
    meaning.kind = RLK_OUTCOME_QUEUED;
  else if (kind == RLK_REQUEST_JOIN && is_place(reply))
    meaning.kind = RLK_OUTCOME_PLACE;
  else
    meaning = (struct rlk_meaning){RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT};
  return meaning;
}

struct rlk_meaning rlk_meaning_of(const struct rlk_request *request, const struct rlk_reply *reply)
{
  enum rlk_request_kind kind = request->kind;
  int is_fenced = kind == RLK_REQUEST_SET && request->count;
  struct rlk_meaning meaning = {RLK_OUTCOME_VOTE, is_fenced ? 0 : vote_of(kind, reply), RLK_FAULT_NONE};
  if (meaning.vote)
    return meaning;
  if (is_fenced && reply->type != RLK_REPLY_ERROR)
    return fence_meaning(reply);
  if (kind == RLK_REQUEST_SETUP || kind == RLK_REQUEST_NOTHING)
    return nothing;
  if (reply->type == RLK_REPLY_ERROR)
    return error_meaning(kind, reply->text.data);
  if (kind == RLK_REQUEST_VALUE || kind == RLK_REQUEST_TTL || kind == RLK_REQUEST_HINT || kind == RLK_REQUEST_HOLDER ||
      kind == RLK_REQUEST_ENTRY)
    return view_meaning(kind, reply);
  if (kind == RLK_REQUEST_QUEUED || kind == RLK_REQUEST_JOIN)
    return queue_meaning(kind, reply);
  if (kind == RLK_REQUEST_SHOW || (kind == RLK_REQUEST_CLOCK && rlk_reply_is_time(reply, &(int64_t){0})))
    return nothing;
  if (kind == RLK_REQUEST_RENEW && rlk_reply_is_answers(reply, (int)request->count))
    meaning.kind = RLK_OUTCOME_BATCH;
  else
    meaning = (struct rlk_meaning){RLK_OUTCOME_VOTE, RLK_ERROR, RLK_FAULT_MISFIT};
  return meaning;
}

const char *rlk_misfit_words(enum rlk_request_kind kind)
{
  return votes[kind].misfit;
}

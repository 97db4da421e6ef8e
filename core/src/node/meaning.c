#include "meaning.h"

#include <string.h>

#include "../base/macros.h"
#include "../rules/quorum.h"

/* ---- errors ---- */

static const struct {
  const char *begins;
  enum rl_fault fault;
} faults[] = {
    {"READONLY", RL_FAULT_ROLE},
    {"MASTERDOWN", RL_FAULT_ROLE},
    {"LOADING", RL_FAULT_LOADING},
    {"ERR max number of clients", RL_FAULT_LOADING},
    {"DENIED", RL_FAULT_LOADING},
    {"OOM", RL_FAULT_FULL},
    {"BUSY", RL_FAULT_PAUSE},
    {"UNKILLABLE", RL_FAULT_PAUSE},
    {"MISCONF", RL_FAULT_UNWRITABLE},
    {"NOREPLICAS", RL_FAULT_UNWRITABLE},
    {"NOAUTH", RL_FAULT_CONFIG},
    {"WRONGPASS", RL_FAULT_CONFIG},
    {"MOVED", RL_FAULT_CONFIG},
    {"ASK", RL_FAULT_CONFIG},
    {"CLUSTERDOWN", RL_FAULT_CONFIG},
    {"CROSSSLOT", RL_FAULT_CONFIG},
    {"ERR Protocol version", RL_FAULT_CONFIG},
    {"ERR AUTH", RL_FAULT_CONFIG},
    {"ERR Client sent AUTH", RL_FAULT_CONFIG},
    {"ERR invalid password", RL_FAULT_CONFIG},
    {"ERR DB index", RL_FAULT_CONFIG},
    {"ERR invalid DB index", RL_FAULT_CONFIG},
    {"ERR SELECT", RL_FAULT_CONFIG},
    {"NOPERM", RL_FAULT_PERMISSION},
    {"ERR The user executing the script", RL_FAULT_PERMISSION},
    {"ERR ACL failure in script", RL_FAULT_PERMISSION},
    {"NOSCRIPT", RL_FAULT_NO_SCRIPT},
    {"WRONGTYPE", RL_FAULT_TYPE},
    {"ERR unknown command", RL_FAULT_UNKNOWN},
    {"ERR Unknown Redis command", RL_FAULT_UNKNOWN}, /* in a script */
    {"ERR Unknown command", RL_FAULT_UNKNOWN},
    {"NOPROTO", RL_FAULT_UNKNOWN},
};

enum rl_fault rl_fault_of(const char *text)
{
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    size_t size = strlen(faults[i].begins);
    if (strncmp(text, faults[i].begins, size) == 0 && strchr(" ,:`'", text[size])) /* matches the end, too */
      return faults[i].fault;
  }
  return RL_FAULT_OTHER;
}

/* ---- replies ---- */

/* The votes that a request can be answered with, per form of reply; 0: that form does not fit. */
static const struct {
  const char *misfit;
  uint8_t ok, nil;         /* +OK, nil */
  uint8_t some, none;      /* an integer above 0, or not */
  uint8_t one_yes, one_no; /* an array of one 1, or of one 0 */
} votes[RL_REQUEST_NOTHING + 1] = {
    [RL_REQUEST_SET] = {"an unexpected reply to SET", .ok = RL_GRANTED, .nil = RL_BUSY},
    [RL_REQUEST_DELETE] = {"an unexpected reply to the release script", .some = RL_GRANTED, .none = RL_GONE},
    [RL_REQUEST_CONFIRM] = {"an unexpected reply to the extend script", .one_yes = RL_GRANTED, .one_no = RL_BUSY},
    [RL_REQUEST_EXTEND] = {"an unexpected reply to the extend script", .one_yes = RL_GRANTED, .one_no = RL_GONE},
    [RL_REQUEST_EXPIRE] = {"an unexpected reply to the expire script", .some = RL_GRANTED, .none = RL_GONE},
    [RL_REQUEST_RENEW] = {.misfit = "an unexpected reply to the extend script"},
    [RL_REQUEST_REMOVE] = {"an unexpected reply to DEL", .some = RL_GRANTED, .none = RL_GONE},
};

static uint8_t vote_of(enum rl_request_kind kind, const struct rl_reply *reply)
{
  switch (reply->type) {
  case RL_REPLY_STATUS: return reply->text.end == 2 && memcmp(reply->text.data, "OK", 2) == 0 ? votes[kind].ok : 0;
  case RL_REPLY_NIL: return votes[kind].nil;
  case RL_REPLY_INTEGER: return reply->integer > 0 ? votes[kind].some : votes[kind].none;
  case RL_REPLY_ARRAY:
    if (!rl_reply_is_answers(reply, 1))
      return 0;
    return reply->integers[0] == 1 ? votes[kind].one_yes : votes[kind].one_no;
  default: return 0;
  }
}

static const struct rl_meaning nothing = {RL_OUTCOME_NOTHING, 0, RL_FAULT_NONE};

RL_COLD static struct rl_meaning error_meaning(enum rl_request_kind kind, const char *text)
{
  enum rl_fault fault = rl_fault_of(text);
  int is_refused = fault == RL_FAULT_CONFIG || fault == RL_FAULT_PERMISSION;
  struct rl_meaning meaning = {RL_OUTCOME_VOTE, is_refused ? RL_REFUSED : RL_ERROR, (uint8_t)fault};
  if (kind == RL_REQUEST_HINT || (kind == RL_REQUEST_VALUE && fault == RL_FAULT_TYPE))
    return nothing;
  if (kind == RL_REQUEST_RENEW)
    meaning.kind = RL_OUTCOME_BATCH;
  else if (kind == RL_REQUEST_SET && fault == RL_FAULT_TYPE)
    meaning.vote = RL_BUSY;
  return meaning;
}

/* What is asked to be shown: what does not fit is not shown. */
RL_COLD static struct rl_meaning view_meaning(enum rl_request_kind kind, const struct rl_reply *reply)
{
  struct rl_meaning meaning = nothing;
  if (kind == RL_REQUEST_VALUE) {
    if (reply->type == RL_REPLY_STRING || reply->type == RL_REPLY_NIL)
      meaning.kind = RL_OUTCOME_VALUE; /* the vote follows with the TTL */
  } else if (reply->type == RL_REPLY_INTEGER) {
    meaning.kind = RL_OUTCOME_PTTL;
    if (kind == RL_REQUEST_TTL)
      meaning.vote = reply->integer == -2 ? RL_FREE : RL_BUSY;
  }
  return meaning;
}

struct rl_meaning rl_meaning_of(const struct rl_request *request, const struct rl_reply *reply)
{
  enum rl_request_kind kind = request->kind;
  struct rl_meaning meaning = {RL_OUTCOME_VOTE, vote_of(kind, reply), RL_FAULT_NONE};
  if (meaning.vote)
    return meaning;
  if (kind == RL_REQUEST_SETUP || kind == RL_REQUEST_NOTHING)
    return nothing;
  if (reply->type == RL_REPLY_ERROR)
    return error_meaning(kind, reply->text.data);
  if (kind == RL_REQUEST_VALUE || kind == RL_REQUEST_TTL || kind == RL_REQUEST_HINT)
    return view_meaning(kind, reply);
  if (kind == RL_REQUEST_RENEW && rl_reply_is_answers(reply, (int)request->count))
    meaning.kind = RL_OUTCOME_BATCH;
  else
    meaning = (struct rl_meaning){RL_OUTCOME_VOTE, RL_ERROR, RL_FAULT_MISFIT};
  return meaning;
}

const char *rl_misfit_words(enum rl_request_kind kind)
{
  return votes[kind].misfit;
}

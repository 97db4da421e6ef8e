#include "meaning.h"

#include <string.h>

#include "../base/macros.h"
#include "../base/platform.h"

#define PTTL_MAX_MS INT64_C(3155760000000) /* a hundred years: a key that lives longer does not end */

/* ---- errors ---- */

static const struct {
  const char *begins;
  enum rlk_fault fault;
  enum rlk_why why;
} faults[] = {
    {"READONLY", RLK_FAULT_ROLE, RLK_WHY_READONLY},
    {"MASTERDOWN", RLK_FAULT_ROLE, RLK_WHY_READONLY},
    {"LOADING", RLK_FAULT_LOADING, RLK_WHY_LOADING},
    {"ERR max number of clients", RLK_FAULT_LOADING, RLK_WHY_MAX_CLIENTS},
    {"DENIED", RLK_FAULT_LOADING, RLK_WHY_PROTECTED},
    {"OOM", RLK_FAULT_FULL, RLK_WHY_OOM},
    {"BUSY", RLK_FAULT_PAUSE, RLK_WHY_BUSY_SCRIPT},
    {"UNKILLABLE", RLK_FAULT_PAUSE, RLK_WHY_BUSY_SCRIPT},
    {"MISCONF", RLK_FAULT_UNWRITABLE, RLK_WHY_MISCONF},
    {"NOREPLICAS", RLK_FAULT_UNWRITABLE, RLK_WHY_NOREPLICAS},
    {"NOAUTH", RLK_FAULT_CONFIG, RLK_WHY_NOAUTH},
    {"WRONGPASS", RLK_FAULT_CONFIG, RLK_WHY_WRONGPASS},
    {"MOVED", RLK_FAULT_CONFIG, RLK_WHY_IN_CLUSTER},
    {"ASK", RLK_FAULT_CONFIG, RLK_WHY_IN_CLUSTER},
    {"CLUSTERDOWN", RLK_FAULT_CONFIG, RLK_WHY_IN_CLUSTER},
    {"CROSSSLOT", RLK_FAULT_CONFIG, RLK_WHY_IN_CLUSTER},
    {"ERR Protocol version", RLK_FAULT_CONFIG, RLK_WHY_UNKNOWN_COMMAND},
    {"ERR AUTH", RLK_FAULT_CONFIG, RLK_WHY_WRONGPASS},
    {"ERR Client sent AUTH", RLK_FAULT_CONFIG, RLK_WHY_WRONGPASS},
    {"ERR invalid password", RLK_FAULT_CONFIG, RLK_WHY_WRONGPASS},
    {"ERR DB index", RLK_FAULT_CONFIG, RLK_WHY_DATABASE},
    {"ERR invalid DB index", RLK_FAULT_CONFIG, RLK_WHY_DATABASE},
    {"ERR SELECT", RLK_FAULT_CONFIG, RLK_WHY_DATABASE},
    {"NOPERM", RLK_FAULT_PERMISSION, RLK_WHY_NOPERM},
    {"ERR The user executing the script", RLK_FAULT_PERMISSION, RLK_WHY_NOPERM},
    {"The user executing the script", RLK_FAULT_PERMISSION, RLK_WHY_NOPERM}, /* Redis 6 */
    {"ERR ACL failure in script", RLK_FAULT_PERMISSION, RLK_WHY_NOPERM},
    {"NOSCRIPT", RLK_FAULT_NO_SCRIPT, RLK_WHY_ERROR},
    {"WRONGTYPE", RLK_FAULT_TYPE, RLK_WHY_WRONGTYPE},
    {"ERR unknown command", RLK_FAULT_UNKNOWN, RLK_WHY_UNKNOWN_COMMAND},
    {"ERR Unknown Redis command", RLK_FAULT_UNKNOWN, RLK_WHY_UNKNOWN_COMMAND}, /* in a script */
    {"ERR Unknown command", RLK_FAULT_UNKNOWN, RLK_WHY_UNKNOWN_COMMAND},
    {"NOPROTO", RLK_FAULT_UNKNOWN, RLK_WHY_UNKNOWN_COMMAND},
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

const char *rlk_cause_in(const char *text)
{
  static const char begins[] = "ERR Error running script", place[] = "@user_script:";
  if (strncmp(text, begins, sizeof begins - 1) != 0 && strncmp(text, place, sizeof place - 1) != 0)
    return text;
  for (const char *at; (at = strstr(text, place));)
    text = at + sizeof place - 1;
  text += strspn(text, " 0123456789:");
  return *text == '-' ? text + 1 : text;
}

static size_t fault_at(const char *text)
{
  text = rlk_cause_in(text);
  for (size_t i = 0; i < FAULTS; i++) {
    size_t size = strlen(faults[i].begins);
    if (strncmp(text, faults[i].begins, size) == 0 && strchr(" ,:`'", text[size])) /* matches the end, too */
      return i;
  }
  return FAULTS;
}

enum rlk_fault rlk_fault_of(const char *text)
{
  size_t at = fault_at(text);
  return at < FAULTS ? faults[at].fault : RLK_FAULT_OTHER;
}

enum rlk_why rlk_why_of(const char *text)
{
  size_t at = fault_at(text);
  return at < FAULTS ? faults[at].why : RLK_WHY_ERROR;
}

uint8_t rlk_error_vote(enum rlk_fault fault)
{
  int is_refused = fault == RLK_FAULT_CONFIG || fault == RLK_FAULT_PERMISSION || fault == RLK_FAULT_ROLE;
  return is_refused ? RLK_REFUSED : RLK_ERROR;
}

/* ---- replies ---- */

RLK_COLD static struct rlk_meaning error_meaning(const struct rlk_ask *ask, const char *text)
{
  enum rlk_fault fault = rlk_fault_of(text);
  uint8_t vote = fault == RLK_FAULT_TYPE ? ask->wrong_type : 0;
  if (vote == RLK_FITS || (ask->error == RLK_FITS && fault != RLK_FAULT_NO_SCRIPT))
    return (struct rlk_meaning){RLK_NOT_ASKED, RLK_FAULT_NONE};
  return (struct rlk_meaning){vote ? vote : rlk_error_vote(fault), (uint8_t)fault};
}

static uint8_t form_of(const struct rlk_ask *ask, const struct rlk_reply *reply)
{
  switch (reply->type) {
  case RLK_REPLY_STATUS: return reply->text.end == 2 && memcmp(reply->text.data, "OK", 2) == 0 ? ask->ok : 0;
  case RLK_REPLY_NIL: return ask->nil;
  case RLK_REPLY_INTEGER: return reply->integer & 1 ? ask->odd : ask->even;
  case RLK_REPLY_ARRAY: return !rlk_reply_is_answers(reply, 1) ? 0 : reply->integers[0] == 1 ? ask->one : ask->zero;
  default: return 0;
  }
}

struct rlk_meaning rlk_meaning_of(const struct rlk_request *request, const struct rlk_reply *reply)
{
  const struct rlk_ask *ask = request->ask;
  uint8_t vote;
  if (reply->type == RLK_REPLY_ERROR)
    return error_meaning(ask, reply->text.data);
  vote = form_of(ask, reply);
  if (!vote && ask->read)
    vote = ask->read(request, reply);
  if (!vote)
    vote = ask->rest;
  if (vote == RLK_MISFIT)
    return (struct rlk_meaning){RLK_ERROR, RLK_FAULT_MISFIT};
  return (struct rlk_meaning){vote == RLK_FITS ? RLK_NOT_ASKED : vote, RLK_FAULT_NONE};
}

int64_t rlk_pttl_end_ns(int64_t pttl_ms, int64_t now)
{
  if (pttl_ms == -2)
    return 0;
  if (pttl_ms == -1 || pttl_ms > PTTL_MAX_MS)
    return RLK_NEVER;
  return now + (pttl_ms > 0 ? pttl_ms * RLK_NS_PER_MS : 0);
}

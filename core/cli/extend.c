/* extend.c - redlock extend RESOURCE TOKEN, and redlock expire RESOURCE TOKEN */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_LIMIT_MS = 500 };

/* A shorter TTL does not shorten keys on the nodes: how much longer they last; 0 if it is not known. Slower nodes are
 * awaited meanwhile. */
static int64_t kept_ms(struct session *session)
{
  session->leave_by_ms = redlock_now_ms() + session_option_ms(session, "exit_drain_ms");
  const char *resource = session->args->resource;
  redlock_lock *lock = must(redlock_lock_new(session->client, resource, strlen(resource)));
  (void)session_operate(session, lock, REDLOCK_INSPECT, LOOK_LIMIT_MS);
  char *holder = lock_holder(lock); /* of readers the one with the longest lease */
  bool is_another = redlock_lock_verdict(lock) == REDLOCK_VERDICT_SHARED && strcmp(holder, session->args->token) != 0;
  int64_t ttl_ms = is_another ? 0 : redlock_lock_holder_ttl_ms(lock);
  free(holder);
  redlock_lock_free(lock);
  return ttl_ms;
}

/* A longer lease than was asked for is one that was there before. */
static int tell_lease(struct session *session, int64_t ttl_ms, int64_t keep_ms)
{
  if (session->args->json) {
    json_t *report = report_json(session, REDLOCK_OK);
    json_object_set_new(report, "holder_ttl_ms", json_integer(keep_ms));
    return print_json(report);
  }
  char *validity = duration_words(redlock_lock_validity_ms(session->lock));
  char *keep = duration_words(keep_ms);
  if (keep_ms > ttl_ms)
    say(session, "held for %s; the nodes keep it for %s: extend never shortens a lease, expire does", validity, keep);
  else
    say(session, "held for %s", validity);
  free(keep);
  free(validity);
  return 0;
}

static int operate(struct session *session, int operation)
{
  int64_t ttl_ms = session_option_ms(session, "ttl_ms");
  int status = redlock_lock_adopt(session->lock, session->args->token);
  if (status == REDLOCK_OK)
    status = session_operate(session, session->lock, operation, -1);
  int64_t keep_ms = status == REDLOCK_OK ? kept_ms(session) : 0;
  status = session_confirm(session, status);
  int code = status == REDLOCK_OK ? tell_lease(session, ttl_ms, keep_ms) : report_failure(session, status);
  redlock_lock_detach(session->lock);
  return code;
}

static int extend(struct session *session)
{
  return operate(session, REDLOCK_EXTEND);
}

static int expire(struct session *session)
{
  return operate(session, REDLOCK_EXPIRE);
}

const struct command extend_command = {
    OVERVIEW("extend", "Lock", "extend the lock that has a token", "[OPTION...] RESOURCE... TOKEN"),
    .help =
        "Extends the lock that has this token to --ttl from now. It never shortens the lease; `redlock expire` can.",
    .purposes = KIND | LEASE, FLAGS(&calm_flag), .run = extend};

const struct command expire_command = {
    OVERVIEW("expire", "Lock", "set the remaining lease, longer or shorter", "[OPTION...] RESOURCE... TOKEN"),
    .help = "Sets the lease of the lock that has this token to --ttl from now, longer or shorter.",
    .purposes = KIND | LEASE, FLAGS(&calm_flag), .run = expire};

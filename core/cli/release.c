/* release.c - redlock release RESOURCE TOKEN */
#include "cli.h"

static int tell_release(const struct session *session, int status)
{
  if (session->args->json)
    return print_json(report_json(session, status));
  say(session, status == REDLOCK_OK ? "released" : "already gone: nobody holds it with this token");
  return 0;
}

static int release(struct session *session)
{
  if (session->args->force)
    return force_release(session);
  int status = redlock_lock_adopt(session->lock, session->args->token);
  if (status != REDLOCK_OK)
    return report_failure(session, status);
  status = session_operate(session, session->lock, REDLOCK_RELEASE, -1);
  session_settle(session);
  bool gone = status == REDLOCK_OK || status == REDLOCK_LOST;
  return gone ? tell_release(session, status) : report_failure(session, status);
}

/* Commands that grant no lock run without the guard: they write no marker, and serve nodes of any max_ttl_ms. */
const struct command release_command = {
    OVERVIEW("release", "Lock", "release the lock that has a token", "[OPTION...] RESOURCE... TOKEN"),
    .help =
        "Releases the lock that has this token; exits with 0 even if it was already gone.\n"
        "`redlock release --force RESOURCE` deletes it, whoever holds it; with --permits, the permit --slot or all.",
    .purposes = KIND,
    DEFAULTS({"guard", "off"}),
    FLAGS(&calm_flag, &force_flag, &force_yes_flag),
    .check = force_check,
    .run = release};

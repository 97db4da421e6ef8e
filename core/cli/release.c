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
  int status = redlock_lock_adopt(session->lock, session->args->token);
  if (status != REDLOCK_OK)
    return report_failure(session, status);
  status = session_operate(session, REDLOCK_RELEASE, 0);
  session_settle(session);
  bool gone = status == REDLOCK_OK || status == REDLOCK_LOST;
  return gone ? tell_release(session, status) : report_failure(session, status);
}

int release_main(const struct args *args)
{
  struct session session;
  int code = force_check(args);
  if (code != 0)
    return code;
  code = session_open(&session, args);
  if (code == 0)
    code = args->force ? force_release(&session) : release(&session);
  return session_close(&session, code);
}

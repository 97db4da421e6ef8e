/* extend.c - redlock extend RESOURCE TOKEN */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>

static int print_validity(const struct session *session)
{
  if (session->args->json)
    return print_json(report_json(session, REDLOCK_OK));
  char *validity = duration_words(redlock_lock_validity_ms(session->lock));
  bool failed = printf("held for %s\n", validity) < 0;
  free(validity);
  return flush_answer(failed);
}

static int extend(struct session *session)
{
  int status = redlock_lock_adopt(session->lock, session->args->token);
  if (status == REDLOCK_OK)
    status = session_confirm(session, session_operate(session, REDLOCK_EXTEND, 0));
  int code = status == REDLOCK_OK ? print_validity(session) : report_failure(session, status);
  redlock_lock_detach(session->lock);
  return code;
}

int extend_main(const struct args *args)
{
  struct session session;
  int code = session_open(&session, args);
  if (code == 0)
    code = extend(&session);
  return session_close(&session, code);
}

/* lock.c - redlock lock RESOURCE: holds the lock until a signal comes. */
#include "cli.h"

#include <stdlib.h>

static int say_lost(const struct session *session)
{
  char *words = outcome(session, REDLOCK_LOST);
  int code = fail(EXIT_LOST, "%s", words);
  free(words);
  return code;
}

/* A signal is what is waited for, so it is no failure. */
static int hold(struct session *session)
{
  char *left = NULL;
  int status = session_acquire(session);
  if (status != REDLOCK_OK)
    return report_failure(session, status);
  if (!session->args->json)
    say(session, "held until Ctrl-C or SIGTERM");
  else if (print_json(report_json(session, status)) != 0)
    return EXIT_INTERNAL;
  while (session->caught == 0 && redlock_lock_state(session->lock) == REDLOCK_STATE_HELD) {
    session_poll(session, -1);
    session->caught = session_signal(session);
  }
  bool is_lost = session->caught == 0 || leave_release(session, &left) == REDLOCK_LOST;
  session->caught = 0;
  if (left != NULL)
    fail(0, "%s", left);
  free(left);
  return is_lost ? say_lost(session) : 0;
}

const struct command lock_command = {
    OVERVIEW("lock", "Lock", "hold the lock until Ctrl-C", "[OPTION...] RESOURCE..."),
    .help = "Acquires the lock, renews it, and releases it when SIGINT, SIGTERM or another signal comes.\n"
            "Exits with 0 then, or 75 others hold the lock, 69 no quorum, 78 nodes refuse, 76 it was lost.",
    .purposes = KIND | GRANT | WAIT | LEASE | HOLD,
    DEFAULTS({"renew", "true"}, {"wait_ms", WAIT_DEFAULT_MS}),
    FLAGS(FLAGS_OF_A_WAIT),
    .run = hold};

/* acquire.c - redlock acquire RESOURCE */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>

static int print_token(const struct session *session)
{
  if (session->args->json)
    return print_json(report_json(session, REDLOCK_OK));
  char *token = lock_token(session->lock);
  int64_t fence = redlock_lock_fence(session->lock);
  int slot = redlock_lock_slot(session->lock);
  fputs(token, stdout);
  if (fence > 0)
    printf(" %lld", (long long)fence);
  else if (slot >= 0)
    printf(" %d", slot);
  putchar('\n');
  free(token);
  return flush_answer();
}

/* If the token could not be printed, the lock would only keep others out: release it. */
static int hand_over(const struct session *session)
{
  int failed = print_token(session);
  if (!failed)
    redlock_lock_detach(session->lock);
  return failed;
}

static int acquire(struct session *session)
{
  int status = session_confirm(session, session_acquire(session));
  return status == REDLOCK_OK ? hand_over(session) : report_failure(session, status);
}

const struct command acquire_command = {
    OVERVIEW("acquire", "Lock", "take the lock, print its token and leave it in place", "[OPTION...] RESOURCE..."),
    .help = "Acquires the lock, prints its token and leaves it in place until its TTL ends. With --fence the number "
            "follows.",
    .purposes = KIND | GRANT | WAIT | LEASE,
    DEFAULTS({"wait_ms", WAIT_DEFAULT_MS}),
    FLAGS(FLAGS_OF_A_WAIT),
    .run = acquire};

/* loss.c - why a lock was lost, in words and in one. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

char *loss_reason(const struct session *session)
{
  static const char lost[] = "the lock was lost: ";
  char *words = outcome(session, REDLOCK_LOST);
  if (strncmp(words, lost, strlen(lost)) == 0)
    memmove(words, words + strlen(lost), strlen(words + strlen(lost)) + 1);
  return words;
}

const char *loss_name(redlock_lock *lock)
{
  static const char *const names[] = {
      [REDLOCK_LOSS_EXPIRED] = "expired", [REDLOCK_LOSS_GONE] = "gone",   [REDLOCK_LOSS_RESTARTED] = "restarted",
      [REDLOCK_LOSS_REFUSED] = "refused", [REDLOCK_LOSS_LIMIT] = "limit", [REDLOCK_LOSS_CLOCK] = "clock",
      [REDLOCK_LOSS_CLOSED] = "closed",
  };
  int loss = redlock_lock_loss(lock);
  return loss >= 0 && loss < (int)(sizeof names / sizeof *names) ? names[loss] : NULL;
}

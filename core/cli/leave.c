/* leave.c - `redlock run` leaves its lock: it gives it back, or lets it end by itself a little later. */
#include "cli.h"

#include <stdlib.h>

/* Can the node still have the key? */
static bool has_kept_it(redlock_lock *lock, int node)
{
  int vote = redlock_lock_vote(lock, node);
  return vote != REDLOCK_OK && vote != REDLOCK_NOT_HELD;
}

static char *end_words(int64_t in_ms)
{
  char *within = duration_text(in_ms), *clock = time_words("%H:%M:%S", time(NULL) + (time_t)((in_ms + 999) / 1000));
  char *words = format("it expires there within %s, at %s", within, clock);
  free(clock);
  free(within);
  return words;
}

/* "127.0.0.1:7001 (no answer in time), ..." */
static char *nodes_words(const struct session *session)
{
  char *words = format("%s", "");
  for (int i = 0; i < redlock_client_node_count(session->client); i++) {
    if (!has_kept_it(session->lock, i))
      continue;
    char *name = node_name(session->client, i), *answer = node_answer(session->lock, i, REDLOCK_ANSWER_WORDS);
    words = append(words, "%s%s (%s)", *words ? ", " : "", name, answer);
    free(name);
    free(answer);
  }
  return words;
}

/* NULL unless the remaining keys keep others out, or with --verbose. */
static char *kept_words(const struct session *session)
{
  int nodes = redlock_client_node_count(session->client), kept = 0;
  for (int i = 0; i < nodes; i++)
    kept += has_kept_it(session->lock, i);
  bool others_can_have_it = nodes - kept > nodes / 2;
  if (kept == 0 || (others_can_have_it && !session->args->verbose))
    return NULL;
  char *names = nodes_words(session);
  char *end = end_words(session_option_ms(session, "ttl_ms"));
  char *words = format("the lock was not released on %s; %s", names, end);
  free(names);
  free(end);
  return words;
}

int leave_release(struct session *session, char **left)
{
  int status = redlock_lock_release(session->lock);
  session_settle(session);
  if (status != REDLOCK_LOST)
    *left = kept_words(session);
  return status;
}

static char *too_short_words(const struct session *session, int status)
{
  char *ends = duration_words(redlock_lock_validity_ms(session->lock));
  char *why = outcome(session, status);
  char *words = format("the lock could not be kept for as long as --keep asks; it ends in %s: %s", ends, why);
  free(ends);
  free(why);
  return words;
}

/* Time-outs chosen for a whole lease must not prevent setting the remaining, shorter one. The total holding time was
 * checked before CMD ran. */
static void lift_limits(redlock_lock *lock)
{
  static const char *const limits[][2] = {
      {"node_timeout_ms", "auto"}, {"min_validity_ms", "auto"}, {"max_hold_ms", "-1"}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    (void)redlock_lock_set(lock, limits[i][0], limits[i][1]);
}

int leave_keep(struct session *session, int64_t left_ms, char **left)
{
  enum { WORTH_ASKING_FOR_MS = 1000 };
  int64_t validity_ms = redlock_lock_validity_ms(session->lock);
  lift_limits(session->lock);
  int64_t lease_ms = left_ms > WORTH_ASKING_FOR_MS ? left_ms : WORTH_ASKING_FOR_MS;
  session_settle_first(session); /* nodes that were being connected get the lock before its new end */
  int status = redlock_lock_expire(session->lock, lease_ms); /* a signal comes too late to prevent it */
  session_settle(session);
  if (status != REDLOCK_OK && status != REDLOCK_LOST && validity_ms < left_ms)
    *left = too_short_words(session, status);
  redlock_lock_detach(session->lock);
  return status;
}

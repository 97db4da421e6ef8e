/* force.c - redlock release --force RESOURCE: for an operator who knows that the holder is gone. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_agreed;

const struct flag force_flag = FLAG_IN_ARGS(
    "force", 0, force, "delete the lock whoever holds it, without a TOKEN, after it was shown and you were asked");
const struct flag force_yes_flag = FLAG_TO("yes", 'y', NULL, flag_switch, &is_agreed, "with --force: do not ask");

int force_check(const struct args *args)
{
  if (is_agreed && !args->force)
    return fail(EXIT_USAGE, "--yes is for --force only");
  if (args->force && !is_agreed && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
    return fail(EXIT_USAGE,
                "--force asks before it deletes, and there is no terminal; use --yes to delete without asking");
  return 0;
}

/* Every node answered, and none has a key. */
static bool is_free(const struct session *session, redlock_lock *lock)
{
  for (int i = 0; i < redlock_client_node_count(session->client); i++)
    if (!node_told(lock, i) || node_has_key(lock, i))
      return false;
  return true;
}

static bool are_free(const struct slots *slots)
{
  for (int i = 0; i < slots->count; i++)
    if (!is_free(slots->session, slots->locks[i]))
      return false;
  return true;
}

/* Of permits, those that are not free. */
static void show_holders(const struct slots *slots)
{
  for (int i = 0; i < slots->count; i++) {
    if (slots->count > 1 && is_free(slots->session, slots->locks[i]))
      continue;
    char *holder = holder_words(slots->session->client, slots->locks[i]);
    if (slots->count > 1)
      fprintf(stderr, "Permit %d is held %s.\n", i, holder);
    else
      fprintf(stderr, "The lock is held %s.\n", holder);
    free(holder);
  }
}

static bool user_agrees(const struct slots *slots)
{
  int nodes = redlock_client_node_count(slots->session->client);
  int silent = nodes - nodes_told(slots->session->client, slots->locks[0]);
  show_holders(slots);
  if (silent > 0)
    fprintf(stderr, "%d of %d nodes did not say.\n", silent, nodes);
  fputs(slots->count > 1 ? "Their holders are not stopped. Delete all permits?"
                         : "Its holder is not stopped. Delete the lock?",
        stderr);
  return session_agrees(slots->session);
}

static int tell(const struct session *session, int status, const char *words)
{
  if (session->args->json)
    return print_json(report_json(session, status));
  say(session, "%s", words);
  return 0;
}

static int delete_it(struct session *session)
{
  int status = session_operate(session, session->lock, REDLOCK_REMOVE, -1), deleted = 0;
  session_settle(session);
  if (status != REDLOCK_OK)
    return report_failure(session, status);
  int nodes = redlock_client_node_count(session->client);
  for (int i = 0; i < nodes; i++)
    deleted += redlock_lock_vote(session->lock, i) == REDLOCK_OK;
  char *words = deleted > 0
                    ? format("deleted on %d of %d nodes", deleted, nodes)
                    : format("nobody held it on %d of %d nodes", nodes_told(session->client, session->lock), nodes);
  int code = tell(session, status, words);
  free(words);
  return code;
}

int force_release(struct session *session)
{
  struct slots slots;
  bool is_known = slots_inspect(&slots, session) == REDLOCK_OK, was_free = is_known && are_free(&slots);
  bool agrees = !was_free && session->caught == 0 && (is_agreed || user_agrees(&slots));
  struct session looked = *session;
  looked.lock = slots.locks[0]; /* it has the answers */
  int code = was_free ? tell(&looked, REDLOCK_OK, "nobody held it") : EXIT_DECLINED;
  slots_free(&slots);
  if (was_free)
    return code;
  if (agrees)
    return delete_it(session);
  if (session->caught != 0)
    return 128 + session->caught;
  fprintf(stderr, "Nothing was deleted.\n");
  return code;
}

/* listen.c - redlock lead --listen: who leads, in a line for each change. */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_MS = 1000 };

static int print_leader(const struct session *session, int status, int verdict)
{
  if (session->args->json)
    return print_json(status_json(session, status, verdict));
  char *now = time_words("%Y-%m-%d %H:%M:%S", time(NULL)), *words = verdict_words(session, verdict);
  printf("%s %s: %s\n", now, verdict_name(verdict), words);
  free(now);
  free(words);
  return flush_answer();
}

/* A leader is another one if its token is: the same program may lead again. */
static int listen_until_a_signal(struct session *session)
{
  int code = 0, last = -1;
  char *leader = format("%s", "");
  while (code == 0 && session->caught == 0) {
    int64_t begun_ms = redlock_now_ms();
    int status = session_inspect(session), verdict = redlock_lock_verdict(session->lock);
    char *token = lock_holder(session->lock);
    if (!is_answer(status))
      code = report_failure(session, status);
    else if (verdict != last || strcmp(token, leader) != 0)
      code = print_leader(session, status, verdict);
    free(leader);
    leader = token;
    last = verdict;
    if (code == 0)
      session_pause(session, begun_ms + LOOK_EVERY_MS);
  }
  free(leader);
  return code;
}

int listen_to_leaders(const struct args *args)
{
  static const struct option_default defaults[] = {
      {"connect_timeout_ms", "1000"}, {"guard", "off"}, {.option = NULL}}; /* as of status */
  struct command looks = *args->command;
  struct args listening = *args;
  struct session session;
  looks.defaults = defaults;
  listening.command = &looks;
  int code = session_open(&session, &listening);
  return session_close(&session, code == 0 ? listen_until_a_signal(&session) : code);
}

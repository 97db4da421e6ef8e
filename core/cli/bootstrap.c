/* bootstrap.c - redlock bootstrap: an operator says that no lock is live, so that the restart guard need not wait. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_DECLINED = 1 };

static bool user_agrees(void)
{
  char answer[16];
  fputs("Nodes that have lost keys, or are new, will grant locks at once. Are you sure that no lock is live? [y/N] ",
        stderr);
  fflush(stderr);
  return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int check(const struct args *args)
{
  if (args->yes)
    return 0;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return fail(EXIT_USAGE, "bootstrap asks whether no lock is live, and there is no terminal; use --yes to assert it");
  if (user_agrees())
    return 0;
  fputs("Nothing was written.\n", stderr);
  return EXIT_DECLINED;
}

static bool print_node(const struct session *session, int node)
{
  bool is_done = node_told(session->lock, node);
  char *name = node_name(session->client, node);
  char *why = is_done ? format("bootstrapped") : node_answer(session->lock, node, REDLOCK_ANSWER_WORDS);
  printf("%s: %s\n", name, why);
  free(name);
  free(why);
  return is_done;
}

static int print_nodes(const struct session *session, int status)
{
  int done = 0, nodes = redlock_client_node_count(session->client);
  if (session->args->json)
    return print_json(report_json(session, status));
  for (int i = 0; i < nodes; i++)
    done += print_node(session, i);
  int failed = flush_answer(false);
  if (failed || done == nodes)
    return failed;
  return status == REDLOCK_REFUSED_CONFIG ? EXIT_REFUSED_CONFIG : EXIT_UNAVAILABLE;
}

/* The markers are written when a node is connected: to ask something is to wait for that. */
static int write_markers(struct session *session)
{
  int status = session_inspect(session, session->lock);
  if (session->caught != 0)
    return 128 + session->caught;
  return print_nodes(session, status);
}

int bootstrap_main(const struct args *args)
{
  struct session session;
  int code = check(args);
  if (code != 0)
    return code;
  code = session_open(&session, args);
  if (code == 0)
    code = write_markers(&session);
  return session_close(&session, code);
}

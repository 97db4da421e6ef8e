/* ls.c - redlock ls [PATTERN]: which locks are held, by which client, for how much longer, and who waits? */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 10000, TELL_MS = 1000 };

static int limit = 1000;

static bool user_agrees(struct session *session)
{
  fprintf(stderr, "No PATTERN and no --key-prefix: go through all keys of %d nodes?",
          redlock_client_node_count(session->client));
  return session_agrees(session);
}

/* Everything is much, where the nodes have other programs' keys, too. */
int list_may_run(struct session *session)
{
  char *key_prefix = client_option(session->client, "key_prefix");
  bool is_all = session->args->prefix == NULL && *key_prefix == '\0';
  free(key_prefix);
  if (!is_all)
    return 0;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return fail(EXIT_USAGE, "PATTERN is missing, and no --key-prefix is set; redlock %s '' shows all of the nodes",
                session->args->command->name);
  return user_agrees(session) ? 0 : EXIT_DECLINED;
}

/* For who waits at a terminal. */
static void say_progress(redlock_lock *lock, int64_t begun_ms)
{
  long long keys = (long long)redlock_lock_listed(lock, REDLOCK_LISTED_KEYS), took_ms = redlock_now_ms() - begun_ms;
  fprintf(stderr, "\rabout %lld keys passed, %lld a second ", keys, took_ms > 0 ? keys * 1000 / took_ms : 0);
  fflush(stderr);
}

int list_run(struct session *session, redlock_lock *lock, int64_t limit_ms, bool tells)
{
  int64_t begun_ms = redlock_now_ms();
  bool has_told = false;
  int status = redlock_lock_start(lock, REDLOCK_LIST, limit_ms);
  if (status != REDLOCK_OK)
    return status;
  while ((status = session_await(session, lock, TELL_MS)) == REDLOCK_PENDING) {
    if (tells)
      say_progress(lock, begun_ms);
    has_told = tells;
  }
  if (has_told)
    fputs("\r\033[K", stderr);
  return status;
}

/* Those beyond the limit go. */
static bool cut(json_t *rows)
{
  bool is_cut = json_array_size(rows) > (size_t)limit;
  while (json_array_size(rows) > (size_t)limit)
    json_array_remove(rows, json_array_size(rows) - 1);
  return is_cut;
}

static int print_list(const struct session *session, int status, json_t *rows, bool is_cut, json_t *nodes)
{
  if (session->args->json)
    return print_json(must(json_pack("{s:s,s:O,s:b,s:O}", "status", redlock_status_name(status), "locks", rows,
                                     "truncated", is_cut, "nodes", nodes)));
  if (json_array_size(rows) > 0)
    rows_print(stdout, rows, isatty(STDOUT_FILENO) ? terminal_columns(NULL) : 0);
  return flush_answer();
}

int list_missing(const struct session *session, int status, bool is_cut, const json_t *rows, json_t *nodes)
{
  char *given = escaped(session->args->prefix != NULL ? session->args->prefix : "");
  int scanned = 0, count = (int)json_array_size(nodes);
  size_t i;
  json_t *node;
  json_array_foreach(nodes, i, node) {
    scanned += json_is_true(json_object_get(node, "scanned"));
    if (!json_is_true(json_object_get(node, "scanned")))
      fail(0, "%s was not scanned: %s", text_in(node, "node"), text_in(node, "why"));
  }
  if (is_cut)
    fail(0, "there are more than %zu: give a longer PATTERN%s", json_array_size(rows),
         json_array_size(rows) < ROWS_MAX ? ", or --limit N lists more" : "");
  if (status == REDLOCK_OK && json_array_size(rows) == 0 && !session->args->json)
    fail(0, *given == '\0' ? "no lock is held" : "no lock is held whose name %s %s",
         strpbrk(given, "*?[") != NULL ? "matches" : "begins with", given);
  free(given);
  if (status == REDLOCK_OK)
    return 0;
  return fail(exit_code_of(session->args, status),
              "%d of %d nodes were scanned, %d are needed for a whole list; `redlock doctor` says what to do, "
              "`redlock help acl` which rights a list needs",
              scanned, count, count - count / 2);
}

static int list_locks(struct session *session, redlock_lock *lock)
{
  int status = list_run(session, lock, -1, isatty(STDERR_FILENO) && !session->args->json);
  if (session->caught != 0)
    return 128 + session->caught;
  if (status != REDLOCK_OK && status != REDLOCK_NO_QUORUM && status != REDLOCK_REFUSED_CONFIG)
    return fail(exit_code_of(session->args, status), "%s", redlock_status_text(status));
  json_t *rows = list_rows(lock), *nodes = rows_nodes(session, lock);
  bool is_cut = cut(rows) || redlock_lock_listed(lock, REDLOCK_LISTED_MORE) == 1;
  int code = print_list(session, status, rows, is_cut, nodes);
  int missing = list_missing(session, status, is_cut, rows, nodes);
  json_decref(rows);
  json_decref(nodes);
  return code != 0 ? code : missing;
}

static int ls(struct session *session)
{
  int code = list_may_run(session);
  if (code != 0)
    return code;
  char *pattern = pattern_of(session->args->prefix);
  redlock_lock *lock = must(redlock_lock_new(session->client, pattern, strlen(pattern)));
  free(pattern);
  code = list_locks(session, lock);
  redlock_lock_free(lock);
  return code;
}

static const struct flag limit_flag = FLAG_COUNT("limit", &limit, ROWS_MAX, "list at most N locks (default 1000)");

const struct command ls_command = {
    OVERVIEW("ls", "Look", "list the locks that are held, and who waits", "[OPTION...] [PATTERN]"),
    .help = "Lists the locks whose names match PATTERN (with * ? [ as SCAN has them), or else begin with it: who holds "
            "them, since when, for how much longer, and how many wait.\n"
            "Without PATTERN all behind the key prefix; if none is set, it asks first, and '' stands for all. Goes "
            "through all keys of every node (SCAN), 25,000 a second at most; the user needs +scan.\n"
            "Exits with 0 if the list is whole, 69 or 78 if too few nodes could be scanned.",
    DEFAULTS({"connect_timeout_ms", "1000"}, {"guard", "off"}), FLAGS(&limit_flag), .run = ls};

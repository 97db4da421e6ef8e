/* programs.c - which programs use the nodes, by what they have left there, and whose list is another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { SHOWN_MAX = 10, LIMIT_MS = 2000 };

static bool shows_all;

json_t *programs_examine(struct session *session)
{
  static const char name[] = "libredlock:c:programs";
  redlock_lock *lock = must(redlock_lock_new(session->client, name, strlen(name)));
  (void)session_operate(session, lock, REDLOCK_EXAMINE, LIMIT_MS);
  redlock_lock_free(lock);
  return described(session->client, "programs");
}

/* ---- showing ---- */

static char *names_of(const json_t *list)
{
  char *names = must(strdup(""));
  json_t *node;
  size_t i;
  json_array_foreach(list, i, node)
    names = append(names, "%s%s", i > 0 ? ", " : "", json_string_value(node));
  return names;
}

static char *seen_words(const json_t *program)
{
  int64_t ago_s = number_in(program, "seen_s_ago");
  char *words = ago_s >= 60 ? duration_words(ago_s * 1000) : NULL,
       *seen = words ? format("%s ago", words) : format("now");
  free(words);
  return seen;
}

static int width_of(const json_t *programs, const char *field)
{
  int width = 16;
  json_t *program;
  size_t i;
  json_array_foreach(programs, i, program) {
    int columns = (int)columns_of(text_in(program, field));
    width = columns > width ? columns : width;
  }
  return width;
}

static void print_table(const json_t *programs)
{
  int host_width = width_of(programs, "host"), name_width = width_of(programs, "program");
  json_t *program;
  size_t i;
  printf("%-*s  %-*s  %-8s  %8s  %15s  NODES\n", host_width, "HOST", name_width, "PROGRAM", "VERSION", "MAX TTL",
         "LAST SEEN");
  json_array_foreach(programs, i, program) {
    char *number = duration_text(number_in(program, "max_ttl_ms"));
    char *seen = seen_words(program), *names = names_of(json_object_get(program, "nodes"));
    const char *host = text_in(program, "host"), *name = text_in(program, "program");
    printf("%-*s  %-*s  %-8s  %8s  %15s  %s\n", width_in_bytes(host, host_width), host,
           width_in_bytes(name, name_width), name, text_in(program, "version"), number, seen, names);
    free(names);
    free(seen);
    free(number);
  }
}

static void print_difference(const json_t *program)
{
  const json_t *differs = json_object_get(program, "differs");
  char *has = names_of(json_object_get(differs, "has")), *lacks = names_of(json_object_get(differs, "lacks"));
  char *seen = seen_words(program);
  printf("%s on %s (seen %s) has another list of nodes: ", text_in(program, "program"), text_in(program, "host"), seen);
  printf("%s%s%s%s%s\n", *has != '\0' ? "with " : "", has, *has != '\0' && *lacks != '\0' ? ", " : "",
         *lacks != '\0' ? "without " : "", lacks);
  free(seen);
  free(has);
  free(lacks);
}

void programs_print(const json_t *programs)
{
  int differ = 0;
  json_t *program;
  size_t i;
  if (shows_all)
    print_table(programs);
  json_array_foreach(programs, i, program)
    if (json_object_get(program, "differs") != NULL && differ++ < SHOWN_MAX)
      print_difference(program);
  if (differ > SHOWN_MAX)
    printf("%d more programs have another list of nodes; --programs shows all\n", differ - SHOWN_MAX);
  if (differ > 0)
    fputs("    advice: give all programs the same list; until then two of them may hold a lock at a time\n", stdout);
}

void programs_say(const json_t *programs, int64_t below_ms, int64_t above_ms)
{
  int said = 0;
  json_t *program;
  size_t i;
  json_array_foreach(programs, i, program) {
    int64_t number_ms = number_in(program, "max_ttl_ms");
    if ((number_ms >= below_ms && number_ms <= above_ms) || said++ >= SHOWN_MAX)
      continue;
    char *number = duration_text(number_ms), *seen = seen_words(program);
    fprintf(stderr, "%s on %s (seen %s) has max_ttl_ms = %s\n", text_in(program, "program"), text_in(program, "host"),
            seen, number);
    free(seen);
    free(number);
  }
  if (said > SHOWN_MAX)
    fprintf(stderr, "... and %d more: `redlock doctor --programs` shows all\n", said - SHOWN_MAX);
}

const struct flag programs_flag =
    FLAG_TO("programs", 0, NULL, flag_switch, &shows_all, "show the programs that used the nodes within an hour");

/* doctor.c - redlock doctor: may every node vote, and if not, why, and what can be done about it? */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATCH_MS = 1000 };

/* The description of the client after every node was asked; NULL after a failure was printed, or a signal. */
static json_t *examine(struct session *session, int *code)
{
  int status = session_inspect(session, session->lock);
  bool asked = status == REDLOCK_OK || status == REDLOCK_BUSY || redlock_status_is(status, REDLOCK_IS_RETRIABLE) ||
               status == REDLOCK_REFUSED_CONFIG;
  if (!asked) {
    *code = report_failure(session, status);
    return NULL;
  }
  char *text = client_description(session->client);
  json_t *report = must(json_loads(text, 0, NULL));
  free(text);
  return report;
}

static const char *text_of(const json_t *node, const char *field)
{
  const char *text = json_string_value(json_object_get(node, field));
  return text != NULL && *text != '\0' ? text : "-";
}

static int64_t number_of(const json_t *object, const char *field)
{
  return json_integer_value(json_object_get(object, field));
}

static bool votes(const json_t *node)
{
  return json_is_true(json_object_get(node, "votes"));
}

static bool has(const json_t *node, const char *field)
{
  return *json_string_value(json_object_get(node, field)) != '\0';
}

static char *rtt_words(const json_t *node)
{
  int64_t us = number_of(node, "rtt_us");
  return us > 0 ? format("%.2f ms", (double)us / 1000) : format("-");
}

static char *clock_words(const json_t *node)
{
  const json_t *offset = json_object_get(node, "clock_offset_ms");
  return json_is_integer(offset) ? format("%+lld ms", (long long)json_integer_value(offset)) : format("-");
}

static char *server_words(const json_t *node)
{
  return has(node, "server") ? format("%s %s", text_of(node, "server"), text_of(node, "version")) : format("-");
}

static int name_width(const json_t *nodes)
{
  size_t width = strlen("NODE"), i;
  json_t *node;
  json_array_foreach(nodes, i, node) {
    size_t length = strlen(text_of(node, "node"));
    width = length > width ? length : width;
  }
  return (int)width;
}

/* The lines that it takes. */
static int print_node(const json_t *node, int width)
{
  char *rtt = rtt_words(node), *clock = clock_words(node), *server = server_words(node);
  int lines = 1 + has(node, "why") + has(node, "advice");
  printf("%-*s  %-5s  %-10s  %9s  %-15s  %-7s  %-7s  %-10s  %-6s  %9s  %4lld\n", width, text_of(node, "node"),
         votes(node) ? "yes" : "no", text_of(node, "state"), rtt, server, text_of(node, "tls"), text_of(node, "role"),
         text_of(node, "maxmemory_policy"), text_of(node, "persistence"), clock, (long long)number_of(node, "owed"));
  if (has(node, "why"))
    printf("    %s\n", text_of(node, "why"));
  if (has(node, "advice"))
    printf("    advice: %s\n", text_of(node, "advice"));
  free(rtt);
  free(clock);
  free(server);
  return lines;
}

static void print_verdict(const json_t *report, int nodes)
{
  int voting = (int)number_of(report, "voting"), quorum = (int)number_of(report, "quorum");
  if (voting == nodes)
    printf("all %d nodes may vote\n", nodes);
  else if (voting > quorum)
    printf("%d of %d nodes may vote and %d are needed: %d more may fail\n", voting, nodes, quorum, voting - quorum);
  else if (voting == quorum)
    printf("%d of %d nodes may vote and %d are needed: no other may fail\n", voting, nodes, quorum);
  else
    printf("%d of %d nodes may vote and %d are needed: no lock is granted\n", voting, nodes, quorum);
}

/* The lines that it takes. */
static int print_table(const json_t *report)
{
  const json_t *nodes = json_object_get(report, "nodes");
  int width = name_width(nodes), lines = 2;
  size_t i;
  json_t *node;
  printf("%-*s  %-5s  %-10s  %9s  %-15s  %-7s  %-7s  %-10s  %-6s  %9s  %4s\n", width, "NODE", "VOTES", "STATE", "RTT",
         "SERVER", "TLS", "ROLE", "EVICTION", "DISK", "CLOCK", "OWED");
  json_array_foreach(nodes, i, node)
    lines += print_node(node, width);
  print_verdict(report, (int)json_array_size(nodes));
  return lines;
}

/* 0 only if all may vote. */
static int verdict(const json_t *report)
{
  const json_t *nodes = json_object_get(report, "nodes");
  int code = 0;
  size_t i;
  json_t *node;
  json_array_foreach(nodes, i, node) {
    if (strcmp(text_of(node, "state"), "refused") == 0)
      return EXIT_REFUSED_CONFIG;
    if (!votes(node))
      code = EXIT_UNAVAILABLE;
  }
  return code;
}

static int print(const struct session *session, const json_t *report, int *lines)
{
  if (session->args->metrics)
    return print_metrics(session->client);
  if (session->args->json)
    return print_json(json_incref((json_t *)report));
  if (*lines > 0 && isatty(STDOUT_FILENO))
    printf("\033[%dA\033[J", *lines); /* in place of the last one */
  else if (*lines > 0)
    putchar('\n');
  *lines = print_table(report);
  return flush_answer(false);
}

static void pause_for(struct session *session, int64_t end_ms)
{
  for (int64_t now = now_ms(); session->caught == 0 && now < end_ms; now = now_ms()) {
    session_poll(session, (int)(end_ms - now));
    session->caught = session_signal(session);
  }
}

/* Until a signal comes, with --watch. */
static int doctor(struct session *session)
{
  int code = 0, failed, lines = 0;
  do {
    int64_t begun_ms = now_ms();
    json_t *report = examine(session, &code);
    if (report == NULL)
      return code;
    code = verdict(report);
    failed = print(session, report, &lines);
    json_decref(report);
    if (session->args->watch && !failed)
      pause_for(session, begun_ms + WATCH_MS);
  } while (session->args->watch && !failed && session->caught == 0);
  return failed ? failed : code;
}

int doctor_main(const struct args *args)
{
  struct session session;
  int code = session_open(&session, args);
  if (code == 0)
    code = doctor(&session);
  return session_close(&session, code);
}

/* doctor.c - redlock doctor: would every node grant a lock, and if not, why, and what is the advice? */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG_ADVICE = 90, WATCH_MS = 1000, PROBE_EVERY_MS = 10000, PROBE_TTL_MS = 1000 };

static bool watches, writes_nothing;

/* A full disk and many other faults show only on a write. The client notes each node's reply; here it only matters
 * that all had the time to reply. */
static void probe(struct session *session)
{
  redlock_lock *lock = must(redlock_lock_new_probe(session->client));
  int64_t longest_ms = session_option_ms(session, "max_ttl_ms");
  lock_set_number(lock, "ttl_ms", longest_ms > 0 && longest_ms < PROBE_TTL_MS ? longest_ms : PROBE_TTL_MS);
  lock_set_number(lock, "wait_ms", 0);
  (void)redlock_lock_set(lock, "queue", "false");
  (void)redlock_lock_set(lock, "node_timeout_ms", "auto");
  int status = session_operate(session, lock, REDLOCK_ACQUIRE, PROBE_TTL_MS);
  if (session->caught == 0)
    lock_settle_until(lock, redlock_now_ms() + PROBE_TTL_MS);
  if (session->caught == 0 && status == REDLOCK_OK)
    (void)session_operate(session, lock, REDLOCK_RELEASE, PROBE_TTL_MS);
  redlock_lock_free(lock);
}

static const char *text_of(const json_t *node, const char *field)
{
  const char *text = text_in(node, field);
  return *text != '\0' ? text : "-";
}

static bool votes(const json_t *node)
{
  return json_is_true(json_object_get(node, "votes"));
}

/* Takes over the probe's findings about the nodes that were asked. The others are reconnecting; the earlier findings
 * about them say more. */
static void keep_nodes_that_were_ready(json_t *report, json_t *probed)
{
  json_t *nodes = json_object_get(report, "nodes"), *node;
  int voting = 0;
  size_t i;
  json_array_foreach(nodes, i, node) {
    if (strcmp(text_of(node, "state"), "ready") == 0) {
      node = json_array_get(json_object_get(probed, "nodes"), i);
      json_array_set(nodes, i, node);
    }
    voting += votes(node);
  }
  json_object_set_new(report, "voting", json_integer(voting));
  json_decref(probed);
}

/* The description of the client after every node was asked; NULL after a failure was printed, or a signal. */
static json_t *examine(struct session *session, bool writes, int *code)
{
  int status = session_inspect(session);
  if (!is_answer(status)) {
    *code = report_failure(session, status);
    return NULL;
  }
  json_t *report = client_description(session->client);
  if (!writes)
    return report;
  probe(session);
  keep_nodes_that_were_ready(report, client_description(session->client));
  if (session->caught == 0)
    return report;
  json_decref(report);
  return NULL;
}

static bool lacks_rights(const json_t *node)
{
  const char *reason = text_of(node, "reason");
  return strcmp(reason, "noperm") == 0 || strcmp(reason, "forbids") == 0;
}

/* Adds what was found about the kinds, and the ACL that the user needs if that was asked for, or a right is missing. */
static void add_rights(const struct session *session, json_t *report, const json_t *kinds)
{
  json_t *nodes = json_object_get(report, "nodes"), *node;
  bool is_wanted = kinds_are_given();
  size_t i;
  json_array_foreach(nodes, i, node) {
    is_wanted = is_wanted || lacks_rights(node);
    if (kinds != NULL)
      json_object_set(node, "kinds", json_array_get(kinds, i));
  }
  char *line = kinds_line(session);
  if (is_wanted)
    json_object_set_new(report, "acl", json_string(line));
  free(line);
}

static void add_addresses(json_t *report, const json_t *addresses)
{
  json_t *nodes = json_object_get(report, "nodes"), *node;
  size_t i;
  json_array_foreach(nodes, i, node)
    json_object_update(node, json_array_get(addresses, i));
}

/* ---- the table ---- */

static char *votes_words(const json_t *node)
{
  return format(votes(node) ? "yes" : "no");
}

static char *rtt_words(const json_t *node)
{
  int64_t us = number_in(node, "rtt_us");
  return us > 0 ? format("%.2f ms", (double)us / 1000) : format("-");
}

static char *server_words(const json_t *node)
{
  return *text_in(node, "server") != '\0' ? format("%s %s", text_of(node, "server"), text_of(node, "version"))
                                          : format("-");
}

/* With the days that the server's certificate is good for. */
static char *tls_words(const json_t *node)
{
  const json_t *expires = json_object_get(node, "certificate_expires");
  if (!json_is_integer(expires))
    return format("%s", text_of(node, "tls"));
  return format("%s, %lld d", text_of(node, "tls"), (long long)(json_integer_value(expires) - time(NULL)) / 86400);
}

/* The mode is shown unless the server is a standalone one. */
static char *role_words(const json_t *node)
{
  const char *mode = text_of(node, "mode");
  bool is_single = strcmp(mode, "standalone") == 0 || strcmp(mode, "-") == 0;
  return is_single ? format("%s", text_of(node, "role")) : format("%s, %s", text_of(node, "role"), mode);
}

static char *scripts_words(const json_t *node)
{
  const json_t *scripts = json_object_get(node, "scripts");
  return format(json_is_true(scripts) ? "yes" : json_is_false(scripts) ? "no" : "-");
}

/* The longest lease that its marker allows. */
static char *number_words(const json_t *node)
{
  int64_t ms = number_in(node, "max_ttl_ms");
  return ms > 0 ? duration_text(ms) : format("-");
}

static char *clock_words(const json_t *node)
{
  const json_t *offset = json_object_get(node, "clock_offset_ms");
  return json_is_integer(offset) ? format("%+lld ms", (long long)json_integer_value(offset)) : format("-");
}

static char *owed_words(const json_t *node)
{
  return format("%lld", (long long)number_in(node, "owed"));
}

enum { NUMBER = 1, DETAIL = 2 /* shown with --verbose */ };

static const struct column {
  const char *head, *field;
  char *(*words)(const json_t *node); /* NULL: the text of the field */
  int traits;
} columns[] = {{"NODE", "node", NULL, 0},
               {"VOTES", NULL, votes_words, 0},
               {"STATE", "state", NULL, 0},
               {"RTT", NULL, rtt_words, NUMBER},
               {"SERVER", NULL, server_words, 0},
               {"TLS", NULL, tls_words, DETAIL},
               {"ROLE", NULL, role_words, DETAIL},
               {"DISK", "persistence", NULL, DETAIL},
               {"EVICTION", "maxmemory_policy", NULL, DETAIL},
               {"SCRIPTS", NULL, scripts_words, DETAIL},
               {"GUARD", "guard", NULL, 0},
               {"MAX TTL", NULL, number_words, NUMBER},
               {"CLOCK", NULL, clock_words, NUMBER},
               {"OWED", NULL, owed_words, NUMBER | DETAIL}};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

static char *words_of(const struct column *column, const json_t *node)
{
  return column->words != NULL ? column->words(node) : format("%s", text_of(node, column->field));
}

/* As wide as its widest cell. */
static int width_of(const struct column *column, const json_t *nodes)
{
  size_t width = columns_of(column->head), i;
  json_t *node;
  json_array_foreach(nodes, i, node) {
    char *words = words_of(column, node);
    width = columns_of(words) > width ? columns_of(words) : width;
    free(words);
  }
  return (int)width;
}

struct table {
  bool has_details, has_colours;
  int64_t max_ttl_ms; /* of this client */
  int widths[COLUMNS];
};

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static const char *colour_of(const struct table *table, const char *words)
{
  if (!table->has_colours)
    return NULL;
  return strcmp(words, "no") == 0           ? RED
         : strcmp(words, "quarantine") == 0 ? YELLOW
         : strcmp(words, "yes") == 0        ? GREEN
                                            : NULL;
}

static void print_cell(const struct table *table, int column, const char *words)
{
  const char *colour = colour_of(table, words);
  if (columns[column].traits & DETAIL && !table->has_details)
    return;
  printf("%s%s", column > 0 ? "  " : "", colour != NULL ? colour : "");
  printf(columns[column].traits & NUMBER ? "%*s" : "%-*s", width_in_bytes(words, table->widths[column]), words);
  fputs(colour != NULL ? PLAIN : "", stdout);
}

/* A node that was away when the number was changed. */
static void print_other_number(const struct table *table, const json_t *node)
{
  int64_t number_ms = number_in(node, "max_ttl_ms");
  if (number_ms == 0 || number_ms == table->max_ttl_ms || *text_in(node, "why") != '\0')
    return;
  char *theirs = duration_text(number_ms), *ours = duration_text(table->max_ttl_ms);
  printf("    it allows leases of %s, and max_ttl_ms is %s here\n"
         "    advice: run `redlock bootstrap --replace` when all programs have max_ttl_ms = %lld\n",
         theirs, ours, (long long)table->max_ttl_ms);
  free(theirs);
  free(ours);
}

/* A failover there and back would look as if nothing had happened. */
static void print_missing_history(const json_t *node)
{
  if (json_is_false(json_object_get(node, "marker_history")))
    fputs("    its marker is of an earlier version, and does not name the server's master_replid2\n"
          "    advice: run `redlock bootstrap --replace`, which adds it\n",
          stdout);
}

static void print_node(const struct table *table, const json_t *node)
{
  for (int i = 0; i < COLUMNS; i++) {
    char *words = words_of(&columns[i], node);
    print_cell(table, i, words);
    free(words);
  }
  putchar('\n');
  if (*text_in(node, "why") != '\0')
    printf("    %s\n", text_of(node, "why"));
  if (*text_in(node, "advice") != '\0')
    printf("    advice: %s\n", text_of(node, "advice"));
  if (strlen(text_of(node, "advice")) > LONG_ADVICE)
    printf("    `redlock help %s` says more\n", text_of(node, "reason"));
  print_other_number(table, node);
  print_missing_history(node);
  addresses_print(node);
  kinds_print(node);
}

static void print_verdict(const json_t *report, int nodes)
{
  int voting = (int)number_in(report, "voting"), quorum = (int)number_in(report, "quorum");
  if (nodes == 1)
    printf(voting == 1 ? "the node may vote\n" : "the node may not vote: no lock is granted\n");
  else if (voting == nodes)
    printf("all %d nodes may vote\n", nodes);
  else if (voting > quorum)
    printf("%d of %d nodes may vote and %d are needed: %d more may fail\n", voting, nodes, quorum, voting - quorum);
  else if (voting == quorum)
    printf("%d of %d nodes may vote and %d are needed: no further node may fail\n", voting, nodes, quorum);
  else
    printf("%d of %d nodes may vote and %d are needed: no lock is granted\n", voting, nodes, quorum);
}

/* https://no-color.org */
static bool wants_colours(void)
{
  const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDOUT_FILENO) && (none == NULL || *none == '\0') && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

static void print_table(const json_t *report, const struct args *args)
{
  const json_t *nodes = json_object_get(report, "nodes");
  size_t i;
  json_t *node;
  struct table table = {.has_details = args->verbose,
                        .has_colours = wants_colours(),
                        .max_ttl_ms = number_in(json_object_get(report, "options"), "max_ttl_ms")};
  for (i = 0; i < COLUMNS; i++) {
    table.widths[i] = width_of(&columns[i], nodes);
    print_cell(&table, (int)i, columns[i].head);
  }
  putchar('\n');
  json_array_foreach(nodes, i, node)
    print_node(&table, node);
  if (*text_in(report, "acl") != '\0')
    printf("ACL: %s\n", text_in(report, "acl"));
  programs_print(json_object_get(report, "programs"));
  print_verdict(report, (int)json_array_size(nodes));
}

/* On a terminal each table takes the place of the last one; a file of many says when each was made. */
static void begin_table(bool is_first)
{
  if (isatty(STDOUT_FILENO)) {
    fputs("\033[H\033[J", stdout);
    return;
  }
  char *now = time_words("%Y-%m-%d %H:%M:%S", time(NULL));
  printf("%s%s\n", is_first ? "" : "\n", now);
  free(now);
}

/* 0 only if all may vote. */
static int verdict(const json_t *report)
{
  const json_t *nodes = json_object_get(report, "nodes");
  int code = 0;
  size_t i;
  json_t *node;
  json_array_foreach(nodes, i, node) {
    if (strcmp(text_of(node, "state"), "refused") == 0 || lacks_rights(node) || kinds_lack(node) ||
        addresses_differ(node))
      return EXIT_REFUSED_CONFIG;
    if (!votes(node))
      code = EXIT_UNAVAILABLE;
  }
  return code;
}

static int print(const struct session *session, json_t *report, bool is_first)
{
  if (session->args->metrics)
    return print_metrics(session->client);
  if (session->args->json)
    return print_json(json_incref(report));
  if (watches)
    begin_table(is_first);
  print_table(report, session->args);
  return flush_answer();
}

/* Until a signal comes, with --watch. */
static int doctor(struct session *session)
{
  int code = 0, failed = 0;
  int64_t probed_ms = -PROBE_EVERY_MS;
  json_t *kinds = NULL, *addresses = NULL, *programs = NULL;
  do {
    int64_t begun_ms = redlock_now_ms();
    bool is_first = programs == NULL, is_due = begun_ms >= probed_ms + PROBE_EVERY_MS,
         writes = is_due && !writes_nothing;
    probed_ms = is_due ? begun_ms : probed_ms;
    json_t *report = examine(session, writes, &code);
    if (report == NULL)
      break;
    if (writes && kinds_are_given()) {
      json_decref(kinds);
      kinds = kinds_examine(session);
    }
    add_rights(session, report, kinds);
    addresses = addresses != NULL ? addresses : addresses_examine(session);
    add_addresses(report, addresses);
    if (is_due) {
      json_decref(programs);
      programs = programs_examine(session);
    }
    json_object_set(report, "programs", programs);
    code = session->args->metrics ? 0 : verdict(report); /* metrics say themselves what they have found */
    failed = print(session, report, is_first);
    json_decref(report);
    if (watches && !failed)
      session_pause(session, begun_ms + WATCH_MS);
  } while (watches && !failed && session->caught == 0);
  json_decref(addresses);
  json_decref(kinds);
  json_decref(programs);
  return failed ? failed : code;
}

static int check(const struct args *args)
{
  (void)args;
  if (kinds_are_given() && writes_nothing)
    return fail(EXIT_USAGE, "--kinds tries commands on a key: not allowed with --no-write");
  return 0;
}

static const struct flag watch_flag =
    FLAG_TO("watch", 0, NULL, flag_switch, &watches, "ask every second, until a signal comes");
static const struct flag no_write_flag =
    FLAG_TO("no-write", 0, NULL, flag_switch, &writes_nothing, "do not try whether the nodes store a key");
static const struct flag details_flag = FLAG_IN_ARGS("verbose", 'v', verbose, "show all columns");

const struct command doctor_command = {
    OVERVIEW("doctor", "Look", "check every node, and say what to do", "[OPTION...]"),
    .help =
        "Checks every node: would it grant a lock, and if not, why, and how to fix it?\n"
        "Stores one key on each node and deletes it again, unless --no-write is given. With --kinds it also tries "
        "what these kinds of lock need, and prints the ACL of their user.\n"
        "Exits with 0 if all would, with 78 if one is refused because of its configuration, otherwise with 69; with "
        "--metrics 0 if they were printed.",
    .also = "ttl_ms drift_factor guard max_ttl_ms",
    DEFAULTS({"connect_timeout_ms", "1000"}, {"holder_info", "false"}),
    FLAGS(&watch_flag, &no_write_flag, &kinds_flag, &programs_flag, &details_flag, &metrics_flag),
    .only_looks = true,
    .check = check,
    .run = doctor};

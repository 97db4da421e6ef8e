/* status.c - redlock status RESOURCE */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *state_of(int vote)
{
  switch (vote) {
  case REDLOCK_OK:
  case REDLOCK_BUSY: return "held";
  case REDLOCK_NOT_HELD: return "free";
  case REDLOCK_UNREACHABLE: return "unreachable";
  case REDLOCK_QUARANTINED: return "quarantined";
  case REDLOCK_REFUSED_CONFIG: return "ineligible";
  default: return "no answer";
  }
}

static char *ttl_words(int64_t ttl_ms)
{
  if (ttl_ms == -2)
    return format("-");
  return ttl_ms == -1 ? format("no TTL") : duration_words(ttl_ms);
}

static char *short_token(redlock_lock *lock, int node)
{
  char *token = node_answer(lock, node, REDLOCK_ANSWER_TOKEN);
  const char *all = *token != '\0' ? token_shown(token) : "-";
  char *shown = format("%.*s", bytes_in_columns(all, TOKEN_SHOWN), all);
  free(token);
  return shown;
}

static void print_node(const struct session *session, int node, int width)
{
  int vote = redlock_lock_vote(session->lock, node);
  char *name = node_name(session->client, node);
  char *token = short_token(session->lock, node);
  char *ttl = ttl_words(answer_ttl_ms(session->lock, node));
  bool told = node_told(session->lock, node);
  char *why = told ? format("%s", "") : node_answer(session->lock, node, REDLOCK_ANSWER_WORDS);
  printf("%-*s  %-12s  %-*s  %11s%s%s\n", width_in_bytes(name, width), name, state_of(vote),
         width_in_bytes(token, TOKEN_SHOWN), token, ttl, *why ? "  " : "", one_line(why));
  free(name);
  free(token);
  free(ttl);
  free(why);
}

static int name_width(const struct session *session)
{
  size_t width = strlen("NODE");
  for (int i = 0; i < redlock_client_node_count(session->client); i++) {
    char *name = node_name(session->client, i);
    width = columns_of(name) > width ? columns_of(name) : width;
    free(name);
  }
  return (int)width;
}

static void print_table(const struct session *session)
{
  int width = name_width(session);
  printf("%-*s  %-12s  %-*s  %11s\n", width, "NODE", "STATE", TOKEN_SHOWN, "TOKEN", "PTTL");
  for (int i = 0; i < redlock_client_node_count(session->client); i++)
    print_node(session, i, width);
}

const char *verdict_name(int verdict)
{
  static const char *const names[] = {[REDLOCK_VERDICT_UNKNOWN] = "unknown",
                                      [REDLOCK_VERDICT_FREE] = "free",
                                      [REDLOCK_VERDICT_HELD] = "held",
                                      [REDLOCK_VERDICT_SPLIT] = "split",
                                      [REDLOCK_VERDICT_SHARED] = "shared"};
  return verdict >= 0 && verdict < (int)(sizeof names / sizeof *names) ? names[verdict] : "unknown";
}

char *verdict_words(const struct session *session, int verdict)
{
  int nodes = redlock_client_node_count(session->client), told = nodes_told(session->client, session->lock);
  int keys = nodes_with_key(session->client, session->lock, NULL);
  if (has_holder(verdict))
    return holder_words(session->client, session->lock);
  if (told == 0)
    return format(nodes == 1 ? "the node has not said whether it has a key"
                             : "none of the %d nodes has said whether it has a key",
                  nodes);
  if (nodes == 1)
    return format("the node has %s key", keys > 0 ? "a" : "no");
  if (verdict == REDLOCK_VERDICT_SPLIT)
    return format("%d of %d nodes answered, %d have a key, no majority has the same one", told, nodes, keys);
  return format("%d of %d nodes answered, %d have no key", told, nodes, told - keys);
}

json_t *status_json(const struct session *session, int status, int verdict)
{
  json_t *report = report_json(session, status);
  json_object_set_new(report, "verdict", json_string(verdict_name(verdict)));
  if (has_holder(verdict)) {
    char *holder = lock_holder(session->lock);
    json_object_set_new(report, "holder", json_string(holder));
    json_object_set_new(report, "holder_ttl_ms", json_integer(redlock_lock_holder_ttl_ms(session->lock)));
    free(holder);
    set_held_by(report, holder_client(session->lock));
  }
  return report;
}

/* ---- metrics: of the resources alone, since those of nodes are the same in each file of a collector ---- */

enum family { VERDICT, REMAINING, WAITING, PERMITS, PERMITS_HELD, FAMILIES };

static const struct {
  const char *name, *help;
} families[FAMILIES] = {
    {"verdict", "1 for the verdict of the nodes on the resource."},
    {"remaining_seconds", "How much longer a majority keeps the holder's key unless it is extended."},
    {"waiting", "How many stand in the queue for the resource."},
    {"permits", "How many may hold the resource at a time; with --permits only."},
    {"permits_held", "How many permits are held; with --permits only."},
};

/* The samples of a family stand together, whatever the number of resources. */
static char *samples[FAMILIES];

/* A label's value. It has to be UTF-8: any other name is shown as in messages. */
static char *label_of(const char *text)
{
  json_t *checked = json_string(text);
  char *shown = checked == NULL ? escaped(text) : format("%s", text), *label = NULL;
  for (const char *at = shown; *at != '\0'; at++)
    label = append(label, "%s%c", *at == '"' || *at == '\\' || *at == '\n' ? "\\" : "", *at == '\n' ? 'n' : *at);
  free(shown);
  json_decref(checked);
  return label;
}

/* A sample: its name, the resource as a label, and the rest, which goes. */
static void put_sample(const struct session *session, enum family family, char *rest)
{
  char *label = label_of(session->args->resource);
  samples[family] =
      append(samples[family], "redlock_resource_%s{resource=\"%s\"%s\n", families[family].name, label, rest);
  free(label);
  free(rest);
}

static void put_verdict(const struct session *session, int verdict)
{
  for (int i = REDLOCK_VERDICT_UNKNOWN; i <= REDLOCK_VERDICT_SHARED; i++)
    put_sample(session, VERDICT, format(",verdict=\"%s\"} %d", verdict_name(i), i == verdict));
}

static void put_status(const struct session *session, int verdict)
{
  put_verdict(session, verdict);
  if (!has_holder(verdict))
    return;
  int64_t ttl_ms = redlock_lock_holder_ttl_ms(session->lock);
  put_sample(session, REMAINING,
             ttl_ms == REDLOCK_TTL_ENDLESS ? format("} +Inf")
                                           : format("} %lld.%03d", (long long)(ttl_ms / 1000), (int)(ttl_ms % 1000)));
}

/* ---- who waits ---- */

enum { QUEUE_LIMIT_MS = 250 }; /* for nodes that have answered already */

/* A row of the resource, or of its first slot; NULL: the nodes did not say. */
static json_t *look_at_the_queue(struct session *session)
{
  const char *resource = session->args->resource;
  size_t size = strlen(resource);
  char *pattern = pattern_of_name(resource, &size);
  redlock_lock *lock = must(redlock_lock_new(session->client, pattern, size));
  (void)list_run(session, lock, QUEUE_LIMIT_MS, false);
  json_t *rows = list_rows(lock), *row = NULL;
  for (int i = 0; row == NULL && i < redlock_client_node_count(session->client); i++)
    if (redlock_lock_vote(lock, i) == REDLOCK_OK)
      row = json_incref(json_array_get(rows, 0));
  json_decref(rows);
  redlock_lock_free(lock);
  free(pattern);
  return row;
}

static void set_waiting(json_t *report, const json_t *row)
{
  if (row == NULL)
    return;
  json_object_set(report, "waiting", json_object_get(row, "waiting"));
  if (json_is_object(json_object_get(row, "first")))
    json_object_set(report, "first", json_object_get(row, "first"));
}

static void print_waiting(const json_t *row)
{
  const json_t *first = json_object_get(row, "first");
  if (number_in(row, "waiting") == 0)
    return;
  printf("waiting: %lld", (long long)number_in(row, "waiting"));
  if (json_is_object(first)) {
    char *name = client_words(first), *since = duration_words(number_in(first, "waited_ms"));
    printf(", first %s for %s", name, since);
    free(since);
    free(name);
  }
  putchar('\n');
}

static void put_waiting(const struct session *session, const json_t *row)
{
  if (row != NULL)
    put_sample(session, WAITING, format("} %lld", (long long)number_in(row, "waiting")));
}

static int print_samples(void)
{
  for (int i = 0; i < FAMILIES; i++) {
    if (samples[i] == NULL)
      continue;
    printf("# TYPE redlock_resource_%s gauge\n# HELP redlock_resource_%s %s\n%s", families[i].name, families[i].name,
           families[i].help, samples[i]);
    free(samples[i]);
  }
  return flush_answer();
}

static int print_status(const struct session *session, int status, const json_t *row)
{
  int verdict = redlock_lock_verdict(session->lock);
  if (session->args->metrics) {
    put_status(session, verdict);
    put_waiting(session, row);
    return 0;
  }
  if (session->args->json) {
    json_t *report = status_json(session, status, verdict);
    set_waiting(report, row);
    return print_json(report);
  }
  print_table(session);
  char *words = verdict_words(session, verdict);
  printf("%s: %s\n", verdict_name(verdict), words);
  print_waiting(row);
  free(words);
  return flush_answer();
}

static int quiet_code(int verdict)
{
  return verdict == REDLOCK_VERDICT_FREE ? 0 : has_holder(verdict) ? EXIT_BUSY : EXIT_UNAVAILABLE;
}

/* ---- permits, one by one ---- */

static int print_slots_json(const struct slots *slots, int status, const json_t *row)
{
  struct session one = *slots->session;
  json_t *report = must(json_object()), *all = must(json_array());
  set_bytes(report, "resource", one.args->resource, strlen(one.args->resource));
  json_object_set_new(report, "status", json_string(redlock_status_name(status)));
  json_object_set_new(report, "verdict", json_string(verdict_name(slots_verdict(slots))));
  json_object_set_new(report, "permits", json_integer(slots->count));
  json_object_set_new(report, "held", json_integer(slots->held));
  for (int i = 0; i < slots->count; i++) {
    one.lock = slots->locks[i];
    json_t *slot = status_json(&one, redlock_lock_status(one.lock), redlock_lock_verdict(one.lock));
    json_object_set_new(slot, "slot", json_integer(i));
    json_array_append_new(all, slot);
  }
  json_object_set_new(report, "slots", all);
  set_waiting(report, row);
  return print_json(report);
}

static void put_slots(const struct slots *slots)
{
  put_verdict(slots->session, slots_verdict(slots));
  put_sample(slots->session, PERMITS, format("} %d", slots->count));
  put_sample(slots->session, PERMITS_HELD, format("} %d", slots->held));
}

/* Their numbers of permits are wrong, or that of this command is, which then does not look at all slots. */
static void say_other_number(const struct slots *slots)
{
  for (int i = 0; i < slots->count; i++) {
    char *token = lock_holder(slots->locks[i]);
    int permits = permits_of(token, strlen(token));
    free(token);
    if (permits <= 0 || permits == slots->count)
      continue;
    fail(0, "--permits is %d; the holder of permit %d has %d", slots->count, i, permits);
    return;
  }
}

static int print_slots(const struct slots *slots, int status, const json_t *row)
{
  struct session one = *slots->session;
  if (one.args->metrics) {
    put_slots(slots);
    put_waiting(slots->session, row);
    return 0;
  }
  if (one.args->json)
    return print_slots_json(slots, status, row);
  puts("SLOT");
  for (int i = 0; i < slots->count; i++) {
    one.lock = slots->locks[i];
    int verdict = redlock_lock_verdict(one.lock);
    char *words = verdict_words(&one, verdict);
    printf("%4d  %s: %s\n", i, verdict_name(verdict), words);
    free(words);
  }
  say_other_number(slots);
  char *words = slots_words(slots);
  printf("%s: %s\n", verdict_name(slots_verdict(slots)), words);
  print_waiting(row);
  free(words);
  return flush_answer();
}

/* ---- one resource ---- */

/* Held or free, the question has been answered: both exit with 0. Metrics say themselves what they have found. */
static int inspect(struct session *session)
{
  struct slots slots;
  int code, status = slots_inspect(&slots, session);
  struct session first = *session;
  first.lock = slots.locks[0]; /* it has the words */
  if (!is_answer(status)) {
    code = report_failure(&first, status);
  } else if (session->args->quiet) {
    code = quiet_code(slots_verdict(&slots));
  } else {
    json_t *row = look_at_the_queue(session);
    int failed =
        slots.count > 1 ? print_slots(&slots, status, row) : print_status(&first, redlock_lock_status(first.lock), row);
    json_decref(row);
    code = failed || session->args->metrics ? failed : exit_code_of(session->args, status);
  }
  slots_free(&slots);
  return code;
}

static int look_at(const struct args *args)
{
  struct session session;
  int code = session_open(&session, args);
  if (code == 0)
    code = inspect(&session);
  return session_close(&session, code);
}

static void print_heading(const char *resource, bool is_first)
{
  char *name = escaped(resource);
  printf("%s%s\n", is_first ? "" : "\n", name);
  free(name);
}

static bool is_named_before(const struct args *args, int i)
{
  bool is_named = i > 0 && strcmp(args->resource, args->more[i - 1]) == 0;
  for (int j = 0; j < i - 1; j++)
    is_named = is_named || strcmp(args->more[j], args->more[i - 1]) == 0;
  return is_named;
}

/* Each by itself, and once: the exit status is that of the first that is not free, or is unknown. */
static int status(const struct args *args)
{
  struct args one = *args;
  one.more_count = 0;
  int code = 0;
  for (int i = 0; i <= args->more_count; i++) {
    if (is_named_before(args, i))
      continue;
    one.resource = i == 0 ? args->resource : args->more[i - 1];
    if (args->more_count > 0 && !args->json && !args->quiet && !args->metrics)
      print_heading(one.resource, i == 0);
    int found = look_at(&one);
    code = code != 0 ? code : found;
  }
  int failed = args->metrics ? print_samples() : 0;
  return failed ? failed : code;
}

static const struct flag silent_flag =
    FLAG_IN_ARGS("quiet", 'q', quiet, "print nothing, exit with 0 free, 75 held, 69 not known");

/* It waits for every node, so one that hangs costs no more than a second. */
const struct command status_command = {
    OVERVIEW("status", "Look", "who holds a lock, and for how much longer", "[OPTION...] RESOURCE..."),
    .help =
        "Shows what every node knows of the lock, without changing it. Goes by the keys alone: `redlock doctor` says "
        "whether the nodes may vote.\n"
        "With --permits n, who holds each of them, unless --slot names one.",
    .also = "permits slot",
    DEFAULTS({"connect_timeout_ms", "1000"}, {"guard", "off"}),
    FLAGS(&silent_flag, &metrics_flag),
    .main = status};

/* ls.c - redlock ls PREFIX: which locks are held, by which client, and for how much longer? */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"
#include "wire.h"

enum { AT_ONE_TIME = 64 }; /* questions in flight */

static int limit = 1000;

/* The nodes' replies about one resource. */
struct found {
  const struct scan_name *name;
  int verdict, nodes; /* with this token, or with any key if no majority has the same */
  int64_t ttl_ms;
  char *token;
  json_t *client; /* the holder; NULL if it is not known */
};

struct list {
  struct session *session;
  struct scan scan;
  struct found *found;
  size_t count;
};

/* The key was deleted, or has expired, since it was found: then there is nothing to list. */
static void note(struct list *list, redlock_lock *lock, const struct scan_name *name)
{
  struct found found = {.name = name, .verdict = redlock_lock_verdict(lock), .token = lock_holder(lock)};
  bool is_held = has_holder(found.verdict);
  found.nodes = nodes_with_key(list->session->client, lock, found.verdict == REDLOCK_VERDICT_HELD ? found.token : NULL);
  found.ttl_ms = is_held ? redlock_lock_holder_ttl_ms(lock) : 0;
  found.client = is_held ? holder_client(lock) : NULL;
  if (found.nodes == 0) {
    free(found.token);
    return;
  }
  list->found[list->count++] = found;
}

static redlock_lock *lock_on(redlock_client *client, const struct scan_name *name)
{
  redlock_lock *lock = must(redlock_lock_new(client, name->bytes, name->size));
  if (name->slot > 0)
    slot_set(lock, name->slot + 1, name->slot);
  return lock;
}

/* Asks about up to AT_ONE_TIME resources at once. */
static int ask_about(struct list *list, struct scan_name *const *names, size_t count)
{
  redlock_lock *locks[AT_ONE_TIME];
  for (size_t i = 0; i < count; i++)
    locks[i] = lock_on(list->session->client, names[i]);
  int status = session_inspect_all(list->session, locks, (int)count);
  for (size_t i = 0; i < count; i++) {
    if (status == REDLOCK_OK)
      note(list, locks[i], names[i]);
    redlock_lock_free(locks[i]);
  }
  return status;
}

static int ask(struct list *list)
{
  const struct scan *scan = &list->scan;
  int status = REDLOCK_OK;
  list->found = must(calloc(scan->count + 1, sizeof *list->found));
  for (size_t i = 0; i < scan->count && status == REDLOCK_OK; i += AT_ONE_TIME)
    status = ask_about(list, scan->names + i, scan->count - i < AT_ONE_TIME ? scan->count - i : AT_ONE_TIME);
  if (list->session->caught != 0)
    return 128 + list->session->caught;
  return status == REDLOCK_OK ? 0 : fail(exit_code_of(list->session->args, status), "%s", redlock_status_text(status));
}

/* ---- for people ---- */

/* Nothing in a name reaches the terminal as a command. */
static char *shown_name(const struct scan_name *name)
{
  return wire_escaped(name->bytes, name->size);
}

static char *ttl_words(const struct found *found)
{
  if (!has_holder(found->verdict))
    return format("-");
  return found->ttl_ms == REDLOCK_TTL_ENDLESS ? format("no TTL") : duration_words(found->ttl_ms);
}

static char *holder_of(const struct found *found)
{
  if (!has_holder(found->verdict))
    return format("held by no majority");
  if (found->verdict == REDLOCK_VERDICT_SHARED)
    return reader_words(found->client);
  return found->client != NULL ? holder_client_words(found->client) : format("not known");
}

static bool is_permit(const struct found *found)
{
  return found->name->slot > 0 || permits_of(found->token, strlen(found->token)) > 0;
}

/* "2 of 4"; how many there are is known from the holder's token. */
static char *slot_words(const struct found *found)
{
  int permits = permits_of(found->token, strlen(found->token));
  if (!is_permit(found))
    return format("-");
  return permits > 0 ? format("%d of %d", found->name->slot, permits) : format("%d", found->name->slot);
}

static void print_row(const struct list *list, const struct found *found, int width, bool has_slots)
{
  char *name = shown_name(found->name), *ttl = ttl_words(found), *holder = holder_of(found);
  char *nodes = format("%d of %d", found->nodes, redlock_client_node_count(list->session->client));
  char *slot = slot_words(found);
  const char *token = *found->token != '\0' ? found->token : "-";
  printf("%s%*s  ", name, width - (int)columns_of(name), "");
  if (has_slots)
    printf("%-10s  ", slot);
  printf("%8s  %-11s  %-*.*s  %s\n", nodes, ttl, TOKEN_SHOWN, TOKEN_SHOWN, token, holder);
  free(slot);
  free(nodes);
  free(holder);
  free(ttl);
  free(name);
}

static int print_table(const struct list *list)
{
  size_t width = strlen("RESOURCE");
  bool has_slots = false;
  for (size_t i = 0; i < list->count; i++) {
    char *name = shown_name(list->found[i].name);
    width = columns_of(name) > width ? columns_of(name) : width;
    has_slots = has_slots || is_permit(&list->found[i]);
    free(name);
  }
  if (list->count > 0)
    printf("%-*s%s  %8s  %-11s  %-*s  %s\n", (int)width, "RESOURCE", has_slots ? "  SLOT      " : "", "NODES", "TTL",
           TOKEN_SHOWN, "TOKEN", "HOLDER");
  for (size_t i = 0; i < list->count; i++)
    print_row(list, &list->found[i], (int)width, has_slots);
  return flush_answer(ferror(stdout) != 0);
}

/* ---- for programs ---- */

static json_t *found_json(const struct found *found)
{
  json_t *object = must(json_object());
  set_bytes(object, "resource", found->name->bytes, found->name->size);
  bool is_held = has_holder(found->verdict);
  if (is_permit(found))
    json_object_set_new(object, "slot", json_integer(found->name->slot));
  if (permits_of(found->token, strlen(found->token)) > 0)
    json_object_set_new(object, "permits", json_integer(permits_of(found->token, strlen(found->token))));
  json_object_set_new(object, "verdict", json_string(verdict_name(found->verdict)));
  json_object_set_new(object, "nodes", json_integer(found->nodes));
  if (is_held) {
    json_object_set_new(object, "holder", json_string(found->token));
    json_object_set_new(object, "holder_ttl_ms", json_integer(found->ttl_ms));
    set_held_by(object, json_incref(found->client));
  }
  return object;
}

static int print_list(const struct list *list, int status)
{
  json_t *report = must(json_object()), *locks = must(json_array());
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(locks, found_json(&list->found[i]));
  json_object_set_new(report, "status", json_string(redlock_status_name(status)));
  json_object_set_new(report, "locks", locks);
  json_object_set_new(report, "truncated", json_boolean(list->scan.is_cut));
  json_object_set(report, "nodes", list->scan.nodes);
  return print_json(report);
}

/* A lock that is held is on a majority: with fewer nodes scanned than meet every majority, one may be missing. */
static int scan_status(const struct list *list)
{
  int nodes = redlock_client_node_count(list->session->client), needed = nodes - nodes / 2;
  if (list->scan.scanned >= needed)
    return REDLOCK_OK;
  return nodes - list->scan.forbidden < needed ? REDLOCK_REFUSED_CONFIG : REDLOCK_NO_QUORUM;
}

static int say_what_is_missing(const struct list *list, int status)
{
  const struct scan *scan = &list->scan;
  int nodes = redlock_client_node_count(list->session->client);
  if (scan->is_cut)
    fail(0, "there are more than %d: --limit N lists more, or give a longer PREFIX", list->scan.limit);
  if (status == REDLOCK_OK && list->count == 0 && !list->session->args->json)
    fail(0, *scan->prefix != '\0' ? "no lock is held whose name begins with %s" : "no lock is held", scan->prefix);
  if (status == REDLOCK_OK)
    return 0;
  const char *advice = scan->forbidden > 0 ? "; its user needs +scan and +getrange" : "";
  return fail(exit_code_of(list->session->args, status),
              "%d of %d nodes were scanned, %d are needed for a whole list%s", scan->scanned, nodes, nodes - nodes / 2,
              advice);
}

static int list_locks(struct list *list)
{
  int code = scan_run(&list->scan, list->session);
  if (code == 0)
    code = ask(list);
  if (code != 0)
    return code;
  int status = scan_status(list);
  code = list->session->args->json ? print_list(list, status) : print_table(list);
  int missing = say_what_is_missing(list, status);
  return code != 0 ? code : missing;
}

static int ls(struct session *session)
{
  struct list list = {.session = session, .scan.limit = limit};
  int code = list_locks(&list);
  for (size_t i = 0; i < list.count; i++) {
    free(list.found[i].token);
    json_decref(list.found[i].client);
  }
  free(list.found);
  scan_free(&list.scan);
  return code;
}

static const struct flag limit_flag = FLAG_COUNT("limit", &limit, 100000, "list at most N locks (default 1000)");

const struct command ls_command = {
    OVERVIEW("ls", "Look", "list held locks whose names begin alike", "[OPTION...] [PREFIX]"),
    .help =
        "Lists the locks whose names begin with PREFIX: on how many nodes, for how much longer, and who holds them.\n"
        "Without PREFIX all behind the key prefix; if none is set, '' stands for all. Goes through all keys of every "
        "node (SCAN), with pauses; the user needs +scan.\n"
        "Exits with 0 if the list is whole, 69 or 78 if too few nodes could be scanned.",
    DEFAULTS({"connect_timeout_ms", "1000"}, {"guard", "off"}), FLAGS(&limit_flag), .run = ls};

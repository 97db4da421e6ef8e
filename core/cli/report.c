/* report.c - the result of an operation, for people and in JSON. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int exit_code_of(const struct args *args, int status)
{
  switch (status) {
  case REDLOCK_OK: return 0;
  case REDLOCK_BUSY: return args->busy_exit;
  case REDLOCK_NO_QUORUM:
  case REDLOCK_TIMED_OUT: return EXIT_UNAVAILABLE;
  case REDLOCK_LOST: return EXIT_LOST;
  case REDLOCK_REFUSED_CONFIG: return EXIT_REFUSED_CONFIG;
  case REDLOCK_INVALID:
  case REDLOCK_NOT_HELD:
  case REDLOCK_LIMIT: return EXIT_USAGE;
  default: return EXIT_INTERNAL;
  }
}

int64_t answer_ttl_ms(redlock_lock *lock, int node)
{
  char *text = node_answer(lock, node, REDLOCK_ANSWER_TTL_MS);
  int64_t ttl_ms = strcmp(text, "none") == 0 ? -1 : *text == '\0' ? -2 : strtoll(text, NULL, 10);
  free(text);
  return ttl_ms;
}

static void set_text(json_t *object, const char *key, char *text)
{
  if (*text != '\0')
    json_object_set_new(object, key, must(json_string(text)));
  free(text);
}

/* ttl_ms as in PTTL: -1 no TTL; null if unknown. */
static json_t *node_json(const struct session *session, int node)
{
  json_t *object = must(json_object());
  set_text(object, "node", node_name(session->client, node));
  json_object_set_new(object, "vote", json_string(redlock_status_name(redlock_lock_vote(session->lock, node))));
  set_text(object, "answer", node_answer(session->lock, node, REDLOCK_ANSWER_WORDS));
  int64_t ttl_ms = answer_ttl_ms(session->lock, node);
  json_object_set_new(object, "ttl_ms", ttl_ms == -2 ? json_null() : json_integer(ttl_ms));
  set_text(object, "token", node_answer(session->lock, node, REDLOCK_ANSWER_TOKEN));
  return object;
}

static json_t *nodes_json(const struct session *session)
{
  json_t *nodes = must(json_array());
  for (int i = 0; i < redlock_client_node_count(session->client); i++)
    json_array_append_new(nodes, node_json(session, i));
  return nodes;
}

static json_t *hex_json(const char *bytes, size_t size)
{
  char *hex = must(calloc(size + 1, 2));
  for (size_t i = 0; i < size; i++)
    sprintf(hex + 2 * i, "%02x", (unsigned char)bytes[i]);
  json_t *text = must(json_string(hex));
  free(hex);
  return text;
}

/* JSON has no bytes: values that are not UTF-8 are given in hexadecimal. */
void set_bytes(json_t *report, const char *key, const char *bytes, size_t size)
{
  json_t *text = json_stringn(bytes, size);
  char *named = format("%s%s", key, text != NULL ? "" : "_hex");
  json_object_set_new(report, named, text != NULL ? text : hex_json(bytes, size));
  free(named);
}

char *outcome(const struct session *session, int status)
{
  char *parts = lock_message_parts(session->lock);
  char *message = in_users_words(session->args, NULL, parts), *words;
  struct rlimit files = {.rlim_cur = 0};
  getrlimit(RLIMIT_NOFILE, &files);
  free(parts);
  if (status == REDLOCK_INTERNAL) /* mostly descriptors */
    words = format("%s (ulimit -n is %ju)", message, (uintmax_t)files.rlim_cur);
  else
    words = format("%s", *message ? message : redlock_status_text(status));
  free(message);
  return words;
}

const char *loss_name(redlock_lock *lock)
{
  static const char *const names[] = {
      [REDLOCK_LOSS_EXPIRED] = "expired", [REDLOCK_LOSS_GONE] = "gone",   [REDLOCK_LOSS_RESTARTED] = "restarted",
      [REDLOCK_LOSS_REFUSED] = "refused", [REDLOCK_LOSS_LIMIT] = "limit", [REDLOCK_LOSS_CLOCK] = "clock",
      [REDLOCK_LOSS_CLOSED] = "closed",
  };
  int loss = redlock_lock_loss(lock);
  return loss >= 0 && loss < (int)(sizeof names / sizeof *names) ? names[loss] : NULL;
}

void say(const struct session *session, const char *pattern, ...)
{
  va_list values;
  char *words = NULL;
  va_start(values, pattern);
  int length = session->args->quiet || session->args->calm ? 0 : vasprintf(&words, pattern, values);
  va_end(values);
  if (length > 0)
    fail(0, "%s", words);
  free(words);
}

void set_held_by(json_t *report, json_t *client)
{
  if (client != NULL)
    json_object_set_new(report, "held_by", client);
}

/* All in one form, so that a reader need not tell which of them are digits. */
static void set_resources(json_t *report, const struct args *args)
{
  json_t *texts = must(json_array()), *hexes = must(json_array());
  for (int i = 0; i <= args->more_count; i++) {
    const char *name = i == 0 ? args->resource : args->more[i - 1];
    json_array_append_new(hexes, hex_json(name, strlen(name)));
    json_array_append_new(texts, json_string(name)); /* nothing unless it is UTF-8 */
  }
  bool are_texts = json_array_size(texts) == json_array_size(hexes);
  json_object_set(report, are_texts ? "resources" : "resources_hex", are_texts ? texts : hexes);
  json_decref(texts);
  json_decref(hexes);
}

json_t *report_json(const struct session *session, int status)
{
  json_t *report = must(json_object());
  set_bytes(report, "resource", session->args->resource, strlen(session->args->resource));
  if (session->args->more_count > 0)
    set_resources(report, session->args);
  const char *token = session->args->token;
  if (token != NULL)
    set_bytes(report, "token", token, strlen(token));
  else if (status == REDLOCK_OK || status == REDLOCK_LOST)
    set_text(report, "token", lock_token(session->lock));
  if (redlock_lock_fence(session->lock) > 0)
    json_object_set_new(report, "fence", json_integer(redlock_lock_fence(session->lock)));
  if (redlock_lock_slot(session->lock) >= 0)
    json_object_set_new(report, "slot", json_integer(redlock_lock_slot(session->lock)));
  json_object_set_new(report, "status", json_string(redlock_status_name(status)));
  json_object_set_new(report, "validity_ms", json_integer(redlock_lock_validity_ms(session->lock)));
  set_text(report, "message", outcome(session, status));
  json_object_set_new(report, "nodes", nodes_json(session));
  return report;
}

int flush_answer(void)
{
  if (fflush(stdout) == 0 && !ferror(stdout))
    return 0;
  if (errno == EPIPE)
    return 128 + SIGPIPE; /* `head` has seen enough; the signal is blocked while a lock may be held */
  return fail(EXIT_INTERNAL, "the answer cannot be written: %s", strerror(errno));
}

static bool json_is_printed;

int report_words(int code, int status, const char *words)
{
  json_t *report = must(json_pack("{s:s,s:s}", "status", redlock_status_name(status), "message", words));
  return print_json(report) == 0 ? code : EXIT_INTERNAL;
}

/* Usage, files, descriptors. */
int report_refusal(int code)
{
  const char *words = failure_words(code);
  if (json_is_printed || words == NULL || (code != EXIT_USAGE && code != EXIT_INTERNAL))
    return code;
  return report_words(code, code == EXIT_USAGE ? REDLOCK_INVALID : REDLOCK_INTERNAL, words);
}

int print_json(json_t *report)
{
  json_is_printed = true;
  char *text = must(json_dumps(report, JSON_COMPACT));
  puts(text);
  free(text);
  json_decref(report);
  return flush_answer();
}

int report_failure(struct session *session, int status)
{
  if (session->caught != 0)
    return 128 + session->caught;
  if (status == REDLOCK_BUSY && (!session->args->quiet || session->args->json))
    holder_ask(session);
  char *message = outcome(session, status);
  int code = exit_code_of(session->args, status);
  if (status != REDLOCK_BUSY || !session->args->quiet)
    fail(code, "%s", message);
  if (session->args->json) {
    json_t *report = report_json(session, status);
    set_text(report, "message", message); /* not computed again: the remaining time has changed meanwhile */
    set_held_by(report, holder_client(session->lock));
    print_json(report);
  } else {
    free(message);
  }
  return code;
}

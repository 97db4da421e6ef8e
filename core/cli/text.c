/* text.c - texts that the library hands out, and errors. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void *must(void *allocated)
{
  if (allocated == NULL)
    exit(fail(EXIT_INTERNAL, "out of memory"));
  return allocated;
}

char *format(const char *pattern, ...)
{
  va_list values;
  va_start(values, pattern);
  char *text = NULL;
  if (vasprintf(&text, pattern, values) < 0)
    text = NULL;
  va_end(values);
  return must(text);
}

char *append(char *text, const char *pattern, ...)
{
  va_list values;
  va_start(values, pattern);
  char *more = NULL, *longer;
  if (vasprintf(&more, pattern, values) < 0)
    more = NULL;
  va_end(values);
  longer = format("%s%s", text != NULL ? text : "", (char *)must(more));
  free(text);
  free(more);
  return longer;
}

static struct {
  int code;
  char *words;
} last_failure;

const char *failure_words(int exit_code)
{
  return last_failure.code == exit_code ? last_failure.words : NULL;
}

static void note_failure(int code, char *words)
{
  free(last_failure.words);
  last_failure.code = code;
  last_failure.words = words;
}

bool takes_words(int patience_ms)
{
  struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};
  return poll(&error, 1, patience_ms) != 0;
}

size_t columns_of(const char *text)
{
  size_t columns = 0;
  for (; *text != '\0'; text++)
    columns += ((unsigned char)*text & 0xc0) != 0x80;
  return columns;
}

int bytes_in_columns(const char *text, int columns)
{
  const char *end = text;
  for (; *end != '\0'; end++)
    if (((unsigned char)*end & 0xc0) != 0x80 && columns-- == 0)
      break;
  return (int)(end - text);
}

int width_in_bytes(const char *text, int columns)
{
  return columns + (int)(strlen(text) - columns_of(text));
}

/* How many bytes a character takes that a terminal may obey, U+0080 to U+009f among them; 0 if it is none. */
static size_t control_size(const char *at)
{
  if (at[0] == '\xc2' && (at[1] & 0xe0) == 0x80)
    return 2;
  return (unsigned char)*at < ' ' || *at == 0x7f;
}

char *one_line(char *text)
{
  for (char *at = text; *at != '\0'; at++)
    memset(at, '?', control_size(at));
  return text;
}

/* A line that nobody reads is dropped: there is a lock to look after. */
int fail(int exit_code, const char *pattern, ...)
{
  va_list values;
  va_start(values, pattern);
  char *text = NULL;
  int length = vasprintf(&text, pattern, values);
  va_end(values);
  if (takes_words(WORDS_MS))
    fprintf(stderr, "redlock: %s\n", length < 0 ? "out of memory" : one_line(text));
  if (length >= 0 && exit_code != 0)
    note_failure(exit_code, text);
  else if (length >= 0)
    free(text);
  return exit_code;
}

/* Too many open files is the one error that a user can fix, given the limit. */
int fail_of_system(const char *words)
{
  struct rlimit files;
  if (strstr(words, strerror(EMFILE)) == NULL || getrlimit(RLIMIT_NOFILE, &files) != 0)
    return fail(EXIT_INTERNAL, "%s", words);
  return fail(EXIT_INTERNAL, "%s; the limit is %ju (ulimit -n)", words, (uintmax_t)files.rlim_cur);
}

int fail_errno(const char *what)
{
  char *words = format("%s: %s", what, strerror(errno));
  int code = fail_of_system(words);
  free(words);
  return code;
}

/* A text of the library, whose numbers may grow between the two calls. */
#define READER(name, read, parameters, ...)                                                                            \
  char *name parameters                                                                                                \
  {                                                                                                                    \
    int64_t length = read(__VA_ARGS__, NULL, 0);                                                                       \
    size_t size = (size_t)(length < 0 ? 0 : length) + 1024;                                                            \
    char *text = must(calloc(1, size));                                                                                \
    read(__VA_ARGS__, text, size);                                                                                     \
    return text;                                                                                                       \
  }

READER(escaped, redlock_escape, (const char *bytes), bytes)
READER(client_message, redlock_client_message, (redlock_client * client), client)
READER(client_message_parts, redlock_client_message_parts, (redlock_client * client), client)
READER(client_option, redlock_client_get, (redlock_client * client, const char *option), client, option)
READER(bootstrap_words, redlock_client_bootstrap_words, (redlock_client * client, int node), client, node)
READER(node_name, redlock_client_node_name, (redlock_client * client, int node), client, node)
READER(node_answer, redlock_lock_answer, (redlock_lock * lock, int node, int field), lock, node, field)
READER(lock_message, redlock_lock_message, (redlock_lock * lock), lock)
READER(lock_message_parts, redlock_lock_message_parts, (redlock_lock * lock), lock)
READER(lock_token, redlock_lock_token, (redlock_lock * lock), lock)
READER(lock_holder, redlock_lock_holder, (redlock_lock * lock), lock)
READER(lock_held_by, redlock_lock_held_by, (redlock_lock * lock), lock)
READER(lock_row, redlock_lock_row, (redlock_lock * lock, int64_t index, int field), lock, index, field)
static READER(description, redlock_client_describe, (redlock_client * client),
              client) static READER(metrics, redlock_client_metrics, (redlock_client * client), client)

    json_t *client_description(redlock_client *client)
{
  char *text = description(client);
  json_t *described = must(json_loads(text, 0, NULL));
  free(text);
  return described;
}

json_t *described(redlock_client *client, const char *member)
{
  json_t *description = client_description(client), *value = json_incref(json_object_get(description, member));
  json_decref(description);
  return value;
}

int64_t number_in(const json_t *object, const char *key)
{
  return json_integer_value(json_object_get(object, key));
}

const char *text_in(const json_t *object, const char *key)
{
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

int64_t client_option_ms(redlock_client *client, const char *option)
{
  char *value = client_option(client, option);
  int64_t ms = strcmp(value, "auto") == 0 ? -1 : strtoll(value, NULL, 10);
  free(value);
  return ms;
}

void lock_set_number(redlock_lock *lock, const char *option, int64_t value)
{
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  (void)redlock_lock_set(lock, option, text);
}

int fail_message(int exit_code, redlock_client *client, const char *where)
{
  char *message = client_message(client);
  fail(exit_code, "%s%s%s", where, *where != '\0' ? ": " : "", message);
  free(message);
  return exit_code;
}

/* The library writes OpenMetrics. In the older text format, which textfile collectors read, the family of a counter is
 * named as its samples are. Returns whether the family is one of a node: the counters of this command are of no use to
 * anybody, and would be mixed up with those of the programs. */
static bool print_family(const char *line, int length)
{
  static const char type[] = "# TYPE redlock_node_", counter[] = " counter";
  size_t words = strlen(type) + strcspn(line + strlen(type), " \n"), end = strlen(counter);
  if (strncmp(line, type, strlen(type)) != 0)
    return false;
  bool is_counter = (size_t)length == words + end && strncmp(line + words, counter, end) == 0;
  printf("%.*s%s%.*s\n", (int)words, line, is_counter ? "_total" : "", length - (int)words, line + words);
  const char *help = line + length + 1;
  size_t name = words + strlen("# HELP") - strlen("# TYPE");
  printf("%.*s%s%.*s\n", (int)name, help, is_counter ? "_total" : "", (int)(strcspn(help, "\n") - name), help + name);
  return true;
}

/* The time says that the figures are not those of a timer that has stopped. */
int print_metrics(redlock_client *client)
{
  puts("# TYPE redlock_doctor_timestamp_seconds gauge\n"
       "# HELP redlock_doctor_timestamp_seconds When the nodes were asked.");
  printf("redlock_doctor_timestamp_seconds %lld\n", (long long)time(NULL));
  char *text = metrics(client);
  bool is_of_node = false;
  for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    if (strncmp(line, "# TYPE ", 7) == 0)
      is_of_node = print_family(line, (int)(end - line));
    else if (is_of_node && *line != '#')
      printf("%.*s\n", (int)(end - line), line);
  }
  free(text);
  return flush_answer();
}

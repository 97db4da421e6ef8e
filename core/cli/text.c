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

static char *room_for(int64_t length)
{
  return must(calloc(1, (size_t)(length < 0 ? 0 : length) + 1));
}

static char *read_client(redlock_client *client, int64_t (*read)(redlock_client *, char *, size_t))
{
  int64_t length = read(client, NULL, 0);
  char *text = room_for(length);
  if (length > 0)
    read(client, text, (size_t)length + 1);
  return text;
}

char *client_option(redlock_client *client, const char *option)
{
  int64_t size = redlock_client_get(client, option, NULL, 0);
  char *text = room_for(size);
  redlock_client_get(client, option, text, (size_t)size + 1);
  return text;
}

char *client_message(redlock_client *client)
{
  return read_client(client, redlock_client_message);
}

char *client_message_parts(redlock_client *client)
{
  return read_client(client, redlock_client_message_parts);
}

json_t *client_description(redlock_client *client)
{
  size_t size = (size_t)redlock_client_describe(client, NULL, 0) + 256; /* its numbers may grow meanwhile */
  char *text = must(calloc(1, size));
  redlock_client_describe(client, text, size);
  json_t *description = must(json_loads(text, 0, NULL));
  free(text);
  return description;
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
  size_t size = (size_t)redlock_client_metrics(client, NULL, 0) + 1024; /* its numbers may grow meanwhile */
  char *text = must(calloc(1, size));
  redlock_client_metrics(client, text, size);
  bool is_of_node = false;
  for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    if (strncmp(line, "# TYPE ", 7) == 0)
      is_of_node = print_family(line, (int)(end - line));
    else if (is_of_node && *line != '#')
      printf("%.*s\n", (int)(end - line), line);
  }
  free(text);
  return flush_answer(ferror(stdout) != 0);
}

static char *read_lock(redlock_lock *lock, int64_t (*read)(redlock_lock *, char *, size_t))
{
  int64_t length = read(lock, NULL, 0);
  char *text = room_for(length);
  if (length > 0)
    read(lock, text, (size_t)length + 1);
  return text;
}

char *lock_message(redlock_lock *lock)
{
  return read_lock(lock, redlock_lock_message);
}

char *lock_message_parts(redlock_lock *lock)
{
  return read_lock(lock, redlock_lock_message_parts);
}

char *lock_token(redlock_lock *lock)
{
  return read_lock(lock, redlock_lock_token);
}

char *lock_holder(redlock_lock *lock)
{
  return read_lock(lock, redlock_lock_holder);
}

char *lock_held_by(redlock_lock *lock)
{
  int64_t length = redlock_lock_held_by(lock, NULL, 0);
  char *text = room_for(length + 32); /* its numbers may grow meanwhile */
  if (length > 0)
    redlock_lock_held_by(lock, text, (size_t)length + 32);
  return text;
}

char *node_name(redlock_client *client, int node)
{
  int64_t length = redlock_client_node_name(client, node, NULL, 0);
  char *text = room_for(length);
  if (length > 0)
    redlock_client_node_name(client, node, text, (size_t)length + 1);
  return text;
}

char *node_answer(redlock_lock *lock, int node, int field)
{
  int64_t length = redlock_lock_answer(lock, node, field, NULL, 0);
  char *text = room_for(length);
  if (length > 0)
    redlock_lock_answer(lock, node, field, text, (size_t)length + 1);
  return text;
}

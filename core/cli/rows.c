/* rows.c - locks as a table: for ls and top. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum column { NAME, KIND_OF, HOLDER, HELD, LEFT, WAITING, TOKEN, COLUMNS };

static const char *const heads[COLUMNS] = {"NAME", "KIND", "HOLDER", "HELD", "LEFT", "WAITING", "TOKEN"};

/* "name" is the resource as it may be printed. */
static json_t *row_of(redlock_lock *lock, int64_t index)
{
  char *text = lock_row(lock, index, REDLOCK_ROW_JSON), *bytes = lock_row(lock, index, REDLOCK_ROW_RESOURCE);
  json_t *row = must(json_loads(text, 0, NULL));
  json_object_set(row, "name", json_object_get(row, "resource"));
  json_object_del(row, "resource");
  set_bytes(row, "resource", bytes, (size_t)redlock_lock_row(lock, index, REDLOCK_ROW_RESOURCE, NULL, 0));
  free(bytes);
  free(text);
  return row;
}

json_t *list_rows(redlock_lock *lock)
{
  json_t *rows = must(json_array());
  int64_t count = redlock_lock_listed(lock, REDLOCK_LISTED_ROWS);
  for (int64_t i = 0; i < count; i++)
    json_array_append_new(rows, row_of(lock, i));
  return rows;
}

char *client_words(const json_t *client)
{
  const char *name = text_in(client, "client_name");
  char *words = format("%s (pid %lld on %s)", *name != '\0' ? name : "a client", (long long)number_in(client, "pid"),
                       text_in(client, "host"));
  return one_line(words);
}

static char *kind_words(const json_t *row)
{
  if (strcmp(text_in(row, "kind"), "permits") != 0)
    return format("%s", text_in(row, "kind"));
  if (number_in(row, "permits") > 0)
    return format("permit %lld of %lld", (long long)number_in(row, "slot"), (long long)number_in(row, "permits"));
  return format("permit %lld", (long long)number_in(row, "slot"));
}

static char *holder_words_of(const json_t *row)
{
  const json_t *client = json_object_get(row, "held_by");
  long long readers = number_in(client, "readers");
  if (json_object_get(row, "holder") == NULL)
    return format("no majority: %lld node%s", (long long)number_in(row, "nodes"),
                  number_in(row, "nodes") == 1 ? "" : "s");
  if (!json_is_object(client))
    return format(strcmp(text_in(row, "kind"), "shared") == 0 ? "readers" : "not known");
  char *name = client_words(client);
  if (readers <= 1)
    return name;
  char *words = format("%lld readers, one is %s", readers, name);
  free(name);
  return words;
}

static char *left_words(const json_t *row)
{
  if (json_object_get(row, "holder") == NULL)
    return format("-");
  int64_t left_ms = number_in(row, "holder_ttl_ms");
  return left_ms == REDLOCK_TTL_ENDLESS ? format("no TTL") : duration_words(left_ms);
}

static char *cell(const json_t *row, enum column column)
{
  const json_t *client = json_object_get(row, "held_by");
  switch (column) {
  case NAME: return format("%s", text_in(row, "name"));
  case KIND_OF: return kind_words(row);
  case HOLDER: return holder_words_of(row);
  case HELD: return json_is_object(client) ? duration_words(number_in(client, "held_ms")) : format("-");
  case LEFT: return left_words(row);
  case WAITING: return format("%lld", (long long)number_in(row, "waiting"));
  default: return format("%s", *text_in(row, "holder") != '\0' ? text_in(row, "holder") : "-");
  }
}

void print_columns(FILE *out, const char *line, int columns)
{
  fprintf(out, "%.*s", columns > 0 ? bytes_in_columns(line, columns) : (int)strlen(line), line);
}

/* The line, with that cell at its end. */
static char *with_cell(char *line, enum column column, const char *text, int width)
{
  bool is_right = column >= HELD && column <= WAITING;
  int bytes = column == TOKEN ? 0 : width_in_bytes(text, width);
  return append(line, "%*s%s", is_right ? bytes : -bytes, text, column == TOKEN ? "" : "  ");
}

void rows_print(FILE *out, const json_t *rows, int columns)
{
  size_t count = json_array_size(rows);
  char **cells = must(calloc((count + 1) * COLUMNS, sizeof *cells));
  int widths[COLUMNS] = {0};
  for (size_t i = 0; i <= count; i++)
    for (int j = 0; j < COLUMNS; j++) {
      char *one = i == 0 ? format("%s", heads[j]) : cell(json_array_get(rows, i - 1), (enum column)j);
      widths[j] = (int)columns_of(one) > widths[j] ? (int)columns_of(one) : widths[j];
      cells[i * COLUMNS + (size_t)j] = one;
    }
  for (size_t i = 0; i <= count; i++) {
    char *line = NULL;
    for (int j = 0; j < COLUMNS; j++) {
      line = with_cell(line, (enum column)j, cells[i * COLUMNS + (size_t)j], widths[j]);
      free(cells[i * COLUMNS + (size_t)j]);
    }
    print_columns(out, line, columns);
    fputc('\n', out);
    free(line);
  }
  free(cells);
}

int terminal_columns(int *lines)
{
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return 0;
  if (lines != NULL)
    *lines = size.ws_row;
  return size.ws_col;
}

/* ---- the nodes ---- */

/* What each has told to the last list. */
json_t *rows_nodes(const struct session *session, redlock_lock *lock)
{
  json_t *nodes = must(json_array());
  for (int i = 0; i < redlock_client_node_count(session->client); i++) {
    char *name = node_name(session->client, i), *why = node_answer(lock, i, REDLOCK_ANSWER_WORDS);
    bool is_scanned = redlock_lock_vote(lock, i) == REDLOCK_OK;
    json_array_append_new(nodes, must(json_pack("{s:o*,s:b,s:o*}", "node", json_string(name), "scanned", is_scanned,
                                                "why", is_scanned ? NULL : json_string(one_line(why)))));
    free(name);
    free(why);
  }
  return nodes;
}

/* ---- patterns ---- */

/* One that matches the bytes themselves. */
char *pattern_of_name(const char *name, size_t *size)
{
  char *pattern = must(calloc(*size + 1, 2)), *to = pattern;
  for (size_t left = *size; left > 0; name++, left--) {
    if (*name != '\0' && strchr("*?[]\\^-", *name) != NULL)
      *to++ = '\\';
    *to++ = *name;
  }
  *size = (size_t)(to - pattern);
  return pattern;
}

char *pattern_of(const char *words)
{
  if (words != NULL && strpbrk(words, "*?[") != NULL)
    return format("%s", words);
  size_t size = words != NULL ? strlen(words) : 0;
  char *name = pattern_of_name(words != NULL ? words : "", &size);
  char *pattern = format("%s*", name);
  free(name);
  return pattern;
}

/* config.c - nodes and defaults from a file of lines `name = value`, with the names of the library's options, and from
 * variables of the environment. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Editors on Windows begin a file with it. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct reader {
  struct settings *settings;
  const char *path;
  int line;
  redlock_client *client; /* it only looks at names and values */
};

static char *trimmed(char *text)
{
  text += strspn(text, " \t\r\n");
  size_t length = strlen(text);
  while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
    length--;
  text[length] = '\0';
  return text;
}

/* The line is not shown, since it may contain a password. */
static int refuse_line(const struct reader *reader)
{
  return fail(EXIT_USAGE, "%s:%d: not a line such as ttl_ms = 30000", reader->path, reader->line);
}

static bool is_name(const char *text)
{
  return *text != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bool is_path(const char *name)
{
  const char *end = strrchr(name, '_');
  return end != NULL && (strcmp(end, "_file") == 0 || strcmp(end, "_path") == 0);
}

/* Paths are relative to the file that names them. Free it. */
static char *completed(const struct reader *reader, const char *name, const char *value)
{
  const char *slash = strrchr(reader->path, '/');
  if (*value == '\0' || *value == '/' || slash == NULL || !is_path(name))
    return format("%s", value);
  return format("%.*s/%s", (int)(slash - reader->path), reader->path, value);
}

/* Other readers of such lines take quotation marks away. Here they would be part of the value: two programs with
 * key_prefix = lock: and "lock:" do not exclude each other. */
static bool is_quoted(const char *value)
{
  return *value == '"' || *value == '\'';
}

static bool has_blanks(const char *value)
{
  return isspace((unsigned char)*value) || isspace((unsigned char)value[strlen(value) - 1]);
}

static int read_setting(struct reader *reader, const char *name, const char *given)
{
  int index = option_named(name, strlen(name));
  const struct setting *before = settings_find(reader->settings, name);
  if (before != NULL)
    return fail(EXIT_USAGE, "%s:%d: %s is already set in %s", reader->path, reader->line, name, before->where);
  if (strcmp(name, "nodes") == 0 && *given == '\0')
    return fail(EXIT_USAGE, "%s:%d: nodes is empty", reader->path, reader->line);
  if (is_quoted(given))
    return fail(EXIT_USAGE, "%s:%d: %s begins with a quotation mark; values stand without", reader->path, reader->line,
                name);
  char *value = completed(reader, name, given), *where = format("%s:%d", reader->path, reader->line);
  if (redlock_client_set(reader->client, name, value) != REDLOCK_OK || index < 0) {
    free(value);
    int code = fail_message(EXIT_USAGE, reader->client, where);
    free(where);
    return code;
  }
  settings_add(reader->settings, redlock_option_at(index, REDLOCK_OPTION_NAME), where, value);
  return 0;
}

static int read_line(struct reader *reader, char *line, size_t length)
{
  reader->line++;
  if (strlen(line) != length)
    return refuse_line(reader);
  if (reader->line == 1 && strncmp(line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
    line += strlen(BYTE_ORDER_MARK);
  line = trimmed(line);
  if (*line == '\0' || *line == '#')
    return 0;
  char *equals = strchr(line, '=');
  if (equals == NULL)
    return refuse_line(reader);
  *equals = '\0';
  char *name = trimmed(line);
  return is_name(name) ? read_setting(reader, name, trimmed(equals + 1)) : refuse_line(reader);
}

static int read_lines(struct reader *reader, FILE *file)
{
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  int refused = 0;
  while (!refused && (length = getline(&line, &size, file)) >= 0)
    refused = read_line(reader, line, (size_t)length);
  if (!refused && ferror(file))
    refused = fail(EXIT_USAGE, "%s cannot be read: %s", reader->path, strerror(errno));
  free(line);
  return refused;
}

/* The library shows a password as ***. */
static bool has_password(redlock_client *client)
{
  char *nodes = client_option(client, "nodes");
  bool found = strstr(nodes, ":***@") != NULL;
  free(nodes);
  return found;
}

static void warn_of_readers(const struct reader *reader, FILE *file)
{
  struct stat about;
  if (fstat(fileno(file), &about) == 0 && (about.st_mode & S_IROTH) != 0 && has_password(reader->client))
    fail(0, "warning: %s contains a password and is readable by everybody; chmod o-r %s", reader->path, reader->path);
}

static int read_file(struct args *args, const char *path, FILE *file)
{
  struct reader reader = {.settings = &args->from_file, .path = path, .client = must(redlock_client_new())};
  int refused = read_lines(&reader, file);
  if (!refused)
    warn_of_readers(&reader, file);
  redlock_client_free(reader.client);
  return refused;
}

/* Settings of a site, not of one lock: `run` gives its command REDLOCK_FENCE, for example. The library reads
 * REDLOCK_MAX_TTL_MS. */
static const char *const variables[] = {
    "nodes",       "guard",       "ttl_ms",        "wait_ms",      "key_prefix",      "user_file",  "password_file",
    "tls_ca_file", "tls_ca_path", "tls_cert_file", "tls_key_file", "tls_server_name", "tls_verify", "client_name"};

static char *variable_of(const char *option)
{
  char *name = format("REDLOCK_%s", option);
  for (char *c = name; *c != '\0'; c++)
    *c = (char)toupper((unsigned char)*c);
  return name;
}

/* A flag has the last word, also where the variable is wrong. The nodes are checked when they are set: they may contain
 * a password. */
static int read_variable(struct args *args, redlock_client *client, const char *option)
{
  char *name = variable_of(option);
  const char *value = getenv(name);
  int index = option_named(option, strlen(option)), refused = 0;
  bool is_nodes = strcmp(option, "nodes") == 0, is_flag = settings_find(&args->from_flags, option) != NULL;
  if (value == NULL || *value == '\0' || index < 0 || is_flag) {
    free(name);
    return 0;
  }
  if (!is_nodes && redlock_client_set(client, option, value) != REDLOCK_OK) {
    refused = fail_message(EXIT_USAGE, client, name);
  } else if (is_quoted(value) || (!is_nodes && has_blanks(value))) {
    refused = fail(EXIT_USAGE, "%s begins with a quotation mark, or has blanks at an end; values stand without", name);
  }
  settings_add(&args->from_environment, redlock_option_at(index, REDLOCK_OPTION_NAME), name, format("%s", value));
  return refused;
}

static int read_environment(struct args *args)
{
  redlock_client *client = must(redlock_client_new());
  int refused = 0;
  for (size_t i = 0; !refused && i < sizeof variables / sizeof *variables; i++)
    refused = read_variable(args, client, variables[i]);
  redlock_client_free(client);
  return refused;
}

/* A file that exists but cannot be read must not be ignored: with another key_prefix, for example, two programs that
 * should exclude each other would not. */
static int read_named_file(struct args *args)
{
  const char *path = args->config != NULL ? args->config : getenv("REDLOCK_CONFIG");
  bool is_named = path != NULL;
  if (!is_named)
    path = CONFIG_DEFAULT;
  if (*path == '\0')
    return 0;
  FILE *file = fopen(path, "re");
  if (file == NULL && errno == ENOENT && !is_named)
    return 0;
  if (file == NULL)
    return fail(EXIT_USAGE, "%s cannot be read: %s", path, strerror(errno));
  int refused = read_file(args, path, file);
  fclose(file);
  return refused;
}

int config_read(struct args *args)
{
  int refused = read_environment(args);
  return refused ? refused : read_named_file(args);
}

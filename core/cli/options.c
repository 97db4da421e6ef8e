/* options.c - the library's options: the values that the user has set, and where. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

int option_named(const char *name, size_t length)
{
  const char *known;
  for (int i = 0; (known = redlock_option_at(i, REDLOCK_OPTION_NAME)) != NULL; i++)
    if (strlen(known) == length && strncmp(known, name, length) == 0)
      return i;
  return -1;
}

bool option_is(int index, int field, const char *text)
{
  const char *value = redlock_option_at(index, field);
  return value != NULL && strcmp(value, text) == 0;
}

static unsigned purpose_of(int index)
{
  static const struct {
    const char *name;
    unsigned purpose;
  } purposes[] = {{"kind", KIND}, {"grant", GRANT},     {"wait", WAIT},     {"lease", LEASE},
                  {"hold", HOLD}, {"node", CONNECTION}, {"tls", CONNECTION}};
  size_t i = 0;
  while (i < sizeof purposes / sizeof *purposes && !option_is(index, REDLOCK_OPTION_PURPOSE, purposes[i].name))
    i++;
  return i < sizeof purposes / sizeof *purposes ? purposes[i].purpose : 0;
}

static bool is_among(const char *word, const char *words)
{
  size_t length = strlen(word);
  for (const char *at = words; at != NULL && (at = strstr(at, word)) != NULL; at += length)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
      return true;
  return false;
}

bool option_is_for(const struct command *command, const char *option)
{
  unsigned purpose = purpose_of(option_named(option, strlen(option)));
  return (purpose & (command->purposes | CONNECTION)) != 0 || is_among(option, command->also);
}

void settings_add(struct settings *settings, const char *option, char *where, char *value)
{
  settings->list = must(realloc(settings->list, (settings->count + 1) * sizeof *settings->list));
  settings->list[settings->count++] = (struct setting){.option = option, .where = where, .value = value};
}

const struct setting *settings_find(const struct settings *settings, const char *option)
{
  for (size_t i = settings->count; i > 0; i--)
    if (strcmp(settings->list[i - 1].option, option) == 0)
      return &settings->list[i - 1];
  return NULL;
}

void settings_free(struct settings *settings)
{
  for (size_t i = 0; i < settings->count; i++) {
    free(settings->list[i].where);
    free(settings->list[i].value);
  }
  free(settings->list);
}

enum { SOURCES = 3 };

/* Later ones win. A file named by a flag is meant for this call, unlike settings of the whole machine. */
static void sources(const struct args *args, const struct settings *list[SOURCES])
{
  bool is_named = args->config != NULL;
  list[0] = is_named ? &args->from_environment : &args->from_file;
  list[1] = is_named ? &args->from_file : &args->from_environment;
  list[2] = &args->from_flags;
}

const struct setting *setting_in_force(const struct args *args, const char *option)
{
  const struct settings *list[SOURCES];
  const struct setting *found = NULL;
  sources(args, list);
  for (int i = SOURCES; i > 0 && found == NULL; i--)
    found = settings_find(list[i - 1], option);
  return found;
}

const char *nodes_given(const struct args *args, const char **where)
{
  const struct setting *setting = setting_in_force(args, "nodes");
  bool is_flag = args->nodes != NULL || setting == NULL;
  *where = is_flag ? "--node" : setting->where;
  return is_flag ? args->nodes : setting->value;
}

static int set_nodes(redlock_client *client, const struct args *args)
{
  const char *from, *nodes = nodes_given(args, &from);
  if (nodes == NULL || *nodes == '\0')
    return fail(EXIT_USAGE, "no nodes are given; use --node redis://host:port once for each node, set "
                            "REDLOCK_NODES=redis://host:port,redis://host:port,redis://host:port, or write "
                            "nodes = URL,URL,URL in " CONFIG_DEFAULT);
  return redlock_client_set(client, "nodes", nodes) == REDLOCK_OK ? 0 : fail_message(EXIT_USAGE, client, from);
}

/* The place says option and value already. */
static int refuse_setting(const struct args *args, const struct setting *setting)
{
  int index = option_named(setting->option, strlen(setting->option));
  char *allowed = in_users_words(args, setting->option, redlock_option_at(index, REDLOCK_OPTION_RANGE_PARTS));
  int code = fail(EXIT_USAGE, "%s: allowed: %s", setting->where, allowed);
  free(allowed);
  return code;
}

static int set_all(redlock_client *client, const struct args *args, const struct settings *settings)
{
  for (size_t i = 0; i < settings->count; i++) {
    const struct setting *setting = &settings->list[i];
    bool is_set_elsewhere = strcmp(setting->option, "nodes") == 0;
    if (is_set_elsewhere || !option_is_for(args->command, setting->option))
      continue;
    if (redlock_client_set(client, setting->option, setting->value) != REDLOCK_OK)
      return refuse_setting(args, setting);
  }
  return 0;
}

int options_set(redlock_client *client, const struct args *args)
{
  int refused = set_nodes(client, args);
  const struct option_default *mine = args->command->defaults;
  for (; !refused && mine != NULL && mine->option != NULL; mine++)
    if (redlock_client_set(client, mine->option, mine->value) != REDLOCK_OK)
      refused = fail(EXIT_INTERNAL, "%s=%s was refused", mine->option, mine->value);
  const struct settings *list[SOURCES];
  sources(args, list);
  for (int i = 0; !refused && i < SOURCES; i++)
    refused = set_all(client, args, list[i]);
  return refused;
}

int refuse_options(const struct args *args, char *parts)
{
  char *words = in_users_words(args, NULL, parts);
  int code = fail(EXIT_USAGE, "%s", words);
  free(words);
  free(parts);
  return code;
}

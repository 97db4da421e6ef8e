/* flags.c - the flags of a command: a few of its own, and one for each option in the library's table. */
#include "cli.h"

#include <popt.h>
#include <stdlib.h>
#include <string.h>

/* ---- flags that no option of the library is ---- */

static int read_config(const struct flag *flag, const char *given, struct args *args)
{
  (void)flag;
  free(args->config);
  args->config = format("%s", given);
  return 0;
}

static int read_no_wait(const struct flag *flag, const char *given, struct args *args)
{
  (void)flag, (void)given;
  return flag_wait(args, "-n", "0", "");
}

/* As in other programs, -w 10 is ten seconds. */
static int read_wait_seconds(const struct flag *flag, const char *given, struct args *args)
{
  (void)flag;
  return flag_wait(args, "-w", given, "s");
}

static int read_busy_exit(const struct flag *flag, const char *given, struct args *args)
{
  (void)flag;
  size_t digits = strspn(given, "0123456789");
  bool is_number = digits > 0 && digits <= 3 && given[digits] == '\0';
  args->busy_exit = is_number ? atoi(given) : -1;
  if (is_number && args->busy_exit <= 255)
    return 0;
  return fail(EXIT_USAGE, "--busy-exit %s: not an exit status; allowed are 0 to 255", given);
}

const struct flag no_wait_flag = FLAG("no-wait", 'n', NULL, read_no_wait, "make one attempt, like --wait 0");
const struct flag wait_seconds_flag = FLAG(NULL, 'w', "SECONDS", read_wait_seconds, "like --wait, in seconds");
const struct flag busy_exit_flag =
    FLAG("busy-exit", 'E', "N", read_busy_exit, "exit with N when others hold the lock (default 75)");
const struct flag quiet_flag = FLAG_IN_ARGS("quiet", 'q', quiet, "say nothing when others hold the lock");
const struct flag verbose_flag =
    FLAG_IN_ARGS("verbose", 'v', verbose,
                 "say on standard error who holds the lock; also for how much longer, and how long it took");
const struct flag calm_flag = FLAG_IN_ARGS("quiet", 'q', calm, "print nothing if it succeeds");
const struct flag metrics_flag =
    FLAG_IN_ARGS("metrics", 0, metrics, "answer in the text format of Prometheus; exit with 0 whatever it says");

static const struct flag json_flag = FLAG_IN_ARGS("json", 0, json, "answer in JSON");
static const struct flag help_flag = FLAG_IN_ARGS("help", 'h', help, "show this help");
static const struct flag help_all_flag = FLAG_IN_ARGS("help-all", 0, help_all, "show this help with all options");
static const struct flag config_flag = FLAG(
    "config", 0, "FILE", read_config,
    "nodes and defaults from this file; without it from that in REDLOCK_CONFIG, or " CONFIG_DEFAULT " if there is one");

static const struct flag *const no_flags[] = {NULL};
static const struct flag *const common_flags[] = {&json_flag, &help_flag, &help_all_flag, &config_flag, NULL};

const struct flag *flag_own(const struct command *command, int value)
{
  const struct flag *const *mine = command->flags != NULL ? command->flags : no_flags;
  int i = value - FLAG_OWN;
  for (; i > 0 && *mine != NULL; i--)
    mine++;
  return i < 0 ? NULL : *mine != NULL ? *mine : common_flags[i];
}

bool flag_is_help(const struct poptOption *flag)
{
  return flag->longName != NULL && strncmp(flag->longName, "help", 4) == 0;
}

/* ---- one for each option in the library's table ---- */

static const char *option_default(const struct command *command, const char *option)
{
  const struct option_default *mine = command->defaults;
  while (mine != NULL && mine->option != NULL && strcmp(mine->option, option) != 0)
    mine++;
  return mine != NULL ? mine->value : NULL;
}

/* "retry_delay_ms" becomes --retry-delay, since its value names the unit. */
char *flag_name(int index, const char *prefix)
{
  char *name = format("%s%s", prefix, redlock_option_at(index, REDLOCK_OPTION_NAME));
  size_t length = strlen(name);
  if (option_is(index, REDLOCK_OPTION_UNIT, "ms") && length > 3 && strcmp(name + length - 3, "_ms") == 0)
    name[length - 3] = '\0';
  for (char *c = name; *c != '\0'; c++)
    if (*c == '_')
      *c = '-';
  return name;
}

/* "auto, push or poll" becomes auto|push|poll. */
static char *choices(const char *range)
{
  char *words = format("%s", range), *to = words;
  for (const char *from = range; *from != '\0'; from++) {
    size_t gap = strncmp(from, ", ", 2) == 0 ? 2 : strncmp(from, " or ", 4) == 0 ? 4 : 0;
    *to++ = gap ? '|' : *from;
    from += gap ? gap - 1 : 0;
  }
  *to = '\0';
  return words;
}

static char *placeholder(int index)
{
  const char *range = redlock_option_at(index, REDLOCK_OPTION_RANGE);
  if (option_is(index, REDLOCK_OPTION_UNIT, "ms"))
    return format("DURATION");
  if (!option_is(index, REDLOCK_OPTION_TYPE, "string"))
    return format("N");
  const char *end = strrchr(redlock_option_at(index, REDLOCK_OPTION_NAME), '_');
  if (end != NULL && (strcmp(end, "_file") == 0 || strcmp(end, "_path") == 0))
    return format(strcmp(end, "_file") == 0 ? "FILE" : "FOLDER");
  return strstr(range, " or ") != NULL ? choices(range) : format("TEXT");
}

char *flag_default(const struct command *command, int index)
{
  const char *value = option_default(command, redlock_option_at(index, REDLOCK_OPTION_NAME));
  if (value == NULL)
    value = redlock_option_at(index, REDLOCK_OPTION_DEFAULT);
  char *end;
  int64_t ms = strtoll(value, &end, 10);
  bool is_duration = option_is(index, REDLOCK_OPTION_UNIT, "ms") && *end == '\0' && end != value;
  return is_duration ? duration_text(ms) : format("%s", value);
}

/* "-1 without limit" is a number of milliseconds; people write forever. */
static char *help_of_option(int index)
{
  const char *help = redlock_option_at(index, REDLOCK_OPTION_HELP);
  bool is_duration = option_is(index, REDLOCK_OPTION_UNIT, "ms");
  char *text = NULL;
  for (const char *at; is_duration && (at = strstr(help, "-1 ")) != NULL; help = at + strcspn(at, ",;"))
    text = append(text, "%.*sforever: no limit", (int)(at - help), help);
  return append(text, "%s", help);
}

static char *help_text(const struct command *command, int index)
{
  char *value = flag_default(command, index);
  char *help = help_of_option(index);
  bool is_bool = option_is(index, REDLOCK_OPTION_TYPE, "bool");
  char *text = is_bool          ? format("%s (default %s)", help, strcmp(value, "true") == 0 ? "on" : "off")
               : *value == '\0' ? format("%s", help)
                                : format("%s (default %s)", help, value);
  free(help);
  free(value);
  return text;
}

static struct poptOption option_flag(const struct command *command, int index, const char *prefix)
{
  bool is_bool = option_is(index, REDLOCK_OPTION_TYPE, "bool");
  bool negated = *prefix != '\0';
  return (struct poptOption){.longName = flag_name(index, prefix),
                             .argInfo =
                                 (is_bool ? POPT_ARG_NONE : POPT_ARG_STRING) | (negated ? POPT_ARGFLAG_DOC_HIDDEN : 0),
                             .val = FLAG_OPTION + 2 * index + negated,
                             .descrip = help_text(command, index),
                             .argDescrip = is_bool ? NULL : placeholder(index)};
}

static struct poptOption nodes_flag(const char *name, int hidden)
{
  return (struct poptOption){
      .longName = format("%s", name),
      .argInfo = POPT_ARG_STRING | hidden,
      .val = FLAG_NODES,
      .descrip = format("URL of a node, once for each; without it those in REDLOCK_NODES, separated by commas"),
      .argDescrip = format("URL")};
}

static size_t add_option(struct poptOption *flags, const struct command *command, int index)
{
  if (option_is(index, REDLOCK_OPTION_TYPE, "nodes")) {
    flags[0] = nodes_flag("node", 0);
    flags[1] = nodes_flag("nodes", POPT_ARGFLAG_DOC_HIDDEN);
    return 2;
  }
  flags[0] = option_flag(command, index, "");
  if (!option_is(index, REDLOCK_OPTION_TYPE, "bool"))
    return 1;
  flags[1] = option_flag(command, index, "no_");
  return 2;
}

static int option_count(void)
{
  int count = 0;
  while (redlock_option_at(count, REDLOCK_OPTION_NAME) != NULL)
    count++;
  return count;
}

enum { OWN_MAX = 24 };

/* Its own, then those that all have. */
static size_t add_own(struct poptOption *flags, const struct command *command)
{
  const struct flag *flag;
  int count = 0;
  for (; count < OWN_MAX && (flag = flag_own(command, FLAG_OWN + count)) != NULL; count++)
    flags[count] = (struct poptOption){.longName = flag->name,
                                       .shortName = flag->letter,
                                       .argInfo = flag->value != NULL ? POPT_ARG_STRING : POPT_ARG_NONE,
                                       .val = FLAG_OWN + count,
                                       .descrip = flag->help,
                                       .argDescrip = flag->value};
  return (size_t)count;
}

struct poptOption *flags_new(const struct command *command)
{
  int options = option_count();
  struct poptOption *flags = must(calloc(2 * (size_t)options + OWN_MAX + 1, sizeof *flags));
  size_t count = add_own(flags, command);
  for (int i = 0; i < options; i++)
    if (option_is_for(command, redlock_option_at(i, REDLOCK_OPTION_NAME)))
      count += add_option(flags + count, command, i);
  return flags;
}

/* popt's list ends with a row of zeros. */
static bool is_flag(const struct poptOption *flag)
{
  return flag->longName != NULL || flag->shortName != '\0';
}

void flags_free(struct poptOption *flags)
{
  for (struct poptOption *flag = flags; is_flag(flag); flag++) {
    if (flag->val >= FLAG_OWN)
      continue;
    free((char *)flag->longName);
    free((char *)flag->descrip);
    free((char *)flag->argDescrip);
  }
  free(flags);
}

const char *flag_nearest(const struct poptOption *flags, const char *word)
{
  size_t count = 0, named = 0;
  while (is_flag(&flags[count]))
    count++;
  const char **names = must(calloc(count + 1, sizeof *names));
  for (size_t i = 0; i < count; i++)
    if (flags[i].longName != NULL)
      names[named++] = flags[i].longName;
  const char *found = nearest(word, names);
  free(names);
  return found;
}

/* flags.c - the flags of a command: a few of its own, and one for each option in the library's table. */
#include "cli.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct poptOption help_flag = {"help", 'h', POPT_ARG_NONE, NULL, FLAG_HELP, "show this help", NULL};
static const struct poptOption help_all_flag = {
    "help-all", 0, POPT_ARG_NONE, NULL, FLAG_HELP_ALL, "show this help with all options", NULL};
static const struct poptOption json_flag = {"json", 0, POPT_ARG_NONE, NULL, FLAG_JSON, "answer in JSON", NULL};
static const struct poptOption config_flag = {
    "config", 0, POPT_ARG_STRING, NULL, FLAG_CONFIG,
    "nodes and defaults from this file; without it from that in REDLOCK_CONFIG, or " CONFIG_DEFAULT " if there is one",
    "FILE"};
static const struct poptOption no_wait_flag = {"no-wait", 'n', POPT_ARG_NONE, NULL, FLAG_NO_WAIT,
                                               "make one attempt, like --wait 0", NULL};
static const struct poptOption wait_seconds_flag = {NULL, 'w', POPT_ARG_STRING, NULL, FLAG_WAIT_SECONDS,
                                                    "like --wait, in seconds", "SECONDS"};
static const struct poptOption quiet_flag = {"quiet", 'q', POPT_ARG_NONE, NULL, FLAG_QUIET,
                                             "say nothing when others hold the lock", NULL};
static const struct poptOption silent_flag = {
    "quiet", 'q', POPT_ARG_NONE, NULL, FLAG_QUIET, "print nothing, exit with 0 free, 75 held, 69 not known", NULL};
static const struct poptOption calm_flag = {"quiet", 'q', POPT_ARG_NONE, NULL, FLAG_QUIET,
                                            "print nothing if it succeeds", NULL};
static const struct poptOption verbose_flag = {
    "verbose", 'v', POPT_ARG_NONE, NULL, FLAG_VERBOSE,
    "say on standard error who holds the lock; also for how much longer, and how long it took", NULL};
static const struct poptOption force_flag = {
    "force", 0, POPT_ARG_NONE, NULL, FLAG_FORCE,
    "delete the lock whoever holds it, without a TOKEN, after it was shown and you were asked", NULL};
static const struct poptOption yes_flag = {"yes", 'y', POPT_ARG_NONE, NULL, FLAG_YES, "with --force: do not ask", NULL};
static const struct poptOption bootstrap_flags[] = {
    {"new", 0, POPT_ARG_NONE, NULL, FLAG_NEW,
     "for deployment scripts: register the nodes if all answer and none has a marker; asks nothing", NULL},
    {"yes", 'y', POPT_ARG_NONE, NULL, FLAG_YES,
     "do not ask: no lock is live (--replace: its questions). For people: a script that restarts servers undoes the "
     "guard with it", NULL},
    {"replace", 0, POPT_ARG_NONE, NULL, FLAG_REPLACE,
     "rewrite markers with another --max-ttl, of another list of nodes or of version 0.1, and leave new and "
     "quarantined nodes alone", NULL}};
static const struct poptOption watch_flag = {
    "watch", 0, POPT_ARG_NONE, NULL, FLAG_WATCH, "ask every second, until a signal comes", NULL};
static const struct poptOption metrics_flag = {
    "metrics", 0, POPT_ARG_NONE, NULL, FLAG_METRICS,
    "answer in the text format of Prometheus; exit with 0 whatever it says", NULL};
static const struct poptOption details_flag = {
    "verbose", 'v', POPT_ARG_NONE, NULL, FLAG_VERBOSE, "show all columns", NULL};
static const struct poptOption no_write_flag = {
    "no-write", 0, POPT_ARG_NONE, NULL, FLAG_NO_WRITE, "do not try whether the nodes store a key", NULL};
static const struct poptOption kinds_flag = {
    "kinds", 0, POPT_ARG_STRING, NULL, FLAG_KINDS,
    "also try what these kinds of lock need: shared, several, permits, hash; print the ACL of their user", "KIND,..."};
static const struct poptOption bench_flags[] = {
    {"for", 0, POPT_ARG_STRING, NULL, FLAG_FOR, "how long to measure (default 10s)", "DURATION"},
    {"threads", 0, POPT_ARG_STRING, NULL, FLAG_THREADS, "number of threads, each with blocking calls (default 1)", "N"},
    {"in-flight", 0, POPT_ARG_STRING, NULL, FLAG_IN_FLIGHT, "keep so many operations in flight, from one thread", "N"},
    {"resources", 0, POPT_ARG_STRING, NULL, FLAG_RESOURCES,
     "number of resources; fewer: contention (default: one for each worker)", "N"}};
static const struct poptOption limit_flag = {
    "limit", 0, POPT_ARG_STRING, NULL, FLAG_LIMIT, "list at most so many locks (default 1000)", "N"};
static const struct poptOption busy_flag = {
    "busy-exit", 'E', POPT_ARG_STRING, NULL, FLAG_BUSY_EXIT, "exit with N when others hold the lock (default 75)", "N"};
static const struct poptOption kill_flag = {
    "kill-after", 'k', POPT_ARG_STRING, NULL, FLAG_KILL_AFTER,
    "from SIGTERM to SIGKILL after a loss; both go to CMD's process group (default 5s)", "DURATION"};

static const struct poptOption keep_flag = {
    "keep", 0, POPT_ARG_STRING, NULL, FLAG_KEEP,
    "keep the lock for so long in all, if CMD succeeds; so nobody runs CMD again meanwhile, and --wait defaults to "
    "half of it at most", "DURATION"};
/* clang-format on */

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
static void put_help(FILE *out, int index)
{
  const char *help = redlock_option_at(index, REDLOCK_OPTION_HELP);
  bool is_duration = option_is(index, REDLOCK_OPTION_UNIT, "ms");
  for (const char *at; is_duration && (at = strstr(help, "-1 ")) != NULL; help = at + strcspn(at, ",;"))
    fprintf(out, "%.*sforever: no limit", (int)(at - help), help);
  fputs(help, out);
}

static char *help_of_option(int index)
{
  char *text = NULL;
  size_t size;
  FILE *out = must(open_memstream(&text, &size));
  put_help(out, index);
  return fclose(out) == 0 ? must(text) : must(NULL);
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

enum { OWN_FLAGS = 16 };

static size_t add_own(struct poptOption *flags, const struct command *command)
{
  size_t count = 0;
  bool may_be_busy = command->main == run_main || command->main == acquire_main;
  if (command->main == run_main)
    flags[count++] = keep_flag;
  if (runs_a_job(command))
    flags[count++] = kill_flag;
  if (may_be_busy) {
    flags[count++] = no_wait_flag;
    flags[count++] = wait_seconds_flag;
    flags[count++] = busy_flag;
  }
  if (may_be_busy || command->main == lead_main) {
    flags[count++] = quiet_flag;
    flags[count++] = verbose_flag;
  }
  if (command->main == status_main)
    flags[count++] = silent_flag;
  if (command->main == extend_main || command->main == expire_main || command->main == release_main)
    flags[count++] = calm_flag;
  if (command->main == release_main) {
    flags[count++] = force_flag;
    flags[count++] = yes_flag;
  }
  for (size_t i = 0; command->main == bootstrap_main && i < sizeof bootstrap_flags / sizeof *bootstrap_flags; i++)
    flags[count++] = bootstrap_flags[i];
  if (command->main == doctor_main) {
    flags[count++] = watch_flag;
    flags[count++] = no_write_flag;
    flags[count++] = kinds_flag;
    flags[count++] = details_flag;
  }
  if (command->main == ls_main)
    flags[count++] = limit_flag;
  if (command->main == doctor_main || command->main == status_main)
    flags[count++] = metrics_flag;
  for (size_t i = 0; command->main == bench_main && i < sizeof bench_flags / sizeof *bench_flags; i++)
    flags[count++] = bench_flags[i];
  flags[count++] = json_flag;
  flags[count++] = help_flag;
  flags[count++] = help_all_flag;
  flags[count++] = config_flag;
  return count;
}

struct poptOption *flags_new(const struct command *command)
{
  int options = option_count();
  struct poptOption *flags = must(calloc(2 * (size_t)options + OWN_FLAGS + 1, sizeof *flags));
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
    if (flag->val < FLAG_NODES)
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

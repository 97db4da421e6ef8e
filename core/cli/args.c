/* args.c - reads a command line. */
#include "cli.h"

#include <inttypes.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#define DURATIONS "allowed are durations such as 500ms, 30s, 2m, 1h"

struct parser {
  poptContext context;
  struct poptOption *flags;
  const char **argv;
  char *name;
};

static void add_setting(struct args *args, const char *option, const char *flag, const char *given, char *value)
{
  settings_add(&args->from_flags, option, format("%s%s%s", flag, *given ? " " : "", given), value);
}

/* A number may go without its unit, if there is one to add: behind 10m it would make 10 ms of it. */
static int read_duration(struct args *args, const char *option, const char *flag, const char *given, const char *unit)
{
  char *with_unit = format("%s%s", given, unit);
  int64_t ms = duration_parse(given);
  if (ms < -1)
    ms = duration_parse(with_unit);
  free(with_unit);
  if (ms < -1)
    return fail(EXIT_USAGE, "%s %s: not a duration; " DURATIONS, flag, given);
  add_setting(args, option, flag, given, format("%" PRId64, ms));
  return 0;
}

static int read_option(struct args *args, const struct poptOption *flag, const char *given)
{
  int index = (flag->val - FLAG_OPTION) / 2, refused = 0;
  bool negated = (flag->val - FLAG_OPTION) % 2 == 1;
  const char *option = redlock_option_at(index, REDLOCK_OPTION_NAME);
  char *name = format("--%s", flag->longName);
  if (given == NULL)
    add_setting(args, option, name, "", format(negated ? "false" : "true"));
  else if (!option_is(index, REDLOCK_OPTION_UNIT, "ms") || strcmp(given, "auto") == 0)
    add_setting(args, option, name, given, format("%s", given));
  else
    refused = read_duration(args, option, name, given, "");
  free(name);
  return refused;
}

int flag_wait(struct args *args, const char *flag, const char *given, const char *unit)
{
  return read_duration(args, "wait_ms", flag, given, unit);
}

static void *place_of(const struct flag *flag, struct args *args)
{
  return flag->to != NULL ? flag->to : (char *)args + flag->field;
}

int flag_switch(const struct flag *flag, const char *given, struct args *args)
{
  (void)given;
  *(bool *)place_of(flag, args) = true;
  return 0;
}

int flag_count(const struct flag *flag, const char *given, struct args *args)
{
  char *end;
  long value = strtol(given, &end, 10);
  bool is_allowed = *given >= '0' && *given <= '9' && *end == '\0' && value >= 1 && value <= flag->most;
  *(int *)place_of(flag, args) = (int)value;
  return is_allowed ? 0 : fail(EXIT_USAGE, "--%s %s: not a number from 1 to %d", flag->name, given, flag->most);
}

int flag_duration(const struct flag *flag, const char *given, struct args *args)
{
  int64_t ms = *(int64_t *)place_of(flag, args) = duration_parse(given);
  return ms >= 0 ? 0 : fail(EXIT_USAGE, "--%s %s: not a duration; " DURATIONS, flag->name, given);
}

static void add_nodes(struct args *args, const char *given)
{
  args->nodes = append(args->nodes, "%s%s", args->nodes != NULL ? "," : "", given);
}

static int read_flag(struct args *args, const struct poptOption *flag, const char *given)
{
  const struct flag *own = flag_own(args->command, flag->val);
  if (own != NULL)
    return own->read(own, given, args);
  if (flag->val != FLAG_NODES)
    return read_option(args, flag, given);
  add_nodes(args, given);
  return 0;
}

static int refuse_flag(const struct parser *parser, int error)
{
  char *given = format("%s", poptBadOption(parser->context, POPT_BADOPTION_NOALIAS));
  given[strcspn(given, "=")] = '\0';
  const char *known = flag_nearest(parser->flags, given + strspn(given, "-"));
  if (error == POPT_ERROR_NOARG)
    fail(EXIT_USAGE, "%s: its value is missing", given);
  else if (error != POPT_ERROR_BADOPT)
    fail(EXIT_USAGE, "%s: %s", given, poptStrerror(error));
  else if (known == NULL)
    fail(EXIT_USAGE, "%s has no option %s; see --help", parser->name, given);
  else
    fail(EXIT_USAGE, "%s has no option %s; did you mean --%s?", parser->name, given, known);
  free(given);
  return EXIT_USAGE;
}

static const struct poptOption *flag_of(const struct parser *parser, int value)
{
  const struct poptOption *flag = parser->flags;
  while (flag->val != value)
    flag++;
  return flag;
}

static int read_flags(struct args *args, const struct parser *parser)
{
  int value, refused = 0;
  while (!refused && !args->help && !args->help_all && (value = poptGetNextOpt(parser->context)) != -1) {
    if (value < -1)
      return refuse_flag(parser, value);
    char *given = poptGetOptArg(parser->context);
    refused = read_flag(args, flag_of(parser, value), given);
    free(given);
  }
  return refused;
}

static int count_of(const char *const *words)
{
  int count = 0;
  while (words != NULL && words[count] != NULL)
    count++;
  return count;
}

static int refuse_missing(const struct args *args, const struct parser *parser, const char *what)
{
  return fail(EXIT_USAGE, "%s is missing; usage: %s %s", what, parser->name, args->command->operands);
}

/* A resource that begins with a dash goes after a `--` of its own: redlock run -- -x -- CMD. */
static int read_job(struct args *args, const struct parser *parser)
{
  char **job = args->job;
  if (args->resource == NULL && job != NULL && job[0] != NULL && job[1] != NULL && strcmp(job[1], "--") == 0) {
    args->resource = job[0];
    args->job = job = job + 2;
  }
  if (args->resource == NULL)
    return refuse_missing(args, parser, "RESOURCE");
  if (args->listens)
    return job == NULL ? 0 : fail(EXIT_USAGE, "--listen runs no CMD; usage: %s --listen RESOURCE", parser->name);
  if (job == NULL)
    return refuse_missing(args, parser, "-- before CMD");
  return job[0] != NULL ? 0 : refuse_missing(args, parser, "CMD");
}

/* Of RESOURCE... the first has the operands that are too many for a command of one. */
static int take_more(struct args *args, const char *const *operands, int count, int wanted)
{
  bool takes_several = strstr(args->command->operands, "RESOURCE...") != NULL && !args->force;
  if (!takes_several || count <= wanted)
    return 0;
  args->more = operands + 1;
  args->more_count = count - wanted;
  return args->more_count;
}

static bool runs_a_job(const struct command *command)
{
  return strstr(command->operands, "-- CMD") != NULL;
}

static int read_operands(struct args *args, const struct parser *parser)
{
  const char *const *operands = (const char *const *)poptGetArgs(parser->context);
  bool wants_token = !args->force && strstr(args->command->operands, "TOKEN") != NULL;
  bool wants_none = args->command->operands[0] != '\0' && strstr(args->command->operands, "RESOURCE") == NULL;
  bool wants_prefix = strstr(args->command->operands, "PATTERN") != NULL;
  int count = count_of(operands), wanted = wants_token ? 2 : wants_prefix || !wants_none;
  wanted += take_more(args, operands, count, wanted);
  if (count > wanted)
    return fail(EXIT_USAGE, "unexpected argument '%s'; usage: %s %s", operands[wanted], parser->name,
                args->command->operands);
  if (count > 0 || wants_none)
    args->resource = wants_none ? args->command->name : operands[0];
  if (wants_prefix && count > 0)
    args->prefix = operands[0];
  if (runs_a_job(args->command))
    return read_job(args, parser);
  if (count < wanted && !wants_prefix)
    return refuse_missing(args, parser, count == 0 ? "RESOURCE" : "TOKEN");
  if (wants_token)
    args->token = operands[count - 1];
  return 0;
}

/* Cuts CMD off at the `--` in front of it, so that its own flags are not read. */
static void cut_job(struct args *args, int *argc, char **argv)
{
  int cut = 0;
  while (cut < *argc && strcmp(argv[cut], "--") != 0)
    cut++;
  if (cut == *argc)
    return;
  args->job = argv + cut + 1;
  *argc = cut;
}

/* As a shell reads it back. */
static char *quoted(const char *word)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";
  if (*word != '\0' && word[strspn(word, plain)] == '\0')
    return format("%s", word);
  char *text = format("'");
  for (; *word != '\0'; word++)
    text = append(text, "%s", *word == '\'' ? "'\\''" : (char[]){*word, '\0'});
  return append(text, "'");
}

/* The line to type, where RESOURCE is word number `resource` of the command line. */
static int refuse_without_dashes(const struct parser *parser, int argc, char **argv, int resource)
{
  char *line = format("%s", parser->name);
  for (int i = 0; i < argc; i++) {
    char *word = quoted(argv[i]);
    line = append(line, " %s%s", word, i == resource ? " --" : "");
    free(word);
  }
  int code = fail(EXIT_USAGE, "-- before CMD is missing; type: %s", line);
  free(line);
  return code;
}

/* `redlock run foo ls -l`: -l is no option of redlock, so this is found before the flags are read. */
static int check_dashes(const struct parser *parser, int argc, char **argv)
{
  int last, count;
  poptContext context =
      must(poptGetContext(parser->name, argc + 1, parser->argv, parser->flags, POPT_CONTEXT_POSIXMEHARDER));
  while ((last = poptGetNextOpt(context)) > 0 && !flag_is_help(flag_of(parser, last)))
    free(poptGetOptArg(context));
  count = last == -1 ? count_of((const char *const *)poptGetArgs(context)) : 0;
  poptFreeContext(context);
  return count > 1 ? refuse_without_dashes(parser, argc, argv, argc - count) : 0;
}

static struct parser *parser_new(const struct command *command, int argc, char **argv)
{
  struct parser *parser = must(calloc(1, sizeof *parser));
  parser->name = format("redlock %s", command->name);
  parser->argv = must(calloc((size_t)argc + 2, sizeof *parser->argv));
  parser->argv[0] = parser->name;
  for (int i = 0; i < argc; i++)
    parser->argv[i + 1] = argv[i];
  parser->flags = flags_new(command);
  parser->context = must(poptGetContext(parser->name, argc + 1, parser->argv, parser->flags, 0));
  return parser;
}

int args_parse(struct args *args, const struct command *command, int argc, char **argv, bool *done)
{
  *args = (struct args){.command = command, .busy_exit = EXIT_BUSY};
  *done = false;
  if (runs_a_job(command))
    cut_job(args, &argc, argv);
  struct parser *parser = parser_new(command, argc, argv);
  args->parser = parser;
  int refused = runs_a_job(command) && args->job == NULL ? check_dashes(parser, argc, argv) : 0;
  if (!refused)
    refused = read_flags(args, parser);
  *done = args->help || args->help_all;
  if (*done)
    help_command(command, parser->flags, args->help_all);
  else if (!refused)
    refused = read_operands(args, parser);
  if (!*done && !refused)
    refused = config_read(args);
  if (!refused && !*done && command->check != NULL)
    refused = command->check(args);
  return refused;
}

void args_free(struct args *args)
{
  struct parser *parser = args->parser;
  settings_free(&args->from_file);
  settings_free(&args->from_environment);
  settings_free(&args->from_flags);
  free(args->config);
  free(args->nodes);
  if (parser == NULL)
    return;
  poptFreeContext(parser->context);
  flags_free(parser->flags);
  free(parser->argv);
  free(parser->name);
  free(parser);
}

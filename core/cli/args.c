/* args.c - reads a command line. */
#include "cli.h"

#include <inttypes.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DURATIONS "allowed are durations such as 500ms, 30s, 2m, 1h"

struct parser {
  poptContext context;
  struct poptOption *flags;
  const char **argv;
  char *name;
};

static const char *flag_of(const struct parser *parser, int value)
{
  const struct poptOption *flag = parser->flags;
  while (flag->val != value)
    flag++;
  return flag->longName;
}

static void add_setting(struct args *args, const char *option, const char *flag, const char *given, char *value)
{
  settings_add(&args->from_flags, option, format("%s%s%s", flag, *given ? " " : "", given), value);
}

static int read_duration(struct args *args, const char *option, const char *flag, const char *given)
{
  int64_t ms = duration_parse(given);
  if (ms < -1)
    return fail(EXIT_USAGE, "%s %s: not a duration; " DURATIONS, flag, given);
  add_setting(args, option, flag, given, format("%" PRId64, ms));
  return 0;
}

static int read_option(struct args *args, const struct parser *parser, int value, const char *given)
{
  int index = (value - FLAG_OPTION) / 2, refused = 0;
  bool negated = (value - FLAG_OPTION) % 2 == 1;
  const char *option = redlock_option_at(index, REDLOCK_OPTION_NAME);
  char *flag = format("--%s", flag_of(parser, value));
  if (given == NULL)
    add_setting(args, option, flag, "", format(negated ? "false" : "true"));
  else if (!option_is(index, REDLOCK_OPTION_UNIT, "ms") || strcmp(given, "auto") == 0)
    add_setting(args, option, flag, given, format("%s", given));
  else
    refused = read_duration(args, option, flag, given);
  free(flag);
  return refused;
}

/* As in other programs, -w 10 is ten seconds. */
static int read_wait_seconds(struct args *args, const char *given)
{
  char *seconds = format("%ss", given);
  int64_t ms = duration_parse(seconds);
  free(seconds);
  if (ms < 0)
    return read_duration(args, "wait_ms", "-w", given);
  add_setting(args, "wait_ms", "-w", given, format("%" PRId64, ms));
  return 0;
}

static int read_busy_exit(struct args *args, const char *given)
{
  size_t digits = strspn(given, "0123456789");
  bool is_number = digits > 0 && digits <= 3 && given[digits] == '\0';
  args->busy_exit = is_number ? atoi(given) : -1;
  if (is_number && args->busy_exit <= 255)
    return 0;
  return fail(EXIT_USAGE, "--busy-exit %s: not an exit status; allowed are 0 to 255", given);
}

static int read_count(int *count, const char *flag, const char *given, int most)
{
  char *end;
  long value = strtol(given, &end, 10);
  bool is_allowed = *given >= '0' && *given <= '9' && *end == '\0' && value >= 1 && value <= most;
  *count = (int)value;
  return is_allowed ? 0 : fail(EXIT_USAGE, "%s %s: not a number from 1 to %d", flag, given, most);
}

/* One resource for each worker, so that none waits. */
static int check_bench(struct args *args)
{
  if (args->threads && args->in_flight)
    return fail(EXIT_USAGE, "--threads and --in-flight are alternatives: operations are blocking or started");
  if (args->for_ms == 0)
    return fail(EXIT_USAGE, "--for 0: must be longer than 0");
  args->threads = args->threads || args->in_flight ? args->threads : 1;
  if (args->resources == 0)
    args->resources = args->threads + args->in_flight;
  return 0;
}

static int check_doctor(const struct args *args)
{
  if (args->kinds && args->no_write)
    return fail(EXIT_USAGE, "--kinds tries commands on a key: not allowed with --no-write");
  return 0;
}

static int read_time(int64_t *time_ms, const char *flag, const char *given)
{
  *time_ms = duration_parse(given);
  return *time_ms >= 0 ? 0 : fail(EXIT_USAGE, "%s %s: not a duration; " DURATIONS, flag, given);
}

static void add_nodes(struct args *args, const char *given)
{
  char *before = args->nodes;
  args->nodes = before == NULL ? format("%s", given) : format("%s,%s", before, given);
  free(before);
}

static int set_config(struct args *args, const char *given)
{
  free(args->config);
  args->config = format("%s", given);
  return 0;
}

static int read_flag(struct args *args, const struct parser *parser, int value, const char *given)
{
  switch (value) {
  case FLAG_JSON: args->json = true; return 0;
  case FLAG_QUIET: args->quiet = true; return 0;
  case FLAG_VERBOSE: args->verbose = true; return 0;
  case FLAG_FORCE: args->force = true; return 0;
  case FLAG_YES: args->yes = true; return 0;
  case FLAG_NEW: args->only_new = true; return 0;
  case FLAG_REPLACE: args->replace = true; return 0;
  case FLAG_WATCH: args->watch = true; return 0;
  case FLAG_METRICS: args->metrics = true; return 0;
  case FLAG_NO_WRITE: args->no_write = true; return 0;
  case FLAG_KINDS: return kinds_read(&args->kinds, given);
  case FLAG_THREADS: return read_count(&args->threads, "--threads", given, 10000);
  case FLAG_IN_FLIGHT: return read_count(&args->in_flight, "--in-flight", given, 10000);
  case FLAG_RESOURCES: return read_count(&args->resources, "--resources", given, 10000);
  case FLAG_LIMIT: return read_count(&args->limit, "--limit", given, 100000);
  case FLAG_FOR: return read_time(&args->for_ms, "--for", given);
  case FLAG_CONFIG: return set_config(args, given);
  case FLAG_BUSY_EXIT: return read_busy_exit(args, given);
  case FLAG_KILL_AFTER: return read_time(&args->kill_after_ms, "--kill-after", given);
  case FLAG_KEEP: return read_time(&args->keep_ms, "--keep", given);
  case FLAG_NO_WAIT: return read_duration(args, "wait_ms", "-n", "0");
  case FLAG_WAIT_SECONDS: return read_wait_seconds(args, given);
  case FLAG_NODES: add_nodes(args, given); return 0;
  default: return read_option(args, parser, value, given);
  }
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

static int read_flags(struct args *args, const struct parser *parser, bool *done)
{
  int value;
  while ((value = poptGetNextOpt(parser->context)) > 0) {
    if (value == FLAG_HELP || value == FLAG_HELP_ALL) {
      args->help_all = value == FLAG_HELP_ALL;
      *done = true;
      return 0;
    }
    char *given = poptGetOptArg(parser->context);
    int refused = read_flag(args, parser, value, given);
    free(given);
    if (refused)
      return refused;
  }
  return value == -1 ? 0 : refuse_flag(parser, value);
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

static int read_operands(struct args *args, const struct parser *parser)
{
  const char *const *operands = (const char *const *)poptGetArgs(parser->context);
  bool wants_token = !args->force && strstr(args->command->operands, "TOKEN") != NULL;
  bool wants_none = args->command->operands[0] != '\0' && strstr(args->command->operands, "RESOURCE") == NULL;
  bool wants_prefix = strstr(args->command->operands, "PREFIX") != NULL;
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

bool runs_a_job(const struct command *command)
{
  return command->main == run_main || command->main == lead_main;
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
  char *text = NULL;
  size_t size;
  if (*word != '\0' && word[strspn(word, plain)] == '\0')
    return format("%s", word);
  FILE *out = must(open_memstream(&text, &size));
  putc('\'', out);
  for (; *word != '\0'; word++)
    fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
  putc('\'', out);
  return fclose(out) == 0 ? must(text) : must(NULL);
}

/* The line to type, where RESOURCE is word number `resource` of the command line. */
static int refuse_without_dashes(const struct parser *parser, int argc, char **argv, int resource)
{
  char *line = format("%s", parser->name);
  for (int i = 0; i < argc; i++) {
    char *word = quoted(argv[i]), *longer = format("%s %s%s", line, word, i == resource ? " --" : "");
    free(word);
    free(line);
    line = longer;
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
  while ((last = poptGetNextOpt(context)) > 0 && last != FLAG_HELP && last != FLAG_HELP_ALL)
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

/* A host that waits for others for longer than they keep the lock would run CMD again. With no wait at all, hosts
 * that ask at the same moment may keep each other from a majority, and no host would take over from a CMD that
 * fails. */
static void wait_less_than_it_is_kept(struct args *args)
{
  bool is_chosen = setting_in_force(args, "wait_ms") != NULL;
  args->busy_wait_ms = args->keep_ms > 0 && !is_chosen ? (args->keep_ms + 1) / 2 : 0;
}

int args_parse(struct args *args, const struct command *command, int argc, char **argv, bool *done)
{
  *args =
      (struct args){.command = command, .kill_after_ms = 5000, .busy_exit = EXIT_BUSY, .for_ms = 10000, .limit = 1000};
  *done = false;
  if (runs_a_job(command))
    cut_job(args, &argc, argv);
  struct parser *parser = parser_new(command, argc, argv);
  args->parser = parser;
  int refused = runs_a_job(command) && args->job == NULL ? check_dashes(parser, argc, argv) : 0;
  if (!refused)
    refused = read_flags(args, parser, done);
  if (*done)
    help_command(command, parser->flags, args->help_all);
  else if (!refused)
    refused = read_operands(args, parser);
  if (!*done && !refused)
    refused = config_read(args);
  if (!refused && command->main == bench_main)
    refused = check_bench(args);
  if (!refused && command->main == doctor_main)
    refused = check_doctor(args);
  if (!refused)
    wait_less_than_it_is_kept(args);
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

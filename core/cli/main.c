/* main.c - redlock COMMAND ...: locks over N independent Redis or Valkey nodes, for the shell. */
#include "cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In the order of the overview. */
#define COMMANDS(X)                                                                                                    \
  X(run)                                                                                                               \
  X(lock) X(lead) X(acquire) X(extend) X(expire) X(release) X(status) X(ls) X(top) X(doctor) X(bench) X(bootstrap)

#define DECLARE(name) extern const struct command name##_command;
COMMANDS(DECLARE)

#define ADDRESS(name) &name##_command,
const struct command *const commands[] = {COMMANDS(ADDRESS) NULL};

static const struct command *command_named(const char *name)
{
  const struct command *const *command = commands;
  while (*command != NULL && strcmp((*command)->name, name) != 0)
    command++;
  return *command;
}

static int refuse_word(const char *what, const char *name)
{
  const char *names[sizeof commands / sizeof commands[0]];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    names[i] = commands[i] != NULL ? commands[i]->name : NULL;
  const char *known = nearest(name, names);
  if (known == NULL)
    return fail(EXIT_USAGE, "there is no %s '%s'; see redlock --help", what, name);
  return fail(EXIT_USAGE, "there is no %s '%s'; did you mean %s?", what, name, known);
}

static int refuse_option(int argc, char **argv)
{
  const char *command = "COMMAND";
  for (int i = argc - 1; i > 1; i--)
    if (command_named(argv[i]) != NULL)
      command = argv[i];
  return fail(EXIT_USAGE, "options follow the command; type: redlock %s %.*s ...", command, (int)strcspn(argv[1], "="),
              argv[1]);
}

/* The command line may have been refused before this flag. Words behind `--` are not for redlock. */
static bool wants_json(int argc, char **argv)
{
  for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--json") == 0)
      return true;
  return false;
}

static int run(const struct args *args)
{
  if (args->command->main != NULL)
    return args->command->main(args);
  struct session session;
  int code = session_open(&session, args);
  if (code == 0)
    code = args->command->run(&session);
  return session_close(&session, code);
}

static int execute(const struct command *command, int argc, char **argv)
{
  struct args args;
  bool done;
  int code = args_parse(&args, command, argc, argv, &done);
  if (code == 0)
    code = done ? flush_answer() : run(&args);
  args_free(&args);
  return wants_json(argc, argv) ? report_refusal(code) : code;
}

static int help_of(const char *name)
{
  const struct command *command = command_named(name);
  if (command != NULL)
    return execute(command, 1, (char *[]){"--help", NULL});
  return help_topic(name) ? flush_answer() : refuse_word("command or topic", name);
}

static bool is_among(const char *word, const char *const *words)
{
  while (*words != NULL && strcmp(*words, word) != 0)
    words++;
  return *words != NULL;
}

static int print_version(void)
{
  printf("redlock %s\n", redlock_version());
  return flush_answer();
}

/* Our descriptors must not take the place of a closed standard stream; using such a stream still fails. */
static void reserve_standard_streams(void)
{
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) {
    bool is_input = fcntl(STDIN_FILENO, F_GETFD) < 0;
    fd = open("/dev/null", (is_input ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
  if (fd >= 0)
    close(fd);
}

int main(int argc, char **argv)
{
  reserve_standard_streams();
  if (argc < 2)
    return fail(EXIT_USAGE, "a COMMAND is missing, such as run or status; see redlock --help");
  const char *first = argv[1];
  if (is_among(first, (const char *[]){"--help", "-h", "help", NULL}))
    return argc > 2 ? help_of(argv[2]) : help_overview();
  if (is_among(first, (const char *[]){"--version", "-V", "version", NULL}))
    return print_version();
  const struct command *command = command_named(first);
  if (command != NULL)
    return execute(command, argc - 2, argv + 2);
  int code = *first == '-' ? refuse_option(argc, argv) : refuse_word("command", first);
  return wants_json(argc - 1, argv + 1) ? report_refusal(code) : code;
}

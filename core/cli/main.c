/* main.c - redlock COMMAND ...: locks over N independent Redis or Valkey nodes, for the shell. */
#include "cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS "40000" /* it outlives a quarantine by the default of max_ttl_ms */

/* clang-format off */
/* Options of the library by purpose: a command lacks those that make no sense there. */
#define OF_A_HOLD "reentrant", "renew", "max_extensions", "max_hold_ms", "strict_release"
#define OF_A_WAIT "wait_ms", "retry_count", "retry_delay_ms", "retry_jitter", "queue", "wake"
#define OF_A_GRANT "fence", "min_validity_ms"
#define OF_A_LEASE "ttl_ms", "drift_factor"

static const char
  *const without_for_run[] = {"renew", "reentrant", "max_extensions", NULL},
  *const without_for_lead[] = {"renew", "reentrant", "max_extensions", "fence", "shared", "permits", "slot", "layout",
                               "wait_ms", "retry_count", NULL},
  *const without_for_acquire[] = {OF_A_HOLD, NULL},
  *const without_for_extend[] = {OF_A_HOLD, OF_A_WAIT, "fence", NULL},
  *const without_for_release[] = {OF_A_HOLD, OF_A_WAIT, OF_A_GRANT, OF_A_LEASE, "outage_wait_ms", "guard", "max_ttl_ms",
                                  NULL},
  *const without_for_status[] = {OF_A_HOLD, OF_A_WAIT, OF_A_GRANT, OF_A_LEASE, "outage_wait_ms", "guard", "max_ttl_ms",
                                 "shared", "layout", NULL},
  *const without_for_ls[] = {OF_A_HOLD, OF_A_WAIT, OF_A_GRANT, OF_A_LEASE, "outage_wait_ms", "guard", "max_ttl_ms",
                             "shared", "permits", "slot", "layout", NULL},
  *const without_for_bootstrap[] = {OF_A_HOLD, OF_A_WAIT, OF_A_GRANT, OF_A_LEASE, "outage_wait_ms", "guard", "shared",
                                    "permits", "slot", "layout", NULL},
  *const without_for_doctor[] = {OF_A_HOLD, OF_A_WAIT, OF_A_GRANT, "outage_wait_ms", "shared", "permits", "slot",
                                 "layout", "holder_info", NULL};

/* Commands that grant no lock run without the guard: they write no marker, and serve nodes of any max_ttl_ms. status
 * waits for every node, so one that hangs costs no more than a second. */
static const struct option_default
  defaults_of_run[] = {{"renew", "true"}, {"max_hold_ms", "-1"}, {"wait_ms", WAIT_MS}, {.option = NULL}},
  defaults_of_lead[] = {{"renew", "true"}, {"fence", "true"}, {"max_hold_ms", "-1"}, {"wait_ms", "-1"},
                        {"outage_wait_ms", "-1"}, {.option = NULL}},
  defaults_of_acquire[] = {{"wait_ms", WAIT_MS}, {.option = NULL}},
  defaults_of_release[] = {{"guard", "off"}, {.option = NULL}},
  defaults_of_status[] = {{"connect_timeout_ms", "1000"}, {"guard", "off"}, {.option = NULL}},
  defaults_of_doctor[] = {{"connect_timeout_ms", "1000"}, {"holder_info", "false"}, {.option = NULL}};
/* clang-format on */

static const struct command commands[] = {
    {"run", "[OPTION...] RESOURCE... -- CMD [ARGUMENT...]",
     "Acquires the lock, of several RESOURCEs all or none, renews it while CMD runs and ends CMD's process group if it "
     "is lost.\n"
     "CMD has REDLOCK_RESOURCE, REDLOCK_TOKEN, REDLOCK_FENCE in its environment.\n"
     "Exits with CMD's status, or 75 others hold the lock, 69 no quorum, 78 nodes refuse, 76 it was lost, 126 or 127 "
     "CMD "
     "cannot be run, 64 usage, 70 internal.",
     run_main, without_for_run, defaults_of_run},
    {"lead", "[OPTION...] RESOURCE -- CMD [ARGUMENT...]",
     "Stands by until it leads RESOURCE, which one of any number of candidates does at a time; then runs CMD.\n"
     "If the lock is lost it ends CMD's process group, waits for its end and stands by again. If CMD ends by itself, "
     "another candidate leads. REDLOCK_FENCE in CMD's environment is the term, larger than that of any leader "
     "before.\n"
     "Exits with CMD's status, or 78 nodes refuse by configuration, 126 CMD cannot be run, 127 CMD not found, 64 "
     "usage, 70 internal.",
     lead_main, without_for_lead, defaults_of_lead},
    {"acquire", "[OPTION...] RESOURCE...",
     "Acquires the lock, prints its token and leaves it in place until its TTL ends. With --fence the number follows.",
     acquire_main, without_for_acquire, defaults_of_acquire},
    {"extend", "[OPTION...] RESOURCE... TOKEN",
     "Extends the lock that has this token to --ttl from now. Never shortens it: `redlock expire` does.", extend_main,
     without_for_extend, NULL},
    {"expire", "[OPTION...] RESOURCE... TOKEN",
     "Sets the lease of the lock that has this token to --ttl from now, longer or shorter.", expire_main,
     without_for_extend, NULL},
    {"release", "[OPTION...] RESOURCE... TOKEN",
     "Releases the lock that has this token; exits with 0 even if it was already gone.\n"
     "`redlock release --force RESOURCE` deletes it, whoever holds it; with --permits, the permit --slot or all.",
     release_main, without_for_release, defaults_of_release},
    {"status", "[OPTION...] RESOURCE...",
     "Shows what every node knows of the lock, without changing it.\n"
     "With --permits n, who holds each of them, unless --slot names one.",
     status_main, without_for_status, defaults_of_status},
    {"ls", "[OPTION...] [PREFIX]",
     "Lists the locks whose names begin with PREFIX: on how many nodes, for how much longer, and who holds them.\n"
     "Without PREFIX, all behind the key prefix, which must be set then. Goes through all keys of every node (SCAN), "
     "with pauses; the user needs +scan.\nExits with 0 if the list is whole, 69 or 78 if too few nodes could be "
     "scanned.",
     ls_main, without_for_ls, defaults_of_status},
    {"bootstrap", "[OPTION...]",
     "Ends the wait of new nodes: asserts that no lock is live there, so that the restart guard lets them vote at "
     "once. Or, with --replace, changes the number and the list in their markers, and nothing else.\n"
     "Exits with 0 if that is done (--new: if a majority votes or will), 1 if you have declined, 69 if some did not "
     "answer, 78 if some were left alone.",
     bootstrap_main, without_for_bootstrap, NULL},
    {"doctor", "[OPTION...]",
     "Checks every node: would it grant a lock, and if not, why, and how to fix it?\n"
     "Stores one key on each node and deletes it again, unless --no-write is given. With --kinds it also tries what "
     "these kinds of lock need, and prints the ACL of their user.\n"
     "Exits with 0 if all would, with 78 if one is refused because of its configuration, otherwise with 69; with "
     "--metrics 0 if they were printed.",
     doctor_main, without_for_doctor, defaults_of_doctor},
    {"bench", "[OPTION...]",
     "Acquires and releases locks on the nodes as fast as it can, and reports cycles per second and their times.\n"
     "Its keys are redlock-bench:PID:N, behind the key prefix. It loads the nodes: not for production at peak "
     "hours.",
     bench_main, without_for_acquire, NULL},
    {.name = NULL}};

static const struct command *command_named(const char *name)
{
  for (const struct command *command = commands; command->name != NULL; command++)
    if (strcmp(command->name, name) == 0)
      return command;
  return NULL;
}

static int refuse_command(const char *name)
{
  const char *names[sizeof commands / sizeof commands[0]];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    names[i] = commands[i].name;
  const char *known = nearest(name, names);
  if (known == NULL)
    return fail(EXIT_USAGE, "there is no command '%s'; see redlock --help", name);
  return fail(EXIT_USAGE, "there is no command '%s'; did you mean %s?", name, known);
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

static int run_command(const struct command *command, int argc, char **argv)
{
  struct args args;
  bool done;
  int code = args_parse(&args, command, argc, argv, &done);
  if (code == 0 && !done)
    code = command->main(&args);
  args_free(&args);
  return wants_json(argc, argv) ? report_refusal(code) : code;
}

static int help_of(const char *name)
{
  const struct command *command = command_named(name);
  return command != NULL ? run_command(command, 1, (char *[]){"--help", NULL}) : refuse_command(name);
}

static bool is_among(const char *word, const char *const *words)
{
  while (*words != NULL && strcmp(*words, word) != 0)
    words++;
  return *words != NULL;
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
    return printf("redlock %s\n", redlock_version()) < 0;
  const struct command *command = command_named(first);
  if (command != NULL)
    return run_command(command, argc - 2, argv + 2);
  int code = *first == '-' ? refuse_option(argc, argv) : refuse_command(first);
  return wants_json(argc - 1, argv + 1) ? report_refusal(code) : code;
}

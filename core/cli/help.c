/* help.c - redlock --help, and that of each command. */
#include "cli.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layout ---- */

enum { LEFT = 32, LEFT_BRIEF = 30, LEFT_NARROW = 8, NARROW = 60, WIDTH_MIN = 30, WIDTH_MAX = 110 };

static int terminal_width(void)
{
  int columns = terminal_columns(NULL), width = columns > 0 ? columns : 80;
  return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* Words in a column from left to width. */
static void wrap(const char *text, size_t size, int left, int width)
{
  int column = left;
  for (const char *end = text + size; text < end;) {
    int length = (int)strcspn(text, " \n");
    if (column > left && column + 1 + length > width) {
      printf("\n%*s", left, "");
      column = left;
    }
    column += printf("%s%.*s", column > left ? " " : "", length, text);
    text += length;
    text += strspn(text, " \n");
  }
  putchar('\n');
}

void print_wrapped(const char *text, int left)
{
  wrap(text, strlen(text), left, terminal_width());
}

/* Each line of a text, wrapped. */
static void print_lines(const char *text)
{
  for (int width = terminal_width(); *text != '\0';) {
    size_t size = strcspn(text, "\n");
    wrap(text, size, 0, width);
    text += size + (text[size] != '\0');
  }
}

/* ---- all commands ---- */

int help_overview(void)
{
  const char *group = "";
  puts("Usage: redlock COMMAND [OPTION...] RESOURCE ...\n\nLocks over N independent Redis or Valkey nodes.");
  for (const struct command *const *command = commands; *command != NULL; command++) {
    if (strcmp(group, (*command)->group) != 0)
      printf("\n%s:\n", group = (*command)->group);
    print_wrapped((*command)->line, printf("  redlock %-10s ", (*command)->name));
  }
  print_wrapped("explain a command, an option or a reason", printf("  redlock %-10s ", "help"));
  puts("\nExample, on every host:\n"
       "    export REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3\n"
       "    redlock run --wait forever import -- ./import.sh\n");
  print_lines(
      "The nodes are given by --node URL, once for each, by REDLOCK_NODES, or by a line nodes = URL,URL,URL in the "
      "file that --config or REDLOCK_CONFIG names, or in " CONFIG_DEFAULT ".\n"
      "\n"
      "Exit status: 0 done, 75 others hold the lock, 69 too few nodes answered, 78 nodes refuse by configuration, "
      "76 the lock was lost, 64 usage, 70 the system refused something; of run: that of its command.\n"
      "\n"
      "`redlock help COMMAND` or `redlock COMMAND --help` shows its options, --help-all all of them; `redlock help "
      "TOPIC` an option, those for tls or wait, a reason that doctor names, or the ACL (acl); `redlock -V` the "
      "version, `man "
      "redlock` the rest.");
  return flush_answer();
}

/* ---- the options of a command ---- */

/* The first has a command's own flags, and the options that most locks need. */
static const struct {
  const char *title, *purposes;
} groups[] = {{"Options", ""},
              {"Kinds of lock", "kind"},
              {"Nodes", "node"},
              {"TLS", "tls"},
              {"Waiting and fencing", "wait grant"},
              {"Leases", "lease hold"}};

enum { GROUPS = sizeof groups / sizeof *groups };

static int group_of(const struct poptOption *flag)
{
  static const char *const first[] = {"node", "nodes", "ttl", "wait"};
  int group = GROUPS - 1;
  if (flag->val >= FLAG_OWN)
    return 0;
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    if (strcmp(flag->longName, first[i]) == 0)
      return 0;
  const char *purpose = redlock_option_at((flag->val - FLAG_OPTION) / 2, REDLOCK_OPTION_PURPOSE);
  while (group > 0 && strstr(groups[group].purposes, purpose) == NULL)
    group--;
  return group;
}

static bool is_shown(const struct poptOption *flag)
{
  return (flag->argInfo & POPT_ARGFLAG_DOC_HIDDEN) == 0;
}

static char *flag_words(const struct poptOption *flag)
{
  bool is_bool = flag->val < FLAG_OWN && flag->argDescrip == NULL;
  char *first =
      flag->shortName != '\0' ? format("-%c%s", flag->shortName, flag->longName != NULL ? ", " : "") : format("    ");
  char *words = flag->longName == NULL
                    ? format("  %s %s", first, flag->argDescrip)
                    : format("  %s--%s%s%s%s%s", first, flag->longName, flag->argDescrip != NULL ? "=" : "",
                             flag->argDescrip != NULL ? flag->argDescrip : "", is_bool ? ", --no-" : "",
                             is_bool ? flag->longName : "");
  free(first);
  return words;
}

/* What follows the first semicolon is left out, and a default that does not fit. Free it. */
static char *brief(const char *text, int room)
{
  const char *rest = strstr(text, "; "), *value = strstr(text, " (default ");
  if (rest == NULL)
    return format("%s", text);
  int length = (int)(rest - text);
  bool fits = value != NULL && length + (int)strlen(value) <= room;
  return format("%.*s%s", length, text, fits ? value : "");
}

static void print_flag(const struct poptOption *flag, int width, bool all)
{
  int left = width < NARROW ? LEFT_NARROW : all ? LEFT : LEFT_BRIEF;
  char *words = flag_words(flag), *help = all ? format("%s", flag->descrip) : brief(flag->descrip, width - left);
  if ((int)strlen(words) + 2 > left)
    printf("%s\n%*s", words, left, "");
  else
    printf("%-*s", left, words);
  wrap(help, strlen(help), left, width);
  free(words);
  free(help);
}

/* The brief list fits a screen: it leaves out what it is itself, and other ways to say the same. */
static bool is_listed(const struct poptOption *flag, bool all)
{
  return is_shown(flag) && (all || (flag->longName != NULL && !flag_is_help(flag)));
}

/* Returns how many flags the group has. */
static int print_group(const struct poptOption *flags, int group, bool is_printed, bool all)
{
  int count = 0, width = terminal_width();
  for (const struct poptOption *flag = flags; flag->longName != NULL || flag->shortName != '\0'; flag++) {
    if (!is_listed(flag, all) || group_of(flag) != group)
      continue;
    if (is_printed && count == 0)
      printf("\n%s:\n", groups[group].title);
    if (is_printed)
      print_flag(flag, width, all);
    count++;
  }
  return count;
}

static void print_default_wait(const struct command *command)
{
  if (!option_is_for(command, "wait_ms"))
    return;
  char *wait = flag_default(command, option_named("wait_ms", strlen("wait_ms")));
  char *words = format("Waits up to %s for a busy lock; --wait changes that, -n makes one attempt.", wait);
  print_wrapped(words, 0);
  free(words);
  free(wait);
}

void help_command(const struct command *command, const struct poptOption *flags, bool all)
{
  size_t first = strcspn(command->help, "\n");
  int more = 0;
  printf("Usage: redlock %s %s\n\n", command->name, command->operands);
  wrap(command->help, first, 0, terminal_width());
  print_default_wait(command);
  if (command->help[first] != '\0')
    print_lines(command->help + first + 1);
  print_group(flags, 0, true, all);
  for (int i = 1; i < GROUPS; i++)
    more += print_group(flags, i, all, all);
  if (all || more == 0)
    return;
  char *words = format("`redlock %s --help-all` lists %d more.", command->name, more);
  putchar('\n');
  print_wrapped(words, 0);
  free(words);
}

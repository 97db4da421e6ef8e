/* help.c - redlock --help, and that of each command. */
#include "cli.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct {
  const char *command, *group, *line;
} lines[] = {
    {"run", "Lock", "hold the lock while a command runs"},
    {"lead", "Lock", "run a command on one host of many, as their leader"},
    {"acquire", "Lock", "take the lock, print its token and leave it in place"},
    {"extend", "Lock", "extend the lock that has a token"},
    {"expire", "Lock", "set how much longer it is held, also shorter"},
    {"release", "Lock", "release the lock that has a token"},
    {"status", "Look", "who holds a lock, and for how much longer"},
    {"ls", "Look", "list held locks whose names begin alike"},
    {"doctor", "Look", "check every node, and say what to do"},
    {"bench", "Look", "measure cycles per second"},
    {"bootstrap", "Operate", "let new nodes vote at once"},
};

/* ---- layout ---- */

enum { LEFT = 32, LEFT_BRIEF = 30, WIDTH_MIN = 60, WIDTH_MAX = 110 };

static int terminal_width(void)
{
  struct winsize size = {0};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  int width = size.ws_col > 0 ? size.ws_col : 80;
  return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* Words in a column from left to width. */
static void print_wrapped(const char *text, size_t size, int left, int width)
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

/* Each line of a text, wrapped. */
static void print_lines(const char *text)
{
  for (int width = terminal_width(); *text != '\0';) {
    size_t size = strcspn(text, "\n");
    print_wrapped(text, size, 0, width);
    text += size + (text[size] != '\0');
  }
}

/* ---- all commands ---- */

int help_overview(void)
{
  const char *group = "";
  puts("Usage: redlock COMMAND [OPTION...] RESOURCE ...\n\nLocks over N independent Redis or Valkey nodes.");
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    if (strcmp(group, lines[i].group) != 0)
      printf("\n%s:\n", group = lines[i].group);
    printf("  redlock %-10s %s\n", lines[i].command, lines[i].line);
  }
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
      "`redlock help COMMAND` or `redlock COMMAND --help` shows its options, --help-all all of them, `redlock -V` the "
      "version, `man redlock` the rest.");
  return 0;
}

/* ---- the options of a command ---- */

static const struct {
  const char *title;
  const char *options[12];
} groups[] = {
    {"Options", {"nodes", "ttl_ms", "wait_ms"}},
    {"Kinds of lock", {"shared", "permits", "slot", "layout", "fence"}},
    {"Nodes",
     {"key_prefix", "guard", "max_ttl_ms", "cluster", "user_file", "password_file", "client_name", "holder_info",
      "connect_timeout_ms", "node_timeout_ms"}},
    {"TLS", {"tls_ca_file", "tls_ca_path", "tls_cert_file", "tls_key_file", "tls_server_name", "tls_verify"}},
    {"Waiting", {"outage_wait_ms", "queue", "wake", "retry_count", "retry_delay_ms", "retry_jitter"}},
};

enum { GROUPS = sizeof groups / sizeof *groups, REST = GROUPS };

static int index_of(const struct poptOption *flag)
{
  return flag->val < FLAG_OPTION ? option_named("nodes", strlen("nodes")) : (flag->val - FLAG_OPTION) / 2;
}

static int group_of(const struct poptOption *flag)
{
  if (flag->val < FLAG_NODES)
    return 0;
  const char *option = redlock_option_at(index_of(flag), REDLOCK_OPTION_NAME);
  for (int i = 0; i < GROUPS; i++)
    for (const char *const *name = groups[i].options; *name != NULL; name++)
      if (strcmp(*name, option) == 0)
        return i;
  return REST;
}

static bool is_shown(const struct poptOption *flag)
{
  return (flag->argInfo & POPT_ARGFLAG_DOC_HIDDEN) == 0;
}

static char *flag_words(const struct poptOption *flag)
{
  bool is_bool = flag->val >= FLAG_OPTION && flag->argDescrip == NULL;
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
  int left = all ? LEFT : LEFT_BRIEF;
  char *words = flag_words(flag), *help = all ? format("%s", flag->descrip) : brief(flag->descrip, width - left);
  if ((int)strlen(words) + 2 > left)
    printf("%s\n%*s", words, left, "");
  else
    printf("%-*s", left, words);
  print_wrapped(help, strlen(help), left, width);
  free(words);
  free(help);
}

/* The brief list fits a screen: it leaves out what it is itself, and other ways to say the same. */
static bool is_listed(const struct poptOption *flag, bool all)
{
  bool is_help = flag->val == FLAG_HELP || flag->val == FLAG_HELP_ALL;
  return is_shown(flag) && (all || (!is_help && flag->longName != NULL));
}

/* Returns how many flags the group has. */
static int print_group(const struct poptOption *flags, int group, bool is_printed, bool all)
{
  int count = 0, width = terminal_width();
  for (const struct poptOption *flag = flags; flag->longName != NULL || flag->shortName != '\0'; flag++) {
    if (!is_listed(flag, all) || group_of(flag) != group)
      continue;
    if (is_printed && count == 0)
      printf("\n%s:\n", group == REST ? "Leases and the rest" : groups[group].title);
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
  printf("Waits up to %s for a busy lock; --wait changes that, -n makes one attempt.\n", wait);
  free(wait);
}

void help_command(const struct command *command, const struct poptOption *flags, bool all)
{
  const char *summary = command->summary;
  size_t first = strcspn(summary, "\n");
  int more = 0;
  printf("Usage: redlock %s %s\n\n", command->name, command->operands);
  print_wrapped(summary, first, 0, terminal_width());
  print_default_wait(command);
  if (summary[first] != '\0')
    print_lines(summary + first + 1);
  print_group(flags, 0, true, all);
  for (int i = 1; i <= REST; i++)
    more += print_group(flags, i, all, all);
  if (!all && more > 0)
    printf("\n`redlock %s --help-all` lists %d more: kinds, nodes, TLS, waiting, leases.\n", command->name, more);
}

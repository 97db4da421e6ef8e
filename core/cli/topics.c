/* topics.c - redlock help TOPIC: what the library's tables say of an option, of the options for a purpose, or of a
 * reason for which a node does not vote; and the rights that a user needs. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct command acquire_command; /* whose defaults are those of all that wait */

/* By the option's name, or as a flag: retry_delay_ms, --retry-delay, retry-delay. */
static bool is_named(int index, const char *word)
{
  char *flag = flag_name(index, "--");
  bool is_same = option_is(index, REDLOCK_OPTION_NAME, word) || strcmp(flag, word) == 0 || strcmp(flag + 2, word) == 0;
  free(flag);
  return is_same;
}

static void print_option(int index)
{
  char *initial = flag_default(&acquire_command, index);
  char *flag = flag_name(index, "");
  char *words = format("%s. Allowed: %s.%s%s", redlock_option_at(index, REDLOCK_OPTION_HELP),
                       redlock_option_at(index, REDLOCK_OPTION_RANGE), *initial != '\0' ? " Default: " : "", initial);
  printf("%s, --%s\n  ", redlock_option_at(index, REDLOCK_OPTION_NAME), flag);
  print_wrapped(words, 2);
  free(words);
  free(flag);
  free(initial);
}

/* All whose name or purpose this is. */
static bool print_options(const char *topic, bool is_any)
{
  for (int i = 0; redlock_option_at(i, REDLOCK_OPTION_NAME) != NULL; i++) {
    if (!is_named(i, topic) && !option_is(i, REDLOCK_OPTION_PURPOSE, topic))
      continue;
    fputs(is_any ? "\n" : "", stdout);
    print_option(i);
    is_any = true;
  }
  return is_any;
}

static bool print_reason(const char *topic)
{
  int i = 0;
  const char *name;
  while ((name = redlock_reason_at(i, REDLOCK_REASON_NAME)) != NULL && strcmp(name, topic) != 0)
    i++;
  if (name == NULL)
    return false;
  const char *words = redlock_reason_at(i, REDLOCK_REASON_WORDS);
  int before = (int)strcspn(words, "%"); /* %s is what differs from node to node */
  bool is_cut = words[before] != '\0';
  printf("%s: %.*s%s%s\n  ", name, before, words, is_cut ? "..." : "", is_cut ? words + before + strlen("%s") : "");
  char *text =
      format("%s To do: %s.", redlock_reason_at(i, REDLOCK_REASON_CAUSE), redlock_reason_at(i, REDLOCK_REASON_ADVICE));
  print_wrapped(text, 2);
  free(text);
  return true;
}

bool help_topic(const char *topic)
{
  if (strcmp(topic, "acl") == 0) {
    kinds_print_rights();
    return true;
  }
  bool is_reason = print_reason(topic);
  return print_options(topic, is_reason) || is_reason; /* "tls" is both */
}

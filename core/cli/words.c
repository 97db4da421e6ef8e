/* words.c - the library names its options as its table does; people write them as flags, with durations. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* Was it set in the file or the environment, and not by a flag? */
static const struct setting *by_its_name(const struct args *args, int index)
{
  const char *option = redlock_option_at(index, REDLOCK_OPTION_NAME);
  if (settings_find(&args->from_flags, option) != NULL)
    return NULL;
  return setting_in_force(args, option);
}

static char *option_words(const struct args *args, int index)
{
  const struct setting *setting = by_its_name(args, index);
  return setting != NULL ? format("%s (%s)", setting->option, setting->where) : flag_name(index, "--");
}

static bool is_duration(const struct args *args, int index)
{
  return index >= 0 && option_is(index, REDLOCK_OPTION_UNIT, "ms") && by_its_name(args, index) == NULL;
}

static char *number_words(const char *number, bool as_duration)
{
  if (!as_duration)
    return format("%s", number);
  return strcmp(number, "-1") == 0 ? format("forever, or 0") : duration_text(strtoll(number, NULL, 10));
}

/* Every second part is the name of an option, or a number of milliseconds of the option before. */
char *in_users_words(const struct args *args, const char *about, const char *parts)
{
  char *words = format("%s", "");
  bool as_duration = about != NULL && is_duration(args, option_named(about, strlen(about)));
  bool is_spelled = false;
  for (const char *end; *parts != '\0'; parts = end + (*end != '\0'), is_spelled = !is_spelled) {
    end = parts + strcspn(parts, PART);
    char *part = format("%.*s", (int)(end - parts), parts), *spelled = NULL;
    int option = is_spelled ? option_named(part, strlen(part)) : -1;
    if (option >= 0) {
      spelled = option_words(args, option);
      as_duration = is_duration(args, option);
    } else if (is_spelled && part[strspn(part, "-0123456789")] == '\0') {
      spelled = number_words(part, as_duration);
    }
    words = append(words, "%s", spelled != NULL ? spelled : part);
    free(spelled);
    free(part);
  }
  return words;
}

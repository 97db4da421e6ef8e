/* words.c - the library names its options as its table does; people write them as flags, with durations. */
#include "cli.h"

#include <stdio.h>
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

static void put_option(FILE *out, const struct args *args, int index)
{
  const struct setting *setting = by_its_name(args, index);
  if (setting != NULL) {
    fprintf(out, "%s (%s)", setting->option, setting->where);
    return;
  }
  char *flag = flag_name(index, "");
  fprintf(out, "--%s", flag);
  free(flag);
}

static bool is_duration(const struct args *args, int index)
{
  return index >= 0 && option_is(index, REDLOCK_OPTION_UNIT, "ms") && by_its_name(args, index) == NULL;
}

static void put_number(FILE *out, const char *number, bool as_duration)
{
  if (!as_duration || strcmp(number, "-1") == 0) {
    fputs(as_duration ? "forever, or 0" : number, out);
    return;
  }
  char *duration = duration_text(strtoll(number, NULL, 10));
  fputs(duration, out);
  free(duration);
}

/* Every second part is the name of an option, or a number of milliseconds of the option before. */
char *in_users_words(const struct args *args, const char *about, const char *parts)
{
  char *words = NULL;
  size_t size;
  FILE *out = must(open_memstream(&words, &size));
  bool as_duration = about != NULL && is_duration(args, option_named(about, strlen(about)));
  bool is_spelled = false;
  for (const char *end; *parts != '\0'; parts = end + (*end != '\0'), is_spelled = !is_spelled) {
    end = parts + strcspn(parts, PART);
    char *part = format("%.*s", (int)(end - parts), parts);
    int option = is_spelled ? option_named(part, strlen(part)) : -1;
    if (option >= 0) {
      put_option(out, args, option);
      as_duration = is_duration(args, option);
    } else if (is_spelled && part[strspn(part, "-0123456789")] == '\0') {
      put_number(out, part, as_duration);
    } else {
      fputs(part, out);
    }
    free(part);
  }
  if (fclose(out) != 0)
    must(NULL);
  return must(words);
}

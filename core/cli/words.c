/* words.c - the library names its options as its table does; people write them as flags, with durations. */
#include "cli.h"

#include <ctype.h>
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

static bool has_unit_behind(const char *text)
{
  static const char *const units[] = {" ms", " s", " min", " h"};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t length = strlen(units[i]);
    if (strncmp(text, units[i], length) == 0 && !isalpha((unsigned char)text[length]))
      return true;
  }
  return false;
}

/* Prints the number at the start of the text with its unit; returns its length. */
static size_t put_number(FILE *out, const char *text, size_t length, bool as_duration)
{
  static const char no_limit[] = "-1 to ";
  bool has_unit = text[length] == '.' || isalpha((unsigned char)text[length]) || has_unit_behind(text + length);
  if (!as_duration || has_unit) {
    fwrite(text, 1, length, out);
    return length;
  }
  if (strncmp(text, no_limit, strlen(no_limit)) == 0) {
    fputs("forever, or 0 to ", out);
    return strlen(no_limit);
  }
  char *duration = duration_text(strtoll(text, NULL, 10));
  fputs(duration, out);
  free(duration);
  return length;
}

/* Names with an underscore are options; "nodes" may be just a word. */
static int option_at(const char *text, size_t length)
{
  return memchr(text, '_', length) != NULL ? option_named(text, length) : -1;
}

char *in_users_words(const struct args *args, const char *about, const char *message)
{
  char *words = NULL;
  size_t size;
  FILE *out = must(open_memstream(&words, &size));
  bool as_duration = about != NULL && is_duration(args, option_named(about, strlen(about)));
  for (const char *text = message; *text != '\0';) {
    size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    int option = option_at(text, word);
    if (option >= 0) {
      put_option(out, args, option);
      as_duration = is_duration(args, option);
      text += word;
    } else if (digits > 0) {
      text += put_number(out, text, digits + (*text == '-'), as_duration);
    } else {
      word += word == 0;
      fwrite(text, 1, word, out);
      text += word;
    }
  }
  if (fclose(out) != 0)
    must(NULL);
  return must(words);
}

/* duration.c - 500ms, 30s, 2m, 1h; and times of day. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

enum { FOREVER = -1, NO_DURATION = -2 };

static const struct unit {
  const char *name;
  int64_t ms;
} units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

static const size_t unit_count = sizeof units / sizeof units[0];

static int64_t unit_ms(const char *name)
{
  for (size_t i = 0; i < unit_count; i++)
    if (strcmp(units[i].name, name) == 0)
      return units[i].ms;
  return 0;
}

/* Up to 12 digits, so that no unit overflows. */
static size_t read_digits(const char *text, int64_t *value)
{
  size_t length = strspn(text, "0123456789");
  *value = 0;
  for (size_t i = 0; i < length && length <= 12; i++)
    *value = *value * 10 + (text[i] - '0');
  return length <= 12 ? length : 0;
}

int64_t duration_parse(const char *text)
{
  if (strcmp(text, "forever") == 0 || strcmp(text, "-1") == 0)
    return FOREVER;
  if (strcmp(text, "0") == 0)
    return 0;
  int64_t whole = 0, fraction = 0, scale = 1;
  size_t length = read_digits(text, &whole);
  if (length == 0)
    return NO_DURATION;
  text += length;
  if (*text == '.') {
    length = read_digits(text + 1, &fraction);
    if (length == 0 || length > 9)
      return NO_DURATION;
    text += length + 1;
    while (length-- > 0)
      scale *= 10;
  }
  int64_t ms = unit_ms(text);
  if (ms == 0 || fraction * ms % scale != 0)
    return NO_DURATION;
  return whole * ms + fraction * ms / scale;
}

char *duration_text(int64_t ms)
{
  if (ms < 0)
    return format("forever");
  if (ms == 0)
    return format("0");
  size_t i = 0;
  while (ms % units[i].ms != 0)
    i++;
  return format("%" PRId64 "%s", ms / units[i].ms, units[i].name);
}

char *duration_words(int64_t ms)
{
  int64_t s = ms / 1000, min = s / 60;
  if (ms < 1000)
    return format("%" PRId64 " ms", ms);
  if (min < 2)
    return format("%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
  return min < 120 ? format("%" PRId64 " min %" PRId64 " s", min, s % 60)
                   : format("%" PRId64 " h %" PRId64 " min", min / 60, min % 60);
}

char *time_words(const char *pattern, time_t when)
{
  char words[32] = "";
  struct tm local;
  if (localtime_r(&when, &local) != NULL)
    strftime(words, sizeof words, pattern, &local);
  return format("%s", words);
}

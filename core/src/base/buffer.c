#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A password may have been among it. */
static void let_go(struct rlk_buffer *b)
{
  if (b->data)
    rlk_wipe(b->data + b->start, b->end - b->start);
  free(b->data);
}

int rlk_buffer_grow(struct rlk_buffer *b, size_t size)
{
  size_t used = b->end - b->start;
  size_t capacity = b->capacity ? b->capacity : 1024;
  char *data;
  if (b->start >= used && b->capacity - used >= size) {
    memcpy(b->data, b->data + b->start, used);
    rlk_wipe(b->data + b->start, used);
    b->start = 0;
    b->end = used;
    return 0;
  }
  if (size > SIZE_MAX / 4 || used > SIZE_MAX / 4)
    return -1;
  while (capacity < used + size)
    capacity *= 2;
  data = malloc(capacity);
  if (!data)
    return -1;
  if (used)
    memcpy(data, b->data + b->start, used);
  let_go(b);
  *b = (struct rlk_buffer){data, 0, used, capacity};
  return 0;
}

void rlk_buffer_consume(struct rlk_buffer *b, size_t size)
{
  b->start += size;
  if (b->start < b->end)
    return;
  b->start = b->end = 0;
  if (b->capacity > 65536)
    rlk_buffer_free(b); /* a burst or a huge key does not stay for the life of the client */
}

void rlk_buffer_cut(struct rlk_buffer *b, size_t offset, size_t size)
{
  char *at = b->data + b->start + offset;
  memmove(at, at + size, b->end - b->start - offset - size);
  b->end -= size;
}

void rlk_buffer_free(struct rlk_buffer *b)
{
  let_go(b);
  *b = (struct rlk_buffer){0};
}

void rlk_wipe(void *secret, size_t size)
{
  static void *(*const volatile fill)(void *, int, size_t) = memset;
  fill(secret, 0, size);
}

struct rlk_text rlk_text_in(char *buf, size_t size)
{
  if (buf && size)
    buf[0] = 0;
  return (struct rlk_text){buf, buf ? size : 0, 0, 0};
}

static void put(struct rlk_text *t, const char *bytes, size_t size)
{
  if (t->length + 1 < t->size) {
    size_t room = t->size - t->length - 1;
    size_t n = size < room ? size : room;
    memcpy(t->buf + t->length, bytes, n);
    t->buf[t->length + n] = 0;
  }
  t->length += size;
}

void rlk_text_bytes(struct rlk_text *t, const char *bytes, size_t size)
{
  const char *mark;
  while (t->is_plain && size && (mark = memchr(bytes, RLK_PART[0], size))) {
    put(t, bytes, (size_t)(mark - bytes));
    size -= (size_t)(mark + 1 - bytes);
    bytes = mark + 1;
  }
  put(t, bytes, size);
}

void rlk_text_add(struct rlk_text *t, const char *text)
{
  rlk_text_bytes(t, text, strlen(text));
}

void rlk_text_format(struct rlk_text *t, const char *format, ...)
{
  char line[512];
  va_list args;
  int n;
  va_start(args, format);
  n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0)
    rlk_text_bytes(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* The length of the valid UTF-8 sequence of several bytes at s, or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t size)
{
  size_t n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
  if (n == 0 || n > size)
    return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
      (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return n;
}

/* Control characters beyond ASCII, and characters that change how others are displayed, such as those that reverse
 * the direction of writing: general category Cf, and line separators. */
static int is_invisible(uint32_t c)
{
  /* clang-format off */
  static const uint32_t ranges[][2] = {
      {0x80, 0x9f},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
      {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},
      {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
      {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f}};
  /* clang-format on */
  size_t i = 0;
  while (i < sizeof ranges / sizeof ranges[0] && c > ranges[i][1])
    i++;
  return i < sizeof ranges / sizeof ranges[0] && c >= ranges[i][0];
}

static uint32_t utf8_value(const unsigned char *s, size_t size)
{
  uint32_t value = s[0] & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; i++)
    value = value << 6 | (s[i] & 0x3fu);
  return value;
}

enum form { PEOPLE, JSON, CLEAN_JSON };

static void escape_byte(struct rlk_text *t, unsigned char byte, enum form form)
{
  rlk_text_format(t, form != PEOPLE ? "\\\\x%02x" : "\\x%02x", byte);
}

/* One character of several bytes. */
static void put_sequence(struct rlk_text *t, const unsigned char *s, size_t size, enum form form)
{
  if (!is_invisible(utf8_value(s, size))) {
    rlk_text_bytes(t, (const char *)s, size);
    return;
  }
  for (size_t i = 0; i < size; i++)
    escape_byte(t, s[i], form);
}

static void escape(struct rlk_text *t, const char *bytes, size_t size, size_t shown_max, enum form form)
{
  const unsigned char *s = (const unsigned char *)bytes;
  size_t shown = size < shown_max ? size : shown_max;
  size_t i = 0;
  while (i < shown) {
    size_t n = utf8_sequence(s + i, size - i);
    if (n) {
      put_sequence(t, s + i, n, form);
      i += n;
      continue;
    }
    if (s[i] < 0x20 || s[i] >= 0x7f)
      escape_byte(t, s[i], form);
    else if (s[i] == '\\')
      rlk_text_add(t, form == JSON ? "\\\\\\\\" : "\\\\");
    else if (s[i] == '"' && form != PEOPLE)
      rlk_text_add(t, "\\\"");
    else
      rlk_text_bytes(t, bytes + i, 1);
    i++;
  }
  if (i < size)
    rlk_text_add(t, "...");
}

void rlk_text_escaped(struct rlk_text *t, const char *bytes, size_t size)
{
  escape(t, bytes, size, 64, PEOPLE);
}

void rlk_text_clean(struct rlk_text *t, const char *text)
{
  escape(t, text, strlen(text), SIZE_MAX, PEOPLE);
}

void rlk_text_word(struct rlk_text *t, const char *word)
{
  for (; *word; word++)
    rlk_text_bytes(t, *word > ' ' && *word < 127 ? word : "?", 1);
}

void rlk_text_mark_cut(struct rlk_text *t)
{
  if (t->length >= t->size && t->size > 3)
    memcpy(t->buf + t->size - 4, "...", 4);
}

void rlk_text_json(struct rlk_text *t, const char *bytes, size_t size, size_t shown_max)
{
  rlk_text_add(t, "\"");
  escape(t, bytes, size, shown_max, JSON);
  rlk_text_add(t, "\"");
}

void rlk_text_json_clean(struct rlk_text *t, const char *text, size_t size)
{
  rlk_text_add(t, "\"");
  escape(t, text, size, SIZE_MAX, CLEAN_JSON);
  rlk_text_add(t, "\"");
}

void rlk_text_duration(struct rlk_text *t, int64_t ms)
{
  static const struct {
    int64_t ms;
    const char *name;
  } units[] = {{3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
  int i = ms == 0 ? 3 : 0;
  while (ms % units[i].ms)
    i++;
  rlk_text_format(t, "%lld %s", (long long)(ms / units[i].ms), units[i].name);
}

#include "out.h"

#include <string.h>

/* Writes n in decimal to out, which has room for 20 digits: their number. */
static size_t decimal(char *out, uint64_t n)
{
  size_t count = 1;
  for (uint64_t rest = n; rest >= 10; rest /= 10)
    count++;
  for (size_t i = count; i-- > 0; n /= 10)
    out[i] = (char)('0' + n % 10);
  return count;
}

/* mark, n, CRLF: the head of an array or a bulk string */
static void head(struct rlk_buffer *out, char mark, uint64_t n)
{
  char line[24];
  size_t size;
  line[0] = mark;
  size = 1 + decimal(line + 1, n);
  line[size++] = '\r';
  line[size++] = '\n';
  rlk_buffer_append(out, line, size);
}

void rlk_bulk_add(struct rlk_buffer *out, const char *bytes, size_t size)
{
  head(out, '$', size);
  rlk_buffer_append(out, bytes, size);
  rlk_buffer_append(out, "\r\n", 2);
}

void rlk_bulk_name(struct rlk_buffer *out, const char *prefix, const char *kind, const char *resource, size_t size)
{
  size_t prefix_size = strlen(prefix), kind_size = strlen(kind);
  head(out, '$', prefix_size + kind_size + size);
  rlk_buffer_append(out, prefix, prefix_size);
  rlk_buffer_append(out, kind, kind_size);
  rlk_buffer_append(out, resource, size);
  rlk_buffer_append(out, "\r\n", 2);
}

/* The number as a bulk string: its size. */
static size_t number_in(char *out, uint64_t value)
{
  char digits[24];
  size_t count, size = 1;
  if (value < 10) { /* the keys of a script */
    memcpy(out, "$1\r\n0\r\n", 7);
    out[4] = (char)('0' + value);
    return 7;
  }
  count = decimal(digits, value);
  out[0] = '$';
  size += decimal(out + size, count);
  memcpy(out + size, "\r\n", 2);
  memcpy(out + size + 2, digits, count);
  memcpy(out + size + 2 + count, "\r\n", 2);
  return size + count + 4;
}

void rlk_number_set(struct rlk_number *number, int64_t value)
{
  if (number->size && number->value == value)
    return;
  number->value = value;
  number->size = number_in(number->bulk, (uint64_t)value);
}

void rlk_out_array(struct rlk_out *out, int count)
{
  head(&out->line->out, '*', (uint64_t)count);
}

void rlk_out_number(struct rlk_out *out, int64_t number)
{
  char bulk[32];
  rlk_out_bytes(out, bulk, number_in(bulk, (uint64_t)number));
}

RLK_COLD static int script_in_full(struct rlk_out *out, struct rlk_line *l, const char *text, int keys, int arguments,
                                   size_t room)
{
  size_t size = strlen(text);
  if (rlk_out_begin(out, l, room + size + 64) != 0)
    return -1;
  head(&l->out, '*', (uint64_t)(3 + keys + arguments));
  RLK_OUT_TEXT(out, "$4\r\nEVAL\r\n");
  rlk_out_bulk(out, text, size);
  rlk_out_number(out, keys);
  return 0;
}

int rlk_out_script(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script, int keys, int arguments,
                   size_t room)
{
  if (!rlk_out_knows(l, script)) {
    l->scripts_known |= script->bit;
    return script_in_full(out, l, script->text, keys, arguments, room);
  }
  if (rlk_out_begin(out, l, room + 128) != 0)
    return -1;
  head(&l->out, '*', (uint64_t)(3 + keys + arguments));
  RLK_OUT_TEXT(out, "$7\r\nEVALSHA\r\n$40\r\n");
  rlk_out_bytes(out, script->hash, 40);
  RLK_OUT_TEXT(out, "\r\n");
  rlk_out_number(out, keys);
  return 0;
}

int rlk_out_words(struct rlk_line *l, int count, const char *const *words, struct rlk_request request)
{
  struct rlk_out out;
  size_t room = 32;
  for (int i = 0; i < count; i++)
    room += strlen(words[i]) + 32;
  if (rlk_out_begin(&out, l, room) != 0)
    return -1;
  head(&l->out, '*', (uint64_t)count);
  for (int i = 0; i < count; i++)
    rlk_out_bulk(&out, words[i], strlen(words[i]));
  rlk_out_end(&out, request);
  return 0;
}

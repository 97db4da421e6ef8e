/* Bytes and texts that grow or are cut, never overflow. */
#ifndef RL_BUFFER_H
#define RL_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A queue of bytes: data[start, end). All zero is an empty one. */
struct rl_buffer {
  char *data;
  size_t start, end, capacity;
};

int rl_buffer_grow(struct rl_buffer *b, size_t size);
void rl_buffer_consume(struct rl_buffer *b, size_t size);
/* Cuts size bytes out at offset from start. */
void rl_buffer_cut(struct rl_buffer *b, size_t offset, size_t size);
void rl_buffer_free(struct rl_buffer *b);

/* Room for size more bytes: 0, or -1 when memory is out (then nothing changed). */
static inline int rl_buffer_reserve(struct rl_buffer *b, size_t size)
{
  return b->capacity - b->end >= size ? 0 : rl_buffer_grow(b, size);
}

/* Only after a reserve that covers it. */
static inline void rl_buffer_append(struct rl_buffer *b, const void *bytes, size_t size)
{
  memcpy(b->data + b->end, bytes, size);
  b->end += size;
}

static inline size_t rl_buffer_size(const struct rl_buffer *b)
{
  return b->end - b->start;
}

/* A text for a caller's buffer: cut where it ends, but counted to its full length. */
struct rl_text {
  char *buf;
  size_t size;
  size_t length;
};

struct rl_text rl_text_in(char *buf, size_t size);
void rl_text_add(struct rl_text *t, const char *text);
void rl_text_bytes(struct rl_text *t, const char *bytes, size_t size);
void rl_text_format(struct rl_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Bytes for people: valid UTF-8 as it is, the rest as \xHH, cut after 64 bytes with "...". */
void rl_text_escaped(struct rl_text *t, const char *bytes, size_t size);
/* The same, not cut: for texts of a server. */
void rl_text_clean(struct rl_text *t, const char *text);
/* What did not fit ends in "...". */
void rl_text_mark_cut(struct rl_text *t);
/* As a JSON string, quotes included; cut after shown_max bytes. */
void rl_text_json(struct rl_text *t, const char *bytes, size_t size, size_t shown_max);

#endif

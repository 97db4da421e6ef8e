/* Bytes and texts that grow or are cut, never overflow. */
#ifndef RLK_BUFFER_H
#define RLK_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A queue of bytes: data[start, end). All zero is an empty one. */
struct rlk_buffer {
  char *data;
  size_t start, end, capacity;
};

int rlk_buffer_grow(struct rlk_buffer *b, size_t size);
void rlk_buffer_consume(struct rlk_buffer *b, size_t size);
/* Cuts size bytes out at offset from start. */
void rlk_buffer_cut(struct rlk_buffer *b, size_t offset, size_t size);
void rlk_buffer_free(struct rlk_buffer *b);
/* Overwrites a secret; unlike a memset before free, it is not optimized away. */
void rlk_wipe(void *secret, size_t size);

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/* The sanitizer reports writes behind a reserve, even if there is room. Marking all of a large buffer would take longer
 * than its use. */
static inline int rlk_buffer_allow(struct rlk_buffer *b, size_t size)
{
  if (b->data) {
    size_t rest = b->capacity - b->end - size;
    ASAN_UNPOISON_MEMORY_REGION(b->data + b->end, size);
    ASAN_POISON_MEMORY_REGION(b->data + b->end + size, rest < 4096 ? rest : 4096);
  }
  return 0;
}
#else
static inline int rlk_buffer_allow(struct rlk_buffer *b, size_t size)
{
  (void)b;
  (void)size;
  return 0;
}
#endif

/* Room for size more bytes: 0, or -1 when memory is out (then nothing changed). */
static inline int rlk_buffer_reserve(struct rlk_buffer *b, size_t size)
{
  if (b->capacity - b->end < size && rlk_buffer_grow(b, size) != 0)
    return -1;
  return rlk_buffer_allow(b, size);
}

/* Gives back the reserved room that was not used. */
static inline void rlk_buffer_close(struct rlk_buffer *b)
{
  rlk_buffer_allow(b, 0);
}

/* Only after a reserve that covers it. */
static inline void rlk_buffer_append(struct rlk_buffer *b, const void *bytes, size_t size)
{
  memcpy(b->data + b->end, bytes, size);
  b->end += size;
}

static inline size_t rlk_buffer_size(const struct rlk_buffer *b)
{
  return b->end - b->start;
}

/* A text for a caller's buffer: cut where it ends, but counted to its full length. */
struct rlk_text {
  char *buf;
  size_t size;
  size_t length;
  int is_plain; /* RLK_PART is left out */
};

/* Put on both sides of an option's name and of a number of milliseconds, since every language spells them in its own
 * way. Text of a user never has it: it is escaped. */
#define RLK_PART "\x1f"
#define RLK_NAMED(option) RLK_PART option RLK_PART
#define RLK_MS RLK_PART "%lld" RLK_PART

struct rlk_text rlk_text_in(char *buf, size_t size);
void rlk_text_add(struct rlk_text *t, const char *text);
void rlk_text_bytes(struct rlk_text *t, const char *bytes, size_t size);
void rlk_text_format(struct rlk_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Bytes for people: printable UTF-8 as it is, the rest as \xHH, cut after 64 bytes with "...". */
void rlk_text_escaped(struct rlk_text *t, const char *bytes, size_t size);
/* The same, not cut: for texts of a server. */
void rlk_text_clean(struct rlk_text *t, const char *text);
/* As one word of printable ASCII, each other byte as "?". */
void rlk_text_word(struct rlk_text *t, const char *word);
/* 30 s, 5 min, 1 h, 1500 ms. */
void rlk_text_duration(struct rlk_text *t, int64_t ms);
/* A text that is cut ends in "...". */
void rlk_text_mark_cut(struct rlk_text *t);
/* As a JSON string, quotes included; cut after shown_max bytes. */
void rlk_text_json(struct rlk_text *t, const char *bytes, size_t size, size_t shown_max);
/* The same of a text that is clean: its \xHH stay as they are. */
void rlk_text_json_clean(struct rlk_text *t, const char *text, size_t size);

#endif

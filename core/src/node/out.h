/* Commands as they are written: each is queued whole behind the others on a line and noted in flight, or not at all. */
#ifndef RLK_OUT_H
#define RLK_OUT_H

#include "node.h"
#include "scripts.h"

/* A number as a RESP bulk string. */
struct rlk_number {
  int64_t value;
  size_t size; /* 0: nothing is written yet */
  char bulk[32];
};

/* Formats a number once for the many commands that carry it. */
void rlk_number_set(struct rlk_number *number, int64_t value);
/* The bulk string "$n\r\n<bytes>\r\n". */
void rlk_bulk_add(struct rlk_buffer *buffer, const char *bytes, size_t size);
/* The same of three parts: the name of a key that belongs to a resource. */
void rlk_bulk_name(struct rlk_buffer *buffer, const char *prefix, const char *kind, const char *resource, size_t size);

struct rlk_out {
  struct rlk_line *line;
  size_t before; /* bytes that were queued */
};

/* Begins a command of up to so many bytes: 0, or -1 when memory is out. */
RLK_HOT static inline int rlk_out_begin(struct rlk_out *out, struct rlk_line *line, size_t room)
{
  out->line = line;
  out->before = rlk_buffer_size(&line->out);
  return rlk_requests_reserve(&line->requests, 1) != 0 ? -1 : rlk_buffer_reserve(&line->out, room);
}

/* Whether the server has the script. A client that leaves could not repair a NOSCRIPT (rule A.5). */
static inline int rlk_out_knows(const struct rlk_line *line, const struct rlk_script *script)
{
  return (line->scripts_known & script->bit) && line->node->net->state == RLK_NET_OPEN;
}

/* A command that calls a script; room is that for its keys and arguments, which follow. The script's text is sent
 * unless the server has it. */
int rlk_out_script(struct rlk_out *out, struct rlk_line *line, const struct rlk_script *script, int keys, int arguments,
                   size_t room);
/* A whole command of words: 0, or -1 when memory is out. */
int rlk_out_words(struct rlk_line *line, int count, const char *const *words, struct rlk_request request);

static inline void rlk_out_bytes(struct rlk_out *out, const void *bytes, size_t size)
{
  rlk_buffer_append(&out->line->out, bytes, size);
}

#define RLK_OUT_TEXT(out, text) rlk_out_bytes(out, text, sizeof(text) - 1)

static inline void rlk_out_bulk(struct rlk_out *out, const char *bytes, size_t size)
{
  rlk_bulk_add(&out->line->out, bytes, size);
}

void rlk_out_array(struct rlk_out *out, int count); /* the head of a command of so many words */
void rlk_out_number(struct rlk_out *out, int64_t number);

/* The command is complete: it is noted as that request. */
RLK_HOT static inline void rlk_out_end(struct rlk_out *out, struct rlk_request request)
{
  struct rlk_line *line = out->line;
  rlk_buffer_close(&line->out);
  request.size = (uint32_t)(rlk_buffer_size(&line->out) - out->before);
  request.position = line->queued;
  line->queued += request.size;
  *rlk_request_at(&line->requests, line->requests.count++) = request;
  line->node->net->commands++;
  rlk_node_mark_dirty(line->node);
}

#endif

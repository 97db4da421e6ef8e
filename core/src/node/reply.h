/* A parsed reply, and the parser that makes it. */
#ifndef RL_REPLY_H
#define RL_REPLY_H

#include <hiredis.h>
#include <stdint.h>

#include "../base/buffer.h"

enum {
  RL_REPLY_SIZE_MAX = 1 << 20,
  RL_INTEGERS_MAX = 100
};

enum rl_reply_type { RL_REPLY_STATUS, RL_REPLY_ERROR, RL_REPLY_INTEGER, RL_REPLY_NIL, RL_REPLY_STRING, RL_REPLY_ARRAY };

/* A parsed reply; it lives until the next one is read. */
struct rl_reply {
  enum rl_reply_type type;
  int64_t integer;
  struct rl_buffer text; /* NUL-terminated; text.end without the NUL */
  int elements;          /* of an array, of whatever type */
  int count;             /* integers among them, the first RL_INTEGERS_MAX */
  int64_t integers[RL_INTEGERS_MAX];
  int is_id;             /* the last element was the word "id" ... */
  int64_t id;            /* ... and this came behind it (HELLO) */
  const char *fault;     /* why it can not be taken; NULL: the parser says it */
};

/* A reader that parses into reply; NULL when memory is out. */
redisReader *rl_reply_reader(struct rl_reply *reply);
/* An array of so many 0s and 1s, and nothing else. */
int rl_reply_is_answers(const struct rl_reply *reply, int count);

#endif

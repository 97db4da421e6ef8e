/* A parsed reply, and the parser that makes it. */
#ifndef RLK_REPLY_H
#define RLK_REPLY_H

#include <hiredis.h>
#include <stdint.h>

#include "../base/buffer.h"
#include "../rules/reason.h"

enum { RLK_REPLY_SIZE_MAX = 1 << 20, RLK_INTEGERS_MAX = 100 };

enum rlk_reply_type {
  RLK_REPLY_STATUS,
  RLK_REPLY_ERROR,
  RLK_REPLY_INTEGER,
  RLK_REPLY_NIL,
  RLK_REPLY_STRING,
  RLK_REPLY_ARRAY
};

/* A parsed reply; it lives until the next one is read. */
struct rlk_reply {
  enum rlk_reply_type type;
  int64_t integer;
  struct rlk_buffer text; /* NUL-terminated; text.end without the NUL */
  int elements;           /* of an array, of whatever type */
  int count;              /* integers among them, the first RLK_INTEGERS_MAX */
  int64_t integers[RLK_INTEGERS_MAX];
  int decimals;       /* texts among the elements that are decimal numbers ... */
  int64_t decimal[2]; /* ... the first two */
  int is_message;     /* an array that begins with "message"; its last text is in text */
  int is_id;          /* the last element was the name "id" */
  int64_t id;         /* of HELLO; 0 if it is not there */
  enum rlk_why why;
  const char *fault; /* why it cannot be taken; NULL: the parser says it */
};

/* A reader that parses into reply; NULL when memory is out. */
redisReader *rlk_reply_reader(struct rlk_reply *reply);
/* An array of so many 0s and 1s, and nothing else. */
int rlk_reply_is_answers(const struct rlk_reply *reply, int count);
/* An array of two integers. */
static inline int rlk_reply_is_pair(const struct rlk_reply *reply)
{
  return reply->type == RLK_REPLY_ARRAY && reply->elements == 2 && reply->count == 2;
}

/* The reply to TIME, in us: 1, or 0 if it is none. */
int rlk_reply_is_time(const struct rlk_reply *reply, int64_t *us);

#endif

/* The bytes that are sent. Preformatted pieces: nothing is formatted on the hot path. */
#ifndef RLK_COMMAND_H
#define RLK_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "../base/buffer.h"
#include "scripts.h"

enum {
  RLK_TOKEN_SIZE = 40,     /* of the library's own tokens */
  RLK_TOKEN_SIZE_MAX = 128 /* of one that was adopted */
};

/* A number as a RESP bulk string. */
struct rlk_number {
  int64_t value;
  size_t size; /* 0: nothing is written yet */
  char bulk[32];
};

/* Every function appends one command to out and returns 0, or -1 when memory is out (then nothing is appended).
 * key is the key as a RESP bulk string (rlk_command_bulk). */
int rlk_command_argv(struct rlk_buffer *out, int count, const char *const *words);
int rlk_command_set(struct rlk_buffer *out, const char *key, size_t key_size, const char *token,
                    const struct rlk_number *ttl_ms);
/* Writes a number down once for the many commands that carry it. */
void rlk_command_number(struct rlk_number *number, int64_t value);
int rlk_command_get(struct rlk_buffer *out, const char *key, size_t key_size);
int rlk_command_time(struct rlk_buffer *out);
int rlk_command_pttl(struct rlk_buffer *out, const char *key, size_t key_size);
int rlk_command_peek(struct rlk_buffer *out, const char *key, size_t key_size);
/* By the script's hash, or with its full text: after NOSCRIPT, and when leaving, where nothing can be repaired. */
int rlk_command_release(struct rlk_buffer *out, int full_script, const char *key, size_t key_size, const char *token,
                        size_t token_size);
/* Sets what is left of a lease to exactly ttl_ms, if the token is there; always with the full text, for it is rare. */
int rlk_command_expire(struct rlk_buffer *out, const char *key, size_t key_size, const char *token, size_t token_size,
                       int64_t ttl_ms);
int rlk_command_remove(struct rlk_buffer *out, const char *key, size_t key_size);
int rlk_command_script_load(struct rlk_buffer *out, enum rlk_script script);

/* An extension of several locks: begin with their number and the sizes of all keys and tokens, then all keys, the TTL,
 * all tokens, end. */
int rlk_command_extend_begin(struct rlk_buffer *out, int full_script, int count, size_t size);
void rlk_command_extend_key(struct rlk_buffer *out, const char *key, size_t key_size);
void rlk_command_extend_ttl(struct rlk_buffer *out, int64_t ttl_ms);
void rlk_command_extend_token(struct rlk_buffer *out, const char *token, size_t token_size);

/* Of a lock with a fencing number: its key as a bulk string, what its number's is made of, and its own token. */
struct rlk_fence {
  const char *key, *prefix, *resource, *token;
  size_t key_size, resource_size;
};
/* A SET that draws a number, not below the proposal if the server's clock allows that. is_number: the proposal is the
 * number of a lock, not from a clock. */
int rlk_command_fence(struct rlk_buffer *out, int full_script, const struct rlk_fence *fence,
                      const struct rlk_number *ttl_ms, int64_t proposal, int is_number);
int rlk_command_raise(struct rlk_buffer *out, const struct rlk_fence *fence, int64_t number);

/* What the queue of a resource is named by, as bulk strings one behind the other: the key itself, from queue on the
 * queue, from promises on the promises, from channels on what the names of clients are put behind. */
struct rlk_queue_keys {
  char *text; /* NULL: not made yet */
  size_t queue, promises, channels, size;
};
int rlk_command_queue_keys(struct rlk_queue_keys *keys, const char *prefix, const char *resource, size_t size);

/* When a waiter will ask again: later the more waiters stand before it. */
struct rlk_promise {
  int64_t first_us, step_us, steps_max_us;
};

/* Joins the queue at place with the time waited so far, or says that it still waits. */
int rlk_command_join(struct rlk_buffer *out, int full_script, const struct rlk_queue_keys *keys, const char *place,
                     int64_t waited_us, const struct rlk_promise *promise);
/* A release that leaves the queue (place "": it did not stand there) and tells who is first. */
int rlk_command_hand_over(struct rlk_buffer *out, int full_script, const struct rlk_queue_keys *keys, const char *token,
                          size_t token_size, const char *place);
int rlk_command_leave(struct rlk_buffer *out, const struct rlk_queue_keys *keys, const char *place);
int rlk_command_is_queued(struct rlk_buffer *out, const struct rlk_queue_keys *keys); /* EXISTS */

/* The bulk string "$n\r\n<prefix><bytes>\r\n" in a new allocation; NULL when memory is out. */
char *rlk_command_bulk(const char *prefix, const void *bytes, size_t size, size_t *bulk_size);

#endif

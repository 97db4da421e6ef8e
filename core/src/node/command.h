/* The bytes that are sent, and the scripts. Preformatted pieces: nothing is formatted on the hot path. */
#ifndef RLK_COMMAND_H
#define RLK_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "../base/buffer.h"

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

enum rlk_script { RLK_SCRIPT_RELEASE, RLK_SCRIPT_EXTEND, RLK_SCRIPT_PROOF };

/* Every function appends one command to out and returns 0, or -1 when memory is out (then nothing is appended).
 * key is the key as a RESP bulk string (rlk_command_bulk). */
int rlk_command_argv(struct rlk_buffer *out, int count, const char *const *words);
int rlk_command_set(struct rlk_buffer *out, const char *key, size_t key_size, const char *token,
                    const struct rlk_number *ttl_ms);
/* Writes a number down once for the many commands that carry it. */
void rlk_command_number(struct rlk_number *number, int64_t value);
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

/* An extension of several locks: begin with their number and the sizes of all keys and tokens, then all keys, then all
 * tokens. */
int rlk_command_extend_begin(struct rlk_buffer *out, int full_script, int count, size_t size);
void rlk_command_extend_key(struct rlk_buffer *out, const char *key, size_t key_size);
void rlk_command_extend_ttl(struct rlk_buffer *out, int64_t ttl_ms);
void rlk_command_extend_token(struct rlk_buffer *out, const char *token, size_t token_size);

/* The bulk string "$n\r\n<prefix><bytes>\r\n" in a new allocation; NULL when memory is out. */
char *rlk_command_bulk(const char *prefix, const void *bytes, size_t size, size_t *bulk_size);

const char *rlk_script_text(enum rlk_script script);
const char *rlk_script_hash(enum rlk_script script);

#endif

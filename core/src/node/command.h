/* The bytes that are sent, and the scripts. Preformatted pieces: nothing is formatted on the hot path. */
#ifndef RL_COMMAND_H
#define RL_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "../base/buffer.h"

enum {
  RL_TOKEN_SIZE = 40,      /* of the library's own tokens */
  RL_TOKEN_SIZE_MAX = 128  /* of one that was adopted */
};

/* A number as a RESP bulk string. */
struct rl_number {
  int64_t value;
  size_t size; /* 0: nothing is written yet */
  char bulk[32];
};

enum rl_script { RL_SCRIPT_RELEASE, RL_SCRIPT_EXTEND, RL_SCRIPT_PROOF };

/* Every function appends one command to out and returns 0, or -1 when memory is out (then nothing is appended).
 * key is the key as a RESP bulk string (rl_command_bulk). */
int rl_command_argv(struct rl_buffer *out, int count, const char *const *words);
int rl_command_set(struct rl_buffer *out, const char *key, size_t key_size, const char *token,
                   const struct rl_number *ttl_ms);
/* Writes a number down once for the many commands that carry it. */
void rl_command_number(struct rl_number *number, int64_t value);
int rl_command_pttl(struct rl_buffer *out, const char *key, size_t key_size);
int rl_command_peek(struct rl_buffer *out, const char *key, size_t key_size);
/* By the script's hash, or with its whole text: after NOSCRIPT, and when leaving, where nothing can be repaired. */
int rl_command_release(struct rl_buffer *out, int whole, const char *key, size_t key_size, const char *token,
                       size_t token_size);
/* Sets what is left of a lease to exactly ttl_ms, if the token is there; always with the whole text, for it is rare. */
int rl_command_expire(struct rl_buffer *out, const char *key, size_t key_size, const char *token, size_t token_size,
                      int64_t ttl_ms);
int rl_command_remove(struct rl_buffer *out, const char *key, size_t key_size);
int rl_command_script_load(struct rl_buffer *out, enum rl_script script);

/* An extension of several locks: begin with their number and the sizes of all keys and tokens, then all keys, then all
 * tokens. */
int rl_command_extend_begin(struct rl_buffer *out, int whole, int count, size_t size);
void rl_command_extend_key(struct rl_buffer *out, const char *key, size_t key_size);
void rl_command_extend_ttl(struct rl_buffer *out, int64_t ttl_ms);
void rl_command_extend_token(struct rl_buffer *out, const char *token, size_t token_size);

/* The bulk string "$n\r\n<prefix><bytes>\r\n" in a new allocation; NULL when memory is out. */
char *rl_command_bulk(const char *prefix, const void *bytes, size_t size, size_t *bulk_size);

const char *rl_script_text(enum rl_script script);
const char *rl_script_hash(enum rl_script script);

#endif

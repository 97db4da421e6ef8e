#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"

#define LITERAL(b, text) rlk_buffer_append(b, text, sizeof(text) - 1)

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

static void bulk(struct rlk_buffer *out, const char *bytes, size_t size)
{
  head(out, '$', size);
  rlk_buffer_append(out, bytes, size);
  LITERAL(out, "\r\n");
}

static void bulk_number(struct rlk_buffer *out, uint64_t n)
{
  char digits[24];
  size_t size = decimal(digits, n);
  memcpy(digits + size, "\r\n", 2);
  head(out, '$', size);
  rlk_buffer_append(out, digits, size + 2);
}

char *rlk_command_bulk(const char *prefix, const void *bytes, size_t size, size_t *bulk_size)
{
  size_t prefix_size = strlen(prefix);
  struct rlk_buffer out = {0};
  if (rlk_buffer_reserve(&out, prefix_size + size + 32) != 0)
    return NULL;
  head(&out, '$', prefix_size + size);
  rlk_buffer_append(&out, prefix, prefix_size);
  rlk_buffer_append(&out, bytes, size);
  LITERAL(&out, "\r\n");
  *bulk_size = out.end;
  return out.data;
}

int rlk_command_argv(struct rlk_buffer *out, int count, const char *const *words)
{
  size_t size = 32;
  for (int i = 0; i < count; i++)
    size += strlen(words[i]) + 32;
  if (rlk_buffer_reserve(out, size) != 0)
    return -1;
  head(out, '*', (uint64_t)count);
  for (int i = 0; i < count; i++)
    bulk(out, words[i], strlen(words[i]));
  return 0;
}

/* The two commands of the hot path are written through a cursor of their own, in as few pieces as there are. */
static char *put(char *at, const char *bytes, size_t size)
{
  memcpy(at, bytes, size);
  return at + size;
}

#define PUT(at, text) put(at, text, sizeof(text) - 1)

int rlk_command_set(struct rlk_buffer *out, const char *key, size_t key_size, const char *token,
                    const struct rlk_number *ttl_ms)
{
  char *at;
  if (rlk_buffer_reserve(out, key_size + 160) != 0)
    return -1;
  at = out->data + out->end;
  at = PUT(at, "*6\r\n$3\r\nSET\r\n");
  at = put(at, key, key_size);
  at = PUT(at, "$40\r\n");
  at = put(at, token, RLK_TOKEN_SIZE);
  at = PUT(at, "\r\n$2\r\nNX\r\n$2\r\nPX\r\n");
  at = put(at, ttl_ms->bulk, ttl_ms->size);
  out->end = (size_t)(at - out->data);
  return 0;
}

void rlk_command_number(struct rlk_number *number, int64_t value)
{
  char digits[24];
  size_t count;
  if (number->size && number->value == value)
    return;
  count = decimal(digits, (uint64_t)value);
  number->value = value;
  number->bulk[0] = '$';
  number->size = 1 + decimal(number->bulk + 1, count);
  number->size = (size_t)(PUT(number->bulk + number->size, "\r\n") - number->bulk);
  number->size = (size_t)(put(number->bulk + number->size, digits, count) - number->bulk);
  number->size = (size_t)(PUT(number->bulk + number->size, "\r\n") - number->bulk);
}

int rlk_command_get(struct rlk_buffer *out, const char *key, size_t key_size)
{
  if (rlk_buffer_reserve(out, key_size + 32) != 0)
    return -1;
  LITERAL(out, "*2\r\n$3\r\nGET\r\n");
  rlk_buffer_append(out, key, key_size);
  return 0;
}

int rlk_command_time(struct rlk_buffer *out)
{
  if (rlk_buffer_reserve(out, 32) != 0)
    return -1;
  LITERAL(out, "*1\r\n$4\r\nTIME\r\n");
  return 0;
}

int rlk_command_pttl(struct rlk_buffer *out, const char *key, size_t key_size)
{
  if (rlk_buffer_reserve(out, key_size + 32) != 0)
    return -1;
  LITERAL(out, "*2\r\n$4\r\nPTTL\r\n");
  rlk_buffer_append(out, key, key_size);
  return 0;
}

int rlk_command_peek(struct rlk_buffer *out, const char *key, size_t key_size)
{
  if (rlk_buffer_reserve(out, key_size + 64) != 0)
    return -1;
  LITERAL(out, "*4\r\n$8\r\nGETRANGE\r\n");
  rlk_buffer_append(out, key, key_size);
  LITERAL(out, "$1\r\n0\r\n$2\r\n63\r\n");
  return 0;
}

/* EVALSHA hash n, or EVAL text n */
static void script_head(struct rlk_buffer *out, enum rlk_script script, int full_script, int words, int keys)
{
  head(out, '*', (uint64_t)words);
  if (full_script) {
    const char *text = rlk_script_text(script);
    LITERAL(out, "$4\r\nEVAL\r\n");
    bulk(out, text, strlen(text));
  } else {
    LITERAL(out, "$7\r\nEVALSHA\r\n$40\r\n");
    rlk_buffer_append(out, rlk_script_hash(script), 40);
    LITERAL(out, "\r\n");
  }
  bulk_number(out, (uint64_t)keys);
}

int rlk_command_release(struct rlk_buffer *out, int full_script, const char *key, size_t key_size, const char *token,
                        size_t token_size)
{
  char *at;
  if (rlk_buffer_reserve(out, key_size + 512) != 0)
    return -1;
  if (RLK_MUTANT(BLIND_DELETE)) {
    LITERAL(out, "*2\r\n$3\r\nDEL\r\n");
    rlk_buffer_append(out, key, key_size);
    return 0;
  }
  if (full_script)
    script_head(out, RLK_SCRIPT_RELEASE, 1, 5, 1);
  at = out->data + out->end;
  if (!full_script)
    at = PUT(at, "*5\r\n$7\r\nEVALSHA\r\n$40\r\n" RLK_RELEASE_HASH "\r\n$1\r\n1\r\n");
  at = put(at, key, key_size);
  if (token_size == RLK_TOKEN_SIZE) {
    at = PUT(at, "$40\r\n");
    at = put(at, token, RLK_TOKEN_SIZE);
    at = PUT(at, "\r\n");
  }
  out->end = (size_t)(at - out->data);
  if (token_size != RLK_TOKEN_SIZE)
    bulk(out, token, token_size);
  return 0;
}

int rlk_command_expire(struct rlk_buffer *out, const char *key, size_t key_size, const char *token, size_t token_size,
                       int64_t ttl_ms)
{
  if (rlk_buffer_reserve(out, key_size + token_size + 512) != 0)
    return -1;
  script_head(out, RLK_SCRIPT_EXPIRE, 1, 6, 1);
  rlk_buffer_append(out, key, key_size);
  bulk(out, token, token_size);
  bulk_number(out, (uint64_t)ttl_ms);
  return 0;
}

int rlk_command_remove(struct rlk_buffer *out, const char *key, size_t key_size)
{
  if (rlk_buffer_reserve(out, key_size + 64) != 0)
    return -1;
  LITERAL(out, "*2\r\n$3\r\nDEL\r\n");
  rlk_buffer_append(out, key, key_size);
  return 0;
}

int rlk_command_script_load(struct rlk_buffer *out, enum rlk_script script)
{
  const char *words[] = {"SCRIPT", "LOAD", rlk_script_text(script)};
  return rlk_command_argv(out, 3, words);
}

int rlk_command_extend_begin(struct rlk_buffer *out, int full_script, int count, size_t size)
{
  if (rlk_buffer_reserve(out, size + (size_t)count * 16 + 640) != 0)
    return -1;
  script_head(out, RLK_SCRIPT_EXTEND, full_script || RLK_MUTANT(EXTEND_SHORTENS), 4 + 2 * count, count);
  return 0;
}

void rlk_command_extend_key(struct rlk_buffer *out, const char *key, size_t key_size)
{
  rlk_buffer_append(out, key, key_size);
}

void rlk_command_extend_ttl(struct rlk_buffer *out, int64_t ttl_ms)
{
  bulk_number(out, (uint64_t)ttl_ms);
}

void rlk_command_extend_token(struct rlk_buffer *out, const char *token, size_t token_size)
{
  bulk(out, token, token_size);
}

/* ---- fencing numbers ---- */

static void fence_key(struct rlk_buffer *out, const struct rlk_fence *fence)
{
  static const char kind[] = "libredlock:f:";
  size_t prefix_size = strlen(fence->prefix);
  head(out, '$', prefix_size + sizeof kind - 1 + fence->resource_size);
  rlk_buffer_append(out, fence->prefix, prefix_size);
  LITERAL(out, kind);
  rlk_buffer_append(out, fence->resource, fence->resource_size);
  LITERAL(out, "\r\n");
}

static int fence_reserve(struct rlk_buffer *out, const struct rlk_fence *fence)
{
  return rlk_buffer_reserve(out, fence->key_size + strlen(fence->prefix) + fence->resource_size + 2048);
}

int rlk_command_fence(struct rlk_buffer *out, int full_script, const struct rlk_fence *fence,
                      const struct rlk_number *ttl_ms, int64_t proposal, int is_number)
{
  if (fence_reserve(out, fence) != 0)
    return -1;
  script_head(out, RLK_SCRIPT_FENCE, full_script, 9, 2);
  rlk_buffer_append(out, fence->key, fence->key_size);
  fence_key(out, fence);
  bulk(out, fence->token, RLK_TOKEN_SIZE);
  rlk_buffer_append(out, ttl_ms->bulk, ttl_ms->size);
  bulk_number(out, (uint64_t)proposal);
  bulk(out, "1", is_number ? 1 : 0);
  return 0;
}

int rlk_command_raise(struct rlk_buffer *out, const struct rlk_fence *fence, int64_t number)
{
  if (fence_reserve(out, fence) != 0)
    return -1;
  script_head(out, RLK_SCRIPT_RAISE, 1, 7, 2);
  rlk_buffer_append(out, fence->key, fence->key_size);
  fence_key(out, fence);
  bulk(out, fence->token, RLK_TOKEN_SIZE);
  bulk_number(out, (uint64_t)number);
  return 0;
}

/* ---- the queue ---- */

#define QUEUE_PREFIX "libredlock:q:"
#define PROMISES_PREFIX "libredlock:p:"
#define CHANNEL_PREFIX "libredlock:w:"

static void queue_key(struct rlk_buffer *out, const char *prefix, const char *kind, const char *resource, size_t size)
{
  size_t prefix_size = strlen(prefix), kind_size = strlen(kind);
  head(out, '$', prefix_size + kind_size + size);
  rlk_buffer_append(out, prefix, prefix_size);
  rlk_buffer_append(out, kind, kind_size);
  rlk_buffer_append(out, resource, size);
  LITERAL(out, "\r\n");
}

int rlk_command_queue_keys(struct rlk_queue_keys *keys, const char *prefix, const char *resource, size_t size)
{
  struct rlk_buffer out = {0};
  if (rlk_buffer_reserve(&out, 4 * strlen(prefix) + 3 * size + 256) != 0)
    return -1;
  queue_key(&out, prefix, "", resource, size);
  keys->queue = out.end;
  queue_key(&out, prefix, QUEUE_PREFIX, resource, size);
  keys->promises = out.end;
  queue_key(&out, prefix, PROMISES_PREFIX, resource, size);
  keys->channels = out.end;
  queue_key(&out, prefix, CHANNEL_PREFIX, "", 0);
  keys->size = out.end;
  keys->text = out.data;
  return 0;
}

static void part(struct rlk_buffer *out, const struct rlk_queue_keys *keys, size_t from, size_t to)
{
  rlk_buffer_append(out, keys->text + from, to - from);
}

static int reserve(struct rlk_buffer *out, const struct rlk_queue_keys *keys)
{
  return rlk_buffer_reserve(out, keys->size + 2048);
}

int rlk_command_join(struct rlk_buffer *out, int full_script, const struct rlk_queue_keys *keys, const char *place,
                     int64_t waited_us, const struct rlk_promise *promise)
{
  if (reserve(out, keys) != 0)
    return -1;
  script_head(out, RLK_SCRIPT_JOIN, full_script, 12, 3);
  part(out, keys, 0, keys->channels);
  bulk(out, place, strlen(place));
  bulk_number(out, (uint64_t)waited_us);
  bulk_number(out, (uint64_t)promise->first_us);
  bulk_number(out, (uint64_t)promise->step_us);
  bulk_number(out, (uint64_t)promise->steps_max_us);
  part(out, keys, keys->channels, keys->size);
  return 0;
}

int rlk_command_hand_over(struct rlk_buffer *out, int full_script, const struct rlk_queue_keys *keys, const char *token,
                          size_t token_size, const char *place)
{
  if (reserve(out, keys) != 0)
    return -1;
  if (full_script)
    script_head(out, RLK_SCRIPT_HAND_OVER, 1, 9, 3);
  else
    LITERAL(out, "*9\r\n$7\r\nEVALSHA\r\n$40\r\n" RLK_HAND_OVER_HASH "\r\n$1\r\n3\r\n");
  part(out, keys, 0, keys->channels);
  bulk(out, token, token_size);
  if (*place)
    bulk(out, place, strlen(place));
  else
    LITERAL(out, "$0\r\n\r\n");
  part(out, keys, keys->channels, keys->size);
  return 0;
}

int rlk_command_leave(struct rlk_buffer *out, const struct rlk_queue_keys *keys, const char *place)
{
  if (reserve(out, keys) != 0)
    return -1;
  script_head(out, RLK_SCRIPT_LEAVE, 1, 8, 3);
  part(out, keys, 0, keys->channels);
  bulk(out, place, strlen(place));
  part(out, keys, keys->channels, keys->size);
  return 0;
}

int rlk_command_is_queued(struct rlk_buffer *out, const struct rlk_queue_keys *keys)
{
  if (reserve(out, keys) != 0)
    return -1;
  LITERAL(out, "*2\r\n$6\r\nEXISTS\r\n");
  part(out, keys, keys->queue, keys->promises);
  return 0;
}

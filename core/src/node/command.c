#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"

/* No shebang: with one the scripts would be refused when a server is out of memory (rule A.7). A key of another type is
 * somebody else's; any other error is an error. */
#define IS_ERROR "type(v)=='table' and v.err and not v.err:find('WRONGTYPE',1,true)"

#define RELEASE_TEXT                                                                                                   \
  "local v=redis.pcall('GET',KEYS[1])\n"                                                                               \
  "if v==ARGV[1] then return redis.call('DEL',KEYS[1]) end\n"                                                          \
  "if " IS_ERROR " then return v end\n"                                                                                \
  "return 0"
#define RELEASE_HASH "e949c6e37d7c2a84cc4c242883e566afe7adc5eb"

/* One script for all locks that are extended on a node. It never shortens a lease (rule B.2). */
#define EXTEND_TEXT                                                                                                    \
  "local r={}\n"                                                                                                       \
  "for i=1,#KEYS do\n"                                                                                                 \
  "  local v=redis.pcall('GET',KEYS[i])\n"                                                                             \
  "  if v==ARGV[i+1] then\n"                                                                                           \
  "    if redis.call('PTTL',KEYS[i])<tonumber(ARGV[1]) then redis.call('PEXPIRE',KEYS[i],ARGV[1]) end\n"               \
  "    r[i]=1\n"                                                                                                       \
  "  elseif " IS_ERROR " then return v\n"                                                                              \
  "  else r[i]=0 end\n"                                                                                                \
  "end\n"                                                                                                              \
  "return r"
#define EXTEND_HASH "ca415a373b3ba5c110a30e62c094e553b1d61b1b"

/* May shorten a lease. */
#define EXPIRE_TEXT                                                                                                    \
  "local v=redis.pcall('GET',KEYS[1])\n"                                                                               \
  "if v==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"                                              \
  "if " IS_ERROR " then return v end\n"                                                                                \
  "return 0"

/* Whether a script may do what those above do, tried on a key that nobody has. */
#define PROOF_TEXT                                                                                                     \
  "for _,c in ipairs({'GET','PTTL','PEXPIRE','DEL'}) do\n"                                                             \
  "  local v=redis.pcall(c,KEYS[1],unpack(c=='PEXPIRE' and {'1'} or {}))\n"                                            \
  "  if type(v)=='table' and v.err then return redis.error_reply(v.err..' ('..c..')') end\n"                           \
  "end\n"                                                                                                              \
  "return 0"

/* Tells who is first that its turn has come. An odd place has a listener: if nobody hears, its client is gone. Where
 * nobody can hear, the next is told to ask. */
#define WAKE_THE_FIRST(channel, or_else)                                                                               \
  "local at=0\n"                                                                                                       \
  "for i=1,100 do\n"                                                                                                   \
  "  local h=redis.pcall('ZRANGE',KEYS[2],at,at)[1]\n"                                                                 \
  "  if not h or at>2" or_else " then break end\n"                                                                     \
  "  if redis.pcall('PUBLISH'," channel "..h:sub(1,16),at==0 and h or h..'?')~=0 then break end\n"                     \
  "  if h:find('[13579]$') then\n"                                                                                     \
  "    redis.pcall('ZREM',KEYS[2],h)\n"                                                                                \
  "    redis.pcall('ZREM',KEYS[3],h)\n"                                                                                \
  "  else at=at+1 end\n"                                                                                               \
  "end\n"

/* What waiters queue with, on the home node (rule F): a set of their places by arrival, and one of the times by which
 * each has promised to ask again. Whoever asks removes those at the head who have not. A request that was slow makes
 * its sender seem to have come later: the earliest counts. */
#define JOIN_TEXT                                                                                                      \
  "local t=redis.call('TIME')\n"                                                                                       \
  "local now=t[1]*1000000+t[2]\n"                                                                                      \
  "for i=1,100 do\n"                                                                                                   \
  "  local m=redis.call('ZRANGE',KEYS[2],0,0)[1]\n"                                                                    \
  "  local u=m and redis.call('ZSCORE',KEYS[3],m)\n"                                                                   \
  "  if not m or (u and tonumber(u)>now) then break end\n"                                                             \
  "  redis.call('ZREM',KEYS[2],m)\n"                                                                                   \
  "  redis.call('ZREM',KEYS[3],m)\n"                                                                                   \
  "end\n"                                                                                                              \
  "local since=redis.call('ZSCORE',KEYS[2],ARGV[1])\n"                                                                 \
  "if not since or now-ARGV[2]<tonumber(since) then redis.call('ZADD',KEYS[2],now-ARGV[2],ARGV[1]) end\n"              \
  "local ttl=redis.call('PTTL',KEYS[1])\n"                                                                             \
  "if ttl==-2 then\n" WAKE_THE_FIRST(                                                                                  \
      "ARGV[6]", " or h==ARGV[1]") "end\n"                                                                             \
                                   "local rank=redis.call('ZRANK',KEYS[2],ARGV[1])\n"                                  \
                                   "redis.call('ZADD',KEYS[3],now+ARGV[3]+math.min(rank*ARGV[4],ARGV[5]),ARGV[1])\n"   \
                                   "redis.call('PEXPIRE',KEYS[2],60000)\n"                                             \
                                   "redis.call('PEXPIRE',KEYS[3],60000)\n"                                             \
                                   "return {rank,ttl}"
#define JOIN_HASH "bd45f9324e811027571917f2632b8d36391bc94c"

/* The release on the home node: the holder's place goes, and who is first is told. What the queue
 * answers is no matter of the release. */
#define HAND_OVER_TEXT                                                                                                 \
  "local v=redis.pcall('GET',KEYS[1])\n"                                                                               \
  "local r=0\n"                                                                                                        \
  "if v==ARGV[1] then r=redis.call('DEL',KEYS[1])\n"                                                                   \
  "elseif " IS_ERROR " then return v end\n"                                                                            \
  "if redis.pcall('EXISTS',KEYS[2])~=1 then return r end\n"                                                            \
  "if ARGV[2]~='' then\n"                                                                                              \
  "  redis.pcall('ZREM',KEYS[2],ARGV[2])\n"                                                                            \
  "  redis.pcall('ZREM',KEYS[3],ARGV[2])\n"                                                                            \
  "end\n" WAKE_THE_FIRST("ARGV[3]", "") "if redis.pcall('EXISTS',KEYS[2])==1 then r=r+2 end\n"                         \
                                        "return r"
#define HAND_OVER_HASH "9ea4742bc93a16874a475cecb8ce7cdfc7c63252"

/* Rare, so always sent in full. Who was told that its turn had come, and leaves, has told nobody else. */
#define LEAVE_TEXT                                                                                                     \
  "redis.pcall('ZREM',KEYS[2],ARGV[1])\n"                                                                              \
  "redis.pcall('ZREM',KEYS[3],ARGV[1])\n"                                                                              \
  "if redis.pcall('EXISTS',KEYS[1])==0 then\n" WAKE_THE_FIRST("ARGV[2]", "") "end\n"                                   \
                                                                             "return 0"

/* The key of a number outlives it: else a smaller one could follow. */
#define FENCE_LIFE(number) "string.format('%.0f',86400000+math.max(0,math.floor((" number "-now)/1000)))"

/* A SET that also draws the next fencing number of the resource (rule D.1). The client proposes a number from its
 * clock, so that all nodes have the same; the server's bounds it, and is the least where the number before was lost. A
 * server without a number whose clock is far ahead of the proposal draws none, but says what its clock is, unless the
 * proposal is a number already. A token that is there already has its number. */
#define FENCE_TEXT                                                                                                     \
  "local f=redis.pcall('GET',KEYS[2])\n"                                                                               \
  "if type(f)=='table' and f.err and not f.err:find('WRONGTYPE',1,true) then return f end\n"                           \
  "local n=tonumber(f or '0')\n"                                                                                       \
  "if not n or n<0 or n%1~=0 or n>9007199254740990 then\n"                                                             \
  "  return redis.error_reply('ERR the key '..KEYS[2]..' is not a fencing number')\n"                                  \
  "end\n"                                                                                                              \
  "if not redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then\n"                                                  \
  "  if redis.pcall('GET',KEYS[1])~=ARGV[1] then return {0,0} end\n"                                                   \
  "  if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"                 \
  "  if n>0 then return {1,n} end\n"                                                                                   \
  "end\n"                                                                                                              \
  "local t=redis.call('TIME')\n"                                                                                       \
  "local now=t[1]*1000000+t[2]\n"                                                                                      \
  "local p=tonumber(ARGV[3])\n"                                                                                        \
  "if n==0 and ARGV[4]=='' then\n"                                                                                     \
  "  if now>p+1000000 then return {2,now} end\n"                                                                       \
  "  n=now-1\n"                                                                                                        \
  "end\n"                                                                                                              \
  "local v=math.max(n+1,math.min(p,now+1000000))\n"                                                                    \
  "redis.call('SET',KEYS[2],string.format('%.0f',v),'PX'," FENCE_LIFE("v") ")\n"                                       \
                                                                           "return {1,v}"
#define FENCE_HASH "1b716bd48d4d399cfdf03881d62b07a352048271"

/* Raises the number, while the token is there. */
#define RAISE_TEXT                                                                                                     \
  "if redis.pcall('GET',KEYS[1])~=ARGV[1] then return 0 end\n"                                                         \
  "local n=tonumber(redis.call('GET',KEYS[2]) or '0')\n"                                                               \
  "if n<tonumber(ARGV[2]) then\n"                                                                                      \
  "  local t=redis.call('TIME')\n"                                                                                     \
  "  local now=t[1]*1000000+t[2]\n"                                                                                    \
  "  redis.call('SET',KEYS[2],ARGV[2],'PX'," FENCE_LIFE("ARGV[2]") ")\n"                                               \
                                                                   "end\n"                                             \
                                                                   "return 1"

/* Writes the marker of the restart guard, with the time where ARGV[3] is empty, and returns it; or returns the one that
 * somebody else has written since. */
#define REGISTER_TEXT                                                                                                  \
  "local v=redis.call('GET',KEYS[1])\n"                                                                                \
  "if v=='' or (v or '')~=ARGV[1] then return v or '' end\n"                                                           \
  "local s=ARGV[3]\n"                                                                                                  \
  "if s=='' then local t=redis.call('TIME') s=string.format('%.0f',t[1]*1000+math.floor(t[2]/1000)) end\n"             \
  "v=ARGV[2]..s..ARGV[4]\n"                                                                                            \
  "redis.call('SET',KEYS[1],v)\n"                                                                                      \
  "return v"

#ifdef RLK_TEST_BUILD
#define EXTEND_SHORTENING_TEXT                                                                                         \
  "local r={} for i=1,#KEYS do if redis.pcall('GET',KEYS[i])==ARGV[i+1] then "                                         \
  "redis.call('PEXPIRE',KEYS[i],ARGV[1]) r[i]=1 else r[i]=0 end end return r"
#endif

#define LITERAL(b, text) rlk_buffer_append(b, text, sizeof(text) - 1)

const char *rlk_script_text(enum rlk_script script)
{
#ifdef RLK_TEST_BUILD
  if (script == RLK_SCRIPT_EXTEND && RLK_MUTANT(EXTEND_SHORTENS))
    return EXTEND_SHORTENING_TEXT;
#endif
  switch (script) {
  case RLK_SCRIPT_RELEASE: return RELEASE_TEXT;
  case RLK_SCRIPT_EXTEND: return EXTEND_TEXT;
  case RLK_SCRIPT_JOIN: return JOIN_TEXT;
  case RLK_SCRIPT_HAND_OVER: return HAND_OVER_TEXT;
  case RLK_SCRIPT_LEAVE: return LEAVE_TEXT;
  case RLK_SCRIPT_REGISTER: return REGISTER_TEXT;
  case RLK_SCRIPT_FENCE: return FENCE_TEXT;
  case RLK_SCRIPT_RAISE: return RAISE_TEXT;
  case RLK_SCRIPT_EXPIRE: return EXPIRE_TEXT;
  default: return PROOF_TEXT;
  }
}

const char *rlk_script_hash(enum rlk_script script)
{
  switch (script) {
  case RLK_SCRIPT_RELEASE: return RELEASE_HASH;
  case RLK_SCRIPT_JOIN: return JOIN_HASH;
  case RLK_SCRIPT_HAND_OVER: return HAND_OVER_HASH;
  case RLK_SCRIPT_FENCE: return FENCE_HASH;
  default: return EXTEND_HASH;
  }
}

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
    at = PUT(at, "*5\r\n$7\r\nEVALSHA\r\n$40\r\n" RELEASE_HASH "\r\n$1\r\n1\r\n");
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
    LITERAL(out, "*9\r\n$7\r\nEVALSHA\r\n$40\r\n" HAND_OVER_HASH "\r\n$1\r\n3\r\n");
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

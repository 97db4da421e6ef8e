#include "held_by.h"

#include <stdlib.h>
#include <string.h>

#include "../kinds/kinds.h"
#include "../lock/holder.h"
#include "../lock/release.h"
#include "api.h"

/* The text of an entry: v1 PID HOST NAME. Anyone who can write to the nodes may have written it. */
struct entry {
  long long pid;
  const char *host, *name;
  size_t host_size, name_size;
  int64_t held_ms;
};

int64_t rlk_held_ms(const redlock_lock *lock, const char *token)
{
  const struct rlk_env *env = &lock->engine->net.env;
  char digits[RLK_TOKEN_TIME_DIGITS + 1] = "";
  int64_t since_ns, now_ns = env->platform->wall_ns(env->context);
  memcpy(digits, token + RLK_TOKEN_CLIENT_DIGITS, RLK_TOKEN_TIME_DIGITS);
  since_ns = (int64_t)(strtoull(digits, NULL, 16) << RLK_TOKEN_TIME_SHIFT);
  return now_ns > since_ns ? (now_ns - since_ns) / RLK_NS_PER_MS : 0;
}

/* It was found by redlock_lock_who, or holds the key on a majority of the nodes that an inspect has asked. */
static int is_told(const redlock_lock *lock)
{
  int node;
  if (!lock->holder || !lock->holder->entry[0])
    return 0;
  if (lock->op.kind != REDLOCK_INSPECT || lock->holder->is_found)
    return 1;
  node = rlk_verdict_node(lock);
  if (node >= 0 && lock->node_answers[node].readers)
    return 1; /* one of them */
  return node >= 0 && lock->node_answers[node].value &&
         strcmp(lock->node_answers[node].value, lock->holder->token) == 0;
}

/* How many hold it together, as far as that is known; 0: it is not shared. */
static int64_t readers_of(const redlock_lock *lock)
{
  if (lock->holder && lock->holder->is_found)
    return lock->holder->readers;
  return rlk_verdict_node(lock) >= 0 ? rlk_verdict_readers(lock) : 0;
}

static int parse(const char *text, struct entry *entry)
{
  char *end;
  if (strncmp(text, "v1 ", 3) != 0)
    return 0;
  entry->pid = strtoll(text + 3, &end, 10);
  if (*end != ' ')
    return 0;
  entry->host = end + 1;
  entry->host_size = strcspn(entry->host, " ");
  if (!entry->host[entry->host_size])
    return 0;
  entry->name = entry->host + entry->host_size + 1;
  entry->name_size = strlen(entry->name);
  return 1;
}

static int read_entry(const redlock_lock *lock, struct entry *entry)
{
  if (!is_told(lock) || !parse(lock->holder->entry, entry))
    return 0;
  entry->held_ms = rlk_held_ms(lock, lock->holder->token);
  return 1;
}

int rlk_held_by_words(const redlock_lock *lock, struct rlk_text *out)
{
  struct entry entry;
  int64_t readers = readers_of(lock);
  if (readers) {
    rlk_text_format(out, "%lld reader%s", (long long)readers, readers > 1 ? "s" : "");
    return 1;
  }
  if (!read_entry(lock, &entry))
    return 0;
  rlk_text_escaped(out, entry.name_size ? entry.name : "a client", entry.name_size ? entry.name_size : 8);
  rlk_text_format(out, " (pid %lld on ", entry.pid);
  rlk_text_escaped(out, entry.host, entry.host_size);
  rlk_text_format(out, ") for %lld.%lld s", (long long)(entry.held_ms / 1000), (long long)(entry.held_ms / 100 % 10));
  return 1;
}

static void json(const struct entry *entry, const char *time, struct rlk_text *out)
{
  rlk_text_add(out, "{\"client_name\":");
  rlk_text_json(out, entry->name, entry->name_size, 64);
  rlk_text_add(out, ",\"host\":");
  rlk_text_json(out, entry->host, entry->host_size, 64);
  rlk_text_format(out, ",\"pid\":%lld,\"%s\":%lld", entry->pid, time, (long long)entry->held_ms);
}

int rlk_entry_json(const char *text, const char *time, int64_t ms, struct rlk_text *out)
{
  struct entry entry = {.held_ms = ms};
  if (!text || !parse(text, &entry))
    return 0;
  json(&entry, time, out);
  return 1;
}

int64_t redlock_lock_held_by(redlock_lock *lock, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  struct entry entry;
  int64_t readers = c ? readers_of(lock) : 0;
  if (c && read_entry(lock, &entry)) {
    json(&entry, "held_ms", &out);
    if (readers)
      rlk_text_format(&out, ",\"readers\":%lld", (long long)readers);
    rlk_text_add(&out, "}");
  }
  return rlk_leave_text(c, &out);
}

static void note(redlock_lock *lock, redlock_lock *look)
{
  int64_t readers = readers_of(look);
  rlk_holder_drop(lock);
  if (!look->holder || (!is_told(look) && !readers))
    return;
  lock->holder = look->holder;
  lock->holder->readers = readers;
  lock->holder->is_found = 1;
  look->holder = NULL;
}

/* With a handle of its own: that of the lock may have an operation in flight, or an answer that is still to be read. */
int redlock_lock_who(redlock_lock *lock, int64_t limit_ms)
{
  redlock_client *c = limit_ms < -1 ? NULL : rlk_enter_lock(lock);
  struct rlk_numbers options;
  struct rlk_key *key, *one;
  redlock_lock *look;
  int status;
  if (!c || lock->state == REDLOCK_STATE_INVALID)
    return rlk_leave(c, REDLOCK_INVALID);
  key = lock->key;
  key->users++;
  one = rlk_lock_refused_key(lock);
  options = lock->options;
  rlk_leave(c, REDLOCK_OK);
  look = redlock_lock_new(c, rlk_key_resource(one), one->resource_size);
  if (look) { /* of permits it asks for these */
    look->options = options;
    look->kind = rlk_kind_of(look);
  }
  status = look ? redlock_lock_start(look, REDLOCK_WHO | REDLOCK_AT_ONCE, limit_ms) : REDLOCK_NO_MEMORY;
  if (status == REDLOCK_OK)
    status = redlock_lock_wait(look, -1);
  rlk_enter(c);
  rlk_key_drop(key);
  if (look)
    note(lock, look);
  rlk_leave(c, REDLOCK_OK);
  redlock_lock_free(look);
  return status == REDLOCK_PENDING ? REDLOCK_CANCELLED : status;
}

#include "held_by.h"

#include <stdlib.h>
#include <string.h>

#include "../lock/holder.h"
#include "../lock/operation.h"
#include "api.h"

/* The text of an entry: v1 PID HOST NAME. Anyone who can write to the nodes may have written it. */
struct entry {
  long long pid;
  const char *host, *name;
  size_t host_size, name_size;
  int64_t held_ms;
};

static int64_t held_ms(const redlock_lock *lock)
{
  const struct rlk_env *env = &lock->engine->net.env;
  char digits[RLK_TOKEN_TIME_DIGITS + 1] = "";
  int64_t since_ns, now_ns = env->platform->wall_ns(env->context);
  memcpy(digits, lock->holder->token + RLK_TOKEN_CLIENT_DIGITS, RLK_TOKEN_TIME_DIGITS);
  since_ns = (int64_t)(strtoull(digits, NULL, 16) << RLK_TOKEN_TIME_SHIFT);
  return now_ns > since_ns ? (now_ns - since_ns) / RLK_NS_PER_MS : 0;
}

/* The last operation has found the lock held, by this token. */
static int is_told(const redlock_lock *lock)
{
  int node;
  if (!lock->holder || !lock->holder->entry[0])
    return 0;
  if (lock->op.kind == REDLOCK_ACQUIRE)
    return lock->op.status == REDLOCK_BUSY || lock->op.status == REDLOCK_PENDING;
  node = rlk_verdict_node(lock);
  if (node >= 0 && lock->node_answers[node].readers)
    return 1; /* one of them */
  return node >= 0 && lock->node_answers[node].value &&
         strcmp(lock->node_answers[node].value, lock->holder->token) == 0;
}

/* How many hold it together, as far as that is known; 0: it is not shared. */
static int64_t readers_of(const redlock_lock *lock)
{
  int is_waiting = lock->op.status == REDLOCK_BUSY || lock->op.status == REDLOCK_PENDING;
  if (lock->op.kind == REDLOCK_ACQUIRE)
    return lock->holder && is_waiting ? lock->holder->readers : 0;
  return rlk_verdict_node(lock) >= 0 ? rlk_verdict_readers(lock) : 0;
}

static int read_entry(const redlock_lock *lock, struct entry *entry)
{
  char *end;
  if (!is_told(lock))
    return 0;
  entry->pid = strtoll(lock->holder->entry + 3, &end, 10);
  if (*end != ' ')
    return 0;
  entry->host = end + 1;
  entry->host_size = strcspn(entry->host, " ");
  if (!entry->host[entry->host_size])
    return 0;
  entry->name = entry->host + entry->host_size + 1;
  entry->name_size = strlen(entry->name);
  entry->held_ms = held_ms(lock);
  return 1;
}

/* By hand: the program's locale may write a comma. */
static void seconds(struct rlk_text *out, int64_t ms)
{
  rlk_text_format(out, "%lld.%lld s", (long long)(ms / 1000), (long long)(ms / 100 % 10));
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
  rlk_text_add(out, ") for ");
  seconds(out, entry.held_ms);
  return 1;
}

static void json(const struct entry *entry, struct rlk_text *out)
{
  rlk_text_add(out, "{\"client_name\":");
  rlk_text_json(out, entry->name, entry->name_size, 64);
  rlk_text_add(out, ",\"host\":");
  rlk_text_json(out, entry->host, entry->host_size, 64);
  rlk_text_format(out, ",\"pid\":%lld,\"held_ms\":%lld", entry->pid, (long long)entry->held_ms);
}

int64_t redlock_lock_held_by(redlock_lock *lock, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  struct entry entry;
  int64_t readers = c ? readers_of(lock) : 0;
  if (c && read_entry(lock, &entry)) {
    json(&entry, &out);
    if (readers)
      rlk_text_format(&out, ",\"readers\":%lld", (long long)readers);
    rlk_text_add(&out, "}");
  }
  return rlk_leave_text(c, &out);
}

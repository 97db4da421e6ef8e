/* A client in JSON, for people and tools. */
#include <string.h>

#include "../node/guard.h"
#include "step.h"

static const char *state_name(const struct rlk_node *n)
{
  if (n->refused && n->state != RLK_NODE_READY)
    return "refused";
  switch (n->state) {
  case RLK_NODE_RESOLVING: return "resolving";
  case RLK_NODE_CONNECTING: return "connecting";
  case RLK_NODE_SETUP: return "setup";
  case RLK_NODE_READY: return n->silent_ns ? "silent" : "ready";
  default: return "down";
  }
}

static void key(struct rlk_text *out, const char *name)
{
  rlk_text_format(out, "\"%s\":", name);
}

static void string(struct rlk_text *out, const char *name, const char *value)
{
  key(out, name);
  rlk_text_json(out, value, strlen(value), SIZE_MAX);
}

static int is_word(const char *type, const char *value)
{
  return strcmp(type, "string") == 0 || (strcmp(type, "int") == 0 && strcmp(value, "auto") == 0);
}

static void options(redlock_client *c, struct rlk_text *out)
{
  int first = 1;
  key(out, "options");
  rlk_text_add(out, "{");
  for (int i = 0; i < RLK_OPTION_COUNT; i++) {
    const char *type = redlock_option_at(i, REDLOCK_OPTION_TYPE);
    char value[64];
    struct rlk_text text = rlk_text_in(value, sizeof value);
    if (i == RLK_OPT_NODES)
      continue;
    rlk_text_add(out, first ? "" : ",");
    first = 0;
    if (rlk_option_is_text(i)) {
      string(out, redlock_option_at(i, REDLOCK_OPTION_NAME), c->engine.net.texts[i]);
      continue;
    }
    rlk_option_format(&c->engine.net.options, i, &text);
    key(out, redlock_option_at(i, REDLOCK_OPTION_NAME));
    rlk_text_format(out, is_word(type, value) ? "\"%s\"" : "%s", value);
  }
  rlk_text_add(out, "}");
}

static void node(struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  int is_guarded = n->state == RLK_NODE_READY && rlk_guard_waits(n, now);
  int votes = n->state == RLK_NODE_READY && !n->silent_ns && !is_guarded;
  char guard[RLK_WHY_SIZE];
  struct rlk_text guard_text = rlk_text_in(guard, sizeof guard);
  if (is_guarded)
    rlk_guard_words(n, &guard_text, now);
  rlk_text_add(out, "{");
  string(out, "node", n->url.name);
  rlk_text_format(out, ",\"state\":\"%s\",\"votes\":%s,", state_name(n), votes ? "true" : "false");
  string(out, "why", votes ? "" : is_guarded ? guard : n->why);
  rlk_text_add(out, ",");
  string(out, "version", n->version);
  rlk_text_add(out, ",");
  string(out, "run_id", n->run_id);
  rlk_text_format(out, ",\"rtt_us\":%lld,\"owed\":%u,\"connects\":%llu,\"drops\":%llu}", (long long)(n->rtt_ns / 1000),
                  n->line->requests.count, (unsigned long long)n->connects, (unsigned long long)n->drops);
}

static int held(const redlock_client *c)
{
  int count = 0;
  for (const redlock_lock *lock = c->engine.locks; lock; lock = lock->next)
    count += lock->state == REDLOCK_STATE_HELD;
  return count;
}

static void counters(redlock_client *c, struct rlk_text *out)
{
  const struct rlk_engine *e = &c->engine;
  rlk_text_format(out,
                  "\"held\":%d,\"renewing\":%d,\"debts\":%d,\"commands\":%llu,\"attempts\":%llu,\"acquired\":%llu,"
                  "\"renewals\":%llu,\"lost\":%llu",
                  held(c), e->renewing, e->pending_deletes, (unsigned long long)e->net.commands,
                  (unsigned long long)e->attempts, (unsigned long long)e->acquired, (unsigned long long)e->renewals,
                  (unsigned long long)e->lost);
}

int64_t redlock_client_describe(redlock_client *c, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  int64_t now;
  if (!c)
    return -REDLOCK_INVALID;
  pthread_mutex_lock(&c->mutex);
  rlk_client_enter(c);
  rlk_text_add(&out, "{");
  string(&out, "version", redlock_version());
  rlk_text_format(&out, ",\"open\":%s,\"quorum\":%d,", c->engine.net.state == RLK_NET_OPEN ? "true" : "false",
                  rlk_quorum(c->engine.net.node_count));
  counters(c, &out);
  rlk_text_add(&out, ",");
  options(c, &out);
  rlk_text_add(&out, ",\"nodes\":[");
  now = rlk_client_now(c);
  for (int i = 0; i < c->engine.net.node_count; i++) {
    rlk_text_add(&out, i ? "," : "");
    node(&c->engine.net.nodes[i], &out, now);
  }
  rlk_text_add(&out, "]}");
  rlk_client_leave(c);
  return (int64_t)out.length;
}

/* One server: its connection, reading and writing, backing off. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core.h"

#define MS RL_NS_PER_MS
#define BACKOFF_MIN_NS (10 * MS)
#define BACKOFF_MAX_NS (1000 * MS)
#define STALE_MIN_NS (5000 * MS)

static void close_reader(struct rl_node *n)
{
  if (n->reader)
    redisReaderFree(n->reader);
  n->reader = NULL;
}

/* The system's words, which begin with a capital, for the middle of a line. */
static const char *error_words(int error, char *out, size_t size)
{
  struct rl_text text = rl_text_in(out, size);
  rl_text_add(&text, strerror(error)); /* thread-safe in glibc and musl for the numbers that exist */
  if (out[0] >= 'A' && out[0] <= 'Z')
    out[0] = (char)(out[0] + 32);
  return out;
}

/* ---- life ---- */

void rl_node_init(struct rl_node *n, redlock_client *client, int index)
{
  n->client = client;
  n->index = index;
  n->state = RL_NODE_OFF;
  n->timer.kind = RL_TIMER_NODE;
  n->link = (struct rl_link){.ops = client->env.link, .context = client->env.context, .node = index, .fd = -1,
                             .poller = client->env.stepped ? NULL : &client->poller};
}

void rl_node_free(struct rl_node *n)
{
  n->link.ops->close(&n->link);
  rl_resolve_drop(n->resolve);
  close_reader(n);
  rl_buffer_free(&n->out);
  rl_buffer_free(&n->reply.text);
  rl_url_free(&n->url);
  free(n->owed);
  n->owed = NULL;
}

/* In a forked child: nothing is written, and nothing that is shared with the parent is changed. */
void rl_node_abandon(struct rl_node *n)
{
  n->link.ops->abandon(&n->link);
  rl_resolve_forked(n->resolve);
  n->resolve = NULL;
  close_reader(n);
  rl_buffer_free(&n->out);
  for (uint32_t i = 0; i < n->owed_count; i++) {
    struct rl_owed *o = &n->owed[(n->owed_first + i) & (n->owed_size - 1)];
    if (o->claim)
      o->claim->owed--;
    if (o->batch)
      rl_batch_drop(n->client, o->batch);
  }
  n->owed_count = n->owed_first = 0;
  n->owed_asks = 0;
  n->queued = n->written = 0;
  n->dirty = 0;
  n->state = RL_NODE_OFF;
  n->failures = 0;
  n->run_id[0] = 0;
  rl_timer_set(&n->client->timers, &n->timer, 0);
}

static void say_why(struct rl_node *n, const char *why)
{
  struct rl_text text = rl_text_in(n->why, sizeof n->why);
  rl_text_add(&text, why);
}

/* ---- connecting ---- */

static int64_t connect_timeout_ns(const struct rl_node *n)
{
  return RL_INT(&n->client->options, CONNECT_TIMEOUT_MS) * MS;
}

static void connected(struct rl_node *n, int64_t now)
{
  n->reader = rl_reply_reader(&n->reply);
  if (!n->reader || rl_session_begin(n, now) != 0) {
    rl_node_drop(n, 0, "out of memory", now);
    return;
  }
  rl_timer_set(&n->client->timers, &n->timer, now + connect_timeout_ns(n));
}

/* Tries the addresses that are left, one after the other; the time is shared among them. */
static void try_addresses(struct rl_node *n, const char *why, int64_t now)
{
  char words[RL_WHY_SIZE];
  while (n->address_next < n->address_count) {
    int left = n->address_count - n->address_next;
    int status;
    n->link.generation++;
    n->state = RL_NODE_CONNECTING;
    status = n->link.ops->open(&n->link, &n->addresses[n->address_next++]);
    if (status == 0) {
      connected(n, now);
      return;
    }
    if (status == -EINPROGRESS) {
      rl_timer_set(&n->client->timers, &n->timer, now + connect_timeout_ns(n) / left);
      return;
    }
    why = error_words(-status, words, sizeof words);
  }
  rl_node_drop(n, 0, why, now);
}

static void unix_address(struct rl_node *n)
{
  struct rl_address *a = &n->addresses[0];
  memset(a, 0, sizeof *a);
  a->family = AF_UNIX;
  memcpy(a->path, n->url.host, strlen(n->url.host));
}

void rl_node_connect(struct rl_node *n, int64_t now)
{
  n->connects++;
  n->address_next = 0;
  n->address_count = 1;
  if (n->url.is_unix) {
    unix_address(n);
  } else if (!rl_address_numeric(n->url.host, n->url.port, &n->addresses[0])) {
    n->resolve = rl_resolve_start(n->url.host, n->url.port, n->client->poller.wake);
    n->state = RL_NODE_RESOLVING;
    if (n->resolve)
      rl_timer_set(&n->client->timers, &n->timer, now + connect_timeout_ns(n));
    else
      rl_node_drop(n, 0, "name not resolved: no thread could be started", now);
    return;
  }
  try_addresses(n, "no address", now);
}

/* RESOLVING: looks whether the name is known by now. */
static void look_at_name(struct rl_node *n, int64_t now)
{
  char why[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(why, sizeof why);
  int count = rl_resolve_result(n->resolve, n->addresses, &text);
  if (count == -EAGAIN)
    return;
  rl_resolve_drop(n->resolve);
  n->resolve = NULL;
  n->address_count = count > 0 ? count : 0;
  try_addresses(n, why, now);
}

static int64_t backoff_ns(struct rl_node *n)
{
  int shift = n->failures < 8 ? n->failures : 8;
  int64_t top = BACKOFF_MIN_NS << shift;
  if (top > BACKOFF_MAX_NS)
    top = BACKOFF_MAX_NS;
  return BACKOFF_MIN_NS + (int64_t)(rl_random(n->client) % (uint64_t)(top - BACKOFF_MIN_NS + 1));
}

/* What was asked on a connection that broke is unknown: the tokens may be there. Where the node is connected again at
 * once, its requests are only put off. */
static void fail_owed(struct rl_node *n, int again, int64_t now)
{
  struct rl_owed *owed = n->owed;
  uint32_t size = n->owed_size, first = n->owed_first, count = n->owed_count;
  n->owed = NULL;
  n->owed_size = n->owed_first = n->owed_count = 0;
  n->owed_asks = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct rl_owed *o = &owed[(first + i) & (size - 1)];
    if (o->batch)
      rl_batch_drop(n->client, o->batch);
    if (!o->claim)
      continue;
    uint8_t *flags = &o->claim->node[n->index].flags;
    if (o->kind == RL_OWED_SET)
      *flags = (uint8_t)((*flags & ~RL_SET_OWED) | RL_SET_LOST);
    if (o->kind == RL_OWED_DELETE)
      *flags &= (uint8_t)~RL_DELETE_OWED;
    rl_operation_answer(n, o, again ? RL_WAITING : RL_DROPPED, now);
    o->claim->owed--;
    rl_claim_settle(n->client, o->claim);
  }
  free(owed);
}

static void shut_down(struct rl_node *n)
{
  n->link.ops->close(&n->link);
  rl_resolve_drop(n->resolve);
  n->resolve = NULL;
  close_reader(n);
  rl_buffer_free(&n->out);
  n->queued = n->written = 0;
  n->state = RL_NODE_OFF;
}

void rl_node_drop(struct rl_node *n, int at_once, const char *why, int64_t now)
{
  int was_ready = n->state == RL_NODE_READY;
  /* at once only after it has answered: a server that closes right away is no reason to spin */
  int again = at_once && n->failures == 0 && n->client->state == RL_CLIENT_OPEN;
  char reason[RL_WHY_SIZE];
  struct rl_text text = rl_text_in(reason, sizeof reason);
  rl_text_add(&text, why); /* why may be a text of the connection that is about to go */
  shut_down(n);
  n->drops++;
  if (!n->refused || was_ready)
    say_why(n, reason);
  if (was_ready || (!n->refused && n->failures == 0))
    rl_event_add(n->client, RL_EVENT_NODE_DOWN, n->index, NULL, reason);
  if (n->client->state != RL_CLIENT_OPEN)
    rl_timer_clear(&n->client->timers, &n->timer);
  else
    rl_timer_set(&n->client->timers, &n->timer, again ? now : now + backoff_ns(n));
  n->failures++;
  fail_owed(n, again, now);
  if (!again)
    rl_operation_node_down(n, now);
}

void rl_node_refuse(struct rl_node *n, const char *why, int64_t now)
{
  if (!n->refused || strcmp(n->why, why) != 0)
    rl_event_add(n->client, RL_EVENT_NODE_REFUSED, n->index, NULL, why);
  n->refused = 1;
  say_why(n, why);
  n->state = RL_NODE_REFUSED;
  rl_timer_set(&n->client->timers, &n->timer, now + connect_timeout_ns(n));
  rl_operation_node_down(n, now);
  if (n->state == RL_NODE_REFUSED && n->owed_count == 0)
    rl_node_drop(n, 0, why, now);
}

/* ---- writing and reading ---- */

void rl_node_flush(struct rl_node *n, int64_t now)
{
  char words[RL_WHY_SIZE];
  if (n->link.fd < 0 || n->state == RL_NODE_CONNECTING)
    return;
  while (rl_buffer_size(&n->out) > 0) {
    ssize_t sent = n->link.ops->write(&n->link, n->out.data + n->out.start, rl_buffer_size(&n->out));
    if (sent == -EAGAIN) {
      n->link.ops->want_write(&n->link, 1);
      return;
    }
    if (sent < 0) {
      rl_node_drop(n, n->state == RL_NODE_READY, error_words((int)-sent, words, sizeof words), now);
      return;
    }
    rl_buffer_consume(&n->out, (size_t)sent);
    n->written += (uint64_t)sent;
  }
  if (n->link.writing)
    n->link.ops->want_write(&n->link, 0);
  if (n->state == RL_NODE_READY && !n->timer.place)
    rl_timer_set(&n->client->timers, &n->timer, now + STALE_MIN_NS);
  if (n->client->state == RL_CLIENT_LEAVING && n->state != RL_NODE_SETUP)
    n->link.ops->half_close(&n->link);
}

/* Takes the next reply off; 0 when there is none, or the connection has been closed. */
static int next_reply(struct rl_node *n, int64_t now)
{
  void *parsed = NULL;
  struct rl_owed owed;
  if (redisReaderGetReply(n->reader, &parsed) != REDIS_OK) {
    rl_node_drop(n, 0, n->reader->errstr[0] ? n->reader->errstr : "malformed bytes", now);
    return 0;
  }
  if (!parsed) {
    if (n->reader->len - n->reader->pos > RL_REPLY_SIZE_MAX)
      rl_node_drop(n, 0, "a reply that is too large", now);
    return 0;
  }
  if (n->owed_count == 0) {
    int error = n->reply.type == RL_REPLY_ERROR; /* "-ERR max number of clients reached" comes unasked */
    if (error)
      rl_answer_fault(n, RL_FAULT_LOADING, n->reply.text.data, now);
    else
      rl_node_drop(n, 0, "a reply that nobody asked for", now);
    return 0;
  }
  owed = n->owed[n->owed_first];
  n->owed_first = (n->owed_first + 1) & (n->owed_size - 1);
  n->owed_count--;
  n->owed_asks -= owed.kind == RL_OWED_SET || owed.kind == RL_OWED_EXTEND || owed.kind == RL_OWED_RENEW;
  rl_answer(n, &owed, &n->reply, now);
  return n->reader != NULL;
}

static void read_all(struct rl_node *n)
{
  char bytes[16384], words[RL_WHY_SIZE];
  uint32_t generation = n->link.generation;
  ssize_t size;
  do {
    int64_t now;
    size = n->link.ops->read(&n->link, bytes, sizeof bytes);
    if (size == -EAGAIN)
      return;
    now = rl_now(n->client); /* after the bytes are here: what is decided now is decided on this clock (rule A.1) */
    if (size <= 0) {
      rl_node_drop(n, n->state == RL_NODE_READY,
                   size ? error_words((int)-size, words, sizeof words) : "the server closed the connection", now);
      return;
    }
    if (redisReaderFeed(n->reader, bytes, (size_t)size) != REDIS_OK) {
      rl_node_drop(n, 0, "out of memory", now);
      return;
    }
    while (next_reply(n, now) && n->link.generation == generation)
      ;
    if (n->link.generation != generation || !n->reader)
      return;
    if (n->state == RL_NODE_REFUSED && n->owed_count == 0) {
      rl_node_drop(n, 0, n->why, now);
      return;
    }
  } while (size == (ssize_t)sizeof bytes);
}

void rl_node_event(struct rl_node *n, int what, int64_t now)
{
  char words[RL_WHY_SIZE];
  if (n->state == RL_NODE_CONNECTING) {
    int status = n->link.ops->finish(&n->link);
    if (status == 0) {
      connected(n, now);
    } else if (status != -EINPROGRESS) {
      n->link.ops->close(&n->link);
      try_addresses(n, error_words(-status, words, sizeof words), now);
    }
    return;
  }
  if (what & RL_WRITABLE)
    rl_node_flush(n, now);
  if ((what & RL_READABLE) && n->reader)
    read_all(n);
}

/* READY: a server that has not answered for this long is taken for dead (rule A.6). */
static void look_for_stale(struct rl_node *n, int64_t now)
{
  int64_t stale_ns = RL_INT(&n->client->options, TTL_MS) * MS;
  if (stale_ns < STALE_MIN_NS)
    stale_ns = STALE_MIN_NS;
  if (n->owed_count > 0 && now - n->owed[n->owed_first].sent_ns >= stale_ns) {
    rl_node_drop(n, 0, "no answer for too long", now);
    return;
  }
  if (n->debts_retry_ns && n->debts_retry_ns <= now)
    rl_node_pay_debts(n, now);
  if (n->owed_count > 0)
    rl_timer_set(&n->client->timers, &n->timer, n->owed[n->owed_first].sent_ns + stale_ns);
}

void rl_node_timer(struct rl_node *n, int64_t now)
{
  switch (n->state) {
  case RL_NODE_OFF:
    if (n->client->state == RL_CLIENT_OPEN)
      rl_node_connect(n, now);
    break;
  case RL_NODE_RESOLVING:
    look_at_name(n, now);
    if (n->state == RL_NODE_RESOLVING && !n->timer.place)
      rl_node_drop(n, 0, "name not resolved in time", now);
    break;
  case RL_NODE_CONNECTING:
    n->link.ops->close(&n->link);
    try_addresses(n, "connecting timed out", now);
    break;
  case RL_NODE_SETUP: rl_node_drop(n, 0, "no answer to the set-up in time", now); break;
  case RL_NODE_REFUSED: rl_node_drop(n, 0, n->why, now); break;
  case RL_NODE_READY: look_for_stale(n, now); break;
  }
}

/* A connection that has gone silent. Its requests may be on their way, lost, or wait in a server that is stopped:
 * nobody can know. So a second connection is set up beside it (rule A.6).
 *
 * The first that speaks is kept. If it is the old one, nothing has happened. If it is the new one, CLIENT KILL of the
 * old is the first that goes out on it: what the old one still carries is executed before that or never, so the order
 * of SET and DEL holds. Where the server does not allow CLIENT KILL, requests on the old connection are orphans, as
 * after any broken connection: nothing is counted on what they do, and their keys end by their time. */
#include "silence.h"

#include <string.h>

#include "command.h"
#include "connect.h"

#define MS RL_NS_PER_MS
#define SILENT_NS (300 * MS)
#define IDLE_NS (1000 * MS)
#define STALE_MIN_NS (5000 * MS)

/* Since when something is in flight without a byte of the reply having come. */
static int64_t waits_since_ns(const struct rl_line *l)
{
  int64_t sent_ns = rl_line_oldest(l)->sent_ns;
  return sent_ns > l->read_ns ? sent_ns : l->read_ns;
}

static int64_t patience_ns(const struct rl_node *n)
{
  return 4 * n->rtt_ns > SILENT_NS ? 4 * n->rtt_ns : SILENT_NS;
}

static int64_t stale_ns(const struct rl_node *n)
{
  int64_t ttl_ns = RL_INT(&n->net->options, TTL_MS) * MS;
  return ttl_ns > STALE_MIN_NS ? ttl_ns : STALE_MIN_NS;
}

static void sooner(int64_t *at, int64_t than)
{
  *at = than < *at ? than : *at;
}

static int is_open(const struct rl_node *n)
{
  return n->net->state == RL_NET_OPEN; /* one that leaves begins nothing new */
}

/* Sets the timer of a node that is ready to what has to be looked at next. */
static void arm(struct rl_node *n)
{
  const struct rl_request *o = rl_line_oldest(n->line);
  int64_t at = n->deletes_retry_ns ? n->deletes_retry_ns : RL_NEVER;
  if (o)
    sooner(&at, o->sent_ns + stale_ns(n));
  if (o && !n->silent_ns && is_open(n))
    sooner(&at, waits_since_ns(n->line) + patience_ns(n));
  if (n->silent_ns && (n->second || is_open(n)))
    sooner(&at, n->second_ns);
  if (at != RL_NEVER)
    rl_timer_set(&n->net->timers, &n->timer, at);
}

void rl_silence_flushed(struct rl_node *n, int64_t now)
{
  if (!n->timer.place || n->timer.at_ns > now + SILENT_NS)
    rl_timer_set(&n->net->timers, &n->timer, now + SILENT_NS);
}

/* ---- the second connection ---- */

static void close_second(struct rl_node *n)
{
  struct rl_line *l = n->second;
  n->second = NULL;
  if (!l)
    return;
  rl_line_close(l);
  rl_node_be(l, RL_NODE_OFF);
  l->requests.count = l->requests.first = 0; /* only of its set-up */
}

void rl_silence_forget(struct rl_node *n)
{
  close_second(n);
  n->silent_ns = 0;
  n->second_failures = 0;
}

static void open_second(struct rl_node *n, int64_t now)
{
  n->second = n->line == &n->lines[0] ? &n->lines[1] : &n->lines[0];
  n->second_ns = RL_NEVER;
  rl_connect(n->second, now);
}

void rl_silence_second_failed(struct rl_node *n, const char *why, int64_t now)
{
  struct rl_text text = rl_text_in(n->why, sizeof n->why);
  rl_text_add(&text, "silent, and a new connection fails: ");
  rl_text_add(&text, why);
  close_second(n);
  n->second_failures++;
  n->second_ns = now + rl_connect_backoff_ns(n, n->second_failures);
  arm(n);
  rl_node_tell(n, RL_OUTCOME_DOWN);
}

/* The fence: what the old connection still carries is not executed after this. The id is that of the old connection
 * only if the server has not been started anew; without memory there is no fence. */
static void kill_old(struct rl_line *l, int64_t client_id)
{
  char number[24];
  const char *words[] = {"CLIENT", "KILL", "ID", number};
  struct rl_text text = rl_text_in(number, sizeof number);
  size_t before = rl_buffer_size(&l->out);
  rl_text_format(&text, "%lld", (long long)client_id);
  if (rl_requests_reserve(&l->requests, 1) == 0 && rl_command_argv(&l->out, 4, words) == 0)
    rl_request_add(l, before, (struct rl_request){.kind = RL_REQUEST_NOTHING});
}

void rl_silence_replace(struct rl_line *l)
{
  struct rl_node *n = l->node;
  struct rl_line *old = n->line;
  n->second = NULL;
  n->line = l;
  rl_silence_forget(n);
  if (old->client_id && strcmp(n->run_id, l->run_id) == 0)
    kill_old(l, old->client_id);
  rl_line_close(old);
  rl_node_be(old, RL_NODE_OFF);
  old->lost_again = 1;
  rl_node_hurry(n);
  n->drops++;
}

/* ---- silent, and not any more ---- */

static void fall_silent(struct rl_node *n, int64_t now)
{
  struct rl_text text = rl_text_in(n->why, sizeof n->why);
  n->silent_ns = waits_since_ns(n->line);
  n->second_ns = now;
  rl_text_format(&text, "no answer for %lld ms", (long long)((now - n->silent_ns) / MS));
  rl_event_add(&n->net->events, RL_EVENT_NODE_SILENT, n->index, n->why);
}

void rl_silence_broken(struct rl_node *n)
{
  rl_silence_forget(n);
  n->why[0] = 0;
  rl_event_add(&n->net->events, RL_EVENT_NODE_UP, n->index, "it answers again");
  rl_node_tell(n, RL_OUTCOME_SPOKE);
}

int rl_silence_hope(const struct rl_node *n, int is_patient)
{
  const struct rl_request *o = rl_line_oldest(n->line);
  if (n->state != RL_NODE_READY || !o || n->second_failures > 0)
    return 0;
  return is_patient || o->sent_ns - n->line->read_ns > IDLE_NS;
}

void rl_silence_timer(struct rl_node *n, int64_t now)
{
  const struct rl_request *o = rl_line_oldest(n->line);
  if (o && now - o->sent_ns >= stale_ns(n)) {
    rl_node_drop(n, 1, "no answer for too long", now);
    return;
  }
  if (n->deletes_retry_ns && n->deletes_retry_ns <= now) {
    n->deletes_retry_ns = 0;
    rl_node_tell(n, RL_OUTCOME_PAYABLE);
  }
  if (o && !n->silent_ns && is_open(n) && now - waits_since_ns(n->line) >= patience_ns(n))
    fall_silent(n, now);
  if (n->silent_ns && n->second && n->second_ns <= now)
    rl_silence_second_failed(n, rl_connect_timed_out(n->second), now);
  else if (n->silent_ns && !n->second && n->second_ns <= now && is_open(n))
    open_second(n, now);
  arm(n);
}

/* A connection that has gone silent. Its requests may be on their way, lost, or queued in a server that is stopped; the
 * client cannot tell. So a second connection is set up beside it (rule A.6).
 *
 * The first one that speaks is kept. If it is the old one, nothing has happened. If it is the new one, CLIENT KILL
 * of the old is the first command on it: requests still on the old one are executed before that or never, so the
 * order of SET and DEL holds. If the server does not allow CLIENT KILL, requests on the old connection are orphans,
 * as after any broken connection: their effects are not counted, and their keys expire. */
#include "silence.h"

#include <string.h>

#include "connect.h"
#include "listener.h"
#include "out.h"
#include "state.h"

#define MS RLK_NS_PER_MS
#define SILENT_NS (300 * MS)
#define LOOK_NS (50 * MS)
#define IDLE_NS (1000 * MS)
#define STALE_MIN_NS (5000 * MS)

/* Since when something is in flight without a byte of the reply having come. */
static int64_t waits_since_ns(const struct rlk_line *l)
{
  return rlk_larger(rlk_line_oldest(l)->sent_ns, l->read_ns);
}

static int64_t patience_ns(const struct rlk_node *n)
{
  return rlk_larger(4 * n->rtt_ns, SILENT_NS);
}

/* When the line is looked at next. Two looks in a row have to find nothing: at the first it may be this process that
 * stood still, and the reply has come long ago or the request has only now been written. */
static int64_t look_ns(const struct rlk_node *n)
{
  int64_t silent_ns = waits_since_ns(n->line) + patience_ns(n);
  if (n->looked_ns <= waits_since_ns(n->line))
    return silent_ns - LOOK_NS;
  return rlk_larger(silent_ns, n->looked_ns + LOOK_NS);
}

static int64_t stale_ns(const struct rlk_node *n)
{
  return rlk_larger(RLK_INT(&n->net->options, TTL_MS) * MS, STALE_MIN_NS);
}

static int is_open(const struct rlk_node *n)
{
  return n->net->state == RLK_NET_OPEN; /* one that leaves begins nothing new */
}

/* Sets the timer of a ready node to its next check. */
static void arm(struct rlk_node *n)
{
  const struct rlk_request *o = rlk_line_oldest(n->line);
  int64_t at = n->deletes_retry_ns ? n->deletes_retry_ns : RLK_NEVER;
  if (o)
    at = rlk_smaller(at, waits_since_ns(n->line) + stale_ns(n));
  if (o && !n->silent_ns && is_open(n))
    at = rlk_smaller(at, look_ns(n));
  if (n->silent_ns && (n->second || is_open(n)))
    at = rlk_smaller(at, n->second_ns);
  if (at != RLK_NEVER)
    rlk_timer_set(&n->net->timers, &n->timer, at);
}

void rlk_silence_flushed(struct rlk_node *n, int64_t now)
{
  int64_t look = now + SILENT_NS - LOOK_NS;
  if (!n->timer.place || n->timer.at_ns > look)
    rlk_timer_set(&n->net->timers, &n->timer, look);
}

/* ---- the second connection ---- */

static void close_second(struct rlk_node *n)
{
  struct rlk_line *l = n->second;
  n->second = NULL;
  if (!l)
    return;
  rlk_line_close(l);
  rlk_node_be(l, RLK_NODE_OFF);
  l->requests.count = l->requests.first = 0; /* only of its set-up */
}

void rlk_silence_forget(struct rlk_node *n)
{
  close_second(n);
  n->silent_ns = 0;
  n->second_failures = 0;
}

void rlk_silence_second_failed(struct rlk_node *n, const struct rlk_reason *why, int64_t now)
{
  struct rlk_text text = rlk_text_in(n->why.words, sizeof n->why.words);
  n->why.why = why->why;
  rlk_text_add(&text, "silent, and a new connection fails: ");
  rlk_text_add(&text, why->words);
  close_second(n);
  n->second_failures++;
  n->second_ns = now + rlk_connect_backoff_ns(n, n->second_failures);
  arm(n);
  rlk_node_tell(n, RLK_OUTCOME_DOWN);
}

static void open_second(struct rlk_node *n, int64_t now)
{
  struct rlk_reason why;
  n->second = n->line == &n->lines[0] ? &n->lines[1] : &n->lines[0];
  n->second_ns = RLK_NEVER;
  if (rlk_connect(n->second, &why, now))
    rlk_silence_second_failed(n, &why, now);
}

/* The fence: requests still on the old connection are not executed after this. The id is that of the old connection
 * only if the server has not been restarted; without memory there is no fence. */
static void kill_old(struct rlk_line *l, int64_t client_id)
{
  char number[24];
  const char *words[] = {"CLIENT", "KILL", "ID", number};
  struct rlk_text text = rlk_text_in(number, sizeof number);
  rlk_text_format(&text, "%lld", (long long)client_id);
  rlk_out_words(l, 4, words, (struct rlk_request){.ask = &rlk_row_nothing});
}

void rlk_silence_replace(struct rlk_line *l)
{
  struct rlk_node *n = l->node;
  struct rlk_line *old = n->line;
  n->second = NULL;
  n->line = l;
  rlk_silence_forget(n);
  if (old->client_id && strcmp(n->run_id, l->facts.run_id) == 0)
    kill_old(l, old->client_id);
  rlk_listener_close(n); /* it may be as dead, and has nothing in flight by which that would show */
  rlk_line_close(old);
  rlk_node_be(old, RLK_NODE_OFF);
  old->lost_again = 1;
  rlk_node_hurry(n);
  n->drops++;
}

/* ---- silent, and not any more ---- */

static void fall_silent(struct rlk_node *n, int64_t now)
{
  char how_long[32];
  struct rlk_text text = rlk_text_in(how_long, sizeof how_long);
  n->silent_ns = waits_since_ns(n->line);
  n->second_ns = now;
  rlk_text_format(&text, "%lld ms", (long long)((now - n->silent_ns) / MS));
  rlk_because(&n->why, RLK_WHY_SILENT, how_long);
  rlk_event_add(&n->net->events, RLK_EVENT_NODE_SILENT, n->index, n->why.words);
}

static void look(struct rlk_node *n, int64_t now)
{
  if (n->looked_ns > waits_since_ns(n->line))
    fall_silent(n, now);
  else
    n->looked_ns = now;
}

void rlk_silence_broken(struct rlk_node *n)
{
  rlk_silence_forget(n);
  rlk_because(&n->why, RLK_WHY_NONE, NULL);
  rlk_event_add(&n->net->events, RLK_EVENT_NODE_UP, n->index, "it answers again");
  rlk_node_tell(n, RLK_OUTCOME_SPOKE);
}

int rlk_silence_hope(const struct rlk_node *n, int is_patient)
{
  const struct rlk_request *o = rlk_line_oldest(n->line);
  if (n->state != RLK_NODE_READY || !o || n->second_failures > 0)
    return 0;
  return is_patient || o->sent_ns - n->line->read_ns > IDLE_NS;
}

enum rlk_why rlk_silence_timer(struct rlk_node *n, struct rlk_reason *why, int64_t now)
{
  const struct rlk_request *o = rlk_line_oldest(n->line);
  if (o && now - waits_since_ns(n->line) >= stale_ns(n))
    return rlk_because(why, RLK_WHY_SILENT, "too long");
  if (n->deletes_retry_ns && n->deletes_retry_ns <= now) {
    n->deletes_retry_ns = 0;
    rlk_node_tell(n, RLK_OUTCOME_PAYABLE);
  }
  if (o && !n->silent_ns && is_open(n) && now >= look_ns(n))
    look(n, now);
  if (n->silent_ns && n->second && n->second_ns <= now) {
    rlk_connect_timed_out(n->second, why);
    rlk_silence_second_failed(n, why, now);
  } else if (n->silent_ns && !n->second && n->second_ns <= now && is_open(n)) {
    open_second(n, now);
  }
  arm(n);
  return RLK_WHY_NONE;
}

#include "line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

const char *rlk_error_words(int error, char *out)
{
  struct rlk_text text = rlk_text_in(out, RLK_WHY_SIZE);
  rlk_text_add(&text, strerror(error)); /* thread-safe in glibc and musl for the numbers that exist */
  if (out[0] >= 'A' && out[0] <= 'Z')
    out[0] = (char)(out[0] + 32);
  return out;
}

/* A server that expects TLS closes the connection at the first byte. */
static int may_expect_tls(const struct rlk_line *l)
{
  const struct rlk_url *url = &l->node->url;
  int is_answered = l->client_id || l->facts.run_id[0];
  return l->state == RLK_NODE_SETUP && !is_answered && !url->is_tls && !url->is_unix;
}

static enum rlk_why reason_of(int error)
{
  switch (error) {
  case RLK_LINE_ENDED: return RLK_WHY_CLOSED;
  case ECONNREFUSED: return RLK_WHY_REFUSED;
  case ENOENT: return RLK_WHY_NO_SOCKET;
  case ETIMEDOUT: return RLK_WHY_CONNECT_TIMEOUT;
  case EHOSTUNREACH:
  case ENETUNREACH: return RLK_WHY_UNREACHABLE;
  case ECONNRESET:
  case EPIPE: return RLK_WHY_RESET;
  default: return RLK_WHY_SYSTEM;
  }
}

enum rlk_why rlk_line_reason(const struct rlk_line *l, int error, struct rlk_reason *why)
{
  int has_ended = error == RLK_LINE_ENDED || error == ECONNRESET || error == EPIPE;
  char system[RLK_WHY_SIZE] = "the server closed the connection";
  if (l->link.ops->why && l->link.ops->why(&l->link, error, why))
    return why->why;
  if (error != RLK_LINE_ENDED)
    rlk_error_words(error, system);
  if (error == EACCES && l->node->url.is_unix)
    return rlk_because(why, RLK_WHY_SOCKET_DENIED, NULL);
  if (has_ended && may_expect_tls(l))
    return rlk_because(why, RLK_WHY_MAY_EXPECT_TLS, system);
  return rlk_because_of(why, reason_of(error), system);
}

/* ---- life ---- */

void rlk_line_init(struct rlk_line *l, struct rlk_node *n)
{
  struct rlk_net *net = n->net;
  l->node = n;
  l->state = RLK_NODE_OFF;
  l->link = (struct rlk_link){.ops = net->env.link,
                              .context = net->env.context,
                              .node = n->index,
                              .fd = -1,
                              .poller = net->env.stepped ? NULL : &net->poller};
}

static void forget_bytes(struct rlk_line *l)
{
  if (l->reader)
    redisReaderFree(l->reader);
  l->reader = NULL;
  l->reads_left = l->is_fed = l->setup_done = 0;
  l->unfinished = 0;
  l->end.why = RLK_WHY_NONE;
  rlk_buffer_free(&l->out);
  l->queued = l->written = 0;
  l->scripts_known = 0;
}

void rlk_line_free(struct rlk_line *l)
{
  l->link.ops->close(&l->link);
  forget_bytes(l);
  rlk_buffer_free(&l->reply.text);
  free(l->requests.ring);
  l->requests = (struct rlk_requests){0};
}

int rlk_line_open(struct rlk_line *l, const struct rlk_address *address)
{
  l->link.generation = ++l->node->generations & RLK_GENERATION_MASK;
  if (l->node->tls.tls) {
    l->link.ops = &rlk_link_tls;
    l->link.peer = &l->node->tls;
  }
  return l->link.ops->open(&l->link, address);
}

int rlk_line_begin(struct rlk_line *l)
{
  l->read_ns = rlk_now(l->node->net);
  l->reader = rlk_reply_reader(&l->reply);
  return l->reader ? 0 : -1;
}

void rlk_line_close(struct rlk_line *l)
{
  l->link.ops->close(&l->link);
  forget_bytes(l);
}

void rlk_line_abandon(struct rlk_line *l)
{
  l->link.ops->abandon(&l->link);
  forget_bytes(l);
}

/* ---- writing ---- */

enum rlk_why rlk_line_flush(struct rlk_line *l, struct rlk_reason *why)
{
  if (l->link.fd < 0 || l->state == RLK_NODE_CONNECTING)
    return RLK_WHY_NONE;
  while (rlk_buffer_size(&l->out) > 0) {
    ssize_t sent = l->link.ops->write(&l->link, l->out.data + l->out.start, rlk_buffer_size(&l->out));
    if (sent == -EAGAIN) {
      l->link.ops->want_write(&l->link, 1);
      return RLK_WHY_NONE;
    }
    if (sent < 0)
      return rlk_line_reason(l, (int)-sent, why);
    if (l->state == RLK_NODE_SETUP) /* a password may be among it */
      rlk_wipe(l->out.data + l->out.start, (size_t)sent);
    rlk_buffer_consume(&l->out, (size_t)sent);
    l->written += (uint64_t)sent;
  }
  if (l->link.writing)
    l->link.ops->want_write(&l->link, 0);
  return RLK_WHY_NONE;
}

/* ---- reading ---- */

enum rlk_line_news rlk_line_read(struct rlk_line *l, struct rlk_reason *why)
{
  char bytes[16384];
  ssize_t size = l->link.ops->read(&l->link, bytes, sizeof bytes);
  l->reads_left = size == (ssize_t)sizeof bytes ? l->reads_left - 1 : 0;
  if (l->link.pending && l->reads_left == 0)
    l->reads_left = 1;
  if (size == -EAGAIN)
    return RLK_LINE_NOTHING;
  l->read_ns = rlk_now(l->node->net); /* after the bytes have arrived: the clock for the decisions (rule A.1) */
  if (size <= 0) {
    rlk_line_reason(l, size ? (int)-size : RLK_LINE_ENDED, why);
    return RLK_LINE_BROKEN;
  }
  l->is_fed = 1;
  l->unfinished += (size_t)size;
  if (redisReaderFeed(l->reader, bytes, (size_t)size) == REDIS_OK)
    return RLK_LINE_BYTES;
  rlk_because(why, RLK_WHY_MEMORY, NULL);
  return RLK_LINE_BROKEN;
}

enum rlk_why rlk_line_unparsed(struct rlk_line *l, struct rlk_reason *why)
{
  if (l->reply.fault)
    return rlk_because_of(why, l->reply.why, l->reply.fault);
  if (l->reader->err)
    return rlk_because_of(why, RLK_WHY_MISFIT, l->reader->errstr[0] ? l->reader->errstr : "malformed bytes");
  return l->unfinished > RLK_REPLY_SIZE_MAX ? rlk_because_of(why, RLK_WHY_MISFIT, "a reply too large") : RLK_WHY_NONE;
}

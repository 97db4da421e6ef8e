#include "line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

const char *rl_error_words(int error, char *out)
{
  struct rl_text text = rl_text_in(out, RL_WHY_SIZE);
  rl_text_add(&text, strerror(error)); /* thread-safe in glibc and musl for the numbers that exist */
  if (out[0] >= 'A' && out[0] <= 'Z')
    out[0] = (char)(out[0] + 32);
  return out;
}

/* ---- life ---- */

void rl_line_init(struct rl_line *l, struct rl_node *n)
{
  struct rl_net *net = n->net;
  l->node = n;
  l->state = RL_NODE_OFF;
  l->link = (struct rl_link){.ops = net->env.link, .context = net->env.context, .node = n->index, .fd = -1,
                             .poller = net->env.stepped ? NULL : &net->poller};
}

static void forget_bytes(struct rl_line *l)
{
  if (l->reader)
    redisReaderFree(l->reader);
  l->reader = NULL;
  l->reads_left = l->is_fed = l->setup_done = 0;
  l->end[0] = 0;
  rl_buffer_free(&l->out);
  l->queued = l->written = 0;
}

void rl_line_free(struct rl_line *l)
{
  l->link.ops->close(&l->link);
  forget_bytes(l);
  rl_buffer_free(&l->reply.text);
  free(l->requests.ring);
  l->requests = (struct rl_requests){0};
}

int rl_line_open(struct rl_line *l, const struct rl_address *address)
{
  l->link.generation = ++l->node->generations;
  return l->link.ops->open(&l->link, address);
}

int rl_line_begin(struct rl_line *l)
{
  l->read_ns = rl_now(l->node->net);
  l->reader = rl_reply_reader(&l->reply);
  return l->reader ? 0 : -1;
}

void rl_line_close(struct rl_line *l)
{
  l->link.ops->close(&l->link);
  forget_bytes(l);
}

void rl_line_abandon(struct rl_line *l)
{
  l->link.ops->abandon(&l->link);
  forget_bytes(l);
}

/* ---- writing ---- */

const char *rl_line_flush(struct rl_line *l, char *words)
{
  if (l->link.fd < 0 || l->state == RL_NODE_CONNECTING)
    return NULL;
  while (rl_buffer_size(&l->out) > 0) {
    ssize_t sent = l->link.ops->write(&l->link, l->out.data + l->out.start, rl_buffer_size(&l->out));
    if (sent == -EAGAIN) {
      l->link.ops->want_write(&l->link, 1);
      return NULL;
    }
    if (sent < 0)
      return rl_error_words((int)-sent, words);
    rl_buffer_consume(&l->out, (size_t)sent);
    l->written += (uint64_t)sent;
  }
  if (l->link.writing)
    l->link.ops->want_write(&l->link, 0);
  if (l->node->net->state == RL_NET_LEAVING && l->state != RL_NODE_SETUP)
    l->link.ops->half_close(&l->link);
  return NULL;
}

/* ---- reading ---- */

enum rl_line_news rl_line_read(struct rl_line *l, const char **why, char *words)
{
  char bytes[16384];
  ssize_t size = l->link.ops->read(&l->link, bytes, sizeof bytes);
  l->reads_left = size == (ssize_t)sizeof bytes ? l->reads_left - 1 : 0;
  if (size == -EAGAIN)
    return RL_LINE_NOTHING;
  l->read_ns = rl_now(l->node->net); /* after the bytes are here: the clock of what is decided (rule A.1) */
  if (size <= 0) {
    *why = size ? rl_error_words((int)-size, words) : "the server closed the connection";
    return RL_LINE_BROKEN;
  }
  l->is_fed = 1;
  if (redisReaderFeed(l->reader, bytes, (size_t)size) == REDIS_OK)
    return RL_LINE_BYTES;
  *why = "out of memory";
  return RL_LINE_BROKEN;
}

const char *rl_line_unparsed(struct rl_line *l)
{
  if (l->reply.fault)
    return l->reply.fault;
  if (l->reader->err)
    return l->reader->errstr[0] ? l->reader->errstr : "malformed bytes";
  return l->reader->len - l->reader->pos > RL_REPLY_SIZE_MAX ? "a reply too large" : NULL;
}

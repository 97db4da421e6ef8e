/* One connection: reading and writing. What becomes of the node is node.c's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../lock/claim.h"
#include "../lock/renewal.h"
#include "answer.h"
#include "silence.h"

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
  rl_buffer_free(&l->out);
  l->queued = l->written = 0;
}

void rl_line_free(struct rl_line *l)
{
  l->link.ops->close(&l->link);
  forget_bytes(l);
  rl_buffer_free(&l->reply.text);
  free(l->owed);
  l->owed = NULL;
}

int rl_line_open(struct rl_line *l, const struct rl_address *address)
{
  l->link.generation = ++l->node->generations;
  rl_line_be(l, RL_NODE_CONNECTING);
  return l->link.ops->open(&l->link, address);
}

int rl_line_begin(struct rl_line *l)
{
  l->read_ns = rl_now(l->node->net);
  l->end[0] = 0;
  l->reader = rl_reply_reader(&l->reply);
  return l->reader ? 0 : -1;
}

void rl_line_close(struct rl_line *l)
{
  l->link.ops->close(&l->link);
  forget_bytes(l);
  rl_line_be(l, RL_NODE_OFF);
}

void rl_line_abandon(struct rl_line *l)
{
  l->link.ops->abandon(&l->link);
  forget_bytes(l);
  for (uint32_t i = 0; i < l->owed_count; i++) {
    struct rl_owed *o = &l->owed[(l->owed_first + i) & (l->owed_size - 1)];
    if (o->claim)
      o->claim->owed--;
    if (o->batch)
      rl_batch_drop(rl_engine_of(l->node->net), o->batch);
  }
  l->owed_count = l->owed_first = 0;
  rl_line_be(l, RL_NODE_OFF);
}

void rl_line_be(struct rl_line *l, enum rl_node_state state)
{
  l->state = state;
  l->node->state = l->node->line->state;
}

void rl_line_drop(struct rl_line *l, int at_once, const char *why, int64_t now)
{
  if (l == l->node->second)
    rl_silence_second_failed(l->node, why, now);
  else
    rl_node_drop(l->node, at_once, why, now);
}

void rl_line_end(struct rl_line *l, const char *why)
{
  struct rl_text text = rl_text_in(l->end, sizeof l->end);
  if (!l->end[0])
    rl_text_add(&text, why);
}

/* ---- writing ---- */

static void flush(struct rl_line *l, int64_t now)
{
  char words[RL_WHY_SIZE];
  if (l->link.fd < 0 || l->state == RL_NODE_CONNECTING)
    return;
  while (rl_buffer_size(&l->out) > 0) {
    ssize_t sent = l->link.ops->write(&l->link, l->out.data + l->out.start, rl_buffer_size(&l->out));
    if (sent == -EAGAIN) {
      l->link.ops->want_write(&l->link, 1);
      return;
    }
    if (sent < 0) {
      rl_line_drop(l, l->state == RL_NODE_READY, rl_error_words((int)-sent, words, sizeof words), now);
      return;
    }
    rl_buffer_consume(&l->out, (size_t)sent);
    l->written += (uint64_t)sent;
  }
  if (l->link.writing)
    l->link.ops->want_write(&l->link, 0);
  if (l->node->net->state == RL_NET_LEAVING && l->state != RL_NODE_SETUP)
    l->link.ops->half_close(&l->link);
}

void rl_node_flush(struct rl_node *n, int64_t now)
{
  if (n->second)
    flush(n->second, now);
  if (n->state == RL_NODE_READY && n->net->state == RL_NET_OPEN)
    rl_session_look_again(n->line, now);
  flush(n->line, now);
  if (n->state == RL_NODE_READY)
    rl_silence_flushed(n, now);
}

/* ---- reading ---- */

/* Takes the next reply off; 0 when there is none, or the connection has been closed. */
static int next_reply(struct rl_line *l, int64_t now)
{
  void *parsed = NULL;
  struct rl_owed owed;
  if (redisReaderGetReply(l->reader, &parsed) != REDIS_OK) {
    const char *why = l->reader->errstr[0] ? l->reader->errstr : "malformed bytes";
    rl_line_drop(l, 0, l->reply.fault ? l->reply.fault : why, now);
    return 0;
  }
  if (!parsed) {
    if (l->reader->len - l->reader->pos > RL_REPLY_SIZE_MAX)
      rl_line_drop(l, 0, "a reply too large", now);
    return 0;
  }
  if (l->owed_count == 0) {
    int error = l->reply.type == RL_REPLY_ERROR; /* "-ERR max number of clients reached" comes unasked */
    if (error)
      rl_answer_fault(l->node, RL_FAULT_LOADING, l->reply.text.data, now);
    else
      rl_line_drop(l, 0, "a reply to no request", now);
    return 0;
  }
  owed = l->owed[l->owed_first];
  l->owed_first = (l->owed_first + 1) & (l->owed_size - 1);
  l->owed_count--;
  rl_answer(l, &owed, &l->reply, now);
  return l->reader != NULL;
}

void rl_line_read(struct rl_line *l)
{
  char bytes[16384], words[RL_WHY_SIZE];
  uint32_t generation = l->link.generation;
  ssize_t size;
  do {
    int64_t now;
    size = l->link.ops->read(&l->link, bytes, sizeof bytes);
    if (size == -EAGAIN)
      return;
    now = rl_now(l->node->net); /* after the bytes are here: the clock of what is decided (rule A.1) */
    if (size <= 0) {
      const char *why = rl_session_error(l); /* the server may have said it before it closed */
      if (!why)
        why = size ? rl_error_words((int)-size, words, sizeof words) : "the server closed the connection";
      rl_line_drop(l, l->state == RL_NODE_READY, why, now);
      return;
    }
    l->read_ns = now;
    if (l->node->silent_ns && l == l->node->line)
      rl_silence_broken(l->node, now);
    if (redisReaderFeed(l->reader, bytes, (size_t)size) != REDIS_OK) {
      rl_line_drop(l, 0, "out of memory", now);
      return;
    }
    while (next_reply(l, now) && l->link.generation == generation)
      ;
    if (l->link.generation != generation || !l->reader)
      return;
    if (l->end[0] || (l->state == RL_NODE_REFUSED && l->owed_count == 0)) {
      rl_line_drop(l, 0, l->end[0] ? l->end : l->node->why, now);
      return;
    }
  } while (size == (ssize_t)sizeof bytes);
}

/* ---- events ---- */

static void connecting(struct rl_line *l, int64_t now)
{
  char words[RL_WHY_SIZE];
  int status = l->link.ops->finish(&l->link);
  if (status == 0)
    rl_node_connected(l, now);
  else if (status != -EINPROGRESS)
    rl_node_unconnected(l, rl_error_words(-status, words, sizeof words), now);
}

void rl_node_event(struct rl_node *n, uint32_t generation, int what, int64_t now)
{
  struct rl_line *l = n->second && n->second->link.generation == generation ? n->second : n->line;
  if (l->link.generation != generation || l->link.fd < 0)
    return; /* of an earlier connection */
  if (l->state == RL_NODE_CONNECTING) {
    connecting(l, now);
    return;
  }
  if (what & RL_WRITABLE)
    flush(l, now);
  if ((what & RL_READABLE) && l->reader && l->link.generation == generation)
    rl_line_read(l);
}

/* One connection to a node's server: what is written, what is in flight, and its set-up. What becomes of the node is
 * node.c's. */
#ifndef RL_LINE_H
#define RL_LINE_H

#include "link.h"
#include "reply.h"
#include "request.h"

enum { RL_WHY_SIZE = 132 /* 128 characters, then "..." */ };

enum rl_node_state {
  RL_NODE_OFF,        /* backing off; its timer says when it is tried again */
  RL_NODE_RESOLVING,
  RL_NODE_CONNECTING,
  RL_NODE_SETUP,      /* the set-up's replies are outstanding */
  RL_NODE_READY,
  RL_NODE_REFUSED     /* connected, but ineligible to vote; only cleaning up before it is closed */
};

struct rl_line {
  struct rl_node *node;
  enum rl_node_state state; /* set by node.c */
  struct rl_link link;
  struct rl_buffer out;
  uint64_t queued, written;    /* positions in the stream */
  struct rl_requests requests; /* in flight; when the line is OFF: lost, and not told yet */
  int lost_again;              /* ... the node can be asked anew at once */
  /* what is read */
  redisReader *reader;
  struct rl_reply reply;
  int reads_left;  /* of this event; 0: nothing to be read */
  int is_fed;      /* the reader may have a whole reply */
  int64_t read_ns; /* when the last bytes came */
  char end[RL_WHY_SIZE]; /* why it is closed once the replies that have come are taken; "" it is not */
  /* the set-up */
  int setup_left;  /* replies still to come */
  int setup_done;  /* the last has come: it is to be judged */
  int setup_again; /* it has to be sent once more, without HELLO */
  int setup_fault; /* what the first error in it means: enum rl_fault */
  char setup_error[RL_WHY_SIZE];
  char run_id[41], role[16], mode[16], policy[32], version[24];
  int64_t maxmemory;
  int64_t client_id; /* the server's number for this connection; 0 unknown */
  struct rl_node *shared; /* the node under whose address the server votes already, or NULL */
};

void rl_line_init(struct rl_line *line, struct rl_node *node);
void rl_line_free(struct rl_line *line);
int rl_line_open(struct rl_line *line, const struct rl_address *address); /* as the link's open */
int rl_line_begin(struct rl_line *line); /* to read and write, once it is connected: -1 when memory is out */
void rl_line_close(struct rl_line *line);   /* what is in flight stays */
void rl_line_abandon(struct rl_line *line); /* in a forked child */

/* Writes what is queued. NULL, or why the connection is of no use any more; words has RL_WHY_SIZE bytes. */
const char *rl_line_flush(struct rl_line *line, char *words);

enum rl_line_news { RL_LINE_NOTHING, RL_LINE_BYTES, RL_LINE_BROKEN };
/* Reads once: BYTES, NOTHING, or BROKEN with the reason in *why. */
enum rl_line_news rl_line_read(struct rl_line *line, const char **why, char *words);

/* The next whole reply of what was read, in line->reply: 1, or 0. */
static inline int rl_line_parse(struct rl_line *line)
{
  void *parsed = NULL;
  redisReaderGetReply(line->reader, &parsed);
  line->is_fed = parsed && line->reader->pos < line->reader->len;
  return parsed != NULL;
}

/* Why there was none: NULL if the rest of it has still to come. */
const char *rl_line_unparsed(struct rl_line *line);

/* The system's words for an error, for the middle of a line; out has RL_WHY_SIZE bytes. */
const char *rl_error_words(int error, char *out);

static inline const struct rl_request *rl_line_oldest(const struct rl_line *line)
{
  return line->requests.count > 0 ? rl_request_at(&line->requests, 0) : NULL;
}

#endif

/* One connection to a node's server: what is written, what is owed for it, and its set-up. */
#ifndef RL_LINE_H
#define RL_LINE_H

#include "link.h"
#include "reply.h"
#include "request.h"
#include "resolver.h"

enum { RL_WHY_SIZE = 132 /* 128 characters, then "..." */ };

enum rl_node_state {
  RL_NODE_OFF,        /* backing off; its timer says when it is tried again */
  RL_NODE_RESOLVING,
  RL_NODE_CONNECTING,
  RL_NODE_SETUP,      /* the set-up's replies are outstanding */
  RL_NODE_READY,
  RL_NODE_REFUSED     /* connected, but it may not vote; only cleaning up before it is closed */
};

struct rl_line {
  struct rl_node *node;
  enum rl_node_state state;
  struct rl_link link;
  /* what is sent */
  struct rl_buffer out;
  uint64_t queued, written; /* positions in the stream */
  /* what is owed */
  struct rl_owed *owed; /* ring of owed_size, a power of two */
  uint32_t owed_size, owed_first, owed_count;
  redisReader *reader;
  struct rl_reply reply;
  int64_t read_ns; /* when the last bytes came */
  char end[RL_WHY_SIZE]; /* why it is closed once the replies that have come are read; "" it is not */
  /* the set-up */
  int setup_left;  /* replies still to come */
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
void rl_line_close(struct rl_line *line); /* what is owed stays */
void rl_line_abandon(struct rl_line *line);
void rl_line_be(struct rl_line *line, enum rl_node_state state);
/* The connection is of no use any more; at_once: it may be made anew without a pause. */
void rl_line_drop(struct rl_line *line, int at_once, const char *why, int64_t now_ns);
/* The same, but what has come already is read first. */
void rl_line_end(struct rl_line *line, const char *why);
void rl_line_read(struct rl_line *line);

#endif

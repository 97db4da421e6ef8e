/* One server: its connections, what it may vote on, and its health. */
#ifndef RL_NODE_H
#define RL_NODE_H

#include "../rules/url.h"
#include "line.h"
#include "net.h"

struct rl_node {
  struct rl_net *net;
  int index;
  struct rl_url url;
  enum rl_node_state state; /* that of its line */
  int failures;   /* in a row since it was ready */
  int refused;    /* the reason is its configuration, or ours */
  char why[RL_WHY_SIZE]; /* why it is not ready; "" at first */
  struct rl_timer timer; /* OFF: next try; until READY: time-out; READY: looks for overdue replies */
  struct rl_line lines[2];
  struct rl_line *line;   /* the one in use */
  struct rl_line *second; /* the other one, while it is set up beside a silent one */
  int64_t silent_ns;      /* since when the line owes something and says nothing; 0: it is not silent */
  int64_t second_ns;      /* the time-out of the second; without one: when the next is tried */
  int second_failures;    /* in a row */
  uint32_t generations; /* of links that were opened */
  struct rl_resolve *resolve;
  struct rl_address addresses[RL_ADDRESSES_MAX];
  int address_count, address_next;
  int dirty; /* in net->dirty_nodes */
  struct rl_node *next_dirty;
  int no_hello;       /* the server does not know HELLO */
  int session_proved; /* AUTH and SELECT of this URL have succeeded before (rule C.3) */
  char run_id[41], version[24]; /* of the last session that was set up */
  /* health */
  int64_t rtt_ns;        /* smoothed */
  int64_t busy_until_ns; /* no votes are asked for before: it said that it can't just now */
  int64_t debts_retry_ns;
  int64_t looked_ns;  /* when it was last seen to be eligible */
  int64_t refused_ns; /* ... or not to be */
  uint64_t connects, drops;
};

void rl_node_init(struct rl_node *node, struct rl_net *net, int index);
void rl_node_free(struct rl_node *node);
void rl_node_connect(struct rl_node *node, int64_t now_ns);
void rl_node_timer(struct rl_node *node, int64_t now_ns);
/* Closes the connection; what was asked counts as unknown. The node is tried again at once or after a pause. */
void rl_node_drop(struct rl_node *node, int at_once, const char *why, int64_t now_ns);
/* The same for a reason of configuration. */
void rl_node_refuse(struct rl_node *node, const char *why, int64_t now_ns);
void rl_node_abandon(struct rl_node *node); /* in a forked child */
void rl_node_look_at_name(struct rl_node *node, int64_t now_ns); /* whether its look-up has ended */
void rl_node_connect_line(struct rl_line *line, int64_t now_ns);
const char *rl_node_timed_out(const struct rl_line *line); /* what has taken too long */
int64_t rl_node_backoff_ns(struct rl_node *node, int failures);
/* What was asked on a connection that is gone is unknown; again: the node can be asked anew at once, or soon. */
void rl_node_fail_owed(struct rl_line *line, int again, int64_t now_ns);
/* The connection of a line is there, or is not to be had. */
void rl_node_connected(struct rl_line *line, int64_t now_ns);
void rl_node_unconnected(struct rl_line *line, const char *why, int64_t now_ns);
const char *rl_error_words(int error, char *out, size_t size);

/* line.c */
void rl_node_flush(struct rl_node *node, int64_t now_ns);
/* An event of the link of that generation. */
void rl_node_event(struct rl_node *node, uint32_t generation, int what, int64_t now_ns);

#endif

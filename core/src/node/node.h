/* One server: its connections, what it may vote on, and its health.
 *
 * A node is a source: what comes of its events, timers and writes is pulled from it with rl_node_next, one outcome at a
 * time. Who handles an outcome may append requests, and never closes a connection. */
#ifndef RL_NODE_H
#define RL_NODE_H

#include "../base/macros.h"
#include "../rules/quorum.h"
#include "../rules/url.h"
#include "line.h"
#include "meaning.h"
#include "net.h"
#include "resolver.h"

#define RL_PAUSE_NS (100 * RL_NS_PER_MS) /* for a server that cannot do just now what is asked */

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
  int64_t silent_ns;      /* since when requests are in flight and nothing comes; 0: it is not silent */
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
  int64_t leases_until_ns; /* until then somebody counts on a lease there, as was noted before the set-up was judged */
  /* health */
  int64_t rtt_ns;        /* smoothed */
  int64_t busy_until_ns; /* no votes are asked for before: it said that it can't just now */
  int64_t deletes_retry_ns; /* pending deletes are sent again; 0: there is no reason */
  int64_t looked_ns;  /* when it was last seen to be eligible */
  int64_t refused_ns; /* ... or not to be */
  uint64_t connects, drops;
  /* what is to be told */
  int is_awake;        /* there may be outcomes */
  int is_urgent;       /* there is more to do than to read: of what follows, or of a line */
  uint32_t news;       /* bits of enum rl_outcome_kind */
  int forgotten;       /* FORGOTTEN: enum redlock_loss */
  enum rl_fault fault; /* of the last reply, to be acted on when that has been told */
  const char *error;   /* ... and its text */
};

struct rl_outcome {
  enum rl_outcome_kind kind;
  int vote; /* enum rl_answer */
  enum rl_fault fault;
  int reason; /* FORGOTTEN: enum redlock_loss */
  int64_t now_ns;
  const char *error;            /* the text of an error reply, or what was wrong with it; else NULL */
  const struct rl_reply *reply; /* until the next is pulled */
  struct rl_request request;
};

void rl_node_init(struct rl_node *node, struct rl_net *net, int index);
void rl_node_free(struct rl_node *node);
void rl_node_abandon(struct rl_node *node); /* in a forked child */

/* What makes outcomes: they are pulled after each of these. */
void rl_node_connect(struct rl_node *node, int64_t now_ns);
void rl_node_timer(struct rl_node *node, int64_t now_ns);
void rl_node_look_at_name(struct rl_node *node, int64_t now_ns); /* whether its look-up has ended */
void rl_node_event(struct rl_node *node, uint32_t generation, int what, int64_t now_ns);
void rl_node_flush(struct rl_node *node, int64_t now_ns);
void rl_node_close(struct rl_node *node, int64_t now_ns); /* for the client's end */
/* The next outcome: 1, or 0 if there is no more for now. */
int rl_node_next(struct rl_node *node, struct rl_outcome *outcome, int64_t now_ns);
/* Takes a request off that was in flight on a connection that is gone: 1, or 0. */
int rl_node_take_lost(struct rl_node *node, struct rl_request *request, int *again);

/* RL_ASKED if it can be asked now, RL_WAITING or RL_RETRYING if its connection is being made, else why not. */
int rl_node_can_ask(const struct rl_node *node, int64_t node_timeout_ns, int64_t now_ns);
int64_t rl_node_patience_ns(const struct rl_node *node, const struct rl_terms *terms);
int rl_node_is_late(const struct rl_node *node, int64_t node_timeout_ns, int64_t now_ns);
/* A key may still be there: deletes are sent again after a pause. */
void rl_node_retry_deletes(struct rl_node *node, int64_t pause_ns, int64_t now_ns);

static inline int rl_node_is_being_set_up(const struct rl_node *node)
{
  return node->second || node->state == RL_NODE_SETUP;
}

/* Something waits to be written. */
static inline void rl_node_mark_dirty(struct rl_node *node)
{
  if (node->dirty)
    return;
  node->dirty = 1;
  node->next_dirty = node->net->dirty_nodes;
  node->net->dirty_nodes = node;
}

/* Notes what the command that was just appended to line->out, all bytes since its size was `before`, asks. Room was
 * reserved. */
static inline void rl_request_add(struct rl_line *line, size_t before, struct rl_request request)
{
  request.size = (uint32_t)(rl_buffer_size(&line->out) - before);
  request.position = line->queued;
  line->queued += request.size;
  *rl_request_at(&line->requests, line->requests.count++) = request;
  line->node->net->commands++;
  rl_node_mark_dirty(line->node);
}

/* ---- for the files of the node ---- */

void rl_node_be(struct rl_line *line, enum rl_node_state state); /* the only way to change a state */
void rl_node_tell(struct rl_node *node, enum rl_outcome_kind kind);
void rl_node_hurry(struct rl_node *node); /* something has to be done or told before more is read */
/* The connection of a line is of no use any more; what was in flight is lost. again: made anew without a pause. */
RL_COLD void rl_node_line_failed(struct rl_line *line, int again, const char *why, int64_t now_ns);
RL_COLD void rl_node_drop(struct rl_node *node, int again, const char *why, int64_t now_ns);

#endif

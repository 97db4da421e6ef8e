/* One server: its connections, what it may vote on, and its health. A node is a source: the outcomes of its events,
 * timers and writes are pulled with rlk_node_next, one at a time. The caller may append requests, and never closes a
 * connection. */
#ifndef RLK_NODE_H
#define RLK_NODE_H

#include "../base/macros.h"
#include "../rules/quorum.h"
#include "../rules/url.h"
#include "line.h"
#include "meaning.h"
#include "net.h"
#include "resolver.h"
#include "tls.h"

#define RLK_PAUSE_NS (100 * RLK_NS_PER_MS) /* for a server that cannot do now what it is asked */

enum { RLK_NODE_LINES = 3 };

struct rlk_voter;

struct rlk_node {
  struct rlk_net *net;
  int index;
  struct rlk_voter *voter; /* its state in vote/: only carried here */
  struct rlk_url url;
  struct rlk_tls_peer tls;
  enum rlk_node_state state;             /* that of its line */
  int failures;                          /* in a row since it was ready */
  int refused;                           /* the reason is its configuration, or ours */
  int was_ever_ready;                    /* ... and then what it refuses for may be taken away again */
  struct rlk_node *refused_for;          /* the node under whose address its server votes, or NULL */
  struct rlk_reason why;                 /* why it is not ready; NONE at first */
  struct rlk_timer timer;                /* OFF: next try; until READY: time-out; READY: looks for overdue replies */
  struct rlk_line lines[RLK_NODE_LINES]; /* two for requests, and the listener */
  struct rlk_line *line;                 /* the one in use */
  struct rlk_line *second;               /* the other one, while it is set up beside a silent one */
  int64_t silent_ns;                     /* since when requests are in flight and nothing comes; 0: it is not silent */
  int64_t looked_ns;                     /* when silence had lasted long enough */
  int64_t second_ns;                     /* the time-out of the second; without one: when the next is tried */
  int second_failures;                   /* in a row */
  uint32_t generations;                  /* of links that were opened */
  struct rlk_resolve *resolve;
  struct rlk_address addresses[RLK_ADDRESSES_MAX];
  int address_count, address_next;
  struct rlk_address used; /* whose server was ready last and has not been refused since; family 0: none */
  int is_warned;           /* of a name with several addresses */
  struct rlk_line *heard;  /* SERVER: whose facts count though it is gone */
  int dirty;               /* in net->dirty_nodes */
  struct rlk_node *next_dirty;
  int no_hello;                                     /* the server does not know HELLO */
  int session_proved;                               /* AUTH and SELECT of this URL have succeeded before (rule C.3) */
  struct rlk_facts facts;                           /* of the last session that was set up */
  char run_id[41], replid2[RLK_REPLID2_DIGITS + 1]; /* the last that were known */
  /* health */
  int64_t rtt_ns;           /* of votes, smoothed */
  int64_t quick_rtt_ns;     /* the quickest of its last answers, which slow ones raise slowly; 0: there was none */
  int64_t quick_noted_ns;   /* when an answer last changed that */
  int64_t entry_until_ns;   /* until then its session has this client's entry; 0: it may have none */
  int64_t looked_rtt_ns;    /* when it was last asked about a lock */
  int64_t busy_until_ns;    /* no votes are asked for before: it said that it can't just now */
  int64_t deletes_retry_ns; /* pending deletes are sent again; 0: there is no reason */
  int64_t look_again_ns;    /* then it is asked whether it is still eligible */
  int64_t role_asked_ns;    /* when it was last asked for its role */
  int64_t refused_ns;       /* when it was last found not to be */
  struct rlk_timer listener_timer;
  int64_t listener_wanted_ns, listener_again_ns;
  int listener_failures; /* in a row */
  int listener_refused;  /* the server forbids it (already reported) */
  uint64_t connects, drops;
  int64_t informed_ns;    /* when INFO last reported its state */
  int64_t wrote_ns;       /* when it last took a SET; 0: never */
  int64_t refused_set_ns; /* when it last refused one for a reason that is not the key's; 0: it does not */
  struct rlk_reason refused_set_why;
  /* reports */
  int is_awake;         /* there may be outcomes */
  int is_urgent;        /* there is more to do than to read: the following fields, or work of a line */
  uint32_t news;        /* bits of enum rlk_outcome_kind */
  int64_t stepped_ns;   /* STEPPED: how far its clock was stepped, not reported yet */
  int forgotten;        /* FORGOTTEN: enum redlock_loss */
  enum rlk_fault fault; /* of the last reply, to be acted on once that has been reported */
  const char *error;    /* ... and its text */
  char misfit[64];      /* the text, where it is ours */
};

/* The outcomes of a node. */
enum rlk_outcome_kind {
  RLK_OUTCOME_ANSWER,    /* a request was answered, or never will be: its row gets the outcome */
  RLK_OUTCOME_PROOF,     /* the same of one behind a vote: for the guard first */
  RLK_OUTCOME_LOOKED,    /* a node that is ready was checked again */
  RLK_OUTCOME_SET_UP,    /* the set-up of its connection is over: rlk_node_admit decides */
  RLK_OUTCOME_SERVER,    /* that of node->heard is, too, but the connection has failed since */
  RLK_OUTCOME_WOKEN,     /* a push: the place in reply->text is the first of its queue */
  RLK_OUTCOME_FORGOTTEN, /* restarted or demoted: its votes no longer count */
  RLK_OUTCOME_STEPPED,   /* its clock was stepped forward: leases there end earlier by that */
  RLK_OUTCOME_SHARED,    /* the server votes under the address of line->shared already */
  RLK_OUTCOME_JOINABLE,  /* a SET may join the session's set-up */
  RLK_OUTCOME_SPOKE,     /* a connection that was silent speaks again */
  RLK_OUTCOME_DEAF,      /* its listener has failed: no wake-ups come */
  RLK_OUTCOME_READY,     /* it may be asked */
  RLK_OUTCOME_PAYABLE,   /* pending deletes may be sent */
  RLK_OUTCOME_DOWN       /* it cannot be asked */
};

struct rlk_outcome {
  enum rlk_outcome_kind kind;
  int vote; /* enum rlk_vote; RLK_NOT_ASKED: it is none */
  enum rlk_fault fault;
  int reason;      /* FORGOTTEN: enum redlock_loss */
  int64_t step_ns; /* STEPPED: how far */
  int64_t now_ns;
  const char *error;             /* the text of an error reply, or the fault in it; else NULL */
  const struct rlk_reply *reply; /* until the next is pulled */
  struct rlk_request request;
};

void rlk_node_init(struct rlk_node *node, struct rlk_net *net, int index);
void rlk_node_free(struct rlk_node *node);
void rlk_node_abandon(struct rlk_node *node); /* in a forked child */

/* Sources of outcomes: pull them after each of these. */
void rlk_node_connect(struct rlk_node *node, int64_t now_ns);
void rlk_node_timer(struct rlk_node *node, int64_t now_ns);
void rlk_node_look_at_name(struct rlk_node *node, int64_t now_ns); /* whether its look-up has ended */
void rlk_node_event(struct rlk_node *node, uint32_t generation, int what, int64_t now_ns);
void rlk_node_flush(struct rlk_node *node, int64_t now_ns);
void rlk_node_close(struct rlk_node *node, int64_t now_ns); /* for the client's end */
/* The next outcome: 1, or 0 if there is no more for now. */
int rlk_node_next(struct rlk_node *node, struct rlk_outcome *outcome, int64_t now_ns);
/* Takes a request off that was in flight on a connection that is gone: 1, or 0. */
int rlk_node_take_lost(struct rlk_node *node, struct rlk_request *request, int *again);

/* RLK_ASKED if it can be asked now, RLK_WAITING or RLK_RETRYING if its connection is being made, else why not. */
int rlk_node_can_ask(const struct rlk_node *node, int64_t node_timeout_ns, int64_t now_ns);
int64_t rlk_node_patience_ns(const struct rlk_node *node, const struct rlk_terms *terms);
int rlk_node_is_late(const struct rlk_node *node, int64_t node_timeout_ns, int64_t now_ns);
/* A key may still be there: deletes are sent again after a pause. */
void rlk_node_retry_deletes(struct rlk_node *node, int64_t pause_ns, int64_t now_ns);

static inline int rlk_node_is_being_set_up(const struct rlk_node *node)
{
  return node->second || node->state == RLK_NODE_SETUP || node->news >> RLK_OUTCOME_SERVER & 1;
}

/* Something waits to be written. */
static inline void rlk_node_mark_dirty(struct rlk_node *node)
{
  if (node->dirty)
    return;
  node->dirty = 1;
  node->next_dirty = node->net->dirty_nodes;
  node->net->dirty_nodes = node;
}

#endif

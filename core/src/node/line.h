/* One connection to a node's server: bytes out, requests in flight, and its set-up. node.c decides about the node. */
#ifndef RLK_LINE_H
#define RLK_LINE_H

#include "../rules/clock.h"
#include "../rules/reason.h"
#include "link.h"
#include "../rules/marker.h"
#include "reply.h"
#include "request.h"

enum rlk_node_state {
  RLK_NODE_OFF, /* backing off; its timer says when it is tried again */
  RLK_NODE_RESOLVING,
  RLK_NODE_CONNECTING,
  RLK_NODE_SETUP, /* the set-up's replies are outstanding */
  RLK_NODE_READY,
  RLK_NODE_REFUSED /* connected, but ineligible to vote; only cleaning up before it is closed */
};

enum rlk_answer { RLK_UNKNOWN, RLK_YES, RLK_NO };

/* What a server says about itself: INFO, and whether its scripts may run. */
struct rlk_facts {
  char run_id[41], role[16], mode[16], policy[32], version[24], server[16];
  char replid2[RLK_REPLID2_DIGITS + 1]; /* the history that it had as a replica, zeros: none; "" unknown */
  char aof[4];                          /* "1": it has an append-only file; "" unknown */
  char aof_write[8], snapshot[8]; /* "ok" or "err": how the last write of it ended, and the last snapshot; "" unknown */
  enum rlk_answer scripts;
  int64_t maxmemory, used_memory;
};

struct rlk_line {
  struct rlk_node *node;
  enum rlk_node_state state; /* set by node.c */
  struct rlk_link link;
  struct rlk_buffer out;
  uint64_t queued, written;     /* positions in the stream */
  uint32_t scripts_known;       /* bits: scripts whose text was sent on it */
  struct rlk_requests requests; /* in flight; when the line is OFF: lost, and not reported yet */
  int lost_again;               /* ... the node can be asked again at once */
  /* bytes in */
  redisReader *reader;
  struct rlk_reply reply;
  int reads_left;        /* of this event; 0: nothing to read */
  int is_fed;            /* the reader may have a whole reply */
  size_t unfinished;     /* bytes of the reply that has not come to its end */
  int64_t read_ns;       /* when the last bytes came */
  struct rlk_reason end; /* why it is closed once the replies that have come are taken; NONE: it is not */
  /* the set-up */
  int setup_left;  /* replies still to come */
  int setup_done;  /* the last has arrived: the set-up is to be judged */
  int setup_again; /* it must be repeated, without HELLO */
  int setup_fault; /* the first error in it: enum rlk_fault */
  struct rlk_reason setup_error;
  struct rlk_facts facts;
  char marker[RLK_MARKER_SIZE]; /* of the restart guard; "" none */
  int is_registered;            /* it was written in this set-up */
  int is_informed;              /* INFO was answered */
  struct rlk_clock_sample time; /* of the restart guard */
  int64_t client_id;            /* the server's number for this connection; 0 unknown */
  struct rlk_node *shared;      /* the node under whose address the server votes already, or NULL */
};

void rlk_line_init(struct rlk_line *line, struct rlk_node *node);
void rlk_line_free(struct rlk_line *line);
int rlk_line_open(struct rlk_line *line, const struct rlk_address *address); /* as the link's open */
int rlk_line_begin(struct rlk_line *line);    /* to read and write, once it is connected: -1 when memory is out */
void rlk_line_close(struct rlk_line *line);   /* requests in flight stay */
void rlk_line_abandon(struct rlk_line *line); /* in a forked child */

/* Writes the queued bytes. NONE, or the reason for which the connection must be dropped. */
enum rlk_why rlk_line_flush(struct rlk_line *line, struct rlk_reason *why);

enum rlk_line_news { RLK_LINE_NOTHING, RLK_LINE_BYTES, RLK_LINE_BROKEN };
/* Reads once: BYTES, NOTHING, or BROKEN with the reason why. */
enum rlk_line_news rlk_line_read(struct rlk_line *line, struct rlk_reason *why);

/* The next whole reply of the bytes read, in line->reply: 1, or 0. */
static inline int rlk_line_parse(struct rlk_line *line)
{
  void *parsed = NULL;
  redisReaderGetReply(line->reader, &parsed);
  if (parsed)
    line->unfinished = line->reader->len - line->reader->pos;
  line->is_fed = parsed && line->unfinished > 0;
  return parsed != NULL;
}

/* Why there was none: NONE if the rest of it has still to come. */
enum rlk_why rlk_line_unparsed(struct rlk_line *line, struct rlk_reason *why);

/* The system's words for an error, for the middle of a line; out has RLK_WHY_SIZE bytes. */
const char *rlk_error_words(int error, char *out);
/* The reason of such an error on a connection, for which TLS has reasons of its own; ENDED: the server closed it. */
enum { RLK_LINE_ENDED = -1 };
enum rlk_why rlk_line_reason(const struct rlk_line *line, int error, struct rlk_reason *why);

static inline const struct rlk_request *rlk_line_oldest(const struct rlk_line *line)
{
  return line->requests.count > 0 ? rlk_request_at(&line->requests, 0) : NULL;
}

#endif

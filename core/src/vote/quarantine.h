/* A node as a voter, and how long it is kept from voting: its quarantine, in time and in words. */
#ifndef RLK_QUARANTINE_H
#define RLK_QUARANTINE_H

#include "../base/mutant.h"
#include "../node/session.h"
#include "plan.h"

enum { RLK_NONCES = 5 };

/* The state of a node as a voter. */
struct rlk_voter {
  enum rlk_finding finding;     /* the finding of the last set-up */
  char marker[RLK_MARKER_SIZE]; /* of the server that votes */
  struct rlk_marker mark;       /* the contents of the last marker that was read */
  int64_t since_ns;             /* when it was written, by our clock */
  char nonces[RLK_NONCES][17];  /* of the markers that this process has seen on it, the present one first */
  int64_t ttl_limit_ms;         /* no longer leases begin there; 0: its number is above this client's */
  int64_t changed_ns;           /* when this process last saw another server here, or that keys were lost; 0 never */
  char former_run_id[41];       /* of the server before, whose leases still count until then */
  int64_t former_until_ns;
  int64_t quarantined_until_ns; /* no votes are counted before */
  int quarantine_untold;        /* since too few other nodes vote */
  struct rlk_clock clock;
  int64_t clock_since_ns;  /* when it was first read */
  int is_right;            /* it was not ahead of the other nodes' clocks then */
  int64_t ahead_until_ns;  /* it is ahead of the other nodes' clocks, and does not vote before; 0: it is not */
  struct rlk_step step;    /* of its clock, if that was the last that happened */
  int is_own_step;         /* all nodes were stepped alike: it was this machine that stood still */
  int64_t marker_read_ns;  /* when it last had this marker */
  int has_voted;           /* it was ready as that server */
  int64_t leases_until_ns; /* until then a client relies on a lease there, as noted before the set-up was judged */
};

/* Every lease that a server may have granted is over after that. */
int64_t rlk_guard_time_ns(const struct rlk_net *net);
/* Works out when it ends, from what is known of the node. */
void rlk_guard_quarantine(struct rlk_node *node, int64_t now_ns);

static inline int rlk_guard_is_stepped(const struct rlk_voter *voter)
{
  return voter->step.high_ns && !voter->is_own_step;
}

/* May the server have lost keys whose leases still count? Then it does not vote. */
static inline int rlk_guard_waits(const struct rlk_node *node, int64_t now_ns)
{
  return now_ns < node->voter->quarantined_until_ns || now_ns < node->voter->ahead_until_ns;
}

static inline int rlk_guard_lets_vote(const struct rlk_node *node, int64_t now_ns)
{
  return !rlk_guard_waits(node, now_ns) && node->voter->ttl_limit_ms > 0;
}

void rlk_guard_tell(struct rlk_node *node, int64_t now_ns); /* that it is quarantined, as an event */
/* The same for a node that was set up, once a majority votes; if none does, a waiting lock reports all of them. */
void rlk_guard_tell_ready(struct rlk_node *node, int64_t now_ns);
/* Why it does not vote, and for how long; NONE if it is not quarantined. */
enum rlk_why rlk_guard_why(const struct rlk_node *node, int64_t now_ns);
void rlk_guard_words(const struct rlk_node *node, struct rlk_text *out, int64_t now_ns);
/* "for another 12.3 s, since 2023-11-14T22:13:20Z": the detail of a reason of the guard; nothing if it has no end */
void rlk_guard_left_words(const struct rlk_node *node, struct rlk_text *out, int64_t now_ns);
/* The same in one word, "" if it is not quarantined; and when that ends, RLK_NEVER if that is not known yet. */
const char *rlk_guard_reason(const struct rlk_node *node, int64_t now_ns);
int64_t rlk_guard_until_ns(const struct rlk_node *node);

#endif

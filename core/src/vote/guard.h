/* The restart guard: a server that may have lost keys does not vote for max_ttl_ms, since no lease is longer than that
 * (rule C.3.1). Each server keeps a marker: it is gone where keys are gone, and it names another server on a replica
 * that was promoted. It is read when a connection is set up, and behind every SET. */
#ifndef RLK_GUARD_H
#define RLK_GUARD_H

#include "../base/mutant.h"
#include "../node/session.h"

/* The marker of a server in the eyes of this client. */
enum rlk_finding {
  RLK_FOUND_NOTHING, /* it was not read */
  RLK_FOUND_OURS,
  RLK_FOUND_NONE,    /* there is none, or it is not of this server: the server is new, or has lost keys */
  RLK_FOUND_SMALLER, /* it allows shorter leases than this client */
  RLK_FOUND_LARGER,
  RLK_FOUND_OTHER_NODES,
  RLK_FOUND_OTHER_CLUSTER,
  RLK_FOUND_OLD, /* of version 0.1 */
  RLK_FOUND_FOREIGN
};

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
  int64_t ahead_until_ns;  /* it is ahead of the other nodes' clocks, and does not vote before; 0: it is not */
  int64_t step_ns;         /* how far it was stepped forward, if that was the last that happened */
  int64_t marker_read_ns;  /* when it last had this marker */
  int has_voted;           /* it was ready as that server */
  int64_t leases_until_ns; /* until then a client relies on a lease there, as noted before the set-up was judged */
};

void rlk_guard_init(struct rlk_net *net); /* when the options stand */

/* Is the marker asked for behind every SET, and the time behind every SET and extension? */
static inline int rlk_guard_checks_votes(const struct rlk_node *node)
{
  return rlk_net_has_markers(node->net);
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

/* The server's past by its set-up: READY, perhaps with a quarantine; CONTINUE while the marker is being written;
 * REFUSE or DROP with the reason in why. */
enum rlk_session_verdict rlk_guard_judge(struct rlk_line *line, struct rlk_reason *why, int64_t now_ns);

/* This process has seen that the server has lost keys: it does not vote until it has been set up and judged again. */
void rlk_guard_note_loss(struct rlk_node *node);
/* The server was restarted, or is another one: 1 if leases there continue to count, since no other client is granted
 * them. Then node->run_id is still that of the former server. */
int rlk_guard_note_restart(struct rlk_node *node);
/* A time read in a set-up may show whether another node's clock is ahead: one that is ahead of the others may have
 * been stepped before this process could see it, so it does not vote for the longest TTL (AHEAD). */
void rlk_guard_compare_clocks(struct rlk_node *node, int64_t now_ns);
/* The replies to CLOCK and MARKER: has the server lost no keys since it was judged (rules C.3.1, C.3.2)? Then the vote
 * is GRANTED, whether or not it may vote. A clock stepped forward ends leases there earlier (STEPPED). */
void rlk_guard_proof(struct rlk_node *node, struct rlk_outcome *outcome);
/* The lease there that an extension by ttl_ms may give: no longer than its marker's number. */
int64_t rlk_guard_cap_ms(const struct rlk_node *node, int64_t ttl_ms);
/* Does a lease of ttl_ms that does not count yet begin to? GRANTED, QUARANTINED, or REFUSED by the marker's number. */
int rlk_guard_vote(const struct rlk_node *node, int64_t ttl_ms, int64_t now_ns);
/* The marker of a node that is quarantined was read again: an operator may have ended that. */
void rlk_guard_looked(struct rlk_line *line, int64_t now_ns);
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
/* How long a client that has seen nothing of the server does not count it yet, by its marker alone. */
int64_t rlk_guard_left_ms(const struct rlk_node *node, int64_t now_ns);
/* The reason if its marker keeps this client, or a lease of ttl_ms, out; else NONE. */
enum rlk_why rlk_guard_finding(const struct rlk_node *node, struct rlk_reason *why);
enum rlk_why rlk_guard_limit(const struct rlk_node *node, int64_t ttl_ms, struct rlk_reason *why);

#endif

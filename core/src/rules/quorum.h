/* Votes, majority, drift, validity. Pure: no I/O, no clock, no allocation. */
#ifndef RLK_QUORUM_H
#define RLK_QUORUM_H

#include <stdint.h>

#define RLK_NODES_MAX 64

/* A node's answer in a round. */
enum rlk_vote {
  RLK_NOT_ASKED = 0, /* nothing to ask it: it cannot hold the token */
  RLK_WAITING,       /* its connection is being made */
  RLK_RETRYING,      /* the same after a failure: it is unlikely to answer */
  RLK_ASKED,         /* the request is queued or sent */
  RLK_GRANTED,       /* +OK, or the token was confirmed */
  RLK_BUSY,          /* another token is there */
  RLK_GONE,          /* our token is not there any more */
  RLK_FREE,          /* nothing is there (inspect) */
  RLK_ERROR,         /* an error of the server that is no vote */
  RLK_LATE,          /* no answer in time */
  RLK_DROPPED,       /* the connection broke after the request */
  RLK_DOWN,          /* no connection */
  RLK_OVERLOADED,    /* it owes too many replies */
  RLK_QUARANTINED,   /* ineligible to vote for a time: it may have lost keys (rule C.3) */
  RLK_REFUSED,       /* ineligible to vote: configuration */
  RLK_VOTES
};

struct rlk_tally {
  int nodes, quorum;
  int waiting, retrying, asked, granted, busy, gone, free, quarantined, refused;
  int answered; /* granted, busy, gone or free */
  int reached;  /* asked, whatever came of it */
};

int rlk_quorum(int nodes);

/* The part of a lease that is not counted on: ceil(ttl * factor) + 2 ms (rule A.2). */
int64_t rlk_drift_ns(int64_t ttl_ms, double drift_factor);

/* The q-th largest of n moments, 1 <= q <= n: until then at least q nodes count (rule 0). */
int64_t rlk_valid_until(const int64_t *counts_until_ns, int n, int q);

struct rlk_tally rlk_count(const uint8_t *votes, int nodes);

/* The verdict on a round of acquiring: REDLOCK_OK (valid says whether Q leases leave min_validity), REDLOCK_PENDING,
 * BUSY, NO_QUORUM or REFUSED_CONFIG. It fails as soon as a majority is impossible and it is known why. */
int rlk_judge_acquire(const struct rlk_tally *tally, int valid);

/* ... of extending: OK, PENDING, LOST (a majority says the token is gone), NO_QUORUM, REFUSED_CONFIG. */
int rlk_judge_extend(const struct rlk_tally *tally);

/* ... of releasing: OK (some key was deleted), LOST (none was there), PENDING, NO_QUORUM, REFUSED_CONFIG. If adopted
 * is set, it matters whether a key was there, so all nodes are awaited until one was. */
int rlk_judge_release(const struct rlk_tally *tally, int adopted);

/* ... of removing, which waits for every node: OK (a majority has nothing now), PENDING, NO_QUORUM, REFUSED_CONFIG. */
int rlk_judge_remove(const struct rlk_tally *tally);

/* Whether the lock was still held when it was released, by the nodes' answers about its token: LOST if so many of
 * those that counted (bits) no longer had it that fewer than a majority can have had it; OK if none says so or a
 * majority had it; else PENDING. */
int rlk_judge_promise(const uint8_t *votes, uint64_t counted, int nodes);

/* ... of inspecting, which waits for every node: OK (a majority is free), BUSY, PENDING, NO_QUORUM, REFUSED_CONFIG. */
int rlk_judge_inspect(const struct rlk_tally *tally);

#endif

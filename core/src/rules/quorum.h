/* Votes, majority, drift, validity. Pure: no I/O, no clock, no allocation. */
#ifndef RL_QUORUM_H
#define RL_QUORUM_H

#include <stdint.h>

#define RL_NODES_MAX 64

/* What a node has said in a round. */
enum rl_answer {
  RL_NOT_ASKED = 0, /* nothing to ask it: it cannot hold the token */
  RL_WAITING,       /* its connection is being made */
  RL_RETRYING,      /* the same after a failure: little is to be hoped for */
  RL_ASKED,         /* the request is queued or sent */
  RL_GRANTED,       /* +OK, or the token was confirmed */
  RL_BUSY,          /* another token is there */
  RL_GONE,          /* our token is not there any more */
  RL_FREE,          /* nothing is there (inspect) */
  RL_ERROR,         /* an error of the server that is no vote */
  RL_LATE,          /* no answer in time */
  RL_DROPPED,       /* the connection broke after the request */
  RL_DOWN,          /* no connection */
  RL_OVERLOADED,    /* it owes too many replies */
  RL_REFUSED,       /* it may not vote: configuration */
  RL_ANSWERS
};

enum rl_round_kind { RL_ROUND_ACQUIRE, RL_ROUND_EXTEND, RL_ROUND_RELEASE, RL_ROUND_INSPECT };

struct rl_tally {
  int nodes, quorum;
  int waiting, retrying, asked, granted, busy, gone, free, refused;
  int answered; /* granted, busy, gone or free */
  int reached;  /* asked, whatever came of it */
};

int rl_quorum(int nodes);

/* The part of a lease that is not counted on: ceil(ttl * factor) + 2 ms (rule A.2). */
int64_t rl_drift_ns(int64_t ttl_ms, double drift_factor);

/* The q-th largest of n moments, 1 <= q <= n: until then at least q nodes count (rule 0). */
int64_t rl_valid_until(const int64_t *e_ns, int n, int q);

struct rl_tally rl_count(const uint8_t *answers, int nodes);

/* The verdict on a round of acquiring: REDLOCK_OK (valid says whether Q leases leave min_validity), REDLOCK_PENDING,
 * BUSY, NO_QUORUM or REFUSED_CONFIG. It fails as soon as a majority is impossible and it is known why. */
int rl_judge_acquire(const struct rl_tally *tally, int valid);

/* ... of extending: OK, PENDING, LOST (a majority says the token is gone), NO_QUORUM, REFUSED_CONFIG. */
int rl_judge_extend(const struct rl_tally *tally);

/* ... of releasing: OK (some key was deleted), LOST (none was there), PENDING, NO_QUORUM, REFUSED_CONFIG. With adopted
 * set it matters whether a key was there, so all are waited for until one was. */
int rl_judge_release(const struct rl_tally *tally, int adopted);

/* ... of removing, which waits for every node: OK (a majority has nothing now), PENDING, NO_QUORUM, REFUSED_CONFIG. */
int rl_judge_remove(const struct rl_tally *tally);

/* Whether the lock that is released was still held, by what the nodes say of its token: LOST if so many of those that
 * counted (bits) no longer had it that fewer than a majority can have had it; OK if none says so or a majority had it;
 * else PENDING. */
int rl_judge_promise(const uint8_t *answers, uint64_t counted, int nodes);

/* ... of inspecting, which waits for every node: OK (a majority is free), BUSY, PENDING, NO_QUORUM, REFUSED_CONFIG. */
int rl_judge_inspect(const struct rl_tally *tally);

#endif

/* Clocks of servers that are stepped forward: keys end early.
 *
 * A client reads a server's clock when it connects, and behind each SET and extension. If it was stepped since the last
 * time, this vote does not count, what the client counts there ends earlier by the step, and the node does not get a
 * vote again for GUARD ticks. A client that has just started compares the clocks that it has read so far: one that is
 * ahead of all others is left out until GUARD ticks after it was first read, since it may have been stepped before.
 * Any client may be replaced by a fresh one at any time. Replies that take long, and drift, are not modelled.
 *
 * STEPS=n     so often the clock of one node is stepped, by 1 to TTL ticks
 * ANY_NODE    a second node may be stepped, too
 * NO_FRESH    clients have read all clocks before the first step, and are not replaced
 * BEHIND=n    the clock that is stepped is so far behind the others at first
 * TOLERANCE=n so much clocks may differ before a fresh client takes one for ahead
 * LEAVE_OUT_BEHIND  a clock that is behind all others is left out as well
 * IDLE        a client may be idle for so long that drift hides a step: then it judges the node as one that it has just
 *             met, by the other clocks that it has read
 * Broken rules: NO_TIME NO_COMPARISON COMPARED_AT_CONNECT (... but only when it connects) GUARD=n (shorter than the TTL) */
#ifndef TTL
#define TTL 2
#endif
#ifndef GUARD
#define GUARD TTL
#endif
#ifndef STEPS
#define STEPS 1
#endif
#ifndef BEHIND
#define BEHIND 0
#endif
#ifndef TOLERANCE
#define TOLERANCE 0
#endif
#define CLIENTS 2

typedef Link {
  bit is_read;     /* the clock was, at least once */
  byte clock;      /* as it was read last */
  byte fresh;      /* ticks until GUARD have passed since it was first read; 0 if it had not been stepped by then */
  byte quarantine; /* ticks, since a step was noticed */
  byte counts;     /* how long the client still counts this node */
};
typedef Node {
  byte owner; /* client + 1, or 0 */
  byte left;  /* of its TTL */
  byte clock; /* how far it was stepped */
  bit is_steady; /* it is another node whose clock is stepped */
  Link to[CLIENTS];
};
#include "nodes.pml"

byte steps;
byte i, j, step; /* scratch: 0 between steps */

#define L(n, c) node[n].to[c]
#define COUNTS(n, c) (L(n, c).counts > 0)
#define HOLDS(c) (COUNTS(0, c) + COUNTS(1, c) + COUNTS(2, c) >= QUORUM)
#define READ(c) (L(0, c).is_read + L(1, c).is_read + L(2, c).is_read)
/* Node n is ahead of, or behind, node m. */
#define IS_AHEAD(n, m, c) ((n) == (m) || !L(m, c).is_read || L(n, c).clock > L(m, c).clock + TOLERANCE)
#define IS_BEHIND(n, m, c) ((n) == (m) || !L(m, c).is_read || L(m, c).clock > L(n, c).clock + TOLERANCE)

#ifdef NO_COMPARISON
#define AHEAD(n, c) false
#else
#define AHEAD(n, c) (L(n, c).fresh > 0 && READ(c) > 1 && IS_AHEAD(n, 0, c) && IS_AHEAD(n, 1, c) && IS_AHEAD(n, 2, c))
#endif
#ifdef LEAVE_OUT_BEHIND
#define LEFT_BEHIND(n, c) (READ(c) > 1 && IS_BEHIND(n, 0, c) && IS_BEHIND(n, 1, c) && IS_BEHIND(n, 2, c))
#else
#define LEFT_BEHIND(n, c) false
#endif
#define IS_LEFT_OUT(n, c) (L(n, c).is_read && (AHEAD(n, c) || LEFT_BEHIND(n, c)))

inline check() {
  assert(!(HOLDS(0) && HOLDS(1)));
  i = 0; j = 0; step = 0;
  SORT_NODES
}

inline compare(c) {
  for (EACH_NODE(j)) { if :: IS_LEFT_OUT(j, c) -> L(j, c).counts = 0 :: else fi }
}

/* The clock is read; `step` says how far it was stepped since the last time. */
inline read_clock(c, n) {
#ifdef NO_TIME
  skip
#else
  step = node[n].clock - L(n, c).clock;
  L(n, c).clock = node[n].clock;
  if
  :: step > 0 ->
       L(n, c).quarantine = GUARD;
       L(n, c).counts = (L(n, c).counts > step -> L(n, c).counts - step : 0)
  :: else
  fi;
  compare(c)
#endif
}

inline give_up(c) {
  for (EACH_NODE(j)) {
    if :: node[j].owner == c + 1 -> node[j].owner = 0; node[j].left = 0 :: else fi;
    L(j, c).counts = 0
  }
}

proctype client(byte c) {
  do
  :: d_step { true -> give_up(c); check() }
#ifndef NO_FRESH
  :: d_step { READ(c) > 0 -> /* a fresh one takes its place */
       give_up(c);
       for (EACH_NODE(j)) {
         L(j, c).is_read = 0; L(j, c).clock = 0; L(j, c).fresh = 0; L(j, c).quarantine = 0
       }
       check() }
#endif
  od
}

/* The key has the client's token until the vote would no longer count, if the clock was not stepped since. */
proctype link(byte c, n) {
  do
  :: d_step { !L(n, c).is_read -> /* it connects */
       L(n, c).is_read = 1; L(n, c).clock = node[n].clock;
       L(n, c).fresh = (node[n].clock > 0 -> GUARD : 0);
       compare(c); check() }
  :: d_step { L(n, c).is_read && node[n].owner == 0 -> node[n].owner = c + 1; node[n].left = TTL; check() } /* SET */
  :: d_step { node[n].owner == c + 1 && HOLDS(c) -> node[n].left = TTL; check() } /* an extension */
  :: d_step { node[n].owner == c + 1 -> /* the look behind them */
       read_clock(c, n);
       if
       :: step == 0 && (L(n, c).counts > 0 || (L(n, c).quarantine == 0 && !IS_LEFT_OUT(n, c))) ->
            L(n, c).counts = node[n].left
       :: else
       fi;
       check() }
  :: d_step { L(n, c).is_read -> read_clock(c, n); check() } /* behind a SET that was refused */
#ifdef IDLE
  :: d_step { L(n, c).is_read && !COUNTS(n, c) ->
       L(n, c).clock = node[n].clock;
#ifndef COMPARED_AT_CONNECT
       L(n, c).fresh = (node[n].clock > 0 -> GUARD : 0);
       compare(c);
#endif
       check() }
#endif
  od
}

proctype server(byte n, by) {
  do
  :: d_step { steps < STEPS && !node[n].is_steady ->
       steps++;
       node[n].clock = node[n].clock + by;
       if :: node[n].left > by -> node[n].left = node[n].left - by
          :: else -> node[n].left = 0; node[n].owner = 0 fi;
#ifndef ANY_NODE
       for (EACH_NODE(i)) { node[i].is_steady = (i != n) }
#endif
       check() }
  od
}

inline tick(timer) {
  if :: timer > 0 -> timer-- :: else fi
}

proctype time() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> node[i].owner = 0 :: else fi :: else fi;
         for (EACH_CLIENT(j)) {
           tick(L(i, j).fresh);
           tick(L(i, j).quarantine);
           tick(L(i, j).counts)
         }
       }
       check() }
  od
}

init {
  byte c, n, by;
  atomic {
#if BEHIND > 0
    for (n : 1 .. NODES - 1) { node[n].clock = BEHIND; node[n].is_steady = 1 }
#endif
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) {
#ifdef NO_FRESH
        L(n, c).is_read = 1; L(n, c).clock = node[n].clock;
#endif
        run link(c, n)
      }
    }
    for (EACH_NODE(n)) {
      for (by : 1 .. TTL) { run server(n, by) }
    }
    run time()
  }
}

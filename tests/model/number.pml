/* max_ttl_ms is a number in the configuration of the programs; a marker only names it, so that a difference is seen.
 *
 * A client takes no lease that is longer than its own number or than the one that the marker names. It does not use a
 * node whose marker names more than its own number, and counts no vote there before its own number of ticks has passed
 * since the marker was written. A server that has lost its key, or has another run id, has no valid marker: the first
 * client that sees it writes one, with its own number, and reads nothing else.
 *
 * Client 0 takes SHORT leases. Client 1 has the number LONG and takes leases of both lengths, extensions too.
 * Requests are executed at once, but a SET and the look behind it are two steps; lease.pml has delays and drift.
 *
 * LOSSES=n   so many times a node loses its marker, and its key or not: a restart with all data, with older data or
 *            without, FLUSHALL, a promotion. What is left of the marker is never used, so all of them are one
 * TOGETHER   each loss is one of all nodes at once
 * ROLLOUT    client 0 and the markers have SHORT at first. At any time client 0 gets LONG; once it has had that for LONG
 *            ticks the operator raises the markers, node by node (bootstrap --replace)
 * LOWER      client 1 takes no longer leases any more; once none is alive the operator lowers the markers, node by node,
 *            and client 0's number after that
 * DIFFER     client 0 has SHORT for good; the markers have SHORT at first
 * BOOTSTRAP  while nobody counts a node the operator registers servers that votes count at once
 * Limits: FALSE_WORD (BOOTSTRAP or ROLLOUT though that is not true yet) IN_PLACE (a node goes back to older data while
 *   the marker stays valid) BOOTED_BEHIND (the clock of a server that was registered is set right)
 * Broken rules: NUMBER_NOT_NAMED SHORT_GUARD RAISED_AT_ONCE EXTENDED_ABOVE LOWERED_EARLY SINCE_READ_EARLY */
#ifndef SHORT
#define SHORT 1
#endif
#ifndef LONG
#define LONG 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#define CLIENTS 2

typedef Link { byte counts /* how long the client still counts this node */ };
typedef Node {
  byte owner;   /* client + 1, or 0 */
  byte left;    /* of its TTL */
  bit is_long;  /* the SET or extension that it has had last */
  bit is_valid; /* the marker */
  byte number;  /* that the marker names */
  byte age;     /* of the marker, up to LONG */
#ifdef SINCE_READ_EARLY
  byte early; /* ticks + 1 since a client has read the time for a marker that it is going to write */
#endif
  Link to[CLIENTS];
};
#include "nodes.pml"

byte losses;
byte number_0 = LONG; /* of client 0 */
byte number_0_age;    /* since it became LONG */
bit is_lowering;
byte i, j; /* scratch: 0 between steps */

#if NODES == 3
#define SUM(f) (f(0) + f(1) + f(2))
#else
#define SUM(f) (f(0) + f(1) + f(2) + f(3) + f(4))
#endif
#define BY_0(i) (node[i].to[0].counts > 0)
#define BY_1(i) (node[i].to[1].counts > 0)
#define HOLDS(c) ((c) == 0 -> SUM(BY_0) >= QUORUM : SUM(BY_1) >= QUORUM)
#define NOBODY_COUNTS (SUM(BY_0) + SUM(BY_1) == 0)
#define ALLOWS_LONG(i) (node[i].is_valid && node[i].number == LONG)
#define LONG_LEASE(i) (node[i].to[1].counts > 0 || (node[i].owner == 2 && node[i].is_long))
#define NUMBER(c) ((c) == 0 -> number_0 : LONG)

inline check() {
  assert(!(HOLDS(0) && HOLDS(1)));
  i = 0; j = 0;
  SORT_NODES
}

inline lose_key(n) { node[n].owner = 0; node[n].left = 0; node[n].is_long = 0 }
inline lose_marker(n) { node[n].is_valid = 0; node[n].number = 0; node[n].age = 0 }

proctype client(byte c) {
  do
  :: d_step { true -> /* a release, or an attempt that is given up */
       for (EACH_NODE(j)) {
         if :: node[j].owner == c + 1 -> lose_key(j) :: else fi;
         node[j].to[c].counts = 0
       }
       check() }
  od
}

#define L node[n].to[c]
#define TTL_OF(n) (node[n].is_long -> LONG : SHORT)
#ifdef NUMBER_NOT_NAMED
#define FITS(n, c) true
#else
#define FITS(n, c) (node[n].number <= NUMBER(c) && TTL_OF(n) <= node[n].number)
#endif
#ifdef SHORT_GUARD
#define HAS_WAITED(n, c) (node[n].age >= SHORT)
#else
#define HAS_WAITED(n, c) (node[n].age >= NUMBER(c))
#endif
#define MAY_VOTE(n, c) (node[n].is_valid && FITS(n, c) && HAS_WAITED(n, c))
#ifdef EXTENDED_ABOVE
#define MAY_BE_EXTENDED(n, c) true
#else
#define MAY_BE_EXTENDED(n, c) (node[n].is_valid && FITS(n, c))
#endif

#define MAX(x, y) ((x) > (y) -> (x) : (y))
#define MIN(x, y) ((x) < (y) -> (x) : (y))

inline put(n, c, is_long_) {
  node[n].owner = c + 1;
  node[n].is_long = is_long_;
  node[n].left = MAX(node[n].left, TTL_OF(n))
}

inline extend(n, c, is_long_) {
  put(n, c, is_long_);
  if :: L.counts > 0 && MAY_BE_EXTENDED(n, c) -> L.counts = MAX(L.counts, TTL_OF(n)) :: else fi
}

#if defined(ALLOWED_BY_ONE) || defined(NUMBER_NOT_NAMED)
#define TAKES_LONG(c) ((c) == 1 && !is_lowering)
#else
#define TAKES_LONG(c) ((c) == 1 && !is_lowering && SUM(ALLOWS_LONG) >= QUORUM)
#endif
#ifdef EXTENDED_ABOVE
#define EXTENDS_LONG(c) ((c) == 1 && !is_lowering)
#else
#define EXTENDS_LONG(c) TAKES_LONG(c)
#endif

proctype link(byte c, n) {
  do
  :: d_step { node[n].owner == 0 -> put(n, c, 0); check() } /* SET */
  :: d_step { node[n].owner == 0 && TAKES_LONG(c) -> put(n, c, 1); check() }
  :: d_step { node[n].owner == c + 1 && MAY_VOTE(n, c) -> /* the look behind it */
       L.counts = MAX(L.counts, MIN(node[n].left, TTL_OF(n))); check() }
  :: d_step { node[n].owner == c + 1 && HOLDS(c) -> extend(n, c, 0); check() }
  :: d_step { node[n].owner == c + 1 && HOLDS(c) && EXTENDS_LONG(c) -> extend(n, c, 1); check() }
  :: d_step { !node[n].is_valid -> /* it registers the server */
       node[n].is_valid = 1; node[n].number = NUMBER(c); node[n].age = 0; check() }
#ifdef SINCE_READ_EARLY
  :: d_step { !node[n].is_valid && node[n].early == 0 -> node[n].early = 1; check() }
  :: d_step { !node[n].is_valid && node[n].early > 0 ->
       node[n].is_valid = 1; node[n].number = NUMBER(c); node[n].age = node[n].early - 1; node[n].early = 0; check() }
#endif
  od
}

#ifdef FALSE_WORD
#define MAY_RAISE true
#elif defined(RAISED_AT_ONCE)
#define MAY_RAISE (number_0 == LONG)
#else
#define MAY_RAISE (number_0 == LONG && number_0_age == LONG)
#endif
#ifdef LOWERED_EARLY
#define MAY_LOWER is_lowering
#else
#define MAY_LOWER (is_lowering && SUM(LONG_LEASE) == 0)
#endif
proctype operator() {
  do
#ifdef ROLLOUT
  :: d_step { number_0 == SHORT -> number_0 = LONG; number_0_age = 0; check() }
#endif
#ifdef LOWER
  :: d_step { !is_lowering -> is_lowering = 1; check() }
  :: d_step { MAY_LOWER && number_0 == LONG && SUM(ALLOWS_LONG) < QUORUM -> number_0 = SHORT; check() }
#endif
  :: false
  od
}

#ifdef FALSE_WORD
#define IS_NOTHING_LIVE true
#else
#define IS_NOTHING_LIVE NOBODY_COUNTS
#endif

proctype server(byte n) {
  do
  :: d_step { losses < LOSSES ->
       losses++;
#ifdef TOGETHER
       for (EACH_NODE(i)) { lose_key(i); lose_marker(i) }
#else
       lose_key(n); lose_marker(n);
#endif
       check() }
  :: d_step { losses < LOSSES -> losses++; lose_marker(n); check() } /* a restart with all data */
#ifdef IN_PLACE
  :: d_step { losses < LOSSES -> losses++; lose_key(n); check() }
#endif
#ifdef BOOTED_BEHIND
  :: d_step { node[n].is_valid && node[n].age < LONG -> node[n].age = LONG; check() }
#endif
#ifdef ROLLOUT
  :: d_step { node[n].is_valid && MAY_RAISE -> node[n].number = LONG; check() }
#endif
#ifdef LOWER
  :: d_step { node[n].is_valid && MAY_LOWER -> node[n].number = SHORT; check() }
#endif
#ifdef BOOTSTRAP
  :: d_step { (!node[n].is_valid || node[n].age < LONG) && IS_NOTHING_LIVE ->
       if :: !node[n].is_valid -> node[n].number = number_0 :: else fi;
       node[n].is_valid = 1; node[n].age = LONG;
       check() }
#endif
  od
}

proctype clock() {
  do
  :: d_step { true ->
       if :: number_0_age < LONG -> number_0_age++ :: else fi;
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> lose_key(i) :: else fi :: else fi;
         if :: node[i].is_valid && node[i].age < LONG -> node[i].age++ :: else fi;
#ifdef SINCE_READ_EARLY
         if :: node[i].early > 0 && node[i].early <= LONG -> node[i].early++ :: else fi;
#endif
         for (EACH_CLIENT(j)) { if :: node[i].to[j].counts > 0 -> node[i].to[j].counts-- :: else fi }
       }
       check() }
  od
}

#if defined(ROLLOUT) || defined(DIFFER)
#define FIRST SHORT
#else
#define FIRST LONG
#endif
init {
  byte c, n;
  atomic {
    number_0 = FIRST;
    number_0_age = LONG;
    for (EACH_NODE(n)) { node[n].is_valid = 1; node[n].number = FIRST; node[n].age = LONG }
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run link(c, n) }
    }
    for (EACH_NODE(n)) { run server(n) }
    run operator();
    run clock()
  }
}

/* What counts goes on counting, all else begins as a vote does; and what an operator may end.
 *
 * A client counts a vote where the marker is the one that is known and has stood for GUARD ticks. An extension counts
 * where the node counts for the client at that moment, or where a vote would; a holder puts its key back by a SET.
 * Requests are executed at once, but a SET and the look behind it are two steps; lease.pml has delays and drift.
 *
 * LOSSES=n   so many times a node loses its keys and its marker
 * FLIP       ... or its keys alone: it was the replica of a server that lacks them, and has its own run id and marker.
 *            Another history shows that, and then it is registered anew
 * REPLACE    an operator rewrites the number in the marker of a node
 * BOOTSTRAP  an operator is shown the nodes that do not vote, of which no lease is live; later the answer is carried out
 * Broken rules: LAPSED_COUNT HISTORY_IGNORED REPLACE_ENDS PLAN_ANEW */
#ifndef TTL
#define TTL 2
#endif
#ifndef GUARD
#define GUARD TTL
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#define CLIENTS 2

typedef Link {
  byte counts; /* how long the client still counts this node */
#ifdef LAPSED_COUNT
  bit has_counted;
#endif
};
typedef Node {
  byte owner;   /* client + 1, or 0 */
  byte left;    /* of its TTL */
  bit is_valid; /* the marker */
  byte age;     /* of the marker, up to GUARD */
  bit is_shown; /* to the operator, as it still is */
  Link to[CLIENTS];
};
#include "nodes.pml"

byte losses;
byte i, j; /* scratch: 0 between steps */

#define COUNTS(n, c) (node[n].to[c].counts > 0)
#define HOLDS(c) (COUNTS(0, c) + COUNTS(1, c) + COUNTS(2, c) >= QUORUM)
#define VOTES(n) (node[n].is_valid && node[n].age >= GUARD)

inline check() {
  assert(!(HOLDS(0) && HOLDS(1)));
  i = 0; j = 0;
  SORT_NODES
}

inline lose_key(n) { node[n].owner = 0; node[n].left = 0 }

proctype client(byte c) {
  do
  :: d_step { true -> /* a release, or an attempt that is given up */
       for (EACH_NODE(j)) {
         if :: node[j].owner == c + 1 -> lose_key(j) :: else fi;
         node[j].to[c].counts = 0;
#ifdef LAPSED_COUNT
         node[j].to[c].has_counted = 0
#endif
       }
       check() }
  od
}

#define L node[n].to[c]
#ifdef LAPSED_COUNT
#define GOES_ON(n, c) (L.counts > 0 || L.has_counted)
#define NOTE_COUNTED L.has_counted = 1
#else
#define GOES_ON(n, c) (L.counts > 0)
#define NOTE_COUNTED skip
#endif

proctype link(byte c, n) {
  do
  :: d_step { node[n].owner == 0 -> node[n].owner = c + 1; node[n].left = TTL; check() } /* SET */
  :: d_step { node[n].owner == c + 1 && VOTES(n) -> /* the look behind it */
       L.counts = (L.counts > node[n].left -> L.counts : node[n].left); NOTE_COUNTED; check() }
  :: d_step { node[n].owner == c + 1 && HOLDS(c) -> /* an extension, with the look behind it */
       node[n].left = TTL;
       if :: node[n].is_valid && (GOES_ON(n, c) || VOTES(n)) -> L.counts = TTL; NOTE_COUNTED :: else fi;
       check() }
  :: d_step { !node[n].is_valid -> node[n].is_valid = 1; node[n].age = 0; check() } /* it registers the server */
  od
}

proctype server(byte n) {
  do
  :: d_step { losses < LOSSES ->
       losses++; lose_key(n); node[n].is_valid = 0; node[n].age = 0; node[n].is_shown = 0; check() }
#ifdef FLIP
  :: d_step { losses < LOSSES ->
       losses++; lose_key(n); node[n].is_shown = 0;
#ifndef HISTORY_IGNORED
       node[n].is_valid = 0; node[n].age = 0;
#endif
       check() }
#endif
#ifdef REPLACE_ENDS
  :: d_step { node[n].is_valid -> node[n].age = GUARD; check() }
#elif defined(REPLACE)
  :: d_step { node[n].is_valid -> check() } /* the number alone */
#endif
#ifdef BOOTSTRAP
  :: d_step { !VOTES(n) && !COUNTS(n, 0) && !COUNTS(n, 1) -> node[n].is_shown = 1; check() }
#endif
  od
}

#ifdef PLAN_ANEW
#define IS_PLANNED(i) (!VOTES(i))
#else
#define IS_PLANNED(i) (node[i].is_shown)
#endif

proctype operator() {
  do
#ifdef BOOTSTRAP
  :: d_step { node[0].is_shown + node[1].is_shown + node[2].is_shown > 0 ->
       for (EACH_NODE(i)) {
         if :: IS_PLANNED(i) -> node[i].is_valid = 1; node[i].age = GUARD :: else fi;
         node[i].is_shown = 0
       }
       check() }
#endif
  :: false
  od
}

proctype clock() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> lose_key(i) :: else fi :: else fi;
         if :: node[i].is_valid && node[i].age < GUARD -> node[i].age++ :: else fi;
         for (EACH_CLIENT(j)) { if :: node[i].to[j].counts > 0 -> node[i].to[j].counts-- :: else fi }
       }
       check() }
  od
}

init {
  byte c, n;
  atomic {
    for (EACH_NODE(n)) { node[n].is_valid = 1; node[n].age = GUARD }
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run link(c, n) }
    }
    for (EACH_NODE(n)) { run server(n) }
    run operator();
    run clock()
  }
}

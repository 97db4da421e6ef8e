/* Re-entrance: a handle that holds the lock is acquired again, and released as often. The depth is counted in the
 * handle: only the outermost acquire and release send anything. A hold that is lost stays lost until its outermost
 * release.
 *
 * As in tokens.pml there is no time: a key does not expire while its client counts the node; a client may stop counting
 * at any moment, and any other key may expire. Each outermost acquire has a new token; OLD stands for all that are not
 * in use any more. A SET may be executed at any time.
 *
 * Claims: never two holders; and whoever is in a section still has the hold with which the outermost one began.
 *
 * Broken rules: INNER_DELETES (an inner release deletes the keys)
 *   ACQUIRES_AGAIN (a handle that has lost its lock is acquired anew before its outermost release)
 *   COUNT_ON_NODES (the token is the client, and each acquire and release adds to or takes from a count on the nodes;
 *     requests may be lost, but arrive in order)
 *   REORDERED (with COUNT_ON_NODES: requests arrive in any order) */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#define OLD (CLIENTS + 1)

/* phase */
#define IDLE 0
#define TRYING 1
#define HELD 2
#define LOST 3
#define ENTERING 4 /* COUNT_ON_NODES: holds, and waits for the answers to an inner acquire */

typedef Link {
  bit counted;
  /* COUNT_ON_NODES: */
  bit add;   /* under way */
  bit drop;  /* under way */
  bit added; /* the answer to the last acquire has come */
};
typedef Node {
  byte owner;   /* client + 1: its token of now; OLD; or 0 */
  byte entered; /* COUNT_ON_NODES: the count */
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
byte depth[CLIENTS];
bit overtaken[CLIENTS]; /* another client has won since its outermost section began */
byte i, j, votes, holders; /* scratch: 0 between steps */

#define L node[n].to[c]
#define HOLDS(c) (phase[c] == HELD || phase[c] == ENTERING)

inline count(c) {
  votes = 0;
  for (EACH_NODE(j)) { votes = votes + node[j].to[c].counted }
}

/* It counts no node any more. What is left of its keys expires. */
inline abandon(c) {
  for (EACH_NODE(j)) {
    node[j].to[c].counted = 0;
    node[j].to[c].add = 0; node[j].to[c].drop = 0; node[j].to[c].added = 0;
    if :: node[j].owner == c + 1 -> node[j].owner = OLD; node[j].entered = 0 :: else fi
  }
}

inline leave(c) { phase[c] = IDLE; depth[c] = 0; overtaken[c] = 0 }

inline check() {
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: HOLDS(i) && votes >= QUORUM -> holders++; assert(!overtaken[i])
    :: HOLDS(i) && votes < QUORUM -> abandon(i); phase[i] = LOST
    :: else
    fi
  }
  assert(holders <= 1);
  i = 0; j = 0; votes = 0; holders = 0;
  SORT_NODES
}

inline win(c) {
  phase[c] = HELD;
  depth[c]++;
  for (EACH_CLIENT(j)) { if :: j != c && depth[j] > 0 -> overtaken[j] = 1 :: else fi }
}

inline release_inner(c) {
  depth[c]--;
#ifdef INNER_DELETES
  if
  :: phase[c] == HELD ->
       for (EACH_NODE(j)) { if :: node[j].owner == c + 1 -> node[j].owner = 0 :: else fi }
  :: else
  fi;
#endif
#ifdef COUNT_ON_NODES
  if :: phase[c] == HELD -> send_drop(c) :: else fi;
#endif
}

inline send_add(c) { for (EACH_NODE(j)) { node[j].to[c].add = 1; node[j].to[c].added = 0 } }
inline send_drop(c) { for (EACH_NODE(j)) { node[j].to[c].drop = 1 } }

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING;
#ifdef COUNT_ON_NODES
       send_add(c);
#endif
       check() }
  :: d_step { phase[c] == TRYING ->
       abandon(c);
       if :: depth[c] == 0 -> leave(c) :: else -> phase[c] = LOST fi;
       check() }
#ifdef COUNT_ON_NODES
  :: d_step { phase[c] == HELD && depth[c] < DEPTH -> phase[c] = ENTERING; send_add(c); check() }
  :: d_step { phase[c] == ENTERING ->
       votes = 0;
       for (EACH_NODE(j)) { votes = votes + node[j].to[c].added }
       if :: votes >= QUORUM -> phase[c] = HELD; depth[c]++ :: else fi;
       check() }
  :: d_step { phase[c] == ENTERING -> phase[c] = HELD; send_drop(c); check() } /* gives it up */
#else
  :: d_step { phase[c] == HELD && depth[c] < DEPTH -> depth[c]++; check() }
#endif
#ifdef ACQUIRES_AGAIN
  :: d_step { phase[c] == LOST && depth[c] < DEPTH -> phase[c] = TRYING; check() }
#endif
  :: d_step { (phase[c] == HELD || phase[c] == LOST) && depth[c] > 1 -> release_inner(c); check() }
  :: d_step { (phase[c] == HELD || phase[c] == LOST) && depth[c] == 1 -> abandon(c); leave(c); check() }
  od
}

#ifdef REORDERED
#define IN_ORDER(c, n) true
#else
#define IN_ORDER(c, n) (!L.add)
#endif

#ifdef COUNT_ON_NODES
proctype requests(byte c, n) {
  do
  :: d_step { L.add && (node[n].owner == 0 || node[n].owner == c + 1) ->
       L.add = 0; node[n].owner = c + 1; node[n].entered++;
       L.added = 1; L.counted = 1;
       count(c);
       if :: phase[c] == TRYING && votes >= QUORUM -> win(c) :: else fi;
       check() }
#ifndef REORDERED
  :: d_step { L.add -> L.add = 0; check() } /* lost */
  :: d_step { L.drop -> L.drop = 0; check() }
#endif
  :: d_step { L.drop && IN_ORDER(c, n) ->
       L.drop = 0;
       if
       :: node[n].owner == c + 1 && node[n].entered <= 1 -> node[n].owner = 0; node[n].entered = 0
       :: node[n].owner == c + 1 && node[n].entered > 1 -> node[n].entered--
       :: else
       fi;
       check() }
  :: d_step { L.counted -> L.counted = 0; check() } /* its lease ends */
  od
}
#else
proctype requests(byte c, n) {
  do
  :: d_step { phase[c] != IDLE && phase[c] != LOST && node[n].owner == 0 -> node[n].owner = c + 1; check() } /* late */
  :: d_step { phase[c] == TRYING && node[n].owner == 0 && !L.counted ->
       node[n].owner = c + 1;
       L.counted = 1;
       count(c);
       if :: votes >= QUORUM -> win(c) :: else fi;
       check() }
  :: d_step { HOLDS(c) && node[n].owner == c + 1 && !L.counted -> L.counted = 1; check() } /* an extension */
  :: d_step { L.counted -> L.counted = 0; check() } /* its lease ends */
  od
}
#endif

proctype server(byte n) {
  do
  :: d_step { node[n].owner == OLD -> node[n].owner = 0; check() }
  :: d_step { node[n].owner != 0 && node[n].owner != OLD && !node[n].to[node[n].owner - 1].counted ->
       node[n].owner = 0; node[n].entered = 0; check() }
  od
}

init {
  byte c, n;
  atomic {
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run requests(c, n) }
    }
    for (EACH_NODE(n)) { run server(n) }
  }
}

/* The lease: a client counts a node until e_n, and holds the lock while it counts a majority.
 *
 * Any request or reply may take any time, be lost, or be executed long after the client has stopped waiting for it;
 * clients and nodes may stop at any moment for any time: a tick may pass between any two steps. A server's clock may
 * run DRIFT ticks fast over one TTL. Attempts and extensions are unbounded in number.
 *
 * A key of an attempt that is over is not modelled: it could only refuse requests, as a lost request does.
 * (What late deletes and late replies of such attempts do is the subject of tokens.pml.)
 *
 * RESTARTS=n  so many restarts without data; a node that has restarted is not counted by anybody for GUARD ticks
 * HEAL        an extension puts the key back on a node that has none
 * Broken rules: QUORUM=n CLOCK_AT_REPLY NO_DRIFT COUNT_ANY_ANSWER LOSS_NOT_FINAL GUARD=n (shorter than the TTL)
 * NO_LATE_SET  no SET is executed after the win
 * OVERLAP_ONLY a holder may have been overtaken in between, as long as never two hold at one instant */
#ifndef TTL
#define TTL 3
#endif
#ifndef DRIFT
#define DRIFT 1
#endif
#ifndef GUARD
#define GUARD TTL
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif

#ifdef NO_DRIFT
#define LEASE TTL
#else
#define LEASE (TTL - DRIFT)
#endif

/* Link.request */
#define NONE 0
#define SET 1    /* under way */
#define EXTEND 2 /* under way */
#define OK 3     /* executed; the answer is under way */

/* phase */
#define IDLE 0
#define TRYING 1
#define HELD 2

typedef Link {
  byte request;
  byte worth;  /* how long an OK to this request would count if it arrived now */
  byte counts; /* e_n: how long the client still counts this node */
};
typedef Node {
  byte owner;      /* whose token is under the key: client + 1, or 0 */
  byte left;       /* of its TTL */
  byte quarantine; /* since a restart */
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
bit overtaken[CLIENTS]; /* another client has won since it did */
byte restarts;
byte i, j, votes, holders; /* scratch: 0 between steps */

inline count(c) {
  votes = 0;
  for (EACH_NODE(j)) { votes = votes + (node[j].to[c].counts > 0) }
}

inline forget(c) {
  phase[c] = IDLE;
  overtaken[c] = 0;
  for (EACH_NODE(j)) {
    if :: node[j].owner == c + 1 -> node[j].owner = 0; node[j].left = 0 :: else fi;
    node[j].to[c].request = NONE;
    node[j].to[c].worth = 0;
    node[j].to[c].counts = 0
  }
}

/* A client looks at its lease before it says that it holds the lock, so a lapse counts at once. */
inline check() {
  holders = 0;
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: phase[i] == HELD && votes >= QUORUM -> holders++
#ifndef LOSS_NOT_FINAL
    :: phase[i] == HELD && votes < QUORUM -> forget(i)
#endif
    :: else
    fi
  }
  assert(holders <= 1);
#ifndef OVERLAP_ONLY
  for (EACH_CLIENT(i)) {
    count(i);
    assert(!(phase[i] == HELD && votes >= QUORUM && overtaken[i]))
  }
#endif
  i = 0; j = 0; votes = 0; holders = 0;
  SORT_NODES
}

inline win(c) {
  phase[c] = HELD;
  for (EACH_CLIENT(j)) { if :: j != c && phase[j] == HELD -> overtaken[j] = 1 :: else fi }
#ifdef NO_LATE_SET
  for (EACH_NODE(j)) {
    if :: node[j].to[c].request == SET -> node[j].to[c].request = NONE; node[j].to[c].worth = 0 :: else fi
  }
#endif
}

inline answer(c, n, yes) {
  if :: (yes) && node[n].quarantine == 0 -> node[n].to[c].request = OK
     :: else -> node[n].to[c].request = NONE; node[n].to[c].worth = 0 fi
}

inline take(c, n) { node[n].owner = c + 1; node[n].left = TTL }

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
  :: d_step { phase[c] != IDLE -> forget(c); check() } /* a release, or an attempt that is given up */
  od
}

#define L node[n].to[c]

/* Between client c and node n. */
proctype link(byte c, n) {
  do
  :: d_step { phase[c] == TRYING && L.request == NONE && L.counts == 0 -> L.request = SET; L.worth = LEASE; check() }
  :: d_step { phase[c] == HELD && L.request == NONE -> L.request = EXTEND; L.worth = LEASE; check() }
  :: d_step { L.request == SET ->
       if :: node[n].owner == 0 -> take(c, n); answer(c, n, true) :: else -> answer(c, n, false) fi; check() }
  :: d_step { L.request == EXTEND ->
       if
       :: node[n].owner == c + 1 -> take(c, n); answer(c, n, true)
#ifdef HEAL
       :: node[n].owner == 0 -> take(c, n); answer(c, n, true)
#endif
#ifdef COUNT_ANY_ANSWER
       :: else -> answer(c, n, true)
#else
       :: else -> answer(c, n, false)
#endif
       fi; check() }
  :: d_step { L.request == OK ->
       if :: L.worth > L.counts -> L.counts = L.worth :: else fi;
       L.request = NONE; L.worth = 0;
       count(c);
       if :: phase[c] == TRYING && votes >= QUORUM -> win(c) :: else fi; check() }
  :: d_step { L.request != NONE -> L.request = NONE; L.worth = 0; check() } /* lost */
  /* What was asked before and is no longer waited for is executed: a SET, or an extension of any age. */
  :: d_step { phase[c] != IDLE && node[n].owner == c + 1 && node[n].left < TTL -> take(c, n); check() }
#ifdef NO_LATE_SET
  :: d_step { phase[c] == TRYING && node[n].owner == 0 -> take(c, n); check() }
#else
  :: d_step { phase[c] != IDLE && node[n].owner == 0 -> take(c, n); check() }
#endif
  od
}

proctype server(byte n) {
  do
  :: d_step { node[n].owner != 0 && node[n].left <= DRIFT -> node[n].owner = 0; node[n].left = 0; check() }
#if RESTARTS > 0
  :: d_step { restarts < RESTARTS ->
       restarts++; node[n].owner = 0; node[n].left = 0; node[n].quarantine = GUARD; check() }
  :: d_step { node[n].quarantine != 0 && node[n].quarantine <= DRIFT -> node[n].quarantine = 0; check() }
#endif
  od
}

inline age(l) {
#ifndef CLOCK_AT_REPLY
  if :: l.worth > 0 -> l.worth--; if :: l.worth == 0 -> l.request = NONE :: else fi :: else fi;
#endif
  if :: l.counts > 0 -> l.counts-- :: else fi
}

proctype clock() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> node[i].owner = 0 :: else fi :: else fi;
         if :: node[i].quarantine > 0 -> node[i].quarantine-- :: else fi;
         for (EACH_CLIENT(j)) { age(node[i].to[j]) }
       }
       check() }
  od
}

init {
  byte c, n;
  atomic {
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run link(c, n) }
    }
    for (EACH_NODE(n)) { run server(n) }
    run clock()
  }
}

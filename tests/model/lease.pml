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
#include "links.pml"

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

inline forget(c) {
  phase[c] = IDLE;
  overtaken[c] = 0;
  for (EACH_NODE(j)) {
    if :: node[j].owner == c + 1 -> node[j].owner = 0; node[j].left = 0 :: else fi;
    give_up(c, j)
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
    if :: node[j].to[c].request == SET -> lose_message(c, j) :: else fi
  }
#endif
}

inline take(c, n) { node[n].owner = c + 1; node[n].left = TTL }

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
  :: d_step { phase[c] != IDLE -> forget(c); check() } /* a release, or an attempt that is given up */
  od
}

/* Between client c and node n. */
proctype link(byte c, n) {
  do
  :: d_step { phase[c] == TRYING && L.request == NONE && L.counts == 0 -> send(c, n, SET, TTL); check() }
  :: d_step { phase[c] == HELD && L.request == NONE -> send(c, n, EXTEND, TTL); check() }
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
       hear(c, n);
       count(c);
       if :: phase[c] == TRYING && votes >= QUORUM -> win(c) :: else fi; check() }
  :: d_step { L.request != NONE -> lose_message(c, n); check() }
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

init { start() }

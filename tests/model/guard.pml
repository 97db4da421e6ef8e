/* The restart guard: which way of losing keys does which guard notice?
 *
 * Each node has a run id, and a marker key that names the run id of the server that it was written on. A vote is a SET
 * and, behind it, a look at the marker; the two are not atomic. The node counts if its marker names the run id that
 * this client has read when it connected, and has stood for GUARD ticks. A client that finds no such marker writes one.
 *
 * A connection may break at any moment, and a client that connects anew knows nothing: it stands for any fresh client,
 * too. Requests are executed at once here; lease.pml has the delays, and the drift.
 *
 * Ways to lose keys, LOSSES of them in all:
 *   RESTART_EMPTY     new run id, no data            FAILOVER_EMPTY  another server, long up, no data
 *   RESTART_OLD       new run id, older data         FLUSH           same run id, no data, connections stay
 *   PROMOTION         another server, long up, older data
 *   HIDDEN_PROMOTION  the same behind a proxy that keeps the clients' connections
 *   EVICTION          only the lock's key
 * RUN_ID_WITH_EACH_VOTE  the run id is read again behind each SET
 * Broken guards: NO_GUARD ABSENT_IS_OLD MARKER_AT_CONNECT GUARD=n (shorter than the TTL) */
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

/* phase */
#define IDLE 0
#define TRYING 1
#define HELD 2

typedef Link {
  byte run_id; /* that the client has read; 0 = not connected */
  byte worth;  /* the SET was executed, its vote would count so long */
  byte counts; /* the vote counts so long */
};
typedef Node {
  byte owner; /* client + 1, or 0 */
  byte left;  /* of its TTL */
  byte run_id = 1;
  byte up = GUARD; /* ticks, up to GUARD */
  byte marker = 1; /* the run id that it names, or 0 */
  byte marker_age = GUARD;
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
byte losses;
byte i, j, votes, holders; /* scratch: 0 between steps */
bit may_vote;

inline count(c) {
  votes = 0;
  for (EACH_NODE(j)) { votes = votes + (node[j].to[c].counts > 0) }
}

inline finish(c) {
  phase[c] = IDLE;
  for (EACH_NODE(j)) {
    if :: node[j].owner == c + 1 -> node[j].owner = 0; node[j].left = 0 :: else fi;
    node[j].to[c].worth = 0;
    node[j].to[c].counts = 0
  }
}

inline check() {
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: phase[i] == HELD && votes >= QUORUM -> holders++
    :: phase[i] == HELD && votes < QUORUM -> finish(i)
    :: else
    fi
  }
  assert(holders <= 1);
  i = 0; j = 0; votes = 0; holders = 0; may_vote = 0;
  SORT_NODES
}

inline write_marker(n, id) { node[n].marker = id; node[n].marker_age = 0 }

/* Whether what the client reads now lets node n vote. */
inline look(n, id) {
#if defined(NO_GUARD)
  may_vote = 1;
#else
#ifdef ABSENT_IS_OLD
  if :: node[n].marker == 0 && node[n].up >= GUARD -> node[n].marker = id; node[n].marker_age = GUARD :: else fi;
#endif
  if :: node[n].marker != id -> write_marker(n, id) :: else fi;
  may_vote = (node[n].marker_age >= GUARD);
#endif
}

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
  :: d_step { phase[c] != IDLE -> finish(c); check() }
  od
}

#define L node[n].to[c]
#if defined(NO_GUARD) || defined(MARKER_AT_CONNECT)
#define LOOKS_AT_CONNECT
#endif

proctype link(byte c, n) {
  do
  :: d_step { L.run_id == 0 && phase[c] == TRYING ->
#ifdef LOOKS_AT_CONNECT
       look(n, node[n].run_id);
       if :: may_vote -> L.run_id = node[n].run_id :: else fi;
#else
       L.run_id = node[n].run_id;
#endif
       check() }
  :: d_step { L.run_id != 0 -> L.run_id = 0; L.worth = 0; check() } /* the connection breaks */
  :: d_step { phase[c] == TRYING && L.run_id != 0 && node[n].owner == 0 ->
       node[n].owner = c + 1; node[n].left = TTL; L.worth = TTL; check() }
  :: d_step { L.worth > 0 ->
#ifdef LOOKS_AT_CONNECT
       may_vote = 1;
#else
#ifdef RUN_ID_WITH_EACH_VOTE
       L.run_id = node[n].run_id;
#endif
       look(n, L.run_id);
#endif
       if :: may_vote -> L.counts = L.worth :: else fi;
       L.worth = 0;
       count(c);
       if :: phase[c] == TRYING && votes >= QUORUM -> phase[c] = HELD :: else fi;
       check() }
  od
}

inline lose_key(n) { losses++; node[n].owner = 0; node[n].left = 0 }
inline lose_marker(n) { node[n].marker = 0; node[n].marker_age = 0 }
inline another_server(n, up_) { node[n].run_id++; node[n].up = up_ }
inline disconnect(n) { for (EACH_CLIENT(i)) { node[n].to[i].run_id = 0; node[n].to[i].worth = 0 } }

proctype server(byte n) {
  do
#ifdef RESTART_EMPTY
  :: d_step { losses < LOSSES -> lose_key(n); lose_marker(n); another_server(n, 0); disconnect(n); check() }
#endif
#ifdef RESTART_OLD
  :: d_step { losses < LOSSES -> lose_key(n); another_server(n, 0); disconnect(n); check() }
#endif
#ifdef PROMOTION
  :: d_step { losses < LOSSES -> lose_key(n); another_server(n, GUARD); disconnect(n); check() }
#endif
#ifdef FAILOVER_EMPTY
  :: d_step { losses < LOSSES -> lose_key(n); lose_marker(n); another_server(n, GUARD); disconnect(n); check() }
#endif
#ifdef FLUSH
  :: d_step { losses < LOSSES -> lose_key(n); lose_marker(n); check() }
#endif
#ifdef HIDDEN_PROMOTION
  :: d_step { losses < LOSSES -> lose_key(n); another_server(n, GUARD); check() }
#endif
#ifdef EVICTION
  :: d_step { losses < LOSSES -> lose_key(n); check() }
#endif
  :: false
  od
}

proctype clock() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> node[i].owner = 0 :: else fi :: else fi;
         if :: node[i].up < GUARD -> node[i].up++ :: else fi;
         if :: node[i].marker != 0 && node[i].marker_age < GUARD -> node[i].marker_age++ :: else fi;
         for (EACH_CLIENT(j)) {
           if :: node[i].to[j].worth > 0 -> node[i].to[j].worth-- :: else fi;
           if :: node[i].to[j].counts > 0 -> node[i].to[j].counts-- :: else fi
         }
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

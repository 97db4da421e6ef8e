/* Several resources under one lock. Client 0 wants both of two resources, client 1 the second, client 2 the first. A
 * request takes or extends all keys of its lock on a node, or none. Everything else is as in lease.pml: any delay and
 * loss, late execution, early expiry of each key by itself.
 *
 * Claims, for each resource: never two holders, and no holder is overtaken by another.
 *
 * RESTARTS=n  so many restarts without data; HEAL  an extension puts back what is missing: as in lease.pml
 * AT_ONCE     a request is executed and answered at once, which leaves room for more clients
 * Broken rules: ANY_KEY (an extension is confirmed if one key is still there)
 *   TAKE_WHAT_IS_FREE (a request takes the keys that are free, and is granted if it has one)
 *   GUARD=n NO_DRIFT LOSS_NOT_FINAL */
#ifndef TTL
#define TTL 2
#endif
#include "links.pml"
#define RESOURCES 2
#define EACH_RESOURCE(r) r : 0 .. RESOURCES - 1

typedef Node {
  byte owner[RESOURCES]; /* whose token is under the key: client + 1, or 0 */
  byte left[RESOURCES];  /* of its TTL */
  byte quarantine;
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
bit overtaken[CLIENTS]; /* another client has won a resource of its since it did */
byte restarts;
byte i, j, k, votes, holders; /* scratch: 0 between steps */

#define WANTS(c, r) (c == 0 || r == 2 - c)
#define MEET(c, d) (c == 0 || d == 0 || c == d)

inline delete_key(n, r) { node[n].owner[r] = 0; node[n].left[r] = 0 }
inline lose_keys(n) { for (EACH_RESOURCE(k)) { delete_key(n, k) } }

inline forget(c) {
  phase[c] = IDLE;
  overtaken[c] = 0;
  for (EACH_NODE(j)) {
    for (EACH_RESOURCE(k)) { if :: node[j].owner[k] == c + 1 -> delete_key(j, k) :: else fi }
    give_up(c, j)
  }
}

inline check() {
  for (EACH_CLIENT(i)) {
    count(i);
#ifndef LOSS_NOT_FINAL
    if :: phase[i] == HELD && votes < QUORUM -> forget(i) :: else fi;
#endif
    assert(!(phase[i] == HELD && votes >= QUORUM && overtaken[i]))
  }
  for (EACH_RESOURCE(k)) {
    holders = 0;
    for (EACH_CLIENT(i)) {
      count(i);
      holders = holders + (phase[i] == HELD && votes >= QUORUM && WANTS(i, k))
    }
    assert(holders <= 1)
  }
  i = 0; j = 0; k = 0; votes = 0; holders = 0;
  SORT_NODES
}

inline win(c) {
  phase[c] = HELD;
  for (EACH_CLIENT(j)) { if :: j != c && phase[j] == HELD && MEET(c, j) -> overtaken[j] = 1 :: else fi }
}

#define HAS(c, n, r) (WANTS(c, r) && node[n].owner[r] == c + 1)
#define IS_FREE(n, r) (node[n].owner[r] == 0)
#define HAS_ALL(c, n) ((!WANTS(c, 0) || HAS(c, n, 0)) && (!WANTS(c, 1) || HAS(c, n, 1)))
#define HAS_ANY(c, n) (HAS(c, n, 0) || HAS(c, n, 1))
#define MAY_TAKE(c, n, r) (!WANTS(c, r) || IS_FREE(n, r) || HAS(c, n, r))
#define MAY_TAKE_ALL(c, n) (MAY_TAKE(c, n, 0) && MAY_TAKE(c, n, 1))
#define MAY_TAKE_ANY(c, n) ((WANTS(c, 0) && MAY_TAKE(c, n, 0)) || (WANTS(c, 1) && MAY_TAKE(c, n, 1)))

#ifdef TAKE_WHAT_IS_FREE
#define IS_GRANTED(c, n) MAY_TAKE_ANY(c, n)
#else
#define IS_GRANTED(c, n) MAY_TAKE_ALL(c, n)
#endif
#if defined(HEAL)
#define IS_EXTENDED(c, n) MAY_TAKE_ALL(c, n)
#elif defined(ANY_KEY)
#define IS_EXTENDED(c, n) HAS_ANY(c, n)
#else
#define IS_EXTENDED(c, n) HAS_ALL(c, n)
#endif

inline take(c, n) {
  for (EACH_RESOURCE(k)) {
    if :: WANTS(c, k) && MAY_TAKE(c, n, k) -> node[n].owner[k] = c + 1; node[n].left[k] = TTL :: else fi
  }
}

inline extend(c, n) {
#ifdef HEAL
  take(c, n);
#endif
  for (EACH_RESOURCE(k)) { if :: HAS(c, n, k) -> node[n].left[k] = TTL :: else fi }
}

inline ask(c, n) {
  if :: phase[c] == TRYING -> send(c, n, SET, TTL) :: else -> send(c, n, EXTEND, TTL) fi
}

inline execute(c, n) {
  if
  :: L.request == SET && IS_GRANTED(c, n) -> take(c, n); answer(c, n, true)
  :: L.request == EXTEND && IS_EXTENDED(c, n) -> extend(c, n); answer(c, n, true)
  :: else -> answer(c, n, false)
  fi
}

inline listen(c, n) {
  hear(c, n);
  count(c);
  if :: phase[c] == TRYING && votes >= QUORUM -> win(c) :: else fi
}

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
  :: d_step { phase[c] != IDLE -> forget(c); check() } /* a release, or an attempt that is given up */
  od
}

proctype link(byte c, n) {
  do
#ifdef AT_ONCE
  :: d_step { MAY_ASK(c, n) -> ask(c, n); execute(c, n); if :: L.request == OK -> listen(c, n) :: else fi; check() }
#else
  :: d_step { MAY_ASK(c, n) -> ask(c, n); check() }
  :: d_step { L.request == SET || L.request == EXTEND -> execute(c, n); check() }
  :: d_step { L.request == OK -> listen(c, n); check() }
  :: d_step { L.request != NONE -> lose_message(c, n); check() }
  /* What was asked before and is no longer waited for is executed. */
  :: d_step { phase[c] != IDLE && IS_GRANTED(c, n) -> take(c, n); check() }
  :: d_step { phase[c] != IDLE && IS_EXTENDED(c, n) -> extend(c, n); check() }
#endif
  od
}

proctype server(byte n) {
  do
  :: d_step { node[n].owner[0] != 0 && node[n].left[0] <= DRIFT -> delete_key(n, 0); check() }
  :: d_step { node[n].owner[1] != 0 && node[n].left[1] <= DRIFT -> delete_key(n, 1); check() }
#if RESTARTS > 0
  :: d_step { restarts < RESTARTS -> restarts++; lose_keys(n); node[n].quarantine = GUARD; check() }
  :: d_step { node[n].quarantine != 0 && node[n].quarantine <= DRIFT -> node[n].quarantine = 0; check() }
#endif
  od
}

proctype clock() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         for (EACH_RESOURCE(k)) {
           if :: node[i].left[k] > 0 -> node[i].left[k]-- :: else fi;
           if :: node[i].left[k] == 0 -> node[i].owner[k] = 0 :: else fi
         }
         if :: node[i].quarantine > 0 -> node[i].quarantine-- :: else fi;
         for (EACH_CLIENT(j)) { age(node[i].to[j]) }
       }
       check() }
  od
}

init { start() }

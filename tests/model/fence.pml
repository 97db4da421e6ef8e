/* The fencing number: every lock that is won has a greater number than all that were won before.
 *
 * Each node keeps a counter beside the key. A SET that is granted raises it and answers the new value. The number of an
 * acquisition is the greatest of its votes; it is won when a majority stores at least that number while it has the
 * client's token: nodes whose counters are behind are told first, and confirm if they still have the token.
 *
 * No time, as in tokens.pml: a key does not expire while its client counts the node. Numbers go up to LIMIT; attempts
 * are unbounded otherwise. (A late confirmation of an attempt that is over could only raise a counter.)
 *
 * RESTARTS=n  so many restarts without data. The node does not vote while anybody counts it: the guard
 * FLOOR       a counter that is absent starts above all numbers that were given until then: what a clock gives whose
 *             error is smaller than the quarantine
 * Broken rules: NO_CONFIRMATION CONFIRMED_ANYWHERE LATE_SUCCESS LOSS_NOT_FINAL NO_GUARD */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef LIMIT
#define LIMIT 4
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#define OLD (CLIENTS + 1)

/* phase */
#define IDLE 0
#define TRYING 1
#define CONFIRMING 2
#define HELD 3

/* Link.vote */
#define NONE 0
#define OK 1 /* the answer to the SET is under way */
#define GRANTED 2

typedef Link {
  byte vote;
  byte value;  /* that it granted */
  byte stored; /* it has stored the number of this attempt */
};
typedef Node {
  byte owner; /* client + 1: its token of now; OLD; or 0 */
  byte counter;
  byte quarantine;
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
byte number[CLIENTS];
byte last; /* the number that was won last */
byte top;  /* the greatest that was ever given */
byte restarts;
byte i, j, votes, stored, holders; /* scratch: 0 between steps */

inline count(c) {
  votes = 0; stored = 0;
  for (EACH_NODE(j)) { votes = votes + (node[j].to[c].vote == GRANTED); stored = stored + node[j].to[c].stored }
}

inline finish(c) {
  phase[c] = IDLE;
  number[c] = 0;
  for (EACH_NODE(j)) {
    node[j].to[c].vote = NONE;
    node[j].to[c].value = 0;
    node[j].to[c].stored = 0;
    if :: node[j].owner == c + 1 -> node[j].owner = OLD :: else fi
  }
}

/* A majority that has lapsed is lost for good, from the moment at which it has settled the number. */
#if defined(LOSS_NOT_FINAL) || defined(LATE_SUCCESS)
#define IS_LOST_FROM HELD
#else
#define IS_LOST_FROM CONFIRMING
#endif

inline check() {
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: phase[i] == HELD && votes >= QUORUM -> holders++
    :: phase[i] >= IS_LOST_FROM && votes < QUORUM -> finish(i)
    :: else
    fi
  }
  assert(holders <= 1);
  for (EACH_NODE(i)) {
    if :: node[i].counter > top -> top = node[i].counter :: else fi;
    for (EACH_CLIENT(j)) { if :: node[i].to[j].vote == NONE || phase[j] > TRYING -> node[i].to[j].value = 0 :: else fi }
  }
  i = 0; j = 0; votes = 0; stored = 0; holders = 0;
  SORT_NODES
}

inline win(c) {
  assert(number[c] > last);
  last = number[c];
  phase[c] = HELD;
  number[c] = 0
}

#ifdef NO_CONFIRMATION
#define HAS_IT(l, number_) true
#else
#define HAS_IT(l, number_) (l.value == number_)
#endif

/* The number is the greatest of the votes; who has it needs not be told. */
inline settle_number(c) {
  for (EACH_NODE(j)) {
    if :: node[j].to[c].vote == GRANTED && node[j].to[c].value > number[c] -> number[c] = node[j].to[c].value :: else fi
  }
  for (EACH_NODE(j)) {
    node[j].to[c].stored = (node[j].to[c].vote == GRANTED && HAS_IT(node[j].to[c], number[c]))
  }
  phase[c] = CONFIRMING
}

#ifdef LATE_SUCCESS
#define IS_WON (stored >= QUORUM)
#else
#define IS_WON (stored >= QUORUM && votes >= QUORUM)
#endif

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
  :: d_step { phase[c] != IDLE -> finish(c); check() }
  :: d_step { phase[c] == TRYING -> count(c); if :: votes >= QUORUM -> settle_number(c) :: else fi; check() }
  :: d_step { phase[c] == CONFIRMING -> count(c); if :: IS_WON -> win(c) :: else fi; check() }
  od
}

#define L node[n].to[c]

inline take(n, token) {
  node[n].owner = token;
#ifdef FLOOR
  if :: node[n].counter == 0 -> node[n].counter = top :: else fi;
#endif
  node[n].counter++
}

#ifdef FLOOR
#define MAY_TAKE(n) (node[n].owner == 0 && node[n].counter < LIMIT && (node[n].counter > 0 || top < LIMIT))
#else
#define MAY_TAKE(n) (node[n].owner == 0 && node[n].counter < LIMIT)
#endif
#ifdef CONFIRMED_ANYWHERE
#define CONFIRMS(c, n) true
#else
#define CONFIRMS(c, n) (node[n].owner == (c) + 1 && node[n].to[c].vote == GRANTED)
#endif

proctype requests(byte c, n) {
  do
  :: d_step { phase[c] != IDLE && MAY_TAKE(n) && L.vote == NONE && !node[n].quarantine ->
       take(n, c + 1); L.vote = OK; L.value = node[n].counter; check() }
  :: d_step { phase[c] != IDLE && MAY_TAKE(n) -> take(n, c + 1); check() } /* nobody hears of it */
  :: d_step { L.vote == OK -> L.vote = GRANTED; check() }
  :: d_step { phase[c] == CONFIRMING && !L.stored && CONFIRMS(c, n) && !node[n].quarantine ->
       if :: node[n].counter < number[c] -> node[n].counter = number[c] :: else fi;
       L.stored = 1; check() }
  :: d_step { L.vote != NONE -> L.vote = NONE; check() } /* lost, or it counts no more */
  od
}

#define COUNTED(n, c) (node[n].to[c].vote != NONE)
#define NOT_COUNTED(n) (!COUNTED(n, 0) && !COUNTED(n, 1) && !COUNTED(n, CLIENTS - 1))
proctype server(byte n) {
  do
  :: d_step { MAY_TAKE(n) -> take(n, OLD); check() } /* a late SET of an attempt that is over */
  :: d_step { node[n].owner == OLD -> node[n].owner = 0; check() }
  :: d_step { node[n].owner != 0 && node[n].owner != OLD && !COUNTED(n, node[n].owner - 1) ->
       node[n].owner = 0; check() }
  :: d_step { restarts < RESTARTS ->
       restarts++; node[n].owner = 0; node[n].counter = 0;
#ifndef NO_GUARD
       node[n].quarantine = 1;
#endif
       check() }
  :: d_step { node[n].quarantine && NOT_COUNTED(n) -> node[n].quarantine = 0; check() }
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

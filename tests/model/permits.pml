/* Permits: at most K clients hold a resource. There are K slots, each with a key of its own that is taken as a plain
 * lock is; slot 0 has the key of the resource. A client that has no slot yet asks a node to pick a free one; the first
 * answer settles the slot of the attempt, and only votes for this slot count. A client may also settle it by itself:
 * because it was told to, or since nobody answers. A PICK that is executed late leaves the token in a second slot.
 *
 * As in tokens.pml there is no time: a key does not expire while its client counts the node for it, or would by the
 * answer that is under way; a client may stop counting at any moment, and any other key may expire. A key of an attempt
 * that is over is not modelled: it could only refuse requests.
 *
 * Claims: no slot has two holders, at most K clients hold, and no holder of a slot is overtaken by another.
 *
 * RESTARTS=n  so many restarts without data. The node does not vote while anybody counts it: the guard
 * HEAL        an extension puts the key back on a node that has none
 * Broken rules: QUORUM=n NO_GUARD
 *   ANY_SLOT (each node picks a slot for itself, and a vote counts whatever slot it is for)
 *   LATE_PICK_COUNTS (the answer to a PICK counts although the client has settled on another slot)
 *   COUNTERS (no slots: a node grants as long as it has granted fewer than K; claimed is the number alone) */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#define K 2
#define EACH_SLOT(s) s : 0 .. K - 1
#define NO_SLOT K
#ifdef COUNTERS
#define ANY_SLOT
#endif

/* phase */
#define IDLE 0
#define TRYING 1
#define HELD 2

/* Link.vote */
#define NONE 0
#define OK 1 /* the answer to a SET or an extension is under way */
#define COUNTED 2
#define PICKED 3 /* + slot: the answer to a PICK is under way */

typedef Link { byte vote };
typedef Node {
  byte owner[K]; /* whose token is under the key of the slot: client + 1, or 0 */
  bit quarantine;
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
byte slot[CLIENTS];     /* of this attempt */
bit overtaken[CLIENTS]; /* another client has won its slot since it did */
byte restarts;
byte i, j, k, votes, holders; /* scratch: 0 between steps */

inline count(c) {
  votes = 0;
  for (EACH_NODE(j)) { votes = votes + (node[j].to[c].vote == COUNTED) }
}

inline finish(c) {
  phase[c] = IDLE;
  slot[c] = NO_SLOT;
  overtaken[c] = 0;
  for (EACH_NODE(j)) {
    for (EACH_SLOT(k)) { if :: node[j].owner[k] == c + 1 -> node[j].owner[k] = 0 :: else fi }
    node[j].to[c].vote = NONE
  }
}

inline check() {
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: phase[i] == HELD && votes >= QUORUM -> holders++; assert(!overtaken[i])
    :: phase[i] == HELD && votes < QUORUM -> finish(i)
    :: else
    fi
  }
  assert(holders <= K);
#ifndef COUNTERS
  for (EACH_SLOT(k)) {
    holders = 0;
    for (EACH_CLIENT(i)) { holders = holders + (phase[i] == HELD && slot[i] == k) }
    assert(holders <= 1)
  }
#endif
  i = 0; j = 0; k = 0; votes = 0; holders = 0;
  SORT_NODES
}

inline win(c) {
  phase[c] = HELD;
#ifndef COUNTERS
  for (EACH_CLIENT(j)) { if :: j != c && phase[j] == HELD && slot[j] == slot[c] -> overtaken[j] = 1 :: else fi }
#endif
}

#define L node[n].to[c]
#define HAS(c, n, s) (node[n].owner[s] == (c) + 1)
#define IS_FREE(n, s) (node[n].owner[s] == 0)
#define MAY_VOTE(n) (!node[n].quarantine)
#ifdef ANY_SLOT
#define MAY_PICK(c, n, s) (IS_FREE(n, s) && !HAS(c, n, 1 - (s))) /* a node gives a client one slot */
#define ASKS_FOR_SLOT(c) true
#define IS_ITS_SLOT(c, s) true
#else
#define MAY_PICK(c, n, s) IS_FREE(n, s)
#define ASKS_FOR_SLOT(c) (slot[c] == NO_SLOT)
#define IS_ITS_SLOT(c, s) (slot[c] == (s))
#endif
#if defined(ANY_SLOT) || defined(LATE_PICK_COUNTS)
#define COUNTS_FOR(c, s) true
#else
#define COUNTS_FOR(c, s) IS_ITS_SLOT(c, s)
#endif
#ifdef HEAL
#define IS_EXTENDED(c, n, s) (IS_ITS_SLOT(c, s) && (HAS(c, n, s) || MAY_PICK(c, n, s)))
#else
#define IS_EXTENDED(c, n, s) (IS_ITS_SLOT(c, s) && HAS(c, n, s))
#endif

inline take(c, n, s, answer) {
  node[n].owner[s] = c + 1;
  if :: MAY_VOTE(n) -> L.vote = answer :: else fi
}

inline hear_pick(c, n, s) {
  if :: slot[c] == NO_SLOT -> slot[c] = s :: else fi;
  if :: COUNTS_FOR(c, s) -> L.vote = COUNTED :: else -> L.vote = NONE fi
}

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
#ifndef ANY_SLOT
  :: d_step { phase[c] == TRYING && slot[c] == NO_SLOT -> slot[c] = 0; check() }
  :: d_step { phase[c] == TRYING && slot[c] == NO_SLOT -> slot[c] = 1; check() }
#endif
  :: d_step { phase[c] != IDLE -> finish(c); check() }
  od
}

#define WANTS_TO_PICK(c, n, s) (phase[c] == TRYING && L.vote == NONE && ASKS_FOR_SLOT(c) && MAY_PICK(c, n, s))
#define WANTS_TO_SET(c, n, s) (phase[c] == TRYING && L.vote == NONE && slot[c] == s && IS_FREE(n, s))

/* What is executed on node n for client c, in slot s, and what the client hears of it. */
proctype requests(byte c, n, s) {
  do
  :: d_step { WANTS_TO_PICK(c, n, s) -> take(c, n, s, PICKED + s); check() }
#ifndef ANY_SLOT
  :: d_step { WANTS_TO_SET(c, n, s) -> take(c, n, s, OK); check() }
#endif
  :: d_step { phase[c] == HELD && IS_EXTENDED(c, n, s) && L.vote == NONE -> take(c, n, s, OK); check() }
  :: d_step { phase[c] != IDLE && MAY_PICK(c, n, s) -> node[n].owner[s] = c + 1; check() } /* nobody hears of it */
  :: d_step { L.vote == OK || L.vote == PICKED + s ->
       if :: L.vote == OK -> L.vote = COUNTED :: else -> hear_pick(c, n, s) fi;
       count(c);
       if :: phase[c] == TRYING && votes >= QUORUM -> win(c) :: else fi;
       check() }
  :: d_step { L.vote != NONE -> L.vote = NONE; check() } /* lost, or it counts no more */
  od
}

/* Whether client c counts node n by the key of slot s, or would. */
#define IS_COUNTED(c, n, s) \
  (node[n].to[c].vote == PICKED + s || \
   ((node[n].to[c].vote == OK || node[n].to[c].vote == COUNTED) && IS_ITS_SLOT(c, s)))
#define VOTES_FOR(n, c) (node[n].to[c].vote != NONE)
#define NOBODY_COUNTS(n) (!VOTES_FOR(n, 0) && !VOTES_FOR(n, 1) && !VOTES_FOR(n, CLIENTS - 1))

proctype server(byte n) {
  do
  :: d_step { node[n].owner[0] != 0 && !IS_COUNTED(node[n].owner[0] - 1, n, 0) -> node[n].owner[0] = 0; check() }
  :: d_step { node[n].owner[1] != 0 && !IS_COUNTED(node[n].owner[1] - 1, n, 1) -> node[n].owner[1] = 0; check() }
#if RESTARTS > 0
  :: d_step { restarts < RESTARTS ->
       restarts++; node[n].owner[0] = 0; node[n].owner[1] = 0;
#ifndef NO_GUARD
       node[n].quarantine = 1;
#endif
       check() }
  :: d_step { node[n].quarantine && NOBODY_COUNTS(n) -> node[n].quarantine = 0; check() }
#endif
  od
}

init {
  byte c, n, s;
  atomic {
    for (EACH_CLIENT(c)) {
      slot[c] = NO_SLOT;
      run client(c);
      for (EACH_NODE(n)) { for (EACH_SLOT(s)) { run requests(c, n, s) } }
    }
    for (EACH_NODE(n)) { run server(n) }
  }
}

/* A max_ttl that nobody has to configure. Two TTLs: a short one, which is also the floor, and a long one.
 *
 * Each node has a marker, which is gone when its keys are. A complete one has a level:
 *   FLOOR   max_ttl is the short TTL
 *   RAISED  max_ttl is the long TTL; a marker completed from this one quarantines its node for that long
 *   AGREED  the same, and votes for long leases count here
 * A raiser raises all markers, looks at all of them again, and only then writes AGREED. A registrar writes a
 * provisional marker, reads a complete one of another node, and completes its own with that level. If all nodes were
 * without a complete marker at one time, it completes it with FLOOR.
 *
 * Any number of registrars may adopt a provisional marker, but only one of them completes it: the model keeps what that
 * one has read. It needs only one short and one long client: where a second long lease could be granted too early, a
 * short one could be, too; and a short lease never outlives a quarantine.
 * A vote is a SET and a later look at the marker. A loss between the two makes it another incarnation.
 *
 * LOSSES=n     so often a node loses all its keys, with the marker
 * ONE_REMAINS  a node is lost only while another one has a complete marker
 * NEW          no node has a marker at first
 * GROWN        all markers are AGREED at first, and nobody raises
 * NO_FLOOR     a marker is only completed from another one
 * Broken rules: RAISE_MAJORITY NO_SECOND_LOOK ONE_STEP READ_EARLY VOTE_WHEN_RAISED NO_GROWTH FLOOR_READ_APART */
#ifndef SHORT
#define SHORT 1
#endif
#ifndef LONG
#define LONG 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef RAISERS
#define RAISERS 1
#endif
#define CLIENTS 2 /* client 0 asks for the short TTL, client 1 for the long one */
#define TTL(c) ((c) == 0 -> SHORT : LONG)

/* Node.marker */
#define ABSENT 0
#define PROVISIONAL 1
#define COMPLETE 2

/* Node.level, Node.read */
#define NOTHING 0
#define FLOOR 1
#define RAISED 2
#define AGREED 3

/* Raise.step: RAISED; or SEEN, also when all were raised */
#define SEEN 3

typedef Raise {
  byte step;
  bit is_gone; /* the marker that was raised; the raiser does not know */
};
typedef Link { byte counts /* how long the client still counts this node */ };
typedef Node {
  byte owner; /* client + 1, or 0 */
  byte left;  /* of its TTL */
  byte marker;
  byte level;
  byte age;        /* of a provisional marker */
  byte quarantine; /* what is left of it, of a complete one */
  byte read;       /* by the registrar that is going to complete it */
#if defined(ONE_STEP) || defined(READ_EARLY)
  byte read_early; /* by another one, which may come back to it at any time */
#endif
#ifdef FLOOR_READ_APART
  bit is_asked_for; /* a registrar of this node reads the others one by one */
  bit was_without;  /* and has found no complete marker here */
#endif
  Raise by[RAISERS];
  Link to[CLIENTS];
};
#include "nodes.pml"

byte losses;
byte i, j, level, wait; /* scratch: 0 between steps */

#define COUNTS(n, c) (node[n].to[c].counts > 0)
#define HOLDS(c) (COUNTS(0, c) + COUNTS(1, c) + COUNTS(2, c) >= QUORUM)

inline check() {
  assert(!(HOLDS(0) && HOLDS(1)));
  i = 0; j = 0;
  SORT_NODES
}

proctype client(byte c) {
  do
  :: d_step { true -> /* a release, or an attempt that is given up */
       for (EACH_NODE(j)) {
         if :: node[j].owner == c + 1 -> node[j].owner = 0; node[j].left = 0 :: else fi;
         node[j].to[c].counts = 0
       }
       check() }
  od
}

#if defined(NO_GROWTH)
#define GRANTS(n, c) true
#elif defined(VOTE_WHEN_RAISED)
#define GRANTS(n, c) ((c) == 0 || node[n].level >= RAISED)
#else
#define GRANTS(n, c) ((c) == 0 || node[n].level == AGREED)
#endif
#define MAY_VOTE(n, c) (node[n].marker == COMPLETE && node[n].quarantine == 0 && GRANTS(n, c))
#define L node[n].to[c]

/* The key has the token for as long as the vote would count, and is gone if the node was lost since the SET. */
proctype link(byte c, n) {
  do
  :: d_step { node[n].owner == 0 -> node[n].owner = c + 1; node[n].left = TTL(c); check() } /* SET */
  :: d_step { node[n].owner == c + 1 && MAY_VOTE(n, c) -> L.counts = node[n].left; check() } /* the look behind it */
  :: d_step { node[n].owner == c + 1 && HOLDS(c) -> /* an extension; who is not counted needs a look first */
       node[n].left = TTL(c);
       if :: L.counts > 0 -> L.counts = TTL(c) :: else fi;
       check() }
  od
}

#define STEP(i, least) (node[i].by[r].step >= (least))
#ifdef RAISE_MAJORITY
#define ALL(least) (STEP(0, least) + STEP(1, least) + STEP(2, least) >= QUORUM)
#else
#define ALL(least) (STEP(0, least) && STEP(1, least) && STEP(2, least))
#endif
#ifdef NO_SECOND_LOOK
#define BEFORE_AGREED RAISED
#else
#define BEFORE_AGREED SEEN
#endif
#define R node[n].by[r]

proctype raiser(byte r, n) {
  do
  :: d_step { node[n].marker == COMPLETE && R.step == NOTHING ->
       if :: node[n].level == FLOOR -> node[n].level = RAISED :: else fi;
       R.step = RAISED;
       check() }
  :: d_step { R.step == RAISED && !R.is_gone && ALL(RAISED) -> R.step = SEEN; check() }
  :: d_step { R.step == RAISED && R.is_gone && ALL(RAISED) -> /* it sees another marker, and begins again */
       R.step = NOTHING; R.is_gone = 0;
       for (EACH_NODE(i)) { if :: node[i].by[r].step == SEEN -> node[i].by[r].step = RAISED :: else fi }
       check() }
  :: d_step { R.step >= BEFORE_AGREED && !R.is_gone && ALL(BEFORE_AGREED) -> node[n].level = AGREED; check() }
  :: d_step { R.step != NOTHING -> /* another client takes its place */
       for (EACH_NODE(i)) { node[i].by[r].step = NOTHING; node[i].by[r].is_gone = 0 }
       check() }
  od
}

#ifdef ONE_STEP
#define OPEN ABSENT
#else
#define OPEN PROVISIONAL
#endif
#define IS(i, level_) ((i) != n && node[i].marker == COMPLETE && node[i].level == (level_))
#define ONE_HAS(level_) (IS(0, level_) || IS(1, level_) || IS(2, level_))
#define NONE_IS_COMPLETE (!ONE_HAS(FLOOR) && !ONE_HAS(RAISED) && !ONE_HAS(AGREED))

inline forget_marker(n) {
  node[n].level = NOTHING;
  node[n].age = 0;
  node[n].quarantine = 0;
  node[n].read = NOTHING;
#ifdef FLOOR_READ_APART
  if :: node[n].is_asked_for -> for (EACH_NODE(j)) { node[j].was_without = 0 } :: else fi;
  node[n].is_asked_for = 0
#endif
}

/* The quarantine counts from the provisional marker. */
inline complete(n, from) {
  level = from;
  from = NOTHING;
  wait = (level == FLOOR -> SHORT : LONG);
  wait = (wait > node[n].age -> wait - node[n].age : 0);
  forget_marker(n);
  node[n].marker = COMPLETE;
  node[n].level = level;
  node[n].quarantine = wait;
  level = 0; wait = 0
}

proctype registrar(byte n) {
  do
#ifndef ONE_STEP
  :: d_step { node[n].marker == ABSENT -> node[n].marker = PROVISIONAL; check() }
#endif
  :: d_step { node[n].marker == OPEN && node[n].read == NOTHING && ONE_HAS(FLOOR) -> node[n].read = FLOOR; check() }
  :: d_step { node[n].marker == OPEN && node[n].read == NOTHING && ONE_HAS(RAISED) -> node[n].read = RAISED; check() }
  :: d_step { node[n].marker == OPEN && node[n].read == NOTHING && ONE_HAS(AGREED) -> node[n].read = AGREED; check() }
#if defined(FLOOR_READ_APART)
  :: d_step { node[n].marker == OPEN && !node[0].is_asked_for && !node[1].is_asked_for && !node[2].is_asked_for ->
       node[n].is_asked_for = 1; check() }
  :: d_step { !node[n].is_asked_for && node[n].marker != COMPLETE && !node[n].was_without &&
              (node[0].is_asked_for || node[1].is_asked_for || node[2].is_asked_for) ->
       node[n].was_without = 1; check() }
  :: d_step { node[n].is_asked_for && node[0].was_without + node[1].was_without + node[2].was_without == NODES - 1 ->
       node[n].read = FLOOR; check() }
#elif !defined(NO_FLOOR)
  :: d_step { node[n].marker == OPEN && node[n].read == NOTHING && NONE_IS_COMPLETE -> node[n].read = FLOOR; check() }
#endif
  :: d_step { node[n].marker == OPEN && node[n].read != NOTHING -> complete(n, node[n].read); check() }
#if defined(ONE_STEP) || defined(READ_EARLY)
  :: d_step { node[n].marker != COMPLETE && node[n].read_early == NOTHING && ONE_HAS(FLOOR) ->
       node[n].read_early = FLOOR; check() }
  :: d_step { node[n].marker == OPEN && node[n].read_early != NOTHING -> complete(n, node[n].read_early); check() }
#endif
  od
}

#ifdef ONE_REMAINS
#define MAY_BE_LOST (losses < LOSSES && !NONE_IS_COMPLETE)
#else
#define MAY_BE_LOST (losses < LOSSES)
#endif

proctype server(byte n) {
  do
  :: d_step { MAY_BE_LOST ->
       losses++;
       node[n].owner = 0; node[n].left = 0;
       node[n].marker = ABSENT;
       forget_marker(n);
       for (i : 0 .. RAISERS - 1) { node[n].by[i].is_gone = (node[n].by[i].step != NOTHING) }
       check() }
  od
}

proctype clock() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> node[i].owner = 0 :: else fi :: else fi;
         if :: node[i].marker == PROVISIONAL && node[i].age < LONG -> node[i].age++ :: else fi;
         if :: node[i].quarantine > 0 -> node[i].quarantine-- :: else fi;
         for (EACH_CLIENT(j)) { if :: node[i].to[j].counts > 0 -> node[i].to[j].counts-- :: else fi }
       }
       check() }
  od
}

#ifdef GROWN
#define FIRST_LEVEL AGREED
#else
#define FIRST_LEVEL FLOOR
#endif
init {
  byte c, n, r;
  atomic {
#ifndef NEW
    for (EACH_NODE(n)) { node[n].marker = COMPLETE; node[n].level = FIRST_LEVEL }
#endif
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run link(c, n) }
    }
#ifndef GROWN
    for (r : 0 .. RAISERS - 1) {
      for (EACH_NODE(n)) { run raiser(r, n) }
    }
#endif
    for (EACH_NODE(n)) { run registrar(n); run server(n) }
    run clock()
  }
}

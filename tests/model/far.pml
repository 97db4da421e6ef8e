/* Fencing numbers that are too large: nodes that are wrong, fewer than a majority, cannot move the numbers of the others,
 * and numbers that are large on most nodes go on (rule D.3).
 *
 * Only numbers. Who has the token and whose number is larger is fence.pml, where a refused vote is one that was lost.
 * Here a node draws a number for anybody at any time, and is told one at any time. A number above TRUSTED counts only if
 * a majority of the nodes has one that is at most NEAR smaller. Sound nodes draw up to LIMIT.
 *
 * WRONG=n  so many nodes answer any number; one without a number, whose clock is wrong, answers any time
 * EMPTY    no node has a number at first
 * BACK     all clocks were set back: every number is above TRUSTED
 * Broken rules: ANY_NUMBER FIRST_NUMBER_OF_ONE NO_EXCEPTION */
#ifndef WRONG
#define WRONG 1
#endif
#ifdef BACK
#define TRUSTED 0
#else
#define TRUSTED LIMIT
#endif
#define CLIENTS 2
#ifndef LIMIT
#define LIMIT 2
#endif
#define NEAR 1
#define LARGEST (LIMIT + NEAR + 2)

typedef Link { byte said; bit is_clock /* it has no number: this is the time there */ };
typedef Node { byte counter; bit is_wrong; Link to[CLIENTS] };
#include "nodes.pml"

byte number[CLIENTS];                 /* of the attempt, or 0 */
byte i, j, granted, asked, top, most; /* scratch: 0 between steps */

inline check() {
  for (EACH_NODE(i)) { assert(node[i].is_wrong || node[i].counter <= LIMIT + NEAR) }
  i = 0; j = 0; granted = 0; asked = 0; top = 0; most = 0;
  SORT_NODES
}

#define REACHES(n, c, number_) (node[n].to[c].said > 0 && node[n].to[c].said >= number_)
#if NODES == 3
#define HOW_MANY_REACH(c, x) (REACHES(0, c, x) + REACHES(1, c, x) + REACHES(2, c, x))
#else
#define HOW_MANY_REACH(c, x) \
  (REACHES(0, c, x) + REACHES(1, c, x) + REACHES(2, c, x) + REACHES(3, c, x) + REACHES(4, c, x))
#endif

#define SAID(n, c) node[n].to[c].said
#ifdef ANY_NUMBER
#define IS_DOUBTED(n, c) false
#elif defined(NO_EXCEPTION)
#define IS_DOUBTED(n, c) (!node[n].to[c].is_clock && SAID(n, c) > TRUSTED)
#else
#define IS_DOUBTED(n, c) \
  (!node[n].to[c].is_clock && SAID(n, c) > TRUSTED && HOW_MANY_REACH(c, SAID(n, c) - NEAR) < QUORUM)
#endif
#ifdef FIRST_NUMBER_OF_ONE
#define FIRST_NUMBER_IS_OF 1
#else
#define FIRST_NUMBER_IS_OF QUORUM
#endif

/* The largest of the numbers that count; where a node had none, at least what the clocks of a majority have reached. */
inline settle(c) {
  for (EACH_NODE(j)) {
    asked = asked + (SAID(j, c) > 0);
    if
    :: SAID(j, c) > 0 && !IS_DOUBTED(j, c) ->
         granted++;
         if :: !node[j].to[c].is_clock && SAID(j, c) > top -> top = SAID(j, c) :: else fi;
         if :: node[j].to[c].is_clock -> most = LARGEST :: else fi
    :: else
    fi
  }
  assert(asked < NODES || granted >= QUORUM); /* whom all nodes grant it is not refused */
  do :: most > 0 && HOW_MANY_REACH(c, most) < FIRST_NUMBER_IS_OF -> most-- :: else -> break od;
  if :: granted >= QUORUM && top > number[c] -> number[c] = top :: else fi;
  if :: granted >= QUORUM && most > number[c] -> number[c] = most :: else fi
}

proctype client(byte c) {
  do
  :: d_step { true -> settle(c); check() }
  :: d_step { true -> number[c] = 0; for (EACH_NODE(j)) { SAID(j, c) = 0; node[j].to[c].is_clock = 0 } check() }
  od
}

#define L node[n].to[c]
#define IS_ASKED(n, c) (SAID(n, c) == 0)

/* An answer of a wrong node; the time at a sound node that has no number yet. */
proctype answer(byte c, n, value) {
  do
  :: d_step { node[n].is_wrong && IS_ASKED(n, c) -> L.said = value; check() }
  :: d_step { node[n].is_wrong && IS_ASKED(n, c) -> L.said = value; L.is_clock = 1; check() }
  :: d_step { !node[n].is_wrong && node[n].counter == 0 && value <= LIMIT && IS_ASKED(n, c) ->
       L.said = value; L.is_clock = 1; check() }
  od
}

proctype requests(byte c, n) {
  do
  :: d_step { !node[n].is_wrong && node[n].counter < LIMIT && IS_ASKED(n, c) ->
       node[n].counter++; L.said = node[n].counter; check() }
  :: d_step { !node[n].is_wrong && node[n].counter < LIMIT -> node[n].counter++; check() } /* nobody hears of it */
  :: d_step { !node[n].is_wrong && node[n].counter < number[c] -> node[n].counter = number[c]; check() } /* it is told */
  :: d_step { L.said > 0 -> L.said = 0; L.is_clock = 0; check() } /* it counts no more */
  od
}

init {
  byte c, n, value;
  atomic {
    for (EACH_NODE(n)) {
      node[n].is_wrong = (n < WRONG);
#ifndef EMPTY
      node[n].counter = 1 - node[n].is_wrong;
#endif
    }
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) {
        run requests(c, n);
        for (value : 1 .. LARGEST) { run answer(c, n, value) }
      }
    }
  }
}

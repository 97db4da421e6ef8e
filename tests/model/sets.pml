/* Locks of two resources beside locks of one.
 *
 * Two sets want resources 0 and 1; each stands in both queues from the start. At each resource a single one is always
 * waiting, and holds for up to HOLD ticks; it passes a place that is open. A set that is first in both queues closes
 * its places: what comes free is kept for it, and it takes both when both are free. It closes them for a SHARE-th of
 * what it has waited, at least a tick, then opens them for four times as long, and so on. A tick is 50 ms. A set asks
 * each queue once in a tick where it is the first, else every PAUSE ticks, and holds for a tick. A release, and a place
 * that is given back, wakes the first set of that queue, also if its place is open: it asks at once.
 *
 * A set's arrival is one number that it takes along. Its place at the other resource may come later.
 *
 * Checked: no set waits longer than LIMIT ticks; no set wins before one that stands in both queues and came earlier.
 *
 * SETS=n  1 or 2
 * ALONE   there are no single ones: a set also takes both while its places are open
 * STUCK   the single one at resource 0 never releases. Checked instead: resource 1 is kept free for a fifth of the time,
 *         and the part that has just begun
 * Broken rules: CROSSWISE (each node has its own order of the sets: they stand crosswise)
 *   CLOSE_EACH (a set closes its place where it is first, whatever it is elsewhere)
 *   NEVER_CLOSE   ALWAYS_CLOSED   SAME_TIME (it closes for a tick each time, however long it has waited)
 *   PASS_SETS (an open place lets other sets pass)   NO_WAKE (an open place is not woken) */
#ifndef SETS
#define SETS 2
#endif
#ifndef HOLD
#define HOLD 2
#endif
#ifndef PAUSE
#define PAUSE 1
#endif
#ifndef SHARE
#define SHARE 6
#endif
#ifndef LIMIT
#define LIMIT 40
#endif
#define SINGLE 3 /* holder of a resource: set + 1, SINGLE or 0 */
#define EACH_SET(s) s : 0 .. SETS - 1
#define EACH_PART(r) r : 0 .. 1

typedef Set {
  bit waits, holds;
  bit placed[2], closed[2];
  bit closing;
  byte waited;
  byte left;   /* ticks until it opens or closes */
  bit asked[2];
  byte pause[2]; /* ticks until it asks again */
};
Set set[SETS];
byte holder[2], hold[2]; /* ticks left of a single one's */
byte kept;               /* ticks that resource 1 was free */
byte elder; /* the set that came first */
byte i, j; bit first, all; /* scratch: 0 between steps */
#define S set[s]
#define OTHER(s) (SETS - 1 - s)

#ifdef CROSSWISE
#define CAME_BEFORE(x, r) (r == 0 -> x == elder : x != elder)
#else
#define CAME_BEFORE(x, r) (x == elder)
#endif

/* first = no other set stands before s at r. */
inline find_first(s, r) {
  first = S.placed[r];
  for (j : 0 .. SETS - 1) {
#ifdef PASS_SETS
    first = first && !(j != s && set[j].waits && set[j].placed[r] && set[j].closed[r] && CAME_BEFORE(j, r))
#else
    first = first && !(j != s && set[j].waits && set[j].placed[r] && CAME_BEFORE(j, r))
#endif
  }
  j = 0
}

inline find_all(s) {
  find_first(s, 0); all = first;
  find_first(s, 1); all = all && first;
  first = 0
}

inline wake(r) {
#ifdef NO_WAKE
  skip
#else
  for (i : 0 .. SETS - 1) {
    find_first(i, r);
    if :: first && set[i].waits -> set[i].asked[r] = 0; set[i].pause[r] = 0 :: else fi
  }
  i = 0; first = 0
#endif
}

/* Alone it goes by what it was told at its last questions. */
#ifdef ALONE
#define MAY_GO(s) (S.asked[0] && S.asked[1])
#else
#define MAY_GO(s) (S.closed[0] && S.closed[1])
#endif

inline go(s) {
  find_all(s);
  if
  :: all && MAY_GO(s) && holder[0] == 0 && holder[1] == 0 ->
       holder[0] = s + 1; holder[1] = s + 1;
#if SETS == 2
       assert(!(set[OTHER(s)].waits && elder != s && set[OTHER(s)].placed[0] && set[OTHER(s)].placed[1]));
#endif
       elder = OTHER(s);
       S.waits = 0; S.holds = 1; S.waited = 0; S.left = 0; S.closing = 0;
       S.placed[0] = 0; S.placed[1] = 0; S.closed[0] = 0; S.closed[1] = 0; S.asked[0] = 1; S.asked[1] = 1;
       S.pause[0] = 0; S.pause[1] = 0;
       wake(0); wake(1)
  :: else
  fi;
  all = 0
}

/* What a set does at resource r: its place is closed or open as it wants by now. */
inline ask(s, r) {
  S.placed[r] = 1; S.asked[r] = 1;
  find_first(s, r);
  S.pause[r] = (first -> 0 : PAUSE - 1);
#ifdef CLOSE_EACH
  S.closed[r] = first;
  first = 0;
#else
  find_all(s);
  if
  :: all && S.left == 0 && !S.closing ->
       S.closing = 1;
#ifdef SAME_TIME
       S.left = 1
#else
       S.left = (S.waited / SHARE > 0 -> S.waited / SHARE : 1)
#endif
  :: all && S.left == 0 && S.closing ->
#ifndef ALWAYS_CLOSED
       S.closing = 0;
#endif
#ifdef SAME_TIME
       S.left = 4
#else
       S.left = 4 * (S.waited / SHARE > 0 -> S.waited / SHARE : 1)
#endif
  :: !all -> S.closing = 0; S.left = 0
  :: else
  fi;
#ifdef NEVER_CLOSE
  S.closed[r] = holder[0] == 0 && holder[1] == 0;
#else
  S.closed[r] = all && S.closing;
#endif
  all = 0;
#endif
  go(s)
}

#define IS_CLOSED(s, r) (set[s].waits && set[s].placed[r] && set[s].closed[r])

proctype locks(byte s) {
  do
  :: d_step { !S.waits && !S.holds ->
       S.waits = 1; S.asked[0] = 0; S.asked[1] = 0;
       elder = (set[OTHER(s)].waits && SETS == 2 -> OTHER(s) : s) }
  :: d_step { S.waits && !S.asked[0] -> ask(s, 0) }
  :: d_step { S.waits && !S.asked[1] -> ask(s, 1) }
#ifndef ALONE
  :: d_step { S.waits && S.placed[0] && S.placed[1] && S.closed[0] && S.closed[1] && holder[0] == 0 && holder[1] == 0 ->
       go(s) }
#endif
  :: d_step { S.holds && !S.asked[0] -> S.holds = 0; holder[0] = 0; holder[1] = 0; wake(0); wake(1) }
  od
}

/* Singles: one takes the resource whenever it is free and nobody keeps it. */
proctype single(byte r) {
  do
  :: d_step { holder[r] == 0 && !IS_CLOSED(0, r) && !IS_CLOSED(SETS - 1, r) -> holder[r] = SINGLE; hold[r] = 1 }
  :: d_step { holder[r] == 0 && !IS_CLOSED(0, r) && !IS_CLOSED(SETS - 1, r) -> holder[r] = SINGLE; hold[r] = HOLD }
#ifdef STUCK
  :: d_step { holder[r] == SINGLE && hold[r] == 0 && r == 1 -> holder[r] = 0; wake(r) }
#else
  :: d_step { holder[r] == SINGLE && hold[r] == 0 -> holder[r] = 0; wake(r) }
#endif
  od
}

#define DONE_SET(s) (set[s].asked[0] && (set[s].holds || set[s].asked[1]) || !set[s].holds && !set[s].waits)
#ifdef ALONE
#define CAN_GO(s) false
#define TAKEN(r) true
#else
#define CAN_GO(s) (set[s].waits && set[s].closed[0] && set[s].closed[1] && holder[0] == 0 && holder[1] == 0)
/* A resource that is free and kept by nobody is taken at once. */
#define TAKEN(r) (holder[r] != 0 || IS_CLOSED(0, r) || IS_CLOSED(SETS - 1, r))
#endif
#ifdef STUCK
#define RELEASED(r) (holder[r] != SINGLE || hold[r] > 0 || r == 0)
#else
#define RELEASED(r) (holder[r] != SINGLE || hold[r] > 0)
#endif

#ifdef STUCK
#define ENDS (set[0].waited == 120)
#else
#define ENDS false
#endif

proctype clock() {
  byte s, r;
  do
  :: d_step { !ENDS && DONE_SET(0) && DONE_SET(SETS - 1) && !CAN_GO(0) && !CAN_GO(SETS - 1) &&
       RELEASED(0) && RELEASED(1) && TAKEN(0) && TAKEN(1) ->
       for (EACH_SET(s)) {
         for (EACH_PART(r)) { if :: S.pause[r] > 0 -> S.pause[r]-- :: else -> S.asked[r] = 0 fi }
         if :: S.left > 0 -> S.left-- :: else fi;
         if :: S.waits -> S.waited++ :: else fi;
#ifndef STUCK
         assert(S.waited <= LIMIT)
#endif
       }
       for (EACH_PART(r)) {
         if :: hold[r] > 0 -> hold[r]-- :: else fi
       }
#ifdef STUCK
       if :: holder[0] != 0 && holder[1] == 0 -> kept++ :: else fi;
       assert(30 * kept <= 11 * set[0].waited + 60); /* 1/5 + 1/6 */
#endif
       s = 0; r = 0 }
  od
}

init {
  byte s;
  atomic {
    for (s : 0 .. SETS - 1) { run locks(s) }
#ifndef ALONE
    run single(0);
    run single(1);
#endif
    run clock()
  }
}

/* Turns at one home node: how long a lock that is free stays free when those before it in the queue do not come.
 *
 * All clients wait from the start, in the order of their numbers; the lock is held by somebody else, who releases it
 * at any time, or whose key ends without a word to anybody. One client lives. Others may hang: a wake-up reaches their
 * socket. Or die while the lock is held: the node knows at once that nobody listens. Wake-ups may be lost. Newcomers
 * may ask at any time: they find the queue, do what each who asks does, and are not followed further. Whoever has held
 * the lock does not come again.
 *
 * A tick is 50 ms. The first two in the queue ask every 2 ticks, one of rank r every 4 (r - 1). A promise is for 8 ticks
 * and 4 r. A woken one has 3 ticks; the third behind it, or the last, is told to ask by then, and whoever asks in them
 * asks again 3 ticks later. Messages take no time.
 *
 * Checked: while a client that lives waits, the lock is free for LIMIT ticks at most.
 *
 * HANG=n DIE=n LOST=n  so many clients hang or die, and so many wake-ups are lost
 * NEWCOMERS  they ask
 * PURGE=n    so many places that are broken or of the dead are removed in one script; 0: all
 * SILENT     the key may end without a word to anybody
 * A rule that the core does not have: FURTHER (the caller of a script that has left some sends it again)
 * Broken rules: NOBODY_TOLD (who stands behind the woken one asks at its own pace)
 *   RENEWS (each wake-up gives the time again)
 *   NO_TIME (a wake-up does not shorten the promise)
 *   NO_PROMISES (places are removed only where nobody listens)
 *   DEAD_STAY (a place whose client does not listen is not removed for that)
 *   NO_ASKERS (who asks and finds the lock free does not wake the first)
 *   NO_ASKING (waiters rely on being woken) */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef LIMIT
#define LIMIT 10
#endif
#ifndef HANG
#define HANG 0
#endif
#ifndef DIE
#define DIE 0
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef PURGE
#define PURGE 0
#endif
#define LAST (CLIENTS - 1)
#define WOKEN 3
#define PACE(rank) ((rank) <= 1 -> 2 : 4 * ((rank) - 1))
#define PROMISE(rank) (8 + 4 * (rank))
#define OTHER (CLIENTS + 1) /* holds at the start */

/* phase */
#define WAITS 0
#define HOLDS 1
#define HUNG 2
#define DEAD 3
#define AWAY 4

typedef Client {
  byte phase;
  bit placed;
  bit told;    /* a wake-up is under way */
  bit woken;   /* and it has not asked since */
  byte due;    /* ticks until it asks */
  byte promise;
};
Client client_[CLIENTS];
byte lock = OTHER;
byte idle;
byte hung, dead, lost;
bit begun;
bit came;    /* a newcomer, in this tick */
bit further; /* the caller of a script that had to leave some sends it again */
byte i, first, rank, rest, removed; bit live, more; /* scratch: 0 between steps */
#define C client_[c]
#define F client_[first]
#define EACH_CLIENT(i) i : 0 .. CLIENTS - 1
#define NONE CLIENTS

inline remove(x) { client_[x].placed = 0; client_[x].woken = 0; client_[x].promise = 0 }

inline find_first() {
  first = 0;
  do :: first < CLIENTS && !F.placed -> first++ :: else -> break od
}

/* Another place may be removed in this script. */
#define MAY_REMOVE (PURGE == 0 || removed < PURGE)

inline purge() {
#ifndef NO_PROMISES
  for (EACH_CLIENT(i)) {
    if
    :: client_[i].placed && client_[i].promise == 0 ->
         if :: MAY_REMOVE -> remove(i); removed++ :: else -> more = 1 fi
    :: else
    fi
  }
#else
  skip
#endif
}

inline asks_within(x, ticks) {
  if :: client_[x].phase == WAITS && client_[x].due > ticks -> client_[x].due = ticks :: else fi
}

#ifdef DEAD_STAY
#define HEARS true
#else
#define HEARS (F.phase != DEAD)
#endif
#ifdef NO_PROMISES
#define IS_TRUE_TO_IT true
#else
#define IS_TRUE_TO_IT (F.promise > 0)
#endif

#ifdef RENEWS
#define SAID(asks) false
#else
#define SAID(asks) (asks && F.promise <= WOKEN)
#endif

/* The first that hears is woken; by one that asks while its time runs, without a word to the third behind it. Those
 * before it that cannot hear, or have broken their promise, are removed. */
inline wake(asks) {
  find_first();
  do
  :: first < CLIENTS && !(HEARS && IS_TRUE_TO_IT) && MAY_REMOVE -> remove(first); removed++; find_first()
  :: else -> break
  od;
  if
  :: first < CLIENTS && HEARS && !more && SAID(asks) -> if :: F.phase == WAITS -> F.told = 1 :: else fi
  :: first < CLIENTS && HEARS && !more && !SAID(asks) ->
#ifdef RENEWS
       F.promise = WOKEN;
#else
#ifndef NO_TIME
       if :: !F.woken -> F.promise = WOKEN :: else fi;
#endif
#endif
       F.woken = 1;
       if :: F.phase == WAITS -> F.told = 1 :: else fi;
#ifndef NOBODY_TOLD
       rank = 0;
       rest = NONE;
       for (i : first + 1 .. LAST) {
         if :: client_[i].placed && rank < 3 -> rank++; rest = i :: else fi
       }
       if :: rest != NONE -> asks_within(rest, WOKEN) :: else fi;
#endif
  :: first < CLIENTS && (!HEARS || more) ->
#ifdef FURTHER
       further = 1
#else
       skip
#endif
  :: else
  fi
}

inline end_script() { i = 0; first = 0; rank = 0; rest = 0; removed = 0; more = 0; live = 0 }

inline attempt(c) {
  C.told = 0;
  if :: lock == 0 -> lock = c + 1; C.phase = HOLDS; C.woken = 0; C.due = 0; C.promise = 250 :: else fi
}

inline ask(c) {
  C.placed = 1; C.woken = 0; C.promise = 1; /* it cannot be removed by its own script */
  purge();
  rank = 0;
  for (i : 0 .. CLIENTS - 1) { rank = rank + (i < c && client_[i].placed) }
  C.due = PACE(rank); C.promise = PROMISE(rank);
  if
  :: lock == 0 && rank == 0 -> attempt(c)
#ifndef NO_ASKERS
  :: lock == 0 && rank > 0 -> wake(1); asks_within(c, WOKEN)
#endif
  :: else
  fi;
  end_script()
}

proctype client(byte c) {
  do
  :: d_step { C.phase == WAITS && C.told -> attempt(c) }
  :: d_step { C.phase == WAITS && C.told && lost < LOST -> lost++; C.told = 0 }
#ifndef NO_ASKING
  :: d_step { C.phase == WAITS && C.due == 0 && begun -> ask(c) }
#endif
  :: d_step { C.phase == HOLDS ->
       lock = 0; C.phase = AWAY; remove(c); C.promise = 0;
       wake(0); end_script() }
  :: d_step { C.phase == WAITS && hung < HANG && hung + dead < LAST && begun ->
       hung++; C.phase = HUNG; C.told = 0; C.due = 0 }
  :: d_step { C.phase == WAITS && lock != 0 && dead < DIE && hung + dead < LAST && begun ->
       dead++; C.phase = DEAD; C.told = 0; C.due = 0 }
  od
}

proctype world() {
  byte n;
  /* When each asks next: any time that its rank allows; the last one has asked when more were before it. */
  do
  :: d_step { !begun && client_[n].due < (n < 3 -> PACE(n) : 16) -> client_[n].due++ }
  :: d_step { !begun ->
       client_[n].placed = 1; client_[n].promise = PROMISE(n) + client_[n].due - PACE(n);
       n++;
       if :: n == CLIENTS -> n = 0; begun = 1 :: else fi }
  :: d_step { begun && lock == OTHER -> lock = 0; wake(0); end_script() }
#ifdef SILENT
  :: d_step { begun && lock == OTHER -> lock = 0 }
#endif
  :: d_step { further -> further = 0; purge(); if :: lock == 0 -> wake(0) :: else fi; end_script() }
#ifdef NEWCOMERS
  :: d_step { begun && !came -> came = 1; purge(); if :: lock == 0 -> wake(1) :: else fi; end_script() }
#endif
  od
}

/* Nobody who lives has anything left to do in this tick. */
#ifdef NO_ASKING
#define DONE(c) (client_[c].phase != WAITS || !client_[c].told)
#else
#define DONE(c) (client_[c].phase != WAITS || !client_[c].told && client_[c].due > 0)
#endif

proctype clock() {
  byte c;
  do
  :: d_step { begun && !further && DONE(0) && DONE(1) && DONE(2) && DONE(CLIENTS - 2) && DONE(LAST) ->
       came = 0;
       for (EACH_CLIENT(c)) {
         live = live || C.phase == WAITS;
         if :: C.due > 0 -> C.due-- :: else fi;
         if :: C.promise > 0 && C.phase != HOLDS -> C.promise-- :: else fi
       }
       c = 0;
       if :: lock == 0 && live -> idle++ :: else -> idle = 0 fi;
       live = 0;
       assert(idle <= LIMIT) }
  od
}

init {
  byte c;
  atomic {
    for (c : 0 .. CLIENTS - 1) { run client(c) }
    run world();
    run clock()
  }
}

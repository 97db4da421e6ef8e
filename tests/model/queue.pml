/* The waiting queue on the home node: it may be wrong in any way, and costs time only.
 *
 * The lock itself is one word here, as seen by the majority: the other models are about that. What the home node's
 * scripts do is as in core/src/node/scripts.c: joining removes those at the head who have not kept their promise to ask
 * again, and tells the first if the lock is free; a release deletes the lock if it has the holder's token, removes the
 * holder's place and tells the first. A waiter that is told tries to take the lock. One that asks, and finds it free,
 * does so when it has found it free as often as there are others before it.
 *
 * Time goes in rounds: in each one every waiter that sleeps asks once. A promise lasts until the end of the next round.
 * Waiters may die, a holder's lease may lapse while its release is under way, wake-ups may be lost.
 * FAULTS=n  so often the queue is emptied, gets a place at its head that nobody has, or wakes somebody without reason
 *
 * Checked: never two holders; nobody sleeps for more than ROUNDS rounds beside a free lock.
 * Broken rules: QUEUE_GRANTS HAND_OVER_BLIND NO_ASKING FIRST_ONLY with NO_PROMISES (each alone costs time only) */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef ROUNDS
#define ROUNDS (CLIENTS + 1)
#endif
#define NOBODY (CLIENTS + 1) /* a place that no client has */
#define PLACES (CLIENTS + 1)

/* phase */
#define AWAY 0
#define ASLEEP 1
#define HOLDING 2
#define DEAD 3

typedef Client {
  byte phase;
  bit told;      /* a wake-up is under way */
  bit releasing; /* the release is under way */
  byte found_free;
  bit asked;    /* in this round */
  byte rounds;  /* slept beside a free lock */
};
Client client_[CLIENTS];
byte lock;           /* client + 1, or 0 */
byte place[PLACES];  /* client + 1 or NOBODY; the first 0 ends it */
byte promise[PLACES]; /* rounds left */
byte faults;
byte i, k, rank, holders; /* scratch: 0 between steps */

#define C client_[c]
#define EACH_PLACE(i) i : 0 .. PLACES - 2

/* Removes place k and closes the gap. */
inline remove(at) {
  for (k : at .. PLACES - 2) { place[k] = place[k + 1]; promise[k] = promise[k + 1] }
  place[PLACES - 1] = 0; promise[PLACES - 1] = 0;
  k = 0
}

inline find(who) {
  rank = 0;
  do :: rank < PLACES && place[rank] != who && place[rank] != 0 -> rank++ :: else -> break od
}

inline remove_place(who) { find(who); if :: rank < PLACES && place[rank] == who -> remove(rank) :: else fi }

inline tell_first() {
  if
  :: place[0] != 0 && place[0] != NOBODY ->
       if :: client_[place[0] - 1].phase == ASLEEP -> client_[place[0] - 1].told = 1 :: else fi
  :: else
  fi
}

inline join(c) {
#ifndef NO_PROMISES
  do :: place[0] != 0 && promise[0] == 0 -> remove(0) :: else -> break od;
#endif
  find(c + 1);
  if :: rank < PLACES -> place[rank] = c + 1; promise[rank] = 2 :: else fi;
  if :: lock == 0 -> tell_first() :: else fi
}

inline sleep(c) { C.phase = ASLEEP; C.told = 0; C.found_free = 0 }

inline try_to_take(c) {
  C.told = 0;
#ifdef QUEUE_GRANTS
  lock = c + 1; C.phase = HOLDING; C.found_free = 0;
#else
  if :: lock == 0 -> lock = c + 1; C.phase = HOLDING; C.found_free = 0 :: else fi;
#endif
}

inline check() {
  for (i : 0 .. CLIENTS - 1) {
    holders = holders + (client_[i].phase == HOLDING);
    if :: lock != 0 || client_[i].phase != ASLEEP -> client_[i].rounds = 0 :: else fi;
    assert(client_[i].rounds <= ROUNDS)
  }
  assert(holders <= 1);
  i = 0; k = 0; rank = 0; holders = 0
}

inline delete_lock(c) {
#ifdef HAND_OVER_BLIND
  lock = 0;
#else
  if :: lock == c + 1 -> lock = 0 :: else fi;
#endif
}

proctype client(byte c) {
  do
  /* Comes: takes a free lock if nobody waits; queues otherwise. */
  :: d_step { C.phase == AWAY && !C.releasing ->
       if :: lock == 0 && place[0] == 0 -> try_to_take(c) :: else -> sleep(c); join(c) fi;
       check() }
  :: d_step { C.phase == ASLEEP && C.told -> try_to_take(c); check() }
  :: d_step { C.phase == ASLEEP && C.told -> C.told = 0; check() } /* the wake-up is lost */
#ifndef NO_ASKING
  :: d_step { C.phase == ASLEEP && !C.asked ->
       C.asked = 1;
       join(c);
       find(c + 1);
       if
       :: lock != 0 -> C.found_free = 0
#ifdef FIRST_ONLY
       :: lock == 0 && rank == 0 -> try_to_take(c)
       :: else
#else
       :: lock == 0 && C.found_free >= rank -> try_to_take(c)
       :: else -> C.found_free++
#endif
       fi;
       check() }
#endif
  /* Gives up waiting; dies. */
  :: d_step { C.phase == ASLEEP -> remove_place(c + 1); C.phase = AWAY; C.told = 0; C.found_free = 0; check() }
  :: d_step { C.phase == ASLEEP -> C.phase = DEAD; C.told = 0; C.found_free = 0; check() }
  :: d_step { C.phase == HOLDING -> C.phase = DEAD; check() }
  :: d_step { C.phase == HOLDING -> C.phase = AWAY; C.releasing = 1; check() }
  :: d_step { C.releasing ->
       C.releasing = 0;
       delete_lock(c);
       remove_place(c + 1);
       tell_first();
       check() }
  od
}

proctype world() {
  do
  /* The key of a client that holds no more expires. */
  :: d_step { lock != 0 && client_[lock - 1].phase != HOLDING -> lock = 0; check() }
#if FAULTS > 0
  :: d_step { faults < FAULTS -> faults++; for (i : 0 .. PLACES - 1) { place[i] = 0; promise[i] = 0 } check() }
  :: d_step { faults < FAULTS && place[PLACES - 1] == 0 ->
       faults++;
       k = PLACES - 1;
       do :: k > 0 -> place[k] = place[k - 1]; promise[k] = promise[k - 1]; k-- :: else -> break od;
       place[0] = NOBODY; promise[0] = 2;
       check() }
#endif
  od
}

#if FAULTS > 0
proctype spurious(byte c) {
  do
  :: d_step { faults < FAULTS && C.phase == ASLEEP -> faults++; C.told = 1; check() }
  od
}
#endif

#ifdef NO_ASKING
#define HAS_ASKED(c) true
#else
#define HAS_ASKED(c) (client_[c].phase != ASLEEP || client_[c].asked)
#endif

proctype clock() {
  do
  :: d_step { HAS_ASKED(0) && HAS_ASKED(1) && HAS_ASKED(CLIENTS - 1) ->
       for (i : 0 .. PLACES - 1) { if :: promise[i] > 0 -> promise[i]-- :: else fi }
       for (i : 0 .. CLIENTS - 1) { client_[i].asked = 0; client_[i].rounds++ }
       check() }
  od
}

init {
  byte c;
  atomic {
    for (c : 0 .. CLIENTS - 1) {
      run client(c);
#if FAULTS > 0
      run spurious(c)
#endif
    }
    run world();
    run clock()
  }
}

/* Two homes at once: clients that do not agree which node keeps the queue.
 *
 * Node 0 is the first in the resource's order, and home of all; a client that it answers late takes node 1 for home.
 * The lock is one word, as seen by the majority; besides there is what each of the two nodes has under the key: it may
 * have lost the holder's, or have one that nobody holds. An attempt is one step; who is granted at one of the two but
 * not by the majority gives back there.
 *
 * A round: each waiter asks at its home once, and a holder releases in a later one. Places stand by arrival, which is
 * the client's own: it takes it along to the other node. Wake-ups take any time, but no longer than the round.
 *
 * Checked: nobody is overtaken by more than 3 that came later; while others hold the lock, nobody makes more than 2
 * attempts in a round; the lock is not free for more than LIMIT rounds while somebody waits.
 *
 * LATE=n   so often node 0 does not answer a client
 * MISSING  node 0 loses a key; LEFT  it has a key that nobody holds, for ever
 * SILENT   a hold ends without waking anybody
 * LIVE     checked instead: who waits holds in the end
 * Broken rules: WAKE_AT_HOME (a release wakes only at its own home)
 *   NO_FIRST (an attempt from another home does not ask node 0)
 *   STAY_IF_FIRST (it stands at node 0 only if others are before it there)
 *   NO_AGE (there it stands at the end)
 *   GIVE_BACK_WAKES (also one without a majority)
 *   NO_VAIN (who asks wakes also a first that has tried in vain)
 *   WAKE_IF_FREE (a release wakes only where the key is free)
 *   NO_LOOK (the first does not ask all nodes now and then)
 *   BARGE (who comes wins although others wait) */
#define CLIENTS 3
#ifndef LATE
#define LATE 1
#endif
#ifndef LIMIT
#define LIMIT 0
#endif
#define LOOK 2 /* rounds between two looks at all nodes */
#define NOWHERE 2
#define LEFT_BEHIND 7
#define EACH_CLIENT(i) i : 0 .. CLIENTS - 1

/* phase */
#define AWAY 0
#define WAITS 1
#define HOLDS 2

typedef Client {
  byte phase;
  bit home;
  byte at;      /* the node at which it has a place */
  byte behind;  /* bit d: d stands before it */
  byte came;    /* bit d: d waits, and came before it; counted only if places may lose their age */
  bit told, asked, vain;
  byte looked, tries, over;
};
Client client_[CLIENTS];
byte lock;
byte key[2];
byte late, idle;
byte i, j, first, before; bit others, waits; /* scratch: 0 between steps */
#define C client_[c]
#define IS(mask, x) (((mask) >> (x)) & 1)
#define ALL 7

/* Who is first at node n; CLIENTS: nobody. A holder's place does not count. */
inline find_first(n) {
  first = CLIENTS;
  for (EACH_CLIENT(i)) {
    if
    :: client_[i].at == n && client_[i].phase == WAITS ->
         before = 0;
         for (EACH_CLIENT(j)) {
           before = before + (client_[j].at == n && client_[j].phase == WAITS && IS(client_[i].behind, j))
         }
         if :: before == 0 -> first = i :: else fi
    :: else
    fi
  }
  before = 0; i = 0; j = 0
}

inline wake(n, by_release) {
  find_first(n);
  if
#ifdef WAKE_IF_FREE
  :: first < CLIENTS && key[n] == 0 && (by_release || !client_[first].vain) -> client_[first].told = 1
#else
#ifdef NO_VAIN
  :: first < CLIENTS -> client_[first].told = 1
#else
  :: first < CLIENTS && (by_release || !client_[first].vain) -> client_[first].told = 1
#endif
#endif
  :: else
  fi;
  if :: by_release && first < CLIENTS -> client_[first].vain = 0 :: else fi;
  first = 0
}

/* Nobody is behind c any more. */
inline forget(c) {
  for (EACH_CLIENT(i)) {
    if :: IS(client_[i].behind, c) -> client_[i].behind = client_[i].behind - (1 << c) :: else fi;
    if :: IS(client_[i].came, c) -> client_[i].came = client_[i].came - (1 << c) :: else fi
  }
  i = 0
}

/* c stands at node n, by its age. */
inline stand(c, n) {
  if
  :: C.phase == AWAY ->
       C.phase = WAITS; C.behind = 0;
       for (EACH_CLIENT(i)) { C.behind = C.behind + ((i != c && client_[i].phase == WAITS) << i) }
       i = 0;
       C.came = C.behind
#ifdef NO_AGE
  :: C.phase == WAITS && C.at != n ->
       for (EACH_CLIENT(i)) {
         if
         :: IS(client_[i].behind, c) -> client_[i].behind = client_[i].behind - (1 << c)
         :: else
         fi
       }
       C.behind = 0;
       for (EACH_CLIENT(i)) { C.behind = C.behind + ((i != c && client_[i].phase == WAITS) << i) }
       i = 0
#endif
  :: else
  fi;
  C.home = n; C.at = n
}

/* others = somebody stands at node n before c. */
inline ask_before(c, n) {
  for (EACH_CLIENT(i)) {
    others = others || (i != c && client_[i].at == n && client_[i].phase == WAITS &&
                        (C.phase == AWAY || IS(C.behind, i)))
  }
  i = 0
}

inline give_back(c, n) {
#ifdef GIVE_BACK_WAKES
  if :: key[n] == 0 -> wake(n, 1) :: else fi
#else
  skip
#endif
}

inline win(c) {
  lock = c + 1;
  if :: key[0] == 0 -> key[0] = c + 1 :: else fi;
  if :: key[1] == 0 -> key[1] = c + 1 :: else fi;
#ifndef LIVE
  for (EACH_CLIENT(i)) {
    /* i came before c: c is overtaking. */
    if
    :: i != c && client_[i].phase == WAITS && (C.phase == AWAY || IS(C.came, i)) ->
         if :: client_[i].over < 4 -> client_[i].over++ :: else fi
    :: else
    fi
  }
#endif
  i = 0;
  C.phase = HOLDS; C.at = NOWHERE; C.behind = 0; C.came = 0; C.over = 0; C.tries = 0; C.vain = 0; C.looked = 0;
  C.asked = 1;
  forget(c)
}

/* Asks all nodes. answers: node 0 does, if it is asked. */
inline attempt(c, answers) {
  C.told = 0; C.looked = 0;
  others = 0;
#ifndef BARGE
  ask_before(c, C.home);
#ifndef NO_FIRST
  if :: answers && C.home == 1 -> ask_before(c, 0) :: else fi;
#endif
#endif
  if
  :: lock == 0 && !others -> win(c)
  :: else ->
       if
       :: lock != 0 ->
            if :: C.tries < 3 -> C.tries++ :: else fi;
            C.vain = 1;
            give_back(c, 0); give_back(c, 1)
       :: else
       fi;
#ifdef STAY_IF_FIRST
       ask_before(c, 0);
       if :: answers && C.home == 1 && others && C.phase == WAITS -> stand(c, 0) :: else -> stand(c, C.home) fi;
#else
#ifdef NO_FIRST
       stand(c, C.home);
#else
       if :: answers -> stand(c, 0) :: else -> stand(c, C.home) fi;
#endif
#endif
       if :: lock == 0 -> wake(0, 1); wake(1, 1) :: else fi
  fi;
  others = 0
}

inline end_hold(c) {
  if :: key[0] == c + 1 -> key[0] = 0 :: else fi;
  if :: key[1] == c + 1 -> key[1] = 0 :: else fi;
  lock = 0;
  C.phase = AWAY; C.asked = 0;
  for (EACH_CLIENT(i)) { client_[i].tries = 0 }
  i = 0
}

inline ask(c) {
  C.asked = 1;
  if :: C.at != C.home -> C.at = C.home :: else fi;
  find_first(C.home);
  if
  :: first == c ->
       first = 0;
#ifdef NO_LOOK
       if :: key[C.home] == 0 -> attempt(c, 1) :: else fi
#else
       if :: key[C.home] == 0 || C.looked == LOOK -> attempt(c, 1) :: else -> C.looked++ fi
#endif
  :: first != c && key[C.home] == 0 -> first = 0; wake(C.home, 0)
  :: else -> first = 0
  fi
}

inline check() {
#ifndef LIVE
  for (EACH_CLIENT(i)) { assert(client_[i].over <= 3); assert(client_[i].tries <= 2) }
  i = 0
#else
  skip
#endif
}

#ifdef LIVE
#define MAY_ASK (!C.told)
#define MAY_RELEASE true
#else
#define MAY_ASK (!C.asked)
#define MAY_RELEASE (!C.asked)
#endif

proctype client(byte c) {
  do
  :: d_step { C.phase == AWAY && !C.asked -> attempt(c, 1); check() }
  :: d_step { C.phase == WAITS && C.told -> attempt(c, 1); check() }
  :: d_step { C.phase == WAITS && MAY_ASK -> ask(c); check() }
  :: d_step { C.phase == HOLDS && MAY_RELEASE ->
       end_hold(c);
#ifdef WAKE_AT_HOME
       wake(C.home, 1);
#else
       wake(0, 1); wake(1, 1);
#endif
       check() }
#ifdef SILENT
  :: d_step { C.phase == HOLDS && MAY_RELEASE -> end_hold(c); check() }
#endif
  :: d_step { C.phase != HOLDS && late < LATE && C.home == 0 && !(C.phase == WAITS && C.told) ->
       late++; C.home = 1; check() }
  :: d_step { C.phase == WAITS && C.told && late < LATE -> late++; C.home = 1; C.at = 1; attempt(c, 0); check() }
  od
}

#if defined(MISSING) || defined(LEFT)
proctype world() {
#ifdef MISSING
  d_step { key[0] != 0 -> key[0] = 0; check() }
#else
  d_step { key[0] == 0 -> key[0] = LEFT_BEHIND; check() }
#endif
}
#endif

#ifdef LIVE
ltl served { [] ((client_[0].phase == WAITS) -> <> (client_[0].phase == HOLDS)) }
#else
#define DONE(c) (client_[c].phase != WAITS || client_[c].asked && !client_[c].told)

proctype clock() {
  byte c;
  do
  :: d_step { DONE(0) && DONE(1) && DONE(2) ->
       for (EACH_CLIENT(c)) { C.asked = 0; C.tries = 0; C.vain = 0; waits = waits || C.phase == WAITS }
       c = 0;
       if :: lock == 0 && waits -> idle++ :: else -> idle = 0 fi;
       waits = 0;
       assert(idle <= LIMIT) }
  od
}
#endif

init {
  byte c;
  atomic {
    for (c : 0 .. CLIENTS - 1) { client_[c].at = NOWHERE; run client(c) }
#if defined(MISSING) || defined(LEFT)
    run world();
#endif
#ifndef LIVE
    run clock()
#endif
  }
}

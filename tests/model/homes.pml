/* Two nodes that keep a queue: clients that do not agree which of them is home.
 *
 * Each waiter stands at the first node of the resource's order that answers it, which is its home, and at another one:
 * at once if that one is before home in the order, else from the next round on. Node 0 is the first, and node 1 the
 * second; whom node 0 answers late takes node 1 for home, and node 0 for the other one. The lock is one word, as seen by the majority; besides there is
 * what each node has under the key: node 0 may have lost the holder's, or have one that nobody holds. An attempt is one
 * step.
 *
 * A round: each waiter asks once, and a holder releases in a later one. Places stand by arrival, which is the client's
 * own: it takes it along to other nodes. Wake-ups take any time, but no longer than the round.
 *
 * Checked: nobody is overtaken by more than 3 that came later; while others hold the lock, nobody makes more than 2
 * attempts in a round; the lock is not free for more than LIMIT rounds while somebody waits.
 *
 * LATE=n   so often a client begins to find a node late; that ends at any time
 * SECOND_LATE  it may be node 1: its two are 0 and 2
 * CUT      client 0 is cut off from node 0, for ever: its two are 1 and 2
 * LOST     node 0 loses its queue
 * MISSING  node 0 loses a key; LEFT  it has a key that nobody holds, for ever
 * SKEW     clients 0 and 1 stand at node 1 the other way round, as its way is longer for one of them; which of the
 *          two overtakes does not count
 * SILENT   a hold ends without waking anybody
 * LIVE     checked instead: who waits holds in the end
 * Broken rules: WAKE_AT_HOME (a release wakes only at its own home)
 *   ONE_PLACE (a waiter stands at its home alone)
 *   NEXT_TWO (whom node 0 answers late stands at nodes 1 and 2)
 *   ANY_WAKES (whoever is woken tries, whichever of its nodes that comes from; otherwise it asks home)
 *   GIVE_BACK_WAKES (also one without a majority)
 *   NO_VAIN (who asks wakes also a first that has tried in vain)
 *   WAKE_IF_FREE (a release wakes only where the key is free)
 *   HOME_DECIDES (whoever is first at node 0, and behind another one at its home, node 1, does not try)
 *   NO_LOOK (the first does not ask all nodes now and then)
 *   BARGE (who comes wins although others wait) */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef LIMIT
#define LIMIT 0
#endif
#define LOOK 2 /* rounds between two looks at all nodes */
#define LEFT_BEHIND 7
#define EACH_CLIENT(i) i : 0 .. CLIENTS - 1
#define EACH_NODE(n) n : 0 .. 2

/* phase */
#define AWAY 0
#define WAITS 1
#define HOLDS 2

/* finds: which nodes answer it late, or not at all */
#define WELL 0
#define FIRST_LATE 1
#define FIRST_AWAY 2
#define OTHER_LATE 3

typedef Client {
  byte phase;
  byte finds;
  byte at;      /* bit n: it has a place at node n */
  byte behind;  /* bit d: d stands before it */
  bit told, asked, vain;
  bit is_new;   /* it came in this round */
  byte looked, tries, over;
};
Client client_[CLIENTS];
byte lock;
byte key[3];
byte late, idle;
byte i, j, m, first, before; bit others, waits; /* scratch: 0 between steps */
#define C client_[c]
#define IS(mask, x) (((mask) >> (x)) & 1)
#define STANDS(x, n) (client_[x].phase == WAITS && IS(client_[x].at, n))

#define HOME(x) (client_[x].finds == FIRST_LATE || client_[x].finds == FIRST_AWAY -> 1 : 0)
#define IS_CUT(x) (client_[x].finds == FIRST_AWAY)
/* Its nodes, as bits. */
#ifdef ONE_PLACE
#define NODES_OF(x) (1 << HOME(x))
#else
#ifdef NEXT_TWO
#define NODES_OF(x) (client_[x].finds == OTHER_LATE -> 5 : (HOME(x) == 1 -> 6 : 3))
#else
#define NODES_OF(x) (client_[x].finds == FIRST_AWAY -> 6 : (client_[x].finds == OTHER_LATE -> 5 : 3))
#endif
#endif

#ifdef SKEW
#define ARE_SKEWED(x, y) ((x) + (y) == 1)
#else
#define ARE_SKEWED(x, y) false
#endif
#define IS_BEHIND(x, y, n) (IS(client_[x].behind, y) != ((n) == 1 && ARE_SKEWED(x, y)))

/* Who is first at node n; CLIENTS: nobody. A holder's place does not count. */
inline find_first(n) {
  first = CLIENTS;
  for (EACH_CLIENT(i)) {
    if
    :: STANDS(i, n) ->
         before = 0;
         for (EACH_CLIENT(j)) { before = before + (STANDS(j, n) && IS_BEHIND(i, j, n)) }
         if :: before == 0 -> first = i :: else fi
    :: else
    fi
  }
  before = 0; i = 0; j = 0
}

/* It tries, or asks home, in this round again. */
inline hear(x, n) {
#ifdef ANY_WAKES
  client_[x].told = 1
#else
  if :: n == HOME(x) -> client_[x].told = 1 :: else -> client_[x].asked = 0 fi
#endif
}

inline wake(n, by_release) {
  find_first(n);
  if
#ifdef WAKE_IF_FREE
  :: first < CLIENTS && key[n] == 0 && (by_release || !client_[first].vain) -> hear(first, n)
#else
#ifdef NO_VAIN
  :: first < CLIENTS -> hear(first, n)
#else
  :: first < CLIENTS && (by_release || !client_[first].vain) -> hear(first, n)
#endif
#endif
  :: else
  fi;
  if :: by_release && first < CLIENTS -> client_[first].vain = 0 :: else fi;
  first = 0
}

inline wake_all() { wake(0, 1); wake(1, 1); wake(2, 1) }

/* Nobody is behind c any more. */
inline forget(c) {
  for (EACH_CLIENT(i)) {
    client_[i].behind = client_[i].behind & ~(1 << c)
  }
  i = 0
}

/* c stands at its nodes, by its age, and leaves others. */
inline stand(c) {
  if
  :: C.phase == AWAY ->
       C.phase = WAITS; C.behind = 0; C.is_new = 1;
       for (EACH_CLIENT(i)) { C.behind = C.behind + ((i != c && client_[i].phase == WAITS) << i) }
       i = 0
#ifdef LIVE
  :: else -> C.is_new = 0 /* there are no rounds */
#else
  :: else
#endif
  fi;
  C.at = (C.is_new && HOME(c) == 0 -> 1 : NODES_OF(c))
}

inline give_back(c) {
#ifdef GIVE_BACK_WAKES
  for (EACH_NODE(m)) { if :: key[m] == 0 -> wake(m, 1) :: else fi }
  m = 0
#else
  skip
#endif
}

inline win(c) {
  lock = c + 1;
  for (EACH_NODE(m)) { if :: key[m] == 0 && !(m == 0 && IS_CUT(c)) -> key[m] = c + 1 :: else fi }
  m = 0;
#ifndef LIVE
  for (EACH_CLIENT(i)) {
    /* i came before c: c is overtaking. */
    if
    :: i != c && !ARE_SKEWED(i, c) && client_[i].phase == WAITS && (C.phase == AWAY || IS(C.behind, i)) ->
         if :: client_[i].over < 4 -> client_[i].over++ :: else fi
    :: else
    fi
  }
#endif
  i = 0;
  C.phase = HOLDS; C.at = 0; C.behind = 0; C.over = 0; C.tries = 0; C.vain = 0; C.looked = 0;
  C.asked = 1;
  forget(c)
}

/* Asks all nodes; one that has no place asks home, too, whether others wait. */
inline attempt(c) {
  C.told = 0; C.looked = 0;
  others = 0;
#ifndef BARGE
  for (EACH_CLIENT(i)) { others = others || (C.phase == AWAY && i != c && STANDS(i, HOME(c))) }
  i = 0;
#endif
  if
  :: lock == 0 && !others -> win(c)
  :: else ->
       if
       :: lock != 0 ->
            if :: C.tries < 3 -> C.tries++ :: else fi;
            C.vain = 1;
            give_back(c)
       :: else
       fi;
       stand(c);
       if :: lock == 0 -> wake_all() :: else fi
  fi;
  others = 0
}

inline end_hold(c) {
  for (EACH_NODE(m)) { if :: key[m] == c + 1 -> key[m] = 0 :: else fi }
  m = 0;
  lock = 0;
  C.phase = AWAY; C.asked = 0;
  for (EACH_CLIENT(i)) { client_[i].tries = 0 }
  i = 0
}

inline ask(c) {
  C.asked = 1;
  stand(c);
  for (EACH_NODE(m)) {
    find_first(m);
    if
    :: IS(C.at, m) && key[m] == 0 && first != c -> first = 0; wake(m, 0)
    :: else -> first = 0
    fi
  }
  m = 0;
  find_first(HOME(c));
#ifndef HOME_DECIDES
  if :: first != c && IS(C.at, 0) -> find_first(0) :: else fi;
#endif
  if
  :: first == c ->
       first = 0;
#ifdef NO_LOOK
       if :: key[HOME(c)] == 0 -> attempt(c) :: else fi
#else
       if :: key[HOME(c)] == 0 || C.looked == LOOK -> attempt(c) :: else -> C.looked++ fi
#endif
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
  :: d_step { C.phase == AWAY && !C.asked -> attempt(c); check() }
  :: d_step { C.phase == WAITS && C.told -> attempt(c); check() }
  :: d_step { C.phase == WAITS && MAY_ASK -> ask(c); check() }
  :: d_step { C.phase == HOLDS && MAY_RELEASE ->
       end_hold(c);
#ifdef WAKE_AT_HOME
       wake(HOME(c), 1);
#else
       if :: !IS_CUT(c) -> wake(0, 1) :: else fi;
       wake(1, 1); wake(2, 1);
#endif
       check() }
#ifdef SILENT
  :: d_step { C.phase == HOLDS && MAY_RELEASE -> end_hold(c); check() }
#endif
  :: d_step { late < LATE && C.finds == WELL -> late++; C.finds = FIRST_LATE; check() }
#ifdef SECOND_LATE
  :: d_step { late < LATE && C.finds == WELL -> late++; C.finds = OTHER_LATE; check() }
#endif
  :: d_step { C.finds == FIRST_LATE || C.finds == OTHER_LATE -> C.finds = WELL; check() }
  od
}

#if defined(MISSING) || defined(LEFT) || defined(LOST)
proctype world() {
  byte c;
#ifdef MISSING
  d_step { key[0] != 0 -> key[0] = 0; check() }
#endif
#ifdef LEFT
  d_step { key[0] == 0 -> key[0] = LEFT_BEHIND; check() }
#endif
#ifdef LOST
  d_step { for (EACH_CLIENT(c)) { C.at = C.at & 6 } c = 0; check() }
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
  :: d_step { DONE(0) && DONE(1) && DONE(CLIENTS - 1) ->
       for (EACH_CLIENT(c)) { C.asked = 0; C.tries = 0; C.vain = 0; C.is_new = 0; waits = waits || C.phase == WAITS }
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
#ifdef CUT
    client_[0].finds = FIRST_AWAY;
#endif
    for (c : 0 .. CLIENTS - 1) { run client(c) }
#if defined(MISSING) || defined(LEFT) || defined(LOST)
    run world();
#endif
#ifndef LIVE
    run clock()
#endif
  }
}

/* Places that want different things: readers and writers, and permits of which some are pinned to a slot.
 *
 * One home node. An attempt takes two steps, as on a wire: the key, and the verdict. One that stands in the queue has
 * won with the key; a newcomer has asked, behind it, whether anybody waits, and gives it back if so. Who holds has left
 * the queue, which wakes the next. A place may be lost, which its client does not know; it stands there again, by its
 * age, when it asks. Each waiter asks every third round; a release, and whoever finds something free, wakes those whom
 * it serves: the first, or all readers before the first writer.
 *
 * Checked: nobody who stands there is passed more than PASSED times by one that came later and excludes it; at the end
 * of a round nobody waits who is first and has free what it wants, if no place was lost.
 *
 * Without PERMITS client 0 writes and the others read. With it there are 2 slots; so many clients are pinned to slot 0,
 * the first of them client 0. They may be passed: the slot may become free while another one picks, which was told of
 * the other slot. PINS: that is checked, too.
 * WRITERS=n  so many write
 * LOSSES=n   so many places are lost
 * LIVE       checked instead: client 0 holds in the end
 * LEAVES_PINS  a rule that the core does not have: a pick leaves alone a slot to which an earlier place is pinned
 * Broken rules: BEHIND_ASKS (a reader behind the first makes an attempt when it asks)
 *   NO_WORD (a reader that comes does not wait for home's word)
 *   NO_LOOK (nor does anybody else)
 *   NO_WAKE_AFTER (who gives back wakes nobody)
 *   ANY_WANT (the first is woken, whatever it wants)
 *   NO_LEAVE_WAKE (who wins and leaves the queue wakes nobody)
 *   ONE_READER (one reader is woken at a time) */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef PASSED
#define PASSED 1
#endif
#define EACH_CLIENT(i) i : 0 .. CLIENTS - 1
#define NOTHING 2 /* a slot that is none */

#ifdef NO_LOOK
#define LOOKS(c) false
#else
#ifdef NO_WORD
#define LOOKS(c) (c < WRITERS)
#else
#define LOOKS(c) true
#endif
#endif

/* phase */
#define AWAY 0
#define WAITS 1
#define TAKING 2 /* has the key */
#define HOLDS 3

typedef Client {
  byte phase;
  byte behind; /* bit d: d waits, and came before it */
  bit placed, told;
  bit is_new;  /* makes an attempt without having waited */
  byte slot;
  byte due;    /* rounds until it asks */
  byte passed; /* so often */
};
Client client_[CLIENTS];
byte losses;
byte i, j, k, pick, rank; bit free, blocked, woke, ends; /* scratch: 0 between steps */
#define C client_[c]
#define IS(mask, x) (((mask) >> (x)) & 1)
#define HAS(x) (client_[x].phase >= TAKING)
#define STANDS(x) (client_[x].phase == WAITS && client_[x].placed)
#define IS_BEFORE(x, c) (x != c && STANDS(x) && (client_[c].phase == AWAY || IS(client_[c].behind, x)))

#ifdef PERMITS
#define PINNED(x) (x < PERMITS)
#define SHARE(x, y) false
#else
#define PINNED(x) false
#define SHARE(x, y) (x >= WRITERS && y >= WRITERS)
#endif

/* free = c may take what it wants now; pick: the slot. Others than c hold the rest. */
inline find_free(c) {
#ifdef PERMITS
  pick = NOTHING;
  for (j : 0 .. 1) {
    free = !PINNED(c) || j == 0;
    for (k : 0 .. CLIENTS - 1) {
      free = free && !(k != c && HAS(k) && client_[k].slot == j);
#ifdef LEAVES_PINS
      free = free && !(j == 0 && PINNED(k) && !PINNED(c) && IS_BEFORE(k, c))
#endif
    }
    if :: free && pick == NOTHING -> pick = j :: else fi
  }
  free = pick != NOTHING; j = 0; k = 0
#else
  free = 1;
  for (k : 0 .. CLIENTS - 1) { free = free && (k == c || !HAS(k) || SHARE(k, c)) }
  k = 0
#endif
}

/* blocked = somebody stands before c who excludes it. A place that wants a slot which is taken blocks nobody. */
inline find_blocked(c) {
  blocked = 0;
  for (k : 0 .. CLIENTS - 1) {
    if
    :: IS_BEFORE(k, c) && !SHARE(k, c) ->
#ifdef PERMITS
         free = 1;
         for (j : 0 .. CLIENTS - 1) { free = free && !(PINNED(k) && j != c && HAS(j) && client_[j].slot == 0) }
         j = 0;
         blocked = blocked || free;
         free = 0
#else
         blocked = 1
#endif
    :: else
    fi
  }
  k = 0
}

/* A newcomer asks only whether anybody waits. */
inline find_any(c) {
  blocked = 0;
  for (k : 0 .. CLIENTS - 1) { blocked = blocked || (k != c && STANDS(k)) }
  k = 0
}

/* In order: those that it serves. */
inline wake() {
  for (rank : 0 .. CLIENTS - 1) {
    for (i : 0 .. CLIENTS - 1) {
      if
      :: STANDS(i) && !ends ->
           pick = 0;
           for (k : 0 .. CLIENTS - 1) { pick = pick + IS_BEFORE(k, i) }
           if
           :: pick == rank ->
                find_free(i);
#ifdef ANY_WANT
                client_[i].told = 1; ends = 1
#else
                if
                :: free && (!woke || SHARE(i, i)) -> client_[i].told = 1; woke = 1;
#ifdef ONE_READER
                           ends = 1
#else
                           ends = !SHARE(i, i)
#endif
                :: woke && !SHARE(i, i) || !free && !PINNED(i) -> ends = 1
                :: else
                fi
#endif
           :: else
           fi
      :: else
      fi;
      pick = 0; free = 0; k = 0
    }
  }
  rank = 0; i = 0; woke = 0; ends = 0
}

inline forget(c) {
  for (EACH_CLIENT(i)) { if :: IS(client_[i].behind, c) -> client_[i].behind = client_[i].behind - (1 << c) :: else fi }
  i = 0
}

inline stand(c) {
  C.phase = WAITS; C.placed = 1; C.slot = 0; C.due = 2; C.is_new = 0
}

/* The first step of an attempt. */
inline take(c) {
  C.told = 0;
  find_free(c);
  if
  :: C.phase == AWAY ->
       C.is_new = 1;
       for (EACH_CLIENT(i)) {
         C.behind = C.behind + ((i != c && (client_[i].phase == WAITS || client_[i].phase == TAKING)) << i)
       }
       i = 0
  :: else
  fi;
  if :: free -> C.slot = pick; C.phase = TAKING :: else -> stand(c) fi;
  free = 0; pick = 0
}

#ifdef PERMITS
#ifdef PINS
#define EXCLUDE(i, c) (!PINNED(i) || C.slot == 0)
#else
#define EXCLUDE(i, c) (!PINNED(i))
#endif
#else
#define EXCLUDE(i, c) (!SHARE(i, c))
#endif

/* c goes ahead of those who stand there, came earlier and are excluded by it. */
inline check_order(c) {
  for (EACH_CLIENT(i)) {
    if
    :: STANDS(i) && IS(C.behind, i) && EXCLUDE(i, c) ->
         client_[i].passed++;
         assert(client_[i].passed <= PASSED)
    :: else
    fi
  }
  i = 0; C.passed = 0
}

/* The second: the answer to a newcomer's question. */
inline decide(c) {
  if
  :: LOOKS(c) && C.is_new -> find_any(c)
  :: else -> blocked = 0
  fi;
  if
  :: blocked ->
       stand(c);
#ifndef NO_WAKE_AFTER
       wake()
#endif
  :: !blocked ->
#ifndef LIVE
       check_order(c);
#endif
       C.phase = HOLDS; C.placed = 0; C.behind = 0; C.due = 1; C.is_new = 0;
       forget(c);
#ifndef NO_LEAVE_WAKE
       wake()
#endif
  fi;
  blocked = 0
}

inline ask(c) {
  C.placed = 1; C.due = 2;
  find_blocked(c);
#ifdef BEHIND_ASKS
  blocked = blocked && C.behind != 1 && C.behind != 2 && C.behind != 4;
#endif
  find_free(c);
  if
  :: free && !blocked -> C.told = 1
  :: else -> wake()
  fi;
  free = 0; blocked = 0; pick = 0
}

#ifdef LIVE
#define MAY_ASK (!C.told)
#define MAY_RELEASE true
#else
#define MAY_ASK (C.due == 0 && !C.told)
#define MAY_RELEASE (C.due == 0)
#endif

proctype client(byte c) {
  do
  :: d_step { C.phase == AWAY -> take(c) }
  :: d_step { C.phase == WAITS && C.told -> take(c) }
  :: d_step { C.phase == TAKING -> decide(c) }
  :: d_step { C.phase == WAITS && MAY_ASK -> ask(c) }
  :: d_step { C.phase == HOLDS && MAY_RELEASE -> C.phase = AWAY; C.slot = 0; C.due = 0; wake() }
#if LOSSES > 0
  :: d_step { STANDS(c) && losses < LOSSES -> losses++; C.placed = 0 }
#endif
  od
}

#ifdef LIVE
ltl served { [] ((client_[0].phase == WAITS) -> <> (client_[0].phase == HOLDS)) }
#else
#define DONE(c) (client_[c].phase != TAKING && (client_[c].phase != WAITS || client_[c].due > 0 && !client_[c].told))

proctype clock() {
  byte c;
  do
  :: d_step { DONE(0) && DONE(1) && DONE(2) && DONE(CLIENTS - 1) ->
       for (EACH_CLIENT(c)) {
         if
         :: STANDS(c) && losses == 0 ->
              find_free(c); i = free;
              find_blocked(c);
              assert(!i || blocked);
              free = 0; blocked = 0; pick = 0; i = 0
         :: else
         fi
       }
       for (EACH_CLIENT(c)) { if :: C.due > 0 -> C.due-- :: else fi }
       c = 0 }
  od
}
#endif

init {
  byte c;
  atomic {
    for (c : 0 .. CLIENTS - 1) { run client(c) }
#ifndef LIVE
    run clock()
#endif
  }
}

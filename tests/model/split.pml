/* Single attempts, without a wait, at the same moment: a split vote is not a holder.
 *
 * Each client sends a SET to all nodes, and behind it the question whose token is there. Who has a majority holds, for
 * good. Who cannot have one says "busy" if it has seen one token on a majority of all nodes; otherwise it waits until
 * all nodes that answer have done so, gives back, and tries again. Each try has a token of its own. A node that has
 * not answered when a try ends executes its SET later, and then the give-back.
 *
 * Checked: who says "busy" does so while one token is on a majority of the nodes, which then holds or is about to.
 *
 * TRIES=n  each client tries so often; who gives up after that claims nothing about others
 * DOWN  node 2 does not answer; LEFT  node 0 has a key that nobody holds
 * SLOW  a node may answer after the try has ended, when a majority has answered
 * Broken rules: FIRST_REFUSALS ("busy" as soon as a majority cannot be had any more)
 *   CAN_HAVE (as soon as one token can be on a majority, whatever the nodes say that have not answered)
 *   ONE_WORD ("busy" if node 0 says so) */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#define NODES 3
#define QUORUM 2
#ifndef TRIES
#define TRIES 2
#endif
#define LEFT_BEHIND 255
#define EACH_NODE(n) n : 0 .. NODES - 1
#define TOKEN(c) ((c) * TRIES + client_[c].try + 1)
#define TOKEN_BEFORE(c) (client_[c].phase == BUSY -> TOKEN(c) : TOKEN(c) - 1)

/* phase */
#define IDLE 0
#define TRYING 1
#define HOLDS 2
#define BUSY 3
#define GAVE_UP 4

/* vote */
#define NONE 0
#define SENT 1
#define GRANTED 2
#define REFUSED 3
#define LATE 4      /* of a try that has ended: the SET comes, */
#define LATE_DEL 5  /* and then the give-back */

typedef Client {
  byte phase;
  byte try;          /* each has a token of its own */
  byte vote[NODES];
  byte seen[NODES];  /* the token that was there */
};
Client client_[CLIENTS];
byte key[NODES];
byte i, j, granted, refused, open, most, with; bit decided; /* scratch: 0 between steps */
#define C client_[c]

#ifdef DOWN
#define ANSWERS(n) (n < 2)
#define ALL_HEARD (open == 1)
#else
#define ANSWERS(n) true
#define ALL_HEARD (open == 0)
#endif

inline send(c) {
  for (EACH_NODE(i)) { if :: C.vote[i] == NONE -> C.vote[i] = SENT :: else fi }
  i = 0; C.phase = TRYING
}

inline count(c) {
  for (EACH_NODE(i)) {
    granted = granted + (C.vote[i] == GRANTED);
    refused = refused + (C.vote[i] == REFUSED);
    with = 0;
    if
    :: C.vote[i] == REFUSED ->
         for (EACH_NODE(j)) { with = with + (C.vote[j] == REFUSED && C.seen[j] == C.seen[i]) }
         if :: with > most -> most = with :: else fi
    :: else
    fi
  }
  open = NODES - granted - refused;
  i = 0; j = 0; with = 0
}

inline forget_count() { granted = 0; refused = 0; open = 0; most = 0; decided = 0 }

inline say_busy(c) {
  C.phase = BUSY;
  for (EACH_NODE(i)) {
    with = 0;
    for (EACH_NODE(j)) { with = with + (key[j] == key[i] && key[i] != 0 && key[i] != LEFT_BEHIND) }
    decided = decided || with >= QUORUM
  }
  assert(decided);
  i = 0; j = 0; with = 0; decided = 0;
  end_try(c)
}

inline end_try(c) {
  for (EACH_NODE(i)) {
    if :: C.vote[i] == GRANTED && key[i] == TOKEN(c) -> key[i] = 0 :: else fi;
    if
    :: C.vote[i] == SENT && ANSWERS(i) -> C.vote[i] = LATE
    :: C.vote[i] == SENT && !ANSWERS(i) -> C.vote[i] = NONE
    :: C.vote[i] == GRANTED || C.vote[i] == REFUSED -> C.vote[i] = NONE
    :: else
    fi;
    C.seen[i] = 0
  }
  i = 0
}

#ifdef SLOW
#define ENOUGH (open <= 1)
#else
#define ENOUGH ALL_HEARD
#endif

#ifdef ONE_WORD
#define SAYS_BUSY(c) (C.vote[0] == REFUSED)
#else
#ifdef FIRST_REFUSALS
#define SAYS_BUSY(c) (refused > NODES - QUORUM)
#else
#ifdef CAN_HAVE
#define SAYS_BUSY(c) (granted + open < QUORUM && most + open >= QUORUM)
#else
#define SAYS_BUSY(c) (most >= QUORUM)
#endif
#endif
#endif

inline judge(c) {
  count(c);
  if
  :: granted >= QUORUM -> C.phase = HOLDS; for (EACH_NODE(i)) { C.seen[i] = 0 } i = 0
  :: granted < QUORUM && SAYS_BUSY(c) -> say_busy(c)
  :: else
  fi;
  forget_count()
}

proctype client(byte c) {
  do
  :: d_step { C.phase == IDLE -> send(c) }
  :: d_step { C.phase == TRYING ->
       count(c);
       if
       :: granted < QUORUM && ENOUGH && granted + refused >= QUORUM ->
            end_try(c);
            C.try++;
            C.phase = (C.try < TRIES -> IDLE : GAVE_UP)
       :: else
       fi;
       forget_count() }
  od
}

/* One node executes the requests of one client, in order. */
proctype link(byte c, n) {
  do
  :: d_step { C.vote[n] == SENT && ANSWERS(n) ->
       C.seen[n] = key[n];
       if :: key[n] == 0 -> key[n] = TOKEN(c); C.vote[n] = GRANTED :: else -> C.vote[n] = REFUSED fi;
       if :: C.phase == TRYING -> judge(c) :: else fi }
  :: d_step { C.vote[n] == LATE && ANSWERS(n) ->
       if :: key[n] == 0 -> key[n] = TOKEN_BEFORE(c) :: else fi;
       C.vote[n] = LATE_DEL }
  :: d_step { C.vote[n] == LATE_DEL ->
       if :: key[n] == TOKEN_BEFORE(c) -> key[n] = 0 :: else fi;
       C.vote[n] = (C.phase == TRYING -> SENT : NONE) }
  od
}

init {
  byte c, n;
  atomic {
#ifdef LEFT
    key[0] = LEFT_BEHIND;
#endif
    for (c : 0 .. CLIENTS - 1) {
      run client(c);
      for (n : 0 .. NODES - 1) { run link(c, n) }
    }
  }
}

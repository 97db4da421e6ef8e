/* Shared and exclusive holds of one resource. The key on a node is either
 *   a string, the token of an exclusive holder: the plain lock; or
 *   a set of readers, each with the end of its own lease. The set lives as long as the longest of them.
 * Clients 0 to WRITERS - 1 acquire exclusively, the others share. Everything else is as in lease.pml: any delay and
 * loss, late execution, early expiry. A reader whose lease has ended stays in the set until
 * somebody joins it or the key expires, and an extension may find it there.
 *
 * TTL_X=n     the TTL that exclusive requests ask for; others ask for TTL
 * DOWNGRADE   an exclusive holder may go on as a reader, under the same token. From the call on it shares, before it
 *             has sent anything; requests and answers of its exclusive time may still be under way
 * RESTARTS=n  so many restarts without data; HEAL  an extension puts the key back: as in lease.pml
 * AT_ONCE     a request is executed and answered at once, which leaves room for more clients
 * Broken rules: READ_QUORUM=n (readers are content with fewer nodes)
 *   TWO_KEYS (readers have a key of their own, and plain locks do not look at it)
 *   DROP_ALL (a reader that leaves deletes the key)
 *   FIRST_END (whoever joins a set does not move the end of the key)
 *   LAST_END (whoever joins a set moves the end of the key to its own)
 *   BELIEVES (a holder counts as exclusive until its downgrade is confirmed)
 *   SHORTENS (the downgrade on a node replaces what is left of the string's TTL)
 *   LOSS_NOT_FINAL NO_DRIFT GUARD=n */
#ifndef TTL
#define TTL 2
#endif
#ifndef TTL_X
#define TTL_X TTL
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#include "links.pml"
#ifndef READ_QUORUM
#define READ_QUORUM QUORUM
#endif

/* Link.request, besides those of links.pml, which are about the string */
#define JOIN 4  /* become a reader */
#define SHARE 5 /* extend as a reader: as a member of the set, or by turning the own string into a set */

typedef Node {
  byte owner;           /* whose token is the string: client + 1, or 0 */
  byte left;            /* of the string's TTL */
  byte reader[CLIENTS]; /* 0: not in the set; else 1 + what is left of its lease by the server's clock */
  byte set_left;        /* of the set's TTL */
  byte quarantine;
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
bit shares[CLIENTS];        /* what it has asked for */
bit was_exclusive[CLIENTS]; /* under this token */
bit overtaken[CLIENTS];     /* another client has won since it did what excludes it */
byte restarts;
byte i, j, k, votes, longest, writers, readers; /* scratch: 0 between steps */

#define ASKS_SHARED(c) (c >= WRITERS)
#define NEEDED(c) (shares[c] -> READ_QUORUM : QUORUM)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

inline delete_string(n) { node[n].owner = 0; node[n].left = 0 }

inline delete_set(n) {
  node[n].set_left = 0;
  for (EACH_CLIENT(j)) { node[n].reader[j] = 0 }
}

inline find_longest(n) {
  longest = 0;
  for (EACH_CLIENT(j)) { longest = MAX(node[n].reader[j], longest) }
}

/* The key lives until the end of the longest lease that is left; it is gone if all of them are over. */
inline leave_set(c, n) {
#ifdef DROP_ALL
  delete_set(n);
#else
  node[n].reader[c] = 0;
  find_longest(n);
  if :: longest <= 1 -> delete_set(n) :: else -> node[n].set_left = longest - 1 fi;
#endif
}

inline forget(c) {
  for (EACH_NODE(k)) {
    if :: node[k].owner == c + 1 -> delete_string(k) :: else fi;
    if :: node[k].reader[c] > 0 -> leave_set(c, k) :: else fi;
    give_up(c, k)
  }
  k = 0;
  phase[c] = IDLE;
  shares[c] = 0;
  was_exclusive[c] = 0;
  overtaken[c] = 0
}

inline check() {
  writers = 0; readers = 0;
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: phase[i] == HELD && votes >= NEEDED(i) -> if :: shares[i] -> readers++ :: else -> writers++ fi
#ifndef LOSS_NOT_FINAL
    :: phase[i] == HELD && votes < NEEDED(i) -> forget(i)
#endif
    :: else
    fi
  }
  assert(writers == 0 || writers + readers == 1);
  for (EACH_CLIENT(i)) {
    count(i);
    assert(!(phase[i] == HELD && votes >= NEEDED(i) && overtaken[i]))
  }
  i = 0; j = 0; votes = 0; longest = 0; writers = 0; readers = 0;
  SORT_NODES
}

inline win(c) {
  phase[c] = HELD;
  for (EACH_CLIENT(j)) {
    if :: j != c && phase[j] == HELD && !(shares[j] && shares[c]) -> overtaken[j] = 1 :: else fi
  }
}

#ifdef TWO_KEYS
#define NO_KEY(n) (node[n].owner == 0)
#else
#define NO_KEY(n) (node[n].owner == 0 && node[n].set_left == 0)
#endif
#define MAY_JOIN(c, n) (node[n].owner == 0 || node[n].owner == c + 1)
#define IS_READER(c, n) (node[n].reader[c] > 0 || node[n].owner == c + 1)

inline take(c, n) { node[n].owner = c + 1; node[n].left = TTL_X }

inline extend_string(n) { node[n].left = MAX(node[n].left, TTL_X) }

inline share(c, n) {
  if
  :: node[n].owner == c + 1 -> /* its string becomes a set */
#ifdef SHORTENS
       node[n].reader[c] = 1 + TTL;
#else
       node[n].reader[c] = 1 + MAX(node[n].left, TTL);
#endif
       delete_string(n);
       node[n].set_left = node[n].reader[c] - 1
  :: else ->
#if defined(FIRST_END)
       if
       :: node[n].set_left == 0 || node[n].reader[c] > 0 -> node[n].set_left = MAX(node[n].set_left, TTL)
       :: else
       fi;
#elif defined(LAST_END)
       if
       :: node[n].reader[c] == 0 -> node[n].set_left = TTL
       :: else -> node[n].set_left = MAX(node[n].set_left, TTL)
       fi;
#else
       node[n].set_left = MAX(node[n].set_left, TTL);
#endif
       node[n].reader[c] = MAX(node[n].reader[c], 1 + TTL)
  fi
}

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE ->
       phase[c] = TRYING; shares[c] = ASKS_SHARED(c); was_exclusive[c] = !ASKS_SHARED(c); check() }
  :: d_step { phase[c] != IDLE -> forget(c); check() } /* a release, or an attempt that is given up */
#if defined(DOWNGRADE) && !defined(BELIEVES)
  :: d_step { phase[c] == HELD && !shares[c] -> shares[c] = 1; check() }
#endif
  od
}

#ifdef BELIEVES
#define GOES_ON_SHARED(c) (phase[c] == HELD) /* a writer may have sent its downgrade */
#else
#define GOES_ON_SHARED(c) (phase[c] == HELD && shares[c])
#endif
#define SENT_SHARED(c) ((phase[c] == TRYING && shares[c]) || GOES_ON_SHARED(c))
#define SENT_EXCLUSIVE(c) (phase[c] != IDLE && was_exclusive[c])
#ifdef HEAL
#define AGAIN(allowed) (allowed)
#else
#define AGAIN(allowed) false
#endif

inline ask(c, n) {
  if
  :: phase[c] == TRYING && !shares[c] -> send(c, n, SET, TTL_X)
  :: phase[c] == TRYING && shares[c] -> send(c, n, JOIN, TTL)
  :: phase[c] == HELD && !shares[c] -> send(c, n, EXTEND, TTL_X)
  :: phase[c] == HELD && shares[c] -> send(c, n, SHARE, TTL)
  fi
}

inline execute(c, n) {
  if
  :: L.request == SET && NO_KEY(n) -> take(c, n); answer(c, n, true)
  :: L.request == JOIN && MAY_JOIN(c, n) -> share(c, n); answer(c, n, true)
  :: L.request == EXTEND && node[n].owner == c + 1 -> extend_string(n); answer(c, n, true)
  :: L.request == EXTEND && AGAIN(NO_KEY(n)) -> take(c, n); answer(c, n, true)
  :: L.request == SHARE && (IS_READER(c, n) || AGAIN(MAY_JOIN(c, n))) -> share(c, n); answer(c, n, true)
  :: else -> answer(c, n, false)
  fi
}

inline listen(c, n) {
  hear(c, n);
  count(c);
  if :: phase[c] == TRYING && votes >= NEEDED(c) -> win(c) :: else fi
}

/* Somebody who joins the set may remove a reader whose lease has ended by the server's clock. */
#define HAS_ENDED(c, n) (node[n].reader[c] > 0 && node[n].reader[c] <= 1 + DRIFT)

inline sweep(c, n) {
  node[n].reader[c] = 0;
  find_longest(n);
  if :: longest == 0 -> node[n].set_left = 0 :: else fi
}

proctype link(byte c, n) {
  do
#ifdef AT_ONCE
  :: d_step { MAY_ASK(c, n) -> ask(c, n); execute(c, n); if :: L.request == OK -> listen(c, n) :: else fi; check() }
#else
  :: d_step { MAY_ASK(c, n) -> ask(c, n); check() }
#ifdef BELIEVES
  :: d_step { GOES_ON_SHARED(c) && L.request == NONE -> send(c, n, SHARE, TTL); check() }
#endif
  :: d_step { L.request != NONE && L.request != OK -> execute(c, n); check() }
  :: d_step { L.request == OK -> listen(c, n); check() }
  :: d_step { L.request != NONE -> lose_message(c, n); check() }
  /* What was asked before under this token and is no longer waited for is executed. */
  :: d_step { SENT_EXCLUSIVE(c) && node[n].owner == c + 1 && node[n].left < TTL_X -> extend_string(n); check() }
  :: d_step { SENT_EXCLUSIVE(c) && NO_KEY(n) -> take(c, n); check() }
  :: d_step { SENT_SHARED(c) && MAY_JOIN(c, n) -> share(c, n); check() }
#endif
  :: d_step { HAS_ENDED(c, n) -> sweep(c, n); check() }
  od
}

inline lose_key(n) { delete_string(n); delete_set(n) }

proctype server(byte n) {
  do
  :: d_step { node[n].owner != 0 && node[n].left <= DRIFT -> delete_string(n); check() }
  :: d_step { node[n].set_left != 0 && node[n].set_left <= DRIFT -> delete_set(n); check() }
#if RESTARTS > 0
  :: d_step { restarts < RESTARTS -> restarts++; lose_key(n); node[n].quarantine = GUARD; check() }
  :: d_step { node[n].quarantine != 0 && node[n].quarantine <= DRIFT -> node[n].quarantine = 0; check() }
#endif
  od
}

proctype clock() {
  do
  :: d_step { true ->
       for (EACH_NODE(i)) {
         if :: node[i].left > 0 -> node[i].left--; if :: node[i].left == 0 -> node[i].owner = 0 :: else fi :: else fi;
         for (EACH_CLIENT(k)) {
           if :: node[i].reader[k] > 1 -> node[i].reader[k]-- :: else fi;
           age(node[i].to[k])
         }
         if
         :: node[i].set_left > 0 -> node[i].set_left--; if :: node[i].set_left == 0 -> delete_set(i) :: else fi
         :: else
         fi;
         if :: node[i].quarantine > 0 -> node[i].quarantine-- :: else fi
       }
       k = 0;
       check() }
  od
}

init { start() }

/* Tokens: what late requests and replies of one attempt can do to the next.
 *
 * Each client makes any number of attempts, each with a new token. A request of an attempt that is over may be executed
 * at any time and any number of times: all tokens that are not in use any more count as one, OLD.
 *
 * There is no time here. lease.pml shows that a key does not expire while its client counts the node, or would count it
 * by the answer that is under way. A client may stop counting at any moment, and any other key may expire.
 *
 * Broken rules: QUORUM=n BLIND_DELETE TOKEN_REUSED LATE_REPLY_COUNTS RELEASE_HESITATES */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#define OLD (CLIENTS + 1)

#ifdef TOKEN_REUSED
#define LEFT_BY(c) ((c) + 1) /* the token of an earlier attempt */
#else
#define LEFT_BY(c) OLD
#endif

/* phase */
#define IDLE 0
#define TRYING 1
#define HELD 2
#define RELEASING 3

/* Link.vote */
#define NONE 0
#define OK 1 /* the answer to the SET is under way */
#define COUNTED 2

typedef Link { byte vote };
typedef Node {
  byte owner; /* client + 1: its token of now; OLD; or 0 */
  Link to[CLIENTS];
};
#include "nodes.pml"

byte phase[CLIENTS];
bit before[CLIENTS]; /* it has made an attempt before */
byte i, j, votes, holders; /* scratch: 0 between steps */

inline count(c) {
  votes = 0;
  for (EACH_NODE(j)) { votes = votes + (node[j].to[c].vote == COUNTED) }
}

inline finish(c) {
  phase[c] = IDLE;
  before[c] = 1;
  for (EACH_NODE(j)) {
    node[j].to[c].vote = NONE;
    if :: node[j].owner == c + 1 -> node[j].owner = LEFT_BY(c) :: else fi
  }
}

inline check() {
  for (EACH_CLIENT(i)) {
    count(i);
    if
    :: phase[i] >= HELD && votes >= QUORUM -> holders++
    :: phase[i] >= HELD && votes < QUORUM -> finish(i)
    :: else
    fi
  }
  assert(holders <= 1);
  i = 0; j = 0; votes = 0; holders = 0;
  SORT_NODES
}

proctype client(byte c) {
  do
  :: d_step { phase[c] == IDLE -> phase[c] = TRYING; check() }
  :: d_step { phase[c] == TRYING -> finish(c); check() }
#ifdef RELEASE_HESITATES
  :: d_step { phase[c] == HELD -> phase[c] = RELEASING; check() }
  :: d_step { phase[c] == RELEASING -> finish(c); check() }
#else
  :: d_step { phase[c] == HELD -> finish(c); check() }
#endif
  od
}

#define L node[n].to[c]

/* What is executed on node n for client c, and what the client hears of it. */
proctype requests(byte c, n) {
  do
  :: d_step { phase[c] != IDLE && node[n].owner == 0 -> node[n].owner = c + 1; check() } /* nobody hears of it */
  :: d_step { phase[c] != IDLE && node[n].owner == 0 && L.vote == NONE -> node[n].owner = c + 1; L.vote = OK; check() }
  :: d_step { L.vote == OK ->
       L.vote = COUNTED;
       count(c);
       if :: phase[c] == TRYING && votes >= QUORUM -> phase[c] = HELD :: else fi;
       check() }
  :: d_step { L.vote != NONE -> L.vote = NONE; check() }
  /* of earlier attempts */
  :: d_step { before[c] && node[n].owner == 0 -> node[n].owner = LEFT_BY(c); check() }
#ifdef BLIND_DELETE
  :: d_step { before[c] && node[n].owner != 0 -> node[n].owner = 0; check() }
#else
  :: d_step { before[c] && node[n].owner == LEFT_BY(c) -> node[n].owner = 0; check() }
#endif
#ifdef LATE_REPLY_COUNTS
  :: d_step { before[c] && phase[c] == TRYING && L.vote == NONE -> L.vote = OK; check() }
#endif
#ifdef RELEASE_HESITATES
  :: d_step { phase[c] == RELEASING && node[n].owner == c + 1 -> node[n].owner = 0; check() }
#endif
  od
}

proctype server(byte n) {
  do
  :: d_step { node[n].owner == OLD -> node[n].owner = 0; check() }
  :: d_step { node[n].owner != 0 && node[n].owner != OLD && node[n].to[node[n].owner - 1].vote == NONE ->
       node[n].owner = 0; check() }
  od
}

init {
  byte c, n;
  atomic {
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run requests(c, n) }
    }
    for (EACH_NODE(n)) { run server(n) }
  }
}

/* Included by the models in which requests take time, before their `Node`: what a client knows of a node, and for how
 * long. The lease of each node is counted from before the request was sent (lease.pml). */
#include "sizes.pml"
#ifndef TTL
#define TTL 3
#endif
#ifndef DRIFT
#define DRIFT 1
#endif
#ifndef GUARD
#define GUARD TTL
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif

#ifdef NO_DRIFT
#define LEASE_OF(ttl) (ttl)
#else
#define LEASE_OF(ttl) ((ttl) - DRIFT)
#endif

/* Link.request: under way, or its answer is */
#define NONE 0
#define SET 1
#define EXTEND 2
#define OK 3 /* executed; the answer is under way */

/* phase */
#define IDLE 0
#define TRYING 1
#define HELD 2

typedef Link {
  byte request;
  byte worth;  /* how long an OK to this request would count if it arrived now */
  byte counts; /* e_n: how long the client still counts this node */
};

#define L node[n].to[c]

inline count(c) {
  votes = 0;
  for (EACH_NODE(j)) { votes = votes + (node[j].to[c].counts > 0) }
}

#define MAY_ASK(c, n) (L.request == NONE && (phase[c] == HELD || (phase[c] == TRYING && L.counts == 0)))

inline send(c, n, what, ttl) { L.request = what; L.worth = LEASE_OF(ttl) }

inline answer(c, n, yes) {
  if :: (yes) && node[n].quarantine == 0 -> L.request = OK
     :: else -> L.request = NONE; L.worth = 0 fi
}

/* The answer, an OK, arrives. */
inline hear(c, n) {
  if :: L.worth > L.counts -> L.counts = L.worth :: else fi;
  L.request = NONE;
  L.worth = 0
}

inline give_up(c, n) { L.request = NONE; L.worth = 0; L.counts = 0 }

inline lose_message(c, n) { L.request = NONE; L.worth = 0 }

inline age(l) {
#ifndef CLOCK_AT_REPLY
  if :: l.worth > 0 -> l.worth--; if :: l.worth == 0 -> l.request = NONE :: else fi :: else fi;
#endif
  if :: l.counts > 0 -> l.counts-- :: else fi
}

inline start() {
  byte c, n;
  atomic {
    for (EACH_CLIENT(c)) {
      run client(c);
      for (EACH_NODE(n)) { run link(c, n) }
    }
    for (EACH_NODE(n)) { run server(n) }
    run clock()
  }
}

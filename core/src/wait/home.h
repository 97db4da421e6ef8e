/* Which node has the queue of a resource. */
#ifndef RLK_HOME_H
#define RLK_HOME_H

#include "wait.h"

#define RLK_LATE_NS                                                                                                    \
  (300 * RLK_NS_PER_MS) /* a home node is given up after this: moving costs all waiters their places */
/* The node that all contenders for the resource of that key have in common, among those that can be asked and have no
 * reply outstanding for longer than late_ns or than usual; -1 if there is none. */
int rlk_home_node(const redlock_lock *lock, struct rlk_key *key, int64_t late_ns, int64_t now_ns);
/* Another one than home, for those to whom it is home: the first that can be asked, late or not. */
int rlk_home_second(const redlock_lock *lock, const struct rlk_key *key, int home, int64_t now_ns);
/* Whether the node precedes home in the order of the resource. */
int rlk_home_is_above(const redlock_lock *lock, int node, int home);
int rlk_home_has_majority(const redlock_lock *lock, int64_t now_ns); /* ... of such nodes */

#endif

/* The commands of the queue, which the home node has: a waiter's place in it (rule F). Each function queues one: 0, or
 * -1 when memory is out. */
#ifndef RLK_PLACE_H
#define RLK_PLACE_H

#include "../node/out.h"
#include "lock.h"

/* The keys of the slots of a resource behind the first, which is its own. */
void rlk_put_slots(struct rlk_out *out, const struct rlk_key *key, int count);
size_t rlk_slots_room(const struct rlk_net *net, const struct rlk_key *key, int count);
/* When a waiter will ask again: later the more waiters stand before it. */
struct rlk_promise {
  int64_t first_us, step_us, steps_max_us;
};

#define RLK_STEP_NS (200 * RLK_NS_PER_MS)      /* waiters ask again less often the more waiters stand before them, */
#define RLK_STEP_MAX_NS (4000 * RLK_NS_PER_MS) /* but at least this often, */
#define RLK_POLL_MAX_NS (1000 * RLK_NS_PER_MS) /* or this often without push */
#define RLK_WOKEN_NS (150 * RLK_NS_PER_MS)     /* a woken waiter has so long to ask */
#define RLK_ASK_NS (100 * RLK_NS_PER_MS)       /* the next in turn asks this often, beside the push */
struct rlk_promise rlk_promise_of(const redlock_lock *lock, const struct rlk_node *home);

/* What is asked of a queue: the row of the answer, the resource, and for how long a lock of several lets others pass.
 */
struct rlk_place_wish {
  const struct rlk_ask *row;
  int part;
  int64_t open_ns;
};

/* Takes the place of the lock there, or keeps it. */
int rlk_ask_place(struct rlk_node *node, redlock_lock *lock, const struct rlk_place_wish *wish, int64_t now_ns);
int rlk_ask_leave(struct rlk_node *node, const redlock_lock *lock, int part);
/* Whether anybody has one. */
int rlk_ask_is_queued(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* The rest of a release: takes the place of a claim out of the queue and wakes the first waiter; of several resources
 * in the queues of those whose home the node is. */
int rlk_ask_let_in(struct rlk_node *node, struct rlk_claim *claim, int64_t now_ns);
/* A release that does the same. */
int rlk_put_hand_over(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim);

#endif

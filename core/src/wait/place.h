/* The place of a lock in queues: the commands for it, and the place by which it is found when it is woken (rule F).
 * Each function that asks queues one command: 0, or -1 when memory is out. */
#ifndef RLK_PLACE_H
#define RLK_PLACE_H

#include "../node/out.h"
#include "wait.h"

#define RLK_STEP_NS (200 * RLK_NS_PER_MS)      /* waiters ask again less often the more waiters stand before them, */
#define RLK_STEP_MAX_NS (4000 * RLK_NS_PER_MS) /* but at least this often, */
#define RLK_POLL_MAX_NS (1000 * RLK_NS_PER_MS) /* or this often without push */
#define RLK_WOKEN_NS (150 * RLK_NS_PER_MS)     /* a woken waiter has so long to ask */
#define RLK_ASK_NS (100 * RLK_NS_PER_MS)       /* the next in turn asks this often, beside the push */
#define RLK_ASK_MIN_NS (5 * RLK_NS_PER_MS)

/* Its rows are in answers.c, with the functions that get the replies. */
extern const struct rlk_ask rlk_row_hint, rlk_row_queued, rlk_row_place, rlk_row_spare_place, rlk_row_place_of_several,
    rlk_row_part, rlk_row_hand_over;

/* Whether anybody has one there, of several resources in the queues of those whose home the node is, or may be. */
int rlk_ask_is_queued(struct rlk_node *node, redlock_lock *lock, int64_t now_ns);
/* The rest of a release: takes the place of a claim out of the queue and wakes the first waiter; of several resources
 * in the queues of those whose home the node is. */
int rlk_ask_let_in(struct rlk_node *node, struct rlk_claim *claim, int64_t now_ns);
/* The same, as far as the claim hands over there. */
void rlk_leave_behind(struct rlk_node *node, struct rlk_claim *claim, int64_t now_ns);
/* Whether a release there leaves the queue, too, and wakes the first waiter: the node may have the queue. */
static inline int rlk_hands_over(const struct rlk_claim *claim, const struct rlk_node *node, int64_t now_ns)
{
  return (claim->queues >> node->index & 1) && now_ns >= rlk_peer_of(node)->queue_again_ns;
}
/* A release that does both. */
int rlk_put_hand_over(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim);

void rlk_rank_note(struct rlk_rank *rank, int64_t before, int64_t now_ns);
/* When the lock asks that queue again, if no push wakes it. */
int64_t rlk_rank_pause_ns(const redlock_lock *lock, const struct rlk_rank *rank, int node, int64_t now_ns);

/* A place of its own for the lock, on no node yet. */
void rlk_place_take(redlock_lock *lock);
/* It has that place. */
void rlk_place_show(redlock_lock *lock, struct rlk_place place);
/* No wake-up concerns it from now on. */
void rlk_place_hide(redlock_lock *lock);
/* The number in the name of a place, of which the last bit says whether it listens; 0: it is of another client. */
uint64_t rlk_place_number(const struct rlk_engine *engine, const char *text);
/* The lock that has the place; NULL: it was given back. */
redlock_lock *rlk_place_named(struct rlk_engine *engine, uint64_t number);
/* Notes in a set of nodes whether that one belongs to it. */
void rlk_place_mark(uint64_t *nodes, int node, int is_one);
/* Takes it there, or keeps it; of several resources in the queue of that one. */
int rlk_place_ask_at(redlock_lock *lock, int node, const struct rlk_ask *row, int part, int64_t now_ns);
/* Remembers the place, which is being given back, perhaps in vain. */
const struct rlk_left *rlk_place_note_left(const redlock_lock *lock, int part);
/* Gives it back there; of several resources in the queue of that one. */
void rlk_place_leave(const redlock_lock *lock, int node, int part);
/* A node has woken a place with that number, which nobody has any more: gives it back there once more. */
void rlk_place_leave_again(struct rlk_engine *engine, int node, uint64_t number, int64_t now_ns);
/* Until then nothing is asked, unless the lock is woken. */
enum rlk_turn rlk_sleep_until(redlock_lock *lock, int64_t at_ns);

#endif

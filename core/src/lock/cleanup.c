#include "cleanup.h"

#include "../base/mutant.h"
#include "asking.h"
#include "lock.h"
#include "round.h"

#define FULL_PAUSE_NS (10 * RLK_NS_PER_MS) /* for a connection with as many requests in flight as there may be */

/* Deletes go on the connection that the SET went on, behind it (rule A.4.2). */
static int can_delete_now(const struct rlk_node *n, int flags)
{
  return n->state == RLK_NODE_READY || (n->state == RLK_NODE_SETUP && (flags & RLK_SET_IN_FLIGHT));
}

/* Its keys end with their TTL. A delete in flight is still answered. */
static void forget_oldest(struct rlk_engine *e)
{
  struct rlk_claim *claim = e->owed;
  if (claim->until_ns > e->forgotten_until_ns)
    e->forgotten_until_ns = claim->until_ns;
  for (int i = 0; i < e->net.node_count; i++)
    if (rlk_claim_is_owed_at(claim, i))
      rlk_claim_cleared(e, claim, i);
  rlk_claim_settle(e, claim);
}

static int is_payable(const struct rlk_claim *claim, int node, int64_t now)
{
  int is_given_up = claim->given_up || RLK_MUTANT(DELETE_OF_HELD);
  return is_given_up && rlk_claim_is_owed_at(claim, node) && !(claim->node[node].flags & RLK_SET_IN_FLIGHT) &&
         claim->until_ns > now;
}

void rlk_claim_give_up(struct rlk_engine *e, struct rlk_claim *claim, uint32_t round, int64_t now)
{
  int first = claim->hands_over > 0 ? claim->hands_over : 0;
  int strict = claim->lock && RLK_INT(&claim->lock->options, STRICT_RELEASE);
  if (claim->is_detached)
    return;
  if (!claim->given_up && claim->holders > 0)
    e->pending_deletes++;
  claim->given_up = 1;
  for (int k = 0; k < e->net.node_count; k++) {
    int i = (first + k) % e->net.node_count; /* the node asked first is written last: others should find all released */
    struct rlk_node *n = &e->net.nodes[i];
    rlk_ask_not(n, claim);
    int flags = claim->node[i].flags;
    int stands = claim->hands_over != -1 && (claim->hands_over == i || (claim->place.at >> i & 1));
    int wanted = (flags & RLK_MAY_HOLD) || stands || (strict && (flags & RLK_ANSWERED_BUSY));
    claim->node[i].counts_until_ns = 0;
    if (wanted && !(flags & RLK_DELETE_IN_FLIGHT) && can_delete_now(n, flags) &&
        rlk_ask_delete(n, claim, round, now) != 0)
      rlk_node_retry_deletes(n, FULL_PAUSE_NS, now);
  }
  rlk_claim_note_debt(e, claim);
  if (e->owed_count > RLK_OWED_MAX)
    forget_oldest(e);
}

void rlk_lock_give_up(redlock_lock *lock, int64_t now)
{
  if (lock->claim && !lock->claim->given_up)
    rlk_claim_give_up(lock->engine, lock->claim, 0, now);
}

/* A release that still waits for the node gets this answer: a second delete would find nothing, as if it were lost. The
 * answer of a replica, or of another node that is refused, says nothing about the lock. */
static int pay(struct rlk_node *n, struct rlk_claim *claim, int64_t now)
{
  redlock_lock *lock = claim->lock;
  int is_released = n->state == RLK_NODE_READY && lock && lock->claim == claim && lock->op.kind == REDLOCK_RELEASE &&
                    lock->op.status == REDLOCK_PENDING;
  if (rlk_ask_delete(n, claim, is_released ? lock->round.number : 0, now) != 0)
    return -1;
  if (is_released && rlk_round_awaits(lock, n->index))
    lock->votes[n->index] = RLK_ASKED;
  return 0;
}

void rlk_claims_pay(struct rlk_engine *e, struct rlk_node *n, int64_t now)
{
  struct rlk_claim *next;
  for (struct rlk_claim *claim = RLK_MUTANT(DELETE_OF_HELD) ? e->claims : e->owed; claim; claim = next) {
    next = RLK_MUTANT(DELETE_OF_HELD) ? claim->next : claim->owed.next;
    if (!is_payable(claim, n->index, now))
      continue;
    if (pay(n, claim, now) != 0) {
      rlk_node_retry_deletes(n, FULL_PAUSE_NS, now);
      return;
    }
    rlk_claim_note_debt(e, claim);
  }
}

int rlk_claims_are_owed(const struct rlk_engine *e, int node)
{
  for (const struct rlk_claim *claim = e->owed; claim; claim = claim->owed.next)
    if (claim->given_up && rlk_claim_is_owed_at(claim, node))
      return 1;
  return 0;
}

void rlk_claims_expire(struct rlk_engine *e, int64_t now)
{
  struct rlk_claim *next;
  e->expired_ns = now;
  for (struct rlk_claim *claim = e->owed; claim; claim = next) {
    next = claim->owed.next;
    if (claim->until_ns > now)
      continue;
    rlk_claim_forget(e, claim);
    rlk_claim_settle(e, claim);
  }
}

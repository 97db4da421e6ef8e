/* Permits: at most K hold a resource (rule G.4). There are K slots, each with a key that is taken as a plain lock is;
 * slot 0 has the key of the resource. The home node picks a free one, and the others are asked for that. */

#include "../base/mutant.h"
#include "../lock/asking.h"
#include "../lock/dispatch.h"
#include "../lock/holder.h"
#include "../lock/round.h"
#include "../lock/vote.h"
#include "../wait/home.h"
#include "../wait/place.h"
#include "kinds.h"

/* ---- what the servers run ---- */

/* clang-format off */

/* Takes the first free of ARGV[4] slots from ARGV[3] on: 1 and its number, or 0. The token of a permit ends with the
 * number of permits: 2 and that number if a slot is held by one of another number. */
#define PICK_TEXT \
  "local n=#KEYS\n" \
  "local held=redis.call('MGET',unpack(KEYS))\n" \
  "for _,v in ipairs(held) do\n" \
  "  local k=v and #v==40 and v:match('^%x+p(%x%x)$')\n" \
  "  if k and tonumber(k,16)+1~=n then return {2,tonumber(k,16)+1} end\n" \
  "end\n" \
  "for j=0,ARGV[4]-1 do\n" \
  "  local i=(ARGV[3]+j)%n\n" \
  "  if not held[i+1] and redis.call('SET',KEYS[i+1],ARGV[1],'NX','PX',ARGV[2]) then return {1,i} end\n" \
  "end\n" \
  "return {0}"

static const struct rlk_script
  script_pick = {.text = PICK_TEXT, .hash = "043834558e8f68ebe89bca8af3af50e561022e3a", .bit = RLK_SCRIPT_PICK};

/* clang-format on */

/* ---- the requests ---- */

static size_t room_of(const struct rlk_line *l, const struct rlk_claim *claim)
{
  return claim->key->bulk_size + claim->token_size + 128 + rlk_slots_room(l->node->net, claim->key, claim->slots.count);
}

static int put_pick(struct rlk_out *out, struct rlk_line *l, const struct rlk_claim *claim,
                    const struct rlk_number *ttl, int64_t start)
{
  const struct rlk_key *key = claim->key;
  int chosen = claim->slots.chosen;
  if (rlk_out_script(out, l, &script_pick, claim->slots.count, 4, room_of(l, claim)) != 0)
    return -1;
  rlk_bulk_name(&l->out, RLK_STRING(l->node->net, KEY_PREFIX), "", rlk_key_resource(key), key->resource_size);
  rlk_put_slots(out, key, claim->slots.count);
  rlk_put_token(out, claim);
  rlk_out_bytes(out, ttl->bulk, ttl->size);
  rlk_out_number(out, chosen ? chosen - 1 : start % claim->slots.count);
  rlk_out_number(out, chosen ? 1 : claim->slots.count);
  return 0;
}

/* A slot that the client has chosen, too, is picked, since no node has looked at the others. */
static int put_take(struct rlk_out *out, struct rlk_line *l, const struct rlk_claim *claim,
                    const struct rlk_number *ttl, int64_t proposal)
{
  return claim->slots.is_picked ? rlk_mutex.put_take(out, l, claim, ttl, 0) : put_pick(out, l, claim, ttl, proposal);
}

/* Of a pick without an answer it is not known which slot it took. */
static const struct rlk_ask *put_give(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t now)
{
  (void)now;
  if (claim->slots.chosen || RLK_MUTANT(PICK_FORGOTTEN))
    return rlk_put_release(out, l, claim) == 0 ? &rlk_row_delete : NULL;
  if (rlk_out_script(out, l, &rlk_script_drop, claim->slots.count, 2, room_of(l, claim)) != 0)
    return NULL;
  rlk_out_bytes(out, claim->key->bulk, claim->key->bulk_size);
  rlk_put_slots(out, claim->key, claim->slots.count);
  rlk_put_token(out, claim);
  rlk_out_bulk(out, &claim->kind->form, 1);
  return &rlk_row_drop;
}

/* ---- the answers ---- */

/* To a pick. One of a slot is no answer to a claim that is on another. */
static uint8_t read_take(const struct rlk_request *r, const struct rlk_reply *reply)
{
  const struct rlk_slots *slots = &r->claim->slots;
  if (!rlk_reply_is_pair(reply))
    return RLK_MISFIT;
  if (reply->integers[0] == 2 && reply->integers[1] > 0 && reply->integers[1] <= RLK_PERMITS_MAX)
    return RLK_REFUSED;
  if (reply->integers[0] != 1 || reply->integers[1] < 0 || reply->integers[1] >= slots->count)
    return RLK_MISFIT;
  if (slots->chosen && slots->chosen != reply->integers[1] + 1 && !RLK_MUTANT(VOTES_OF_ANY_SLOT))
    return RLK_MISFIT;
  return RLK_GRANTED;
}

/* Others take another number of permits: neither number would be kept. */
static void disagree(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim *claim = out->request.claim;
  char words[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  claim->slots.rivals = (int)out->reply->integers[1];
  rlk_text_format(&text, "permits is %d; others that use the resource have %d", claim->slots.count,
                  claim->slots.rivals);
  claim->node[n->index].flags &= (uint8_t)~RLK_SET_IN_FLIGHT;
  if (!(claim->node[n->index].flags & RLK_SET_LOST))
    rlk_claim_cleared(rlk_engine_of(n->net), claim, n->index);
  out->error = words;
  rlk_vote_note_error(n, out);
  rlk_vote_set(n, &out->request, RLK_REFUSED, out->now_ns);
}

/* The next attempt begins behind the slot that this one tries. If home offers one in vain again, it has the others
 * held, perhaps by the dead and alone: then that attempt begins where this one did, and at all nodes. */
static void note_slot(redlock_lock *lock, const struct rlk_slots *slots)
{
  lock->attempt.is_offered_again = slots->is_picked && slots->chosen == lock->attempt.offered;
  if (slots->is_picked)
    lock->attempt.offered = slots->chosen;
  if (!lock->attempt.is_offered_again)
    lock->attempt.proposal = slots->chosen;
}

static void take_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim *claim = out->request.claim;
  int is_pick = out->fault == RLK_FAULT_NONE && out->reply->type == RLK_REPLY_ARRAY && !claim->given_up;
  if (out->fault == RLK_FAULT_NONE && out->vote == RLK_REFUSED) {
    disagree(n, out);
    return;
  }
  if (is_pick && out->vote == RLK_GRANTED && !claim->slots.chosen) {
    if (rlk_claim_choose(claim, RLK_STRING(n->net, KEY_PREFIX), (int)out->reply->integers[1]) != 0) {
      out->fault = RLK_FAULT_LOST; /* memory is out */
      out->vote = RLK_DROPPED;
    }
    claim->slots.is_picked = claim->slots.chosen != 0;
  }
  if (is_pick && claim->slots.chosen && claim->lock)
    note_slot(claim->lock, &claim->slots);
  if (is_pick && out->vote == RLK_BUSY && !claim->slots.chosen && claim->lock)
    claim->lock->attempt.full |= UINT64_C(1) << n->index;
  rlk_take_arrived(n, out);
}

const struct rlk_ask rlk_row_permit = {"SET",
                                       .role = RLK_ASK_TAKE,
                                       .is_vote = 1,
                                       .ok = RLK_GRANTED,
                                       .nil = RLK_BUSY,
                                       .zero = RLK_BUSY,
                                       .read = read_take,
                                       .wrong_type = RLK_BUSY,
                                       .again = rlk_take_again,
                                       .arrived = take_arrived};

/* ---- attempts ---- */

/* Without a wait a home that has none free is not taken at its word: the next node is asked. */
static int next_home(const redlock_lock *lock, int home, int64_t now)
{
  int nodes = lock->engine->net.node_count;
  for (int i = 0; i < nodes && home >= 0; i++, home = (home + 1) % nodes) {
    struct rlk_node *n = &lock->engine->net.nodes[home];
    int can_ask = rlk_node_can_ask(n, rlk_node_patience_ns(n, &lock->op.asked), now) == RLK_ASKED;
    if (!(lock->attempt.full >> home & 1) && can_ask && rlk_round_guard(lock, n, now) == RLK_ASKED)
      return home;
  }
  return -1;
}

/* The home node picks a slot, or the next one if home stores no keys. Where it was silent, or hides that others are
 * free, or may do so, the client chooses one itself and asks all. */
static int home_of(const redlock_lock *lock, int64_t now)
{
  int home, may_hide = lock->attempt.is_offered_again || rlk_round_is_overdue(lock, now);
  if (lock->attempt.count > 1 && (rlk_is_outage(lock->attempt.verdict) || may_hide))
    return -1;
  home = rlk_home_node(lock, lock->key, 0, now);
  if (home >= 0 && lock->engine->net.nodes[home].refused_set_ns)
    home = rlk_home_second(lock, lock->key, home, now);
  home = rlk_is_single(lock) ? next_home(lock, home, now) : home;
  return home >= 0 && lock->op.asked.ttl_ms <= lock->engine->net.nodes[home].voter->ttl_limit_ms ? home : -1;
}

static int64_t propose(redlock_lock *lock, int64_t now)
{
  const char *prefix = RLK_STRING(&lock->engine->net, KEY_PREFIX);
  struct rlk_slots *slots = &lock->claim->slots;
  int64_t slot = RLK_INT(&lock->options, SLOT), start = lock->attempt.proposal;
  slots->count = rlk_lock_slots(lock);
  rlk_claim_mark(lock->claim);
  if (slot >= 0)
    return rlk_claim_choose(lock->claim, prefix, (int)slot);
  if (lock->attempt.count == 1) {
    lock->attempt.offered = 0;
    lock->attempt.full = 0;
    lock->attempt.asked_of_all = start = (int64_t)(rlk_random(&lock->engine->net) % RLK_PERMITS_MAX);
  } else if (rlk_round_is_overdue(lock, now)) {
    start = ++lock->attempt.asked_of_all; /* one after the other, since home may have all of them held */
  }
  lock->attempt.home = RLK_MUTANT(VOTES_OF_ANY_SLOT) ? -1 : home_of(lock, now);
  lock->attempt.is_offered_again = 0;
  if (lock->attempt.home < 0 && !RLK_MUTANT(VOTES_OF_ANY_SLOT))
    return rlk_claim_choose(lock->claim, prefix, (int)(start % slots->count)) == 0 ? start + 1 : -1;
  return start;
}

static int judge(const redlock_lock *lock)
{
  if (lock->claim->slots.rivals)
    return REDLOCK_REFUSED_CONFIG;
  if (lock->op.phase != RLK_ASKING_HOME)
    return lock->attempt.verdict;
  return lock->votes[lock->attempt.home] == RLK_BUSY ? REDLOCK_BUSY : REDLOCK_NO_QUORUM;
}

/* A majority has no free slot, or one token in that which is wanted. */
static int is_taken(const redlock_lock *lock)
{
  int full = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    full += (int)(lock->attempt.full >> i & 1);
  return RLK_INT(&lock->options, SLOT) >= 0 ? rlk_holder_is_seen(lock) : full >= lock->engine->quorum;
}

static int settle(redlock_lock *lock, int granted, int64_t until_ns, int64_t now)
{
  (void)granted;
  (void)until_ns;
  (void)now;
  lock->hold.slot = lock->claim->slots.chosen;
  lock->claim->slots.is_picked = 1; /* it is healed as a plain lock is */
  return 1;
}

/* ---- what is refused ---- */

#define PERMITS RLK_NAMED("permits")
#define SLOTS_SIZE_MAX ((size_t)512 << 20)

/* A client that gives all of its locks fencing numbers gives these none: 0 is what a store refuses. */
static int check(const redlock_lock *lock, struct rlk_text *why)
{
  long long permits = (long long)RLK_INT(&lock->options, PERMITS), slot = (long long)RLK_INT(&lock->options, SLOT);
  if (slot >= permits)
    rlk_text_format(why, RLK_NAMED("slot") " is %lld; allowed for " PERMITS " %lld: 0 to %lld, or -1 for any", slot,
                    permits, permits - 1);
  else if (RLK_INT(&lock->options, SHARED))
    rlk_text_format(why, PERMITS " is %lld; allowed for a lock that is " RLK_NAMED("shared") ": 1", permits);
  else if (RLK_INT(&lock->options, LAYOUT) == RLK_LAYOUT_HASH)
    rlk_text_format(why, PERMITS " is %lld; allowed for a lock whose " RLK_NAMED("layout") " is hash: 1", permits);
  else if (lock->key->count > 1)
    rlk_text_format(why, PERMITS " is %lld; allowed for a lock on several resources: 1", permits);
  else if (lock->key->all_size > SLOTS_SIZE_MAX / (size_t)permits) /* the keys of all travel in one request */
    rlk_text_format(why, PERMITS " is %lld; allowed for a resource of %zu bytes: 1 to %zu", permits,
                    lock->key->resource_size, SLOTS_SIZE_MAX / lock->key->all_size);
  else if (lock->is_fenced && RLK_INT(&lock->options, FENCE))
    rlk_text_format(why,
                    RLK_NAMED("fence") " is true; allowed for " PERMITS " %lld: false, since none has a fencing number",
                    permits);
  else
    return REDLOCK_OK;
  return REDLOCK_INVALID;
}

/* A handle that removes goes for all slots, unless it is of one. */
static int pin(const redlock_lock *lock, struct rlk_claim *claim, int of_all, struct rlk_text *why)
{
  int64_t slot = RLK_INT(&lock->options, SLOT);
  if (check(lock, why) != REDLOCK_OK)
    return REDLOCK_INVALID;
  claim->slots.count = rlk_lock_slots(lock);
  if (slot < 0 && !of_all) {
    rlk_text_format(why, RLK_NAMED("slot") " is -1; allowed here for " PERMITS " %d: 0 to %d, the permit that is meant",
                    claim->slots.count, claim->slots.count - 1);
    return REDLOCK_INVALID;
  }
  return slot < 0 || rlk_claim_choose(claim, RLK_STRING(&lock->engine->net, KEY_PREFIX), (int)slot) == 0
             ? REDLOCK_OK
             : REDLOCK_NO_MEMORY;
}

/* ---- the kind ---- */

const struct rlk_kind rlk_permits = {.name = "permits",
                                     .form = 'x',
                                     .many = 1,
                                     .alone = "one of several permits",
                                     .leave = rlk_leave_behind,
                                     .tells_end = 1, /* that of one slot says little */
                                     .take = &rlk_row_permit,
                                     .keep = &rlk_row_extend,
                                     .cut = &rlk_row_expire,
                                     .put_take = put_take,
                                     .put_keep = rlk_put_extend,
                                     .put_cut = rlk_put_expire,
                                     .put_give = put_give,
                                     .check = check,
                                     .pin = pin,
                                     .propose = propose,
                                     .judge = judge,
                                     .is_taken = is_taken,
                                     .settle = settle};

/* A lock with a fencing number (rules D.1 to D.3): each node draws one with the SET, the largest is the number of the
 * lock, and it is won when a majority stores that. */
#include <stdlib.h>
#include <string.h>

#include "../base/mutant.h"
#include "../lock/asking.h"
#include "../lock/dispatch.h"
#include "../lock/lease.h"
#include "../lock/round.h"
#include "../lock/vote.h"
#include "kinds.h"

#define AHEAD_US 10000
#define TRUSTED_US INT64_C(86400000000) /* no clock that is right is so far ahead */
#define LARGEST INT64_C(9007199254740990)
#define NEAR 1000 /* failed attempts draw numbers too: those of two nodes differ by some */

/* ---- the scripts ---- */

/* clang-format off */

/* The key of a number outlives it: else a smaller one could follow. */
#define FENCE_LIFE(number) "string.format('%.0f',86400000+math.max(0,math.floor((" number "-now)/1000)))"

/* A SET that also draws the next fencing number of the resource (rule D.1). The client proposes a number from its
 * clock, so that all nodes have the same; the server's clock bounds it, and is the minimum if the previous number
 * was lost. A server without a number whose clock is far ahead of the proposal draws none but returns its clock,
 * unless the proposal is a number already. A token that is already there keeps its number. */
#define FENCE_TEXT \
  "local f=redis.pcall('GET',KEYS[2])\n" \
  "if type(f)=='table' and f.err and not f.err:find('WRONGTYPE',1,true) then return f end\n" \
  "local n=tonumber(f or '0')\n" \
  "if not n or n<0 or n%1~=0 or n>9007199254740990 then\n" \
  "  return redis.error_reply('ERR the key '..KEYS[2]..' is not a fencing number')\n" \
  "end\n" \
  "if not redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then\n" \
  "  if redis.pcall('GET',KEYS[1])~=ARGV[1] then return {0,0} end\n" \
  "  if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n" \
  "  if n>0 then return {1,n} end\n" \
  "end\n" \
  "local t=redis.call('TIME')\n" \
  "local now=t[1]*1000000+t[2]\n" \
  "local p=tonumber(ARGV[3])\n" \
  "if n==0 and ARGV[4]=='' then\n" \
  "  if now>p+1000000 then return {2,now} end\n" \
  "  n=now-1\n" \
  "end\n" \
  "local v=math.max(n+1,math.min(p,now+1000000))\n" \
  "redis.call('SET',KEYS[2],string.format('%.0f',v),'PX'," FENCE_LIFE("v") ")\n" \
  "return {1,v}"

/* Raises the number, while the token is there. */
#define RAISE_TEXT \
  "if redis.pcall('GET',KEYS[1])~=ARGV[1] then return 0 end\n" \
  "local n=tonumber(redis.call('GET',KEYS[2]) or '0')\n" \
  "if n<tonumber(ARGV[2]) then\n" \
  "  local t=redis.call('TIME')\n" \
  "  local now=t[1]*1000000+t[2]\n" \
  "  redis.call('SET',KEYS[2],ARGV[2],'PX'," FENCE_LIFE("ARGV[2]") ")\n" \
  "end\n" \
  "return 1"

static const struct rlk_script
  script_take = {.text = FENCE_TEXT, .hash = "1b716bd48d4d399cfdf03881d62b07a352048271",
                 .bit = RLK_SCRIPT_FENCE},
  script_raise = {.text = RAISE_TEXT};

/* clang-format on */

/* ---- the requests ---- */

static int64_t wall_us(const redlock_lock *lock)
{
  const struct rlk_env *env = &lock->engine->net.env;
  return env->platform->wall_ns(env->context) / 1000;
}

/* All nodes should store the same number: from our clock, a little ahead, since nodes that store a larger one need
 * another round trip (rule D.1). */
static int64_t propose(redlock_lock *lock, int64_t now)
{
  (void)now;
  return wall_us(lock) + AHEAD_US;
}

/* The scripts call the key of the lock and that of its number. */
static int begin(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script, int arguments,
                 const struct rlk_claim *claim)
{
  const struct rlk_key *key = claim->key;
  const char *prefix = RLK_STRING(l->node->net, KEY_PREFIX);
  if (rlk_out_script(out, l, script, 2, arguments, key->bulk_size + strlen(prefix) + key->resource_size + 256) != 0)
    return -1;
  rlk_out_bytes(out, key->bulk, key->bulk_size);
  rlk_bulk_name(&l->out, prefix, "libredlock:f:", rlk_key_resource(key), key->resource_size);
  rlk_put_token(out, claim);
  return 0;
}

static int put_take(struct rlk_out *out, struct rlk_line *l, const struct rlk_claim *claim,
                    const struct rlk_number *ttl, int64_t proposal)
{
  if (begin(out, l, &script_take, 4, claim) != 0)
    return -1;
  rlk_out_bytes(out, ttl->bulk, ttl->size);
  rlk_out_number(out, proposal);
  rlk_out_bulk(out, "1", claim->number ? 1 : 0); /* the proposal is the number of a lock */
  return 0;
}

/* 1 and the number, 2 and the clock of a server that has no number yet, or 0 and 0. */
static uint8_t read_take(const struct rlk_request *r, const struct rlk_reply *reply)
{
  (void)r;
  if (!rlk_reply_is_pair(reply))
    return RLK_MISFIT;
  if (reply->integers[0] == 0 && reply->integers[1] == 0)
    return RLK_BUSY;
  return (reply->integers[0] == 1 || reply->integers[0] == 2) && reply->integers[1] > 0 ? RLK_GRANTED : RLK_MISFIT;
}

/* A node without a number yet has a value below 0: the negative of its clock. */
static void take_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_claim_node *at = &out->request.claim->node[n->index];
  if (out->fault == RLK_FAULT_NONE && out->vote == RLK_GRANTED)
    at->number = out->reply->integers[0] == 1 ? out->reply->integers[1] : -out->reply->integers[1];
  rlk_take_arrived(n, out);
}

const struct rlk_ask rlk_row_fenced = {"SET",
                                       .role = RLK_ASK_TAKE,
                                       .is_vote = 1,
                                       .finds_own = 1,
                                       .read = read_take,
                                       .wrong_type = RLK_BUSY,
                                       .again = rlk_take_again,
                                       .arrived = take_arrived};

/* Raises the number there to the claim's. */
static int ask_raise(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_request request = rlk_request_of(lock, lock->claim, &rlk_row_raise, now);
  struct rlk_out out;
  if (begin(&out, n->line, &script_raise, 2, lock->claim) != 0)
    return -1;
  rlk_out_number(&out, lock->claim->number);
  request.of.number = lock->claim->number;
  rlk_ask_end(&out, request);
  return 0;
}

static void raise_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  struct rlk_request *r = &out->request;
  redlock_lock *lock = rlk_vote_lock(r);
  int vote = rlk_vote_checked(n, r, out->vote, out->now_ns);
  rlk_vote_note_error(n, out);
  if (!lock || r->claim->given_up)
    return;
  if (vote == RLK_GRANTED)
    r->claim->node[n->index].number = r->of.number;
  else if (vote == RLK_GONE)
    rlk_lock_cut(lock, n->index, 0, REDLOCK_LOSS_GONE, out->now_ns);
  rlk_vote_note(lock, n->index, r, vote, out->now_ns);
}

const struct rlk_ask rlk_row_raise = {"the script of the fence", .is_vote = 1, .odd = RLK_GRANTED, .even = RLK_GONE,
                                      .arrived = raise_arrived};

/* ---- numbers that are too large ---- */

/* The time that the known clocks of a majority have reached. */
static int64_t majority_clock_us(const redlock_lock *lock, int64_t now)
{
  const struct rlk_engine *e = lock->engine;
  int64_t clocks_us[RLK_NODES_MAX];
  for (int i = 0; i < e->net.node_count; i++) {
    const struct rlk_clock *clock = &e->net.nodes[i].voter->clock;
    clocks_us[i] = clock->at_ns ? (now + clock->low_ns) / 1000 : 0;
  }
  return rlk_valid_until(clocks_us, e->net.node_count, e->quorum);
}

/* Our clock may be the one that is wrong. */
static int64_t trusted_us(const redlock_lock *lock, int64_t now)
{
  int64_t own_us = wall_us(lock), theirs_us = majority_clock_us(lock, now);
  int64_t trusted_us = (own_us > theirs_us ? own_us : theirs_us) + TRUSTED_US;
  return trusted_us < LARGEST ? trusted_us : LARGEST;
}

/* A node whose vote does not count may be the same server under another address. */
static int is_shared(const redlock_lock *lock, int64_t number)
{
  int nodes = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    nodes += lock->votes[i] == RLK_GRANTED && lock->claim->node[i].number >= number - NEAR;
  return nodes >= lock->engine->quorum;
}

static int is_doubted(const redlock_lock *lock, int node, int64_t trusted_us)
{
  int64_t number = lock->claim->node[node].number;
  return lock->votes[node] == RLK_GRANTED && number > trusted_us && !is_shared(lock, number) && !RLK_MUTANT(ANY_NUMBER);
}

static void refuse(redlock_lock *lock, int node)
{
  struct rlk_node_answer *answer = &lock->node_answers[node];
  char words[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  rlk_text_format(&text,
                  "its fencing number %lld is more than a day ahead of the clocks, and a majority has no such number",
                  (long long)lock->claim->node[node].number);
  free(answer->error);
  answer->error = strdup(words); /* without memory it is not shown */
  lock->votes[node] = RLK_ERROR;
  lock->claim->node[node].counts_until_ns = 0;
}

/* A number more than a day ahead of the clocks is open until a majority has one as large, and an error once no
 * remaining node can have one (rule D.3). */
static struct rlk_tally count(redlock_lock *lock, int64_t now)
{
  int nodes = lock->engine->net.node_count, doubted = 0;
  struct rlk_tally tally = rlk_count(lock->votes, nodes);
  int64_t trusted = tally.granted > 0 ? trusted_us(lock, now) : 0;
  for (int i = 0; i < nodes; i++)
    doubted += is_doubted(lock, i, trusted);
  if (!doubted)
    return tally;
  if (tally.granted - doubted < tally.quorum && tally.asked + tally.waiting > 0) { /* others may have one as large */
    tally.granted -= doubted;
    tally.answered -= doubted;
    tally.asked += doubted;
    return tally;
  }
  for (int i = 0; i < nodes; i++)
    if (is_doubted(lock, i, trusted))
      refuse(lock, i);
  return rlk_count(lock->votes, nodes);
}

/* ---- the number of the lock ---- */

/* Of nodes without a number whose clocks are ahead of the proposal: the time that most have reached. */
static int64_t first_number(const redlock_lock *lock)
{
  int64_t reached[RLK_NODES_MAX] = {0};
  int is_first = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int64_t number = lock->votes[i] == RLK_GRANTED ? lock->claim->node[i].number : 0;
    reached[i] = number < 0 ? -number : number;
    is_first |= number < 0;
  }
  return is_first ? rlk_valid_until(reached, lock->engine->net.node_count,
                                    RLK_MUTANT(FIRST_NUMBER_OF_ONE) ? 1 : lock->engine->quorum)
                  : 0;
}

/* The number of the lock is the largest that any of its nodes has drawn, including one that grants while others are
 * raised: if locks were removed by force meanwhile, another holder may have had the smaller number. */
static void draw(redlock_lock *lock, int64_t until_ns)
{
  struct rlk_claim *claim = lock->claim;
  if (!claim->number) {
    claim->settle_by_ns = until_ns;
    claim->number = first_number(lock);
  }
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_GRANTED && claim->node[i].number > claim->number)
      claim->number = claim->node[i].number;
}

static int is_behind(const redlock_lock *lock, int node)
{
  return lock->votes[node] == RLK_GRANTED && lock->claim->node[node].number < lock->claim->number;
}

/* Raises the number of a node that granted if it lags far behind, even if the lock does not need it: its clock may
 * never catch up, and one day that node may be needed for a majority. */
static void catch_up(redlock_lock *lock, int node, int64_t now)
{
  struct rlk_node *n = &lock->engine->net.nodes[node];
  int is_far = lock->claim->number && lock->claim->node[node].number < lock->claim->number - NEAR;
  if (is_far && n->state == RLK_NODE_READY && !RLK_MUTANT(FENCE_NOT_RAISED))
    ask_raise(n, lock, now); /* without memory it stays behind */
}

/* The node has granted but must raise its number: the vote that follows from that. */
static uint8_t raise_vote(redlock_lock *lock, int node, int64_t now)
{
  struct rlk_node *n = &lock->engine->net.nodes[node];
  int vote = rlk_node_can_ask(n, rlk_node_patience_ns(n, &lock->op.asked), now);
  if (vote == RLK_ASKED && ask_raise(n, lock, now) != 0)
    vote = RLK_DOWN;
  return (uint8_t)vote;
}

/* Whether a majority stores the number, so that every later winner draws a larger one. Where it is smaller it is
 * raised (rule D.1). Votes that arrive meanwhile must not fill in for leases that have ended: another client may
 * have held the lock in between, with a larger number (rule D.2). */
static int settle(redlock_lock *lock, int granted, int64_t until_ns, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  draw(lock, until_ns);
  for (int i = 0; i < e->net.node_count; i++)
    granted -= is_behind(lock, i);
  if (granted >= e->quorum || RLK_MUTANT(FENCE_NOT_RAISED)) {
    for (int i = 0; i < e->net.node_count; i++)
      if (is_behind(lock, i))
        catch_up(lock, i, now);
    return 1;
  }
  for (int i = 0; i < e->net.node_count; i++)
    if (is_behind(lock, i))
      lock->votes[i] = raise_vote(lock, i, now);
  rlk_round_time_answers(lock, now);
  return 0;
}

const struct rlk_kind rlk_fenced = {.name = "fenced",
                                    .take = &rlk_row_fenced,
                                    .put_take = put_take,
                                    RLK_PLAIN_KEY,
                                    .propose = propose,
                                    .count = count,
                                    .settle = settle,
                                    .joined = catch_up};

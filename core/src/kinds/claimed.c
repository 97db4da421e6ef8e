/* Locks taken by a script: of several resources, all or none of them on a node; shared ones, whose keys are sets of
 * readers (rules G.1 to G.3); and those whose key is a hash with the token as its only field. Any other resource held
 * exclusively has the same key and value as that of a plain lock. */
#include "../lock/asking.h"
#include "../lock/dispatch.h"
#include "../lock/holder.h"
#include "../lock/vote.h"
#include "../wait/others.h"
#include "../wait/place.h"
#include "kinds.h"

/* ---- the scripts ---- */

/* clang-format off */

/* Takes all keys or none (ARGV[4] is 1), extends them (0) or sets their remaining time (2). x: each holds the token
 * as a plain lock does. s: each is a sorted set of readers scored by the end of their leases, and lives as long as
 * the longest. A set with foreign members belongs to somebody else. If a string holds the same token it becomes a
 * set that ends no earlier than the string would have; a ZADD that meets it finds out, before it is deleted, whether
 * the server is full or denies that. New keys whose end is denied are not kept. h: each is a hash with the token as its
 * field. */
#define CLAIM_TEXT \
  "local call,K,n=redis.call,KEYS,#KEYS\n" \
  "local function ends(how,at)\n" \
  "  for i=1,n do if redis.pcall(how,K[i],at)~=1 then call('DEL',unpack(K)) return call(how,K[i],at) end end\n" \
  "  return {1}\n" \
  "end\n" \
  "local begins,exact,shared,hash=ARGV[4]=='1',ARGV[4]=='2',ARGV[3]=='s',ARGV[3]=='h'\n" \
  "if begins and ARGV[3]=='x' then\n" \
  "  local all={}\n" \
  "  for i=1,n do all[2*i-1]=K[i] all[2*i]=ARGV[1] end\n" \
  "  if call('MSETNX',unpack(all))==1 then return ends('PEXPIRE',ARGV[2]) end\n" \
  "end\n" \
  "local t=call('TIME')\n" \
  "local now=t[1]*1000+math.floor(t[2]/1000)\n" \
  "local till=now+ARGV[2]\n" \
  "local me='rl:'..ARGV[1]\n" \
  "if begins and shared and call('EXISTS',unpack(K))==0 then\n" \
  "  for i=1,n do call('ZADD',K[i],till,me) end\n" \
  "  return ends('PEXPIREAT',till)\n" \
  "end\n" \
  "local was,top={},{}\n" \
  "for i,k in ipairs(K) do\n" \
  "  local y,mine=call('TYPE',k).ok,false\n" \
  "  if y=='none' then mine=begins\n" \
  "  elseif y=='string' then mine=not hash and call('GET',k)==ARGV[1]\n" \
  "  elseif y=='hash' then mine=hash and call('HEXISTS',k,ARGV[1])==1\n" \
  "  elseif y=='zset' and shared then\n" \
  "    top[i]=call('ZRANGE',k,-1,-1,'WITHSCORES')\n" \
  "    mine=call('ZSCORE',k,me) or (begins and top[i][1]:find('^rl:%x+$'))\n" \
  "  end\n" \
  "  if not mine then return {begins and 0 or -1,i,call('PTTL',k)} end\n" \
  "  was[i]=y\n" \
  "end\n" \
  "for i,k in ipairs(K) do\n" \
  "  local y,at,v=was[i],till\n" \
  "  if shared then\n" \
  "    if y=='string' then\n" \
  "      if not exact then at=math.max(till,now+call('PTTL',k)) end\n" \
  "      v=redis.pcall('ZADD',k,at,me)\n" \
  "      if not v.err:find('WRONGTYPE',1,true) then return v end\n" \
  "      call('PEXPIREAT',k,at)\n" \
  "      call('DEL',k)\n" \
  "    elseif y=='zset' then call('ZREMRANGEBYSCORE',k,'-inf','('..now) end\n" \
  "    local s=y=='zset' and call('ZSCORE',k,me)\n" \
  "    if not s or exact or tonumber(s)<at then call('ZADD',k,at,me) end\n" \
  "    if exact then at=call('ZRANGE',k,-1,-1,'WITHSCORES')[2] end\n" \
  "    v=(exact or y~='zset' or tonumber(top[i][2])<at) and redis.pcall('PEXPIREAT',k,at)\n" \
  "  elseif y=='none' and not hash then call('SET',k,ARGV[1],'PX',ARGV[2])\n" \
  "  else\n" \
  "    if y=='none' then call('HSET',k,ARGV[1],'1') end\n" \
  "    v=(exact or call('PTTL',k)<tonumber(ARGV[2])) and redis.pcall('PEXPIRE',k,ARGV[2])\n" \
  "  end\n" \
  "  if type(v)=='table' then\n" \
  "    for j=1,i do if was[j]=='none' then call('DEL',K[j]) end end\n" \
  "    return v\n" \
  "  end\n" \
  "end\n" \
  "return {1}"

/* Deletes the token from the keys: from how many. A set of readers then ends with the longest remaining lease. */
#define DROP_TEXT \
  "local call,K,n,dropped=redis.call,KEYS,#KEYS,0\n" \
  "if ARGV[2]=='x' then\n" \
  "  local was=call('MGET',unpack(K))\n" \
  "  for i=1,n do if was[i]==ARGV[1] then dropped=dropped+1 end end\n" \
  "  if dropped==n then return call('DEL',unpack(K)) end\n" \
  "  for i=1,n do if was[i]==ARGV[1] then call('DEL',K[i]) end end\n" \
  "  return dropped\n" \
  "end\n" \
  "for _,k in ipairs(K) do\n" \
  "  local y,d=call('TYPE',k).ok,0\n" \
  "  if y=='string' and call('GET',k)==ARGV[1] then d=call('DEL',k)\n" \
  "  elseif y=='hash' and ARGV[2]=='h' then d=call('HDEL',k,ARGV[1])\n" \
  "  elseif y=='zset' and ARGV[2]=='s' then\n" \
  "    d=call('ZREM',k,'rl:'..ARGV[1])\n" \
  "    if d==1 and call('EXISTS',k)==1 then call('PEXPIREAT',k,call('ZRANGE',k,-1,-1,'WITHSCORES')[2]) end\n" \
  "  end\n" \
  "  dropped=dropped+d\n" \
  "end\n" \
  "return dropped"

static const struct rlk_script
  script_claim = {.text = CLAIM_TEXT, .hash = "0eaa4fb022fca1e3434185703e7e306a4c067ecc", .bit = RLK_SCRIPT_CLAIM},
  script_cut = {.text = CLAIM_TEXT}; /* rare, so always sent in full */
const struct rlk_script
  rlk_script_drop = {.text = DROP_TEXT, .hash = "f8afed4cb8d630b62e0d90e84f9931770e27b2ed", .bit = RLK_SCRIPT_DROP};

/* clang-format on */

/* ---- the requests ---- */

/* how: "1" begins, "0" goes on, "2" sets the end. */
static int claim_keys(struct rlk_out *out, struct rlk_line *l, const struct rlk_script *script,
                      const struct rlk_claim *claim, int64_t ttl_ms, const char *how)
{
  if (rlk_put_on_keys(out, l, script, 4, claim) != 0)
    return -1;
  rlk_out_number(out, ttl_ms);
  rlk_out_bulk(out, &claim->kind->form, 1);
  rlk_out_bulk(out, how, 1);
  return 0;
}

static int put_take(struct rlk_out *out, struct rlk_line *l, const struct rlk_claim *claim,
                    const struct rlk_number *ttl, int64_t proposal)
{
  (void)proposal;
  return claim_keys(out, l, &script_claim, claim, ttl->value, "1");
}

static int put_keep(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t ttl_ms)
{
  return claim_keys(out, l, &script_claim, claim, ttl_ms, "0");
}

static int put_cut(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t ttl_ms)
{
  return claim_keys(out, l, &script_cut, claim, ttl_ms, "2");
}

static const struct rlk_ask *put_give(struct rlk_out *out, struct rlk_line *l, struct rlk_claim *claim, int64_t now)
{
  (void)now;
  if (rlk_put_on_keys(out, l, &rlk_script_drop, 2, claim) != 0)
    return NULL;
  rlk_out_bulk(out, &claim->kind->form, 1);
  return &rlk_row_drop;
}

/* ---- the answers ---- */

/* Which of the keys is not its own, and how long that one lasts. */
static int names_another(const struct rlk_request *r, const struct rlk_reply *reply, int begins)
{
  return reply->type == RLK_REPLY_ARRAY && reply->elements == 3 && reply->count == 3 &&
         reply->integers[0] == (begins ? 0 : -1) && reply->integers[1] >= 1 &&
         reply->integers[1] <= (r->claim ? r->claim->key->count : RLK_RESOURCES_MAX) && reply->integers[2] >= -2;
}

static uint8_t read_take(const struct rlk_request *r, const struct rlk_reply *reply)
{
  return names_another(r, reply, 1) ? RLK_BUSY : RLK_MISFIT;
}

static uint8_t read_keep(const struct rlk_request *r, const struct rlk_reply *reply)
{
  return names_another(r, reply, 0) ? RLK_GONE : RLK_MISFIT;
}

static uint8_t read_renewal(const struct rlk_request *r, const struct rlk_reply *reply)
{
  return rlk_reply_is_answers(reply, 1) || names_another(r, reply, 0) ? RLK_FITS : RLK_MISFIT;
}

/* A node had the lock if it had the token under all keys. A token that was adopted, and that no extension has
 * confirmed, may never have had all of these keys: there one is enough. */
static uint8_t read_drop(const struct rlk_request *r, const struct rlk_reply *reply)
{
  const redlock_lock *lock = rlk_vote_lock(r);
  int adopted = lock && lock->round.number == r->round && lock->op.state_before == REDLOCK_STATE_ADOPTED;
  if (reply->type != RLK_REPLY_INTEGER)
    return RLK_MISFIT;
  return reply->integer >= (adopted ? 1 : r->claim->key->count) ? RLK_GRANTED : RLK_GONE;
}

static void take_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  if (out->fault == RLK_FAULT_NONE && out->vote == RLK_BUSY && lock && lock->round.number == out->request.round) {
    int64_t end_ns = rlk_pttl_end_ns(out->reply->integers[2], out->now_ns);
    lock->node_answers[n->index].part = (int)out->reply->integers[1] - 1;
    lock->node_answers[n->index].until_ns = end_ns ? end_ns : out->now_ns;
    if (rlk_is_single(lock) && lock->key->count > 1 && n->state == RLK_NODE_READY && !lock->claim->given_up)
      rlk_holder_ask_behind(lock, n, out->now_ns);
  }
  rlk_take_arrived(n, out);
}

/* clang-format off */
const struct rlk_ask
  rlk_row_claim = {"the claim script", .role = RLK_ASK_TAKE, .is_vote = 1, .finds_own = 1, .one = RLK_GRANTED,
                   .read = read_take, .again = rlk_take_again, .arrived = take_arrived},
  rlk_row_claim_on = {"the claim script", .is_vote = 1, .one = RLK_GRANTED, .read = read_keep,
                      .again = rlk_extend_again, .arrived = rlk_extend_arrived},
  rlk_row_claim_cut = {"the claim script", .is_vote = 1, .one = RLK_GRANTED, .read = read_keep,
                       .arrived = rlk_vote_expired},
  rlk_row_drop = {"the release script", .is_vote = 1, .read = read_drop,
                  .again = rlk_delete_again, .arrived = rlk_delete_arrived},
  rlk_row_claim_renew = {"the claim script", .is_vote = 1, .read = read_renewal,
                         .again = rlk_renew_again, .arrived = rlk_renew_arrived};
/* clang-format on */

/* ---- the kinds ---- */

#define A_HASH "a lock whose " RLK_NAMED("layout") " is hash"

/* These locks get no fencing numbers even if the client has fence on: 0, which a store refuses. */
static int check(const redlock_lock *lock, struct rlk_text *why)
{
  const char *what = lock->kind == &rlk_hash      ? A_HASH
                     : lock->kind == &rlk_several ? "a lock that is on several resources"
                                                  : "a lock that is " RLK_NAMED("shared");
  if (lock->kind == &rlk_hash && RLK_INT(&lock->options, SHARED))
    rlk_text_add(why, RLK_NAMED("shared") " is true; allowed for " A_HASH ": false");
  else if (lock->is_fenced && RLK_INT(&lock->options, FENCE))
    rlk_text_format(why, RLK_NAMED("fence") " is true; allowed for %s: false, since it has no fencing number", what);
  else
    return REDLOCK_OK;
  return REDLOCK_INVALID;
}

#define CLAIMED                                                                                                        \
  .take = &rlk_row_claim, .keep = &rlk_row_claim_on, .cut = &rlk_row_claim_cut, .renew = &rlk_row_claim_renew,         \
  .put_take = put_take, .put_keep = put_keep, .put_cut = put_cut, .put_give = put_give, .check = check,                \
  .leave = rlk_leave_behind, .tells_end = 1

const struct rlk_kind rlk_several = {.name = "several", .form = 'x', CLAIMED};
const struct rlk_kind rlk_hash = {.name = "hash", .form = 'h', .alone = A_HASH, CLAIMED};
const struct rlk_kind rlk_shared = {
    .name = "shared", .form = 's', .shares = 1, .many = 1, .let_in = rlk_others_let_in, CLAIMED};

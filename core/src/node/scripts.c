#include "scripts.h"

/* clang-format off */

/* No shebang: with one the scripts would be refused when a server is out of memory (rule A.7). A key of another type is
 * somebody else's; any other error is an error. */
#define IS_ERROR "type(v)=='table' and v.err and not v.err:find('WRONGTYPE',1,true)"

#define RELEASE_TEXT \
  "local v=redis.pcall('GET',KEYS[1])\n" \
  "if v==ARGV[1] then return redis.call('DEL',KEYS[1]) end\n" \
  "if " IS_ERROR " then return v end\n" \
  "return 0"

/* One script for all locks that are extended on a node. It never shortens a lease (rule B.2). */
#define EXTEND_TEXT \
  "local r={}\n" \
  "for i=1,#KEYS do\n" \
  "  local v=redis.pcall('GET',KEYS[i])\n" \
  "  if v==ARGV[i+1] then\n" \
  "    if redis.call('PTTL',KEYS[i])<tonumber(ARGV[1]) then redis.call('PEXPIRE',KEYS[i],ARGV[1]) end\n" \
  "    r[i]=1\n" \
  "  elseif " IS_ERROR " then return v\n" \
  "  else r[i]=0 end\n" \
  "end\n" \
  "return r"

/* May shorten a lease. */
#define EXPIRE_TEXT \
  "local v=redis.pcall('GET',KEYS[1])\n" \
  "if v==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n" \
  "if " IS_ERROR " then return v end\n" \
  "return 0"

/* Tries on an unused key whether a script may use the commands of the scripts above. */
#define PROOF_TEXT \
  "for _,c in ipairs({'GET','PTTL','PEXPIRE','DEL'}) do\n" \
  "  local v=redis.pcall(c,KEYS[1],unpack(c=='PEXPIRE' and {'1'} or {}))\n" \
  "  if type(v)=='table' and v.err then return redis.error_reply(v.err..' ('..c..')') end\n" \
  "end\n" \
  "return 0"

/* Wakes the first waiter. An odd place has a listener: if the message has no receiver, its client is gone. Where
 * PUBLISH is denied, the waiter is expected to ask. */
#define WAKE_THE_FIRST(channel, or_else) \
  "local at=0\n" \
  "for i=1,100 do\n" \
  "  local h=redis.pcall('ZRANGE',KEYS[2],at,at)[1]\n" \
  "  if not h or at>2" or_else " then break end\n" \
  "  if redis.pcall('PUBLISH'," channel "..h:sub(1,16),at==0 and h or h..'?')~=0 then break end\n" \
  "  if h:find('[13579]$') then\n" \
  "    redis.pcall('ZREM',KEYS[2],h)\n" \
  "    redis.pcall('ZREM',KEYS[3],h)\n" \
  "  else at=at+1 end\n" \
  "end\n"

/* The queue of waiters on the home node (rule F): a set of their places by arrival, and one of the times by which
 * each has promised to ask again. Whoever asks removes the places at the head that have missed theirs. A slow
 * request makes its sender seem to have arrived later: the earliest time counts. */
#define JOIN(first, look, wakes, or_else) \
  first \
  "local t=redis.call('TIME')\n" \
  "local now=t[1]*1000000+t[2]\n" \
  "for i=1,100 do\n" \
  "  local m=redis.call('ZRANGE',KEYS[2],0,0)[1]\n" \
  "  local u=m and redis.call('ZSCORE',KEYS[3],m)\n" \
  "  if not m or (u and tonumber(u)>now) then break end\n" \
  "  redis.call('ZREM',KEYS[2],m)\n" \
  "  redis.call('ZREM',KEYS[3],m)\n" \
  "end\n" \
  "local since=redis.call('ZSCORE',KEYS[2],ARGV[1])\n" \
  "if not since or now-ARGV[2]<tonumber(since) then redis.call('ZADD',KEYS[2],now-ARGV[2],ARGV[1]) end\n" \
  "local ttl=" look "\n" \
  wakes \
  WAKE_THE_FIRST("ARGV[6]", " or h==ARGV[1]" or_else) \
  "end\n" \
  "local rank=redis.call('ZRANK',KEYS[2],ARGV[1])\n" \
  "redis.call('ZADD',KEYS[3],now+ARGV[3]+math.min(rank*ARGV[4],ARGV[5]),ARGV[1])\n" \
  "redis.call('PEXPIRE',KEYS[2],60000)\n" \
  "redis.call('PEXPIRE',KEYS[3],60000)\n" \
  "return {rank,ttl}"

#define JOIN_TEXT JOIN("", "redis.call('PTTL',KEYS[1])", "if ttl==-2 then\n", "")

/* Where several may hold the lock at a time. It is open if one of its slots is free, the keys of which are the first
 * and those behind the promises, or, for readers, if it is a set of readers. The 17th byte of their places is a
 * slash. */
#define OPEN \
  "local function open(h)\n" \
  "  return redis.call('EXISTS',KEYS[1],unpack(KEYS,4))<#KEYS-2 or\n" \
  "    (h:byte(17)==47 and redis.call('TYPE',KEYS[1]).ok=='zset')\n" \
  "end\n"
#define FIRST_END \
  "local function first_end()\n" \
  "  local ttl=redis.call('PTTL',KEYS[1])\n" \
  "  for i=4,#KEYS do\n" \
  "    local p=redis.call('PTTL',KEYS[i])\n" \
  "    if p>=0 and (ttl<0 or p<ttl) then ttl=p end\n" \
  "  end\n" \
  "  return ttl\n" \
  "end\n"
/* Behind one that does not share the readers' set is not free: it waits for their end. */
#define STAND_TEXT \
  JOIN(OPEN FIRST_END, "open(ARGV[1]) and open(redis.call('ZRANGE',KEYS[2],0,0)[1]) and -2 or first_end()", "do\n", \
       " or not open(h)")

/* The release on the home node: removes the holder's place and wakes the first waiter. An error of the queue does
 * not fail the release. */
#define HAND_OVER_TEXT \
  "local v=redis.pcall('GET',KEYS[1])\n" \
  "local r=0\n" \
  "if v==ARGV[1] then r=redis.call('DEL',KEYS[1])\n" \
  "elseif " IS_ERROR " then return v end\n" \
  "if redis.pcall('EXISTS',KEYS[2])~=1 then return r end\n" \
  "if ARGV[2]~='' then\n" \
  "  redis.pcall('ZREM',KEYS[2],ARGV[2])\n" \
  "  redis.pcall('ZREM',KEYS[3],ARGV[2])\n" \
  "end\n" \
  WAKE_THE_FIRST("ARGV[3]", "") \
  "if redis.pcall('EXISTS',KEYS[2])==1 then r=r+2 end\n" \
  "return r"

/* Rare, so always sent in full. A waiter that leaves after its wake-up has not passed it on, so this script does. */
#define LEAVE_TEXT \
  "redis.pcall('ZREM',KEYS[2],ARGV[1])\n" \
  "redis.pcall('ZREM',KEYS[3],ARGV[1])\n" \
  "if redis.pcall('EXISTS',KEYS[1])==0 then\n" \
  WAKE_THE_FIRST("ARGV[2]", "") \
  "end\n" \
  "return 0"

/* The same where readers may hold the key; 2 if others wait. */
#define PART_TEXT \
  OPEN \
  "if redis.pcall('EXISTS',KEYS[2])~=1 then return 0 end\n" \
  "if ARGV[1]~='' then\n" \
  "  redis.pcall('ZREM',KEYS[2],ARGV[1])\n" \
  "  redis.pcall('ZREM',KEYS[3],ARGV[1])\n" \
  "end\n" \
  WAKE_THE_FIRST("ARGV[2]", " or not open(h)") \
  "return redis.pcall('EXISTS',KEYS[2])==1 and 2 or 0"

/* Writes the marker of the restart guard, with the server's time if ARGV[3] is empty, and returns it; or returns the
 * marker that another client has written since. */
#define REGISTER_TEXT \
  "local v=redis.call('GET',KEYS[1])\n" \
  "if v=='' or (v or '')~=ARGV[1] then return v or '' end\n" \
  "local s=ARGV[3]\n" \
  "if s=='' then local t=redis.call('TIME') s=string.format('%.0f',t[1]*1000+math.floor(t[2]/1000)) end\n" \
  "v=ARGV[2]..s..ARGV[4]\n" \
  "redis.call('SET',KEYS[1],v)\n" \
  "return v"

const struct rlk_script
  rlk_script_release = {.text = RELEASE_TEXT, .hash = RLK_RELEASE_HASH,
                        .bit = RLK_SCRIPT_RELEASE},
  rlk_script_extend = {.text = EXTEND_TEXT, .hash = "ca415a373b3ba5c110a30e62c094e553b1d61b1b",
                       .bit = RLK_SCRIPT_EXTEND},
  rlk_script_join = {.text = JOIN_TEXT, .hash = "bd45f9324e811027571917f2632b8d36391bc94c",
                     .bit = RLK_SCRIPT_JOIN},
  rlk_script_hand_over = {.text = HAND_OVER_TEXT, .hash = "9ea4742bc93a16874a475cecb8ce7cdfc7c63252",
                          .bit = RLK_SCRIPT_HAND_OVER},
  rlk_script_stand = {.text = STAND_TEXT, .hash = "d7f782e0b5dffc3706b92f8b95c35958455d5cf0",
                      .bit = RLK_SCRIPT_STAND},
  rlk_script_part = {.text = PART_TEXT, .hash = "a10c7a2b650e4e1fd52c9144df66ea2f91f275a9", .bit = RLK_SCRIPT_PART},
  rlk_script_leave = {.text = LEAVE_TEXT},
  rlk_script_proof = {.text = PROOF_TEXT},
  rlk_script_register = {.text = REGISTER_TEXT},
  rlk_script_expire = {.text = EXPIRE_TEXT};

/* clang-format on */

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

/* The queue of waiters on a node (rule F): Q, their places by arrival, and P, the times by which each has promised to
 * ask again. The 17th byte of a place is a slash if it shares, else a colon; an "s" follows for a lock of several
 * resources, and "p", a number and a comma for one slot alone; an odd number at its end has a listener. P also has "o"
 * and the place of a lock of several resources, by the time until which that lets others pass. The slots of a resource
 * have the first key and those behind P. The last three digits of a promise are no time: so many waiters of its client
 * stand behind the place (999: or more), for those who look.
 *   by: the promise at that time, in whole milliseconds, with those digits
 *   gone: takes a place out; 1 if the server refuses that, else 0
 *   time: what a place has promised; 0 if that is broken, or is none, as it lies too far ahead
 *   free: whether what it wants can be had here
 *   passes: whether others may go ahead of it: it lets them, or waits for a slot that is taken
 *   wake: wakes the first that can have what it wants, and all readers up to the next writer; whether any are left.
 *         After a release (R, 1 if that has deleted the key) a place that wants the key alone is woken whatever is
 *         under the key: it may be a leftover. An asker (R is nil) adds "!"; everybody else also wakes the first lock
 *         of several that lets others pass: it may be its turn now. Woken, it has W us to ask again, from the first
 *         wake-up. Without a receiver its client is gone. Where PUBLISH is denied, the waiter is expected to ask. The
 *         third behind it is told by a "?" to ask when that time is over, as some may hang; not again by those who ask
 *         meanwhile. That is published first: servers write out the last message first. */
#define QUEUE(channel, woken_us) \
  "local Q,P=KEYS[2],KEYS[3]\n" \
  "local t=redis.call('TIME')\n" \
  "local now=t[1]*1000000+t[2]\n" \
  "local most=now+" RLK_PROMISE_MAX_US "\n" \
  "local function gone(h)\n" \
  "  redis.pcall('ZREM',P,h)\n" \
  "  return type(redis.pcall('ZREM',Q,h))=='number' and 0 or 1\n" \
  "end\n" \
  "local function time(h)\n" \
  "  local u=redis.pcall('ZSCORE',P,h)\n" \
  "  u=type(u)=='string' and tonumber(u) or 0\n" \
  "  return u>now and u<most and u or 0\n" \
  "end\n" \
  "local function by(u,behind) return math.ceil(math.min(u,most-2000)/1000)*1000+behind end\n" \
  "local function slot(h) return #KEYS>3 and tonumber(h:match('^[^,]*p(%d+),')) end\n" \
  "local function free(h)\n" \
  "  local i=slot(h)\n" \
  "  if i then return redis.pcall('EXISTS',i>0 and KEYS[i+3] or KEYS[1])==0 end\n" \
  "  local n=redis.pcall('EXISTS',KEYS[1],unpack(KEYS,4))\n" \
  "  return type(n)=='number' and n<#KEYS-2 or (h:byte(17)==47 and redis.pcall('TYPE',KEYS[1]).ok=='zset')\n" \
  "end\n" \
  "local function passes(h)\n" \
  "  if h:byte(18)==115 then return time('o'..h)>0 end\n" \
  "  return slot(h) and not free(h)\n" \
  "end\n" \
  "local function send(h,sign) return redis.pcall('PUBLISH'," channel "..h:sub(1,16),h..sign) end\n" \
  "local function wake(R)\n" \
  "  local at,woken,set,W=0,0,R==nil,nil\n" \
  "  for i=1,1000 do\n" \
  "    W=redis.pcall('ZRANGE',Q,at,at+3)\n" \
  "    local h=W[1]\n" \
  "    if not h then break end\n" \
  "    local shares,u,open=h:byte(17)==47,time(h),passes(h)\n" \
  "    local alone=R and not shares and #KEYS==3\n" \
  "    if u==0 then at=at+gone(h)\n" \
  "    elseif open and (set or h:byte(18)~=115) then at=at+1\n" \
  "    elseif woken>0 and not shares and not open then break\n" \
  "    elseif not (open or alone and (R==1 or redis.pcall('TYPE',KEYS[1]).ok~='zset') or free(h)) then break\n" \
  "    else\n" \
  "      local v=by(now+" woken_us ",u%1000)\n" \
  "      if W[2] and woken==0 and not open and (R or u>v) then send(W[#W],'?') end\n" \
  "      if send(h,R and '' or '!')==0 and h:find('[13579]$') then at=at+gone(h)\n" \
  "      elseif open then at,set=at+1,true\n" \
  "      else\n" \
  "        if h:find('[13579]$') and u>v then redis.pcall('ZADD',P,v,h) end\n" \
  "        at,woken=at+1,woken+1\n" \
  "        if not shares or woken==64 then break end\n" \
  "      end\n" \
  "    end\n" \
  "  end\n" \
  "  return at>0 or W[1]\n" \
  "end\n"

/* Takes a place or keeps it, by its new name if a listener has come or gone, and promises to ask again: {how many are
 * before it, when the key ends}. The first is 0 for one that nobody excludes who is before it, or -n if n of those are
 * readers as it is; of several resources it is 1 if no other such lock is before it. The second is -2 if what it wants
 * can be had here; who finds that and is not the first wakes the first. A slow request makes its sender seem to have
 * arrived later, so the earliest time counts; ARGV[8] gives the time itself, and ARGV[9] for how long others may pass.
 * ARGV[10] waiters stand behind it. Who could not take the place back (ZREM is denied) gets none. The first write takes
 * no memory: a server whose memory is full allows all writes after it. */
#define ASK_TEXT \
  QUEUE("ARGV[7]", "ARGV[6]") \
  "for i=1,1000 do\n" \
  "  local m=redis.pcall('ZRANGE',P,0,0,'WITHSCORES')\n" \
  "  if not m[1] or tonumber(m[2])>now then m=redis.pcall('ZRANGE',P,-1,-1,'WITHSCORES') end\n" \
  "  if not m[1] or (tonumber(m[2])>now and tonumber(m[2])<most) then break end\n" \
  "  if gone(m[1])>0 then break end\n" \
  "end\n" \
  "local me,open=ARGV[1],tonumber(ARGV[9])\n" \
  "local since,at=redis.call('ZSCORE',Q,me),tonumber(ARGV[8]) or now-ARGV[2]\n" \
  "local ends=redis.pcall('PEXPIRE',Q,60000)\n" \
  "if not since then\n" \
  "  local digit=tonumber(me:sub(-1))\n" \
  "  local other=me:sub(1,-2)..(digit%2==0 and digit+1 or digit-1)\n" \
  "  redis.call('ZREM',Q,other)\n" \
  "  redis.call('ZREM',P,other)\n" \
  "  if open then gone('o'..other) end\n" \
  "end\n" \
  "if not since or at<tonumber(since) then redis.call('ZADD',Q,string.format('%.0f',at),me) end\n" \
  "if open then\n" \
  "  if open>0 then redis.call('ZADD',P,now+open,'o'..me) else redis.call('ZREM',P,'o'..me) end\n" \
  "end\n" \
  "local n,shares,rank,readers=redis.call('ZRANK',Q,me),me:byte(17)==47,0,0\n" \
  "redis.call('ZADD',P,by(now+ARGV[3]+math.min(n*ARGV[4],ARGV[5]),ARGV[10]),me)\n" \
  "if not since then ends=redis.pcall('PEXPIRE',Q,60000) end\n" \
  "if ends~=1 then gone(me) gone('o'..me) end\n" \
  "redis.call('PEXPIRE',P,60000)\n" \
  "if n>200 then rank=n end\n" \
  "local some=redis.call('ZRANGE',Q,0,7)\n" \
  "for i=0,math.min(n,200)-1 do\n" \
  "  if i>0 and i%8==0 then some=redis.call('ZRANGE',Q,i,i+7) end\n" \
  "  local h=some[i%8+1]\n" \
  "  if not h or rank>1 then break end\n" \
  "  if open then rank=h:byte(18)==115 and n+1 or 1\n" \
  "  elseif shares and h:byte(17)==47 then readers=readers+1\n" \
  "  elseif not passes(h) then rank=n end\n" \
  "end\n" \
  "if rank==0 then rank=-readers end\n" \
  "if free(me) then\n" \
  "  if rank>0 or (open or 0)>0 then wake() end\n" \
  "  return {rank,-2}\n" \
  "end\n" \
  "local ttl=redis.call('PTTL',KEYS[1])\n" \
  "for i=4,#KEYS do\n" \
  "  local p=redis.call('PTTL',KEYS[i])\n" \
  "  if p>=0 and (ttl<0 or p<ttl) then ttl=p end\n" \
  "end\n" \
  "return {rank,ttl}"

/* The release of a plain key where there may be a queue: removes the place of the holder and wakes the first. An error
 * of the queue does not fail the release. */
#define HAND_OVER_TEXT \
  "local v=redis.pcall('GET',KEYS[1])\n" \
  "local r=0\n" \
  "if v==ARGV[1] then r=redis.call('DEL',KEYS[1])\n" \
  "elseif " IS_ERROR " then return v end\n" \
  "if redis.pcall('EXISTS',KEYS[2])~=1 then return r end\n" \
  QUEUE("ARGV[3]", "ARGV[4]") \
  "gone(ARGV[2])\n" \
  "return wake(r) and r+2 or r"

/* Gives a place back. A waiter that leaves after its wake-up has not passed it on, so this script does, and it is the
 * rest of a release if ARGV[4] is not empty. 2 if others wait. */
#define LEAVE_TEXT \
  "if redis.pcall('EXISTS',KEYS[2])~=1 then return 0 end\n" \
  QUEUE("ARGV[2]", "ARGV[3]") \
  "gone(ARGV[1])\n" \
  "gone('o'..ARGV[1])\n" \
  "return wake(ARGV[4]~='' and 0) and 2 or 0"

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
  rlk_script_ask = {.text = ASK_TEXT, .hash = "17881458c620b4735db87ff85a8fe54fa1b756cc", .bit = RLK_SCRIPT_ASK},
  rlk_script_hand_over = {.text = HAND_OVER_TEXT, .hash = "22fa497eea41a0219ab757072800e66f8c062799",
                          .bit = RLK_SCRIPT_HAND_OVER},
  rlk_script_leave = {.text = LEAVE_TEXT, .hash = "abce1030ed3ad376daae805f4a17600afe62a30b", .bit = RLK_SCRIPT_LEAVE},
  rlk_script_proof = {.text = PROOF_TEXT},
  rlk_script_register = {.text = REGISTER_TEXT},
  rlk_script_expire = {.text = EXPIRE_TEXT};

/* clang-format on */

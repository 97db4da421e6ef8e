#include "listing.h"

#include <stdlib.h>
#include <string.h>

#include "asking.h"
#include "kind.h"
#include "lease.h"
#include "operation.h"
#include "round.h"
#include "vote.h"

#define MS RLK_NS_PER_MS
#define TICK_NS (10 * MS) /* a server answers others between two questions: 25,000 keys per second at most */

enum { KEYS_PER_QUESTION = 250, ROWS_PER_QUESTION = 50 };

/* ---- the scripts: their replies are texts of fields, each behind its size and a colon ---- */

/* form: s a token, h one as the only field of a hash, r readers, with the token of the longest lease; o other */
#define FORM                                                                                                           \
  "local out,bad={},nil\n"                                                                                             \
  "local function put(v) out[#out+1]=#v..':'..v end\n"                                                                 \
  "local function ours(v) return #v==40 and v:find('^[%da-f]+p?%d*$') end\n"                                           \
  "local function form(k)\n"                                                                                           \
  "  local v=redis.pcall('GETRANGE',k,0,40)\n"                                                                         \
  "  if type(v)=='string' then return ours(v) and 's' or 'o',ours(v) and v or '' end\n"                                \
  "  if not v.err:find('WRONGTYPE',1,true) then bad=v end\n"                                                           \
  "  local t=(redis.pcall('ZRANGE',k,-1,-1)[1] or ''):match('^rl:(%x+)$')\n"                                           \
  "  if t then return 'r',t:sub(1,40) end\n"                                                                           \
  "  v=redis.pcall('HRANDFIELD',k,2)\n"                                                                                \
  "  if v[1] and not v[2] and ours(v[1]) then return 'h',v[1] end\n"                                                   \
  "  return 'o',''\n"                                                                                                  \
  "end\n"

/* The next cursor, then slot and name of the keys of locks there. The two questions go through the same keys, unless
 * the server changes its table between them. */
static const struct rlk_script script_names = {
    .text = FORM "local prefix=ARGV[3]\n"
                 "local own=prefix..'libredlock:'\n"
                 "local function scan(glob)\n"
                 "  local v=redis.pcall('SCAN',ARGV[1],'MATCH',glob,'COUNT',ARGV[2])\n"
                 "  if v.err then bad=redis.error_reply(v.err:sub(1,100)..' (SCAN)') end\n"
                 "  return v\n"
                 "end\n"
                 "local locks,slots\n"
                 "for i=1,9 do\n"
                 "  locks,slots=scan(ARGV[4]),scan(ARGV[5])\n"
                 "  if bad then return bad end\n"
                 "  if locks[1]==slots[1] then break end\n"
                 "end\n"
                 "put(locks[1])\n"
                 "local function add(k,slot,r)\n"
                 "  if not r or #r>2000 or r:sub(1,11)=='libredlock:' or form(k)=='o' then return end\n"
                 "  put(slot) put(r)\n"
                 "end\n"
                 "for _,k in ipairs(locks[2]) do\n"
                 "  if k:sub(1,11)~='libredlock:' and #k>#prefix then add(k,'0',k:sub(#prefix+1)) end\n"
                 "end\n"
                 "for _,k in ipairs(slots[2]) do add(k,k:sub(#own+1):match('^s:([1-9]%d?%d?):(.+)$')) end\n"
                 "return bad or table.concat(out)"};

/* For each slot and name: the form, token, PTTL and readers of its key, the entry of the holder's client, how many
 * wait, the entry of the client of the first of these, and for how many ms that has waited. The place of a holder that
 * has waited stands until it releases: of two of its client the first is no waiter. */
static const struct rlk_script script_rows = {
    .text =
        FORM "local own=ARGV[1]..'libredlock:'\n"
             "local t=redis.call('TIME')\n"
             "local now=t[1]*1000000+t[2]\n"
             "local function range(k,from,to) return redis.pcall('ZRANGE',k,from,to,'WITHSCORES') end\n"
             "local function entry(c)\n"
             "  local v=c~='' and redis.pcall('GETRANGE',own..'c:'..c:sub(1,12),0,255) or ''\n"
             "  return type(v)=='string' and v or ''\n"
             "end\n"
             "local function waiters(r,client)\n"
             "  local promises,line,mine=range(own..'p:'..r,0,2999),{},nil\n"
             "  for i=1,#promises,2 do promises[promises[i]]=tonumber(promises[i+1]) end\n"
             "  local places=range(own..'q:'..r,0,999)\n"
             "  for i=1,#places,2 do\n"
             "    local h,u=places[i],promises[places[i]]\n"
             "    if u and u>now and u<now+" RLK_PROMISE_MAX_US " then\n"
             "      if client~='' and h:sub(1,12)==client then\n"
             "        if mine and mine>0 then table.remove(line,mine) mine=0 end\n"
             "        mine=mine or #line+1\n"
             "      end\n"
             "      line[#line+1]={h,1+math.floor(u)%1000,tonumber(places[i+1])}\n"
             "    end\n"
             "  end\n"
             "  return line\n"
             "end\n"
             "for i=2,#ARGV,2 do\n"
             "  local r=ARGV[i+1]\n"
             "  local k=ARGV[i]=='0' and ARGV[1]..r or own..'s:'..ARGV[i]..':'..r\n"
             "  local ttl,y,token,readers=redis.call('PTTL',k),'','',0\n"
             "  if ttl~=-2 then y,token=form(k) end\n"
             "  if y=='r' then\n"
             "    local all=range(k,-1000,-1)\n"
             "    for j=2,#all,2 do if tonumber(all[j])>now/1000 then readers=readers+1 end end\n"
             "  end\n"
             "  local line=waiters(r,y~='r' and not token:find('p') and token:sub(1,12) or '')\n"
             "  local waiting,first=0,line[1]\n"
             "  for _,one in ipairs(line) do waiting=waiting+one[2] end\n"
             "  put(y) put(token) put(string.format('%.0f',ttl)) put(readers..'') put(entry(token)) put(waiting..'')\n"
             "  put(first and entry(first[1]) or '') put(string.format('%.0f',first and (now-first[3])/1000 or 0))\n"
             "end\n"
             "return bad or table.concat(out)"};

/* ---- questions ---- */

/* A name without the marks of a pattern; NULL: it is a pattern, or memory is out. */
static char *name_in(const char *pattern, size_t size, size_t *name_size)
{
  char *name = calloc(1, size + 1);
  *name_size = 0;
  for (size_t i = 0; name && i < size; i++) {
    if (strchr("*?[", pattern[i]) && pattern[i]) {
      free(name);
      return NULL;
    }
    i += pattern[i] == '\\' && i + 1 < size;
    name[(*name_size)++] = pattern[i];
  }
  return name;
}

static size_t escape_prefix(const char *prefix, char *out)
{
  char *at = out;
  for (; *prefix; *at++ = *prefix++)
    if (strchr("*?[]\\^-", *prefix))
      *at++ = '\\';
  *at = 0;
  return (size_t)(at - out);
}

static int put_globs(redlock_lock *lock)
{
  struct rlk_listing *list = lock->listing;
  char prefix[2 * RLK_PREFIX_SIZE_MAX + 2];
  struct rlk_buffer out = {0};
  escape_prefix(RLK_STRING(&lock->engine->net, KEY_PREFIX), prefix);
  if (rlk_buffer_reserve(&out, 2 * (sizeof prefix + lock->key->resource_size) + 128) != 0)
    return REDLOCK_NO_MEMORY;
  rlk_bulk_name(&out, prefix, "", rlk_key_resource(lock->key), lock->key->resource_size);
  rlk_bulk_name(&out, prefix, "libredlock:s:*:", rlk_key_resource(lock->key), lock->key->resource_size);
  list->globs = out.data;
  list->globs_size = out.end;
  return REDLOCK_OK;
}

/* The lock of that name; of permits each slot, or the one that is named. */
static void put_name(redlock_lock *lock, const char *name, size_t size)
{
  int slots = rlk_lock_slots(lock), slot = slots ? (int)RLK_INT(&lock->options, SLOT) : -1;
  lock->listing->is_exact = 1;
  if (slot >= 0)
    rlk_listing_add(lock, name, size, slot);
  for (int i = 0; slot < 0 && i < (slots ? slots : 1); i++)
    rlk_listing_add(lock, name, size, i);
}

static int put_pattern(redlock_lock *lock)
{
  size_t size;
  char *name = name_in(rlk_key_resource(lock->key), lock->key->resource_size, &size);
  if (!name)
    return put_globs(lock);
  put_name(lock, name, size);
  free(name);
  return REDLOCK_OK;
}

static const struct rlk_ask row_names, row_rows;

static void put_text(struct rlk_out *out, const char *text)
{
  rlk_out_bulk(out, text, strlen(text));
}

static int ask_names(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  const struct rlk_listing *list = lock->listing;
  struct rlk_out out;
  if (rlk_out_script(&out, n->line, &script_names, 0, 5, list->globs_size + RLK_PREFIX_SIZE_MAX + 128) != 0)
    return -1;
  put_text(&out, list->nodes[n->index].cursor);
  rlk_out_number(&out, KEYS_PER_QUESTION);
  put_text(&out, RLK_STRING(n->net, KEY_PREFIX));
  rlk_out_bytes(&out, list->globs, list->globs_size);
  rlk_ask_end(&out, rlk_request_of(lock, lock->op.probe, &row_names, now));
  return 0;
}

static int ask_rows(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  struct rlk_listing *list = lock->listing;
  size_t room = RLK_PREFIX_SIZE_MAX + 64;
  struct rlk_out out;
  for (int i = list->first; i < list->first + list->batch; i++)
    room += list->rows[i]->size + 64;
  if (rlk_out_script(&out, n->line, &script_rows, 0, 1 + 2 * list->batch, room) != 0)
    return -1;
  put_text(&out, RLK_STRING(n->net, KEY_PREFIX));
  for (int i = list->first; i < list->first + list->batch; i++) {
    rlk_out_number(&out, list->rows[i]->slot);
    rlk_out_bulk(&out, list->rows[i]->resource, list->rows[i]->size);
  }
  rlk_ask_end(&out, rlk_request_of(lock, lock->op.probe, &row_rows, now));
  return 0;
}

static int ask_list(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  lock->listing->nodes[n->index].asked_ns = now;
  return lock->listing->batch ? ask_rows(n, lock, now) : ask_names(n, lock, now);
}

/* ---- answers ---- */

static int take_names(redlock_lock *lock, int node, struct rlk_field rest)
{
  struct rlk_listing *list = lock->listing;
  char *cursor = list->nodes[node].cursor;
  struct rlk_field next, slot, name;
  if (!rlk_field_take(&rest, &next) || !next.size || next.size >= sizeof list->nodes[node].cursor)
    return 0;
  memset(cursor, 0, sizeof list->nodes[node].cursor);
  memcpy(cursor, next.bytes, next.size);
  while (rlk_field_take(&rest, &slot) && rlk_field_take(&rest, &name))
    rlk_listing_add(lock, name.bytes, name.size, (int)rlk_field_number(&slot));
  list->keys += KEYS_PER_QUESTION;
  return 1;
}

/* 1: the node has answered; what is left to ask it waits for the timer. */
static int answered(redlock_lock *lock, int node, const struct rlk_outcome *out)
{
  struct rlk_listing *list = lock->listing;
  struct rlk_field rest = {out->reply->text.data, out->reply->text.end};
  if (out->request.ask == &row_rows)
    return rlk_listing_take_rows(lock, node, rest, out->now_ns);
  if (!take_names(lock, node, rest))
    return 0;
  if (strcmp(list->nodes[node].cursor, "0") != 0 && !list->is_cut)
    list->due |= UINT64_C(1) << node;
  return 1;
}

static void list_arrived(struct rlk_node *n, struct rlk_outcome *out)
{
  redlock_lock *lock = rlk_vote_lock(&out->request);
  uint64_t bit = UINT64_C(1) << n->index;
  int is_good;
  if (!lock || !rlk_in_flight(lock) || lock->round.number != out->request.round || !lock->listing)
    return;
  is_good = !out->fault && out->reply->type == RLK_REPLY_STRING && answered(lock, n->index, out);
  if (lock->listing->due & bit)
    return;
  rlk_vote_note_error(n, out);
  lock->listing->whole = is_good ? lock->listing->whole | bit : lock->listing->whole & ~bit;
  rlk_vote_note(lock, n->index, &out->request, is_good ? RLK_GRANTED : out->fault ? out->vote : RLK_ERROR, out->now_ns);
}

static const struct rlk_ask row_names = {"the list script", .is_vote = 1, .rest = RLK_FITS, .arrived = list_arrived};
static const struct rlk_ask row_rows = {"the list script", .is_vote = 1, .rest = RLK_FITS, .arrived = list_arrived};

/* ---- the operation ---- */

static int verdict(const redlock_lock *lock)
{
  struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
  int needed = tally.nodes - tally.quorum + 1; /* so many meet each majority */
  if (__builtin_popcountll(lock->listing->whole) >= needed)
    return REDLOCK_OK;
  return tally.nodes - tally.refused < needed ? REDLOCK_REFUSED_CONFIG : REDLOCK_NO_QUORUM;
}

/* Asks the nodes that have told all so far about the next rows; 0: there are none. */
static int next_rows(redlock_lock *lock, int64_t now)
{
  struct rlk_listing *list = lock->listing;
  int left = list->count - list->first - list->batch;
  list->first += list->batch;
  list->batch = left < ROWS_PER_QUESTION ? left : ROWS_PER_QUESTION;
  if (!list->batch || !list->whole)
    return 0;
  lock->round.number++;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (list->whole >> i & 1)
      rlk_round_ask_or_note(lock, i, now);
  return 1;
}

static int advance_list(redlock_lock *lock, int64_t now)
{
  struct rlk_listing *list = lock->listing;
  for (;;) {
    struct rlk_tally tally = rlk_count(lock->votes, lock->engine->net.node_count);
    if (tally.waiting + tally.retrying + tally.asked > 0)
      return REDLOCK_PENDING;
    if (!next_rows(lock, now))
      break;
  }
  rlk_listing_keep(lock, list->first);
  return verdict(lock);
}

static int is_out_of_time(const redlock_lock *lock, int node, int64_t now)
{
  int64_t limit_ns = RLK_INT(&lock->engine->net.options, CONNECT_TIMEOUT_MS) * MS;
  if (rlk_round_awaits(lock, node))
    return now - lock->round.asked_all_ns >= limit_ns;
  return lock->votes[node] == RLK_ASKED && now - lock->listing->nodes[node].asked_ns >= limit_ns;
}

static int list_timer(redlock_lock *lock, int64_t now)
{
  struct rlk_listing *list = lock->listing;
  if (now >= lock->op.deadline_ns) {
    rlk_round_close(lock);
    rlk_listing_keep(lock, list->is_exact ? list->count : list->first);
    list->is_cut |= !list->is_exact;
    return REDLOCK_TIMED_OUT;
  }
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    uint64_t bit = UINT64_C(1) << i;
    if (list->due & bit && lock->votes[i] == RLK_ASKED) {
      rlk_round_ask_or_note(lock, i, now);
    } else if (is_out_of_time(lock, i, now)) {
      lock->votes[i] = lock->votes[i] == RLK_ASKED          ? RLK_LATE
                       : lock->engine->net.nodes[i].refused ? RLK_REFUSED
                                                            : RLK_DOWN;
      list->whole &= ~bit;
    }
    list->due &= ~bit;
  }
  rlk_round_set_timer(lock, now + TICK_NS);
  return advance_list(lock, now);
}

static int begin_list(redlock_lock *lock, const struct rlk_call *call, int64_t now)
{
  int status;
  if (lock->key->count > 1)
    return rlk_lock_refuse(lock, "list: this handle has several resources; give one pattern");
  if (call->arg < -1)
    return rlk_lock_refuse(lock, "list: the limit is 0 ms or more, or -1 for none");
  rlk_listing_drop(lock);
  lock->listing = calloc(1, sizeof *lock->listing);
  lock->op.probe = lock->listing ? rlk_claim_new(lock) : NULL; /* carries the answers; its token is never sent */
  status = lock->op.probe ? put_pattern(lock) : REDLOCK_NO_MEMORY;
  if (status == REDLOCK_OK && lock->listing->is_cut)
    status = REDLOCK_NO_MEMORY;
  if (status != REDLOCK_OK) {
    rlk_claim_let_go(lock->engine, &lock->op.probe);
    return status;
  }
  for (int i = 0; i < lock->engine->net.node_count; i++)
    strcpy(lock->listing->nodes[i].cursor, "0");
  lock->listing->batch = lock->listing->count; /* of a name there is nothing to look for */
  rlk_flight_begin(lock, call->verb);
  lock->op.asking_again = 1; /* the timer is not that of a round */
  lock->op.deadline_ns = rlk_limit_ends(call->arg, now);
  rlk_round_clear(lock);
  rlk_round_ask_all(lock, -1, now);
  rlk_round_set_timer(lock, now + TICK_NS);
  return advance_list(lock, now);
}

const struct rlk_verb rlk_list = {.kind = REDLOCK_LIST,
                                  .name = "list",
                                  .asks_everybody = 1,
                                  .begin = begin_list,
                                  .ask = ask_list,
                                  .advance = advance_list,
                                  .timer = list_timer};
